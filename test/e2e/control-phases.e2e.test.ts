/**
 * Cancel and abort, wherever they meet a run (design.md section 4, Control). What is in flight is recorded, what is unresolved is
 * resolved first, and afterwards another run makes the destination exact, with nothing sent twice.
 */

import { setTimeout as sleep } from 'node:timers/promises';
import type { WorkflowHandleWithFirstExecutionRunId as Handle } from '@temporalio/client';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import type { Ending } from '../../src/client/failure.ts';
import { LEDGER_WORKER, LedgerScene } from '../support/ledger-scene.ts';
import { System } from '../support/system.ts';
import { HttpScene, type HttpSceneOptions } from '../support/system-destinations.ts';
import { ending, eventually } from '../support/system-scene.ts';

vi.setConfig({ testTimeout: 180_000 });

let system: System;
beforeAll(async () => {
  system = await System.start({ worker: LEDGER_WORKER });
  await system.startWorker();
}, 120_000);
afterAll(() => system.stop());

/** Longer than a heartbeat takes to bring the news. */
const IN_FLIGHT_MS = 5_000;
const FINISH = { method: 'POST', path: '/finish', body: { json: { members: [] } } };
const SLOW_READ = 'select id, plan from $table, (select pg_sleep(20)) s';

type Asked = 'cancel' | 'abort';
type Verdict = 'accepted' | 'not-applied';

interface Stage {
  readonly options?: HttpSceneOptions;
  /** Before the run that is met. */
  readonly before?: (scene: HttpScene) => Promise<void>;
  /** Brings the run to where it is met. */
  readonly reach: (scene: HttpScene, handle: Handle) => Promise<unknown>;
  /** Requests that change something until then, and in the end. */
  readonly writes: { readonly met: number; readonly cancel: number; readonly abort: number };
}

const held = (scene: HttpScene) => scene.audience.fault({ kind: 'delay', ms: IN_FLIGHT_MS });
const lost = (scene: HttpScene) => scene.audience.fault({ kind: 'reset', applied: true });
const fine = (scene: HttpScene) => scene.audience.fault({ kind: 'rows' });

/** Ten members, five in each request. */
const STAGES = {
  extracting: {
    options: { query: SLOW_READ },
    reach: ({ table }) =>
      eventually(async () => {
        const { rows } = await system.source.query(
          `select from pg_stat_activity where query like '%pg_sleep(20)%' and query like '%' || $1 || '%' and state = 'active'
             and pid <> pg_backend_pid()`,
          [table],
        );
        return rows.length === 1;
      }),
    writes: { met: 0, cancel: 2, abort: 2 },
  },
  'removals in flight': {
    before: async (scene) => {
      await scene.completed();
      await scene.exec(`delete from $table where id > 'm007'`);
      held(scene);
    },
    reach: (scene) => scene.untilSeen(3),
    writes: { met: 3, cancel: 3, abort: 3 },
  },
  'a delay of the destination': {
    before: async (scene) => {
      scene.audience.fault({ kind: 'status', status: 429, headers: { 'retry-after': '8' } });
    },
    reach: (scene, handle) => scene.untilWaiting(handle, 'retry'),
    writes: { met: 1, cancel: 3, abort: 3 },
  },
  paused: {
    before: async (scene) => held(scene),
    reach: async (scene, handle) => {
      await scene.untilSeen(1);
      await scene.signal('pause');
      await scene.untilWaiting(handle, 'paused');
    },
    writes: { met: 1, cancel: 2, abort: 2 },
  },
  'the finish in flight': {
    options: { destination: { finish: FINISH } },
    before: async (scene) => {
      fine(scene);
      fine(scene);
      held(scene);
    },
    reach: (scene) => scene.untilSeen(3),
    writes: { met: 3, cancel: 3, abort: 3 },
  },
} satisfies { readonly [name: string]: Stage };

async function met(
  name: string,
  stage: Stage,
): Promise<{ readonly scene: HttpScene; readonly handle: Handle }> {
  const scene = await HttpScene.create(system, name, { rows: 10, ...stage.options });
  await stage.before?.(scene);
  const handle = await scene.start();
  await stage.reach(scene, handle);
  return { scene, handle };
}

/** Whatever became of the run, the next ones make the audience exact, and each member was added and removed once at most. */
async function endsExact(scene: HttpScene, options: HttpSceneOptions = {}): Promise<void> {
  await scene.configure(options);
  await scene.completed();
  expect(scene.audience.state.members).toEqual(await scene.wanted());
  const effects = scene.audience.state.effects.map((effect) => JSON.stringify(effect));
  expect(new Set(effects).size).toBe(effects.length);
}

function told(end: Ending, outcome: string, more: object = {}): void {
  expect(end).toMatchObject({ kind: 'result', result: { outcome, ...more } });
}

describe.concurrent.each(Object.entries<Stage>(STAGES))('%s', (name, stage) => {
  test.each(['cancel', 'abort'] as const)('%s', async (asked: Asked) => {
    const { scene, handle } = await met(`${asked}-${name.replaceAll(' ', '-')}`, stage);
    expect(scene.writes).toHaveLength(stage.writes.met);
    await scene.signal(asked);
    const end = await ending(handle);
    const runs = await scene.runs();
    if (name === 'the finish in flight') {
      // Rule 10: it is resolved first, and it was accepted.
      told(end, 'completed', { abortTooLate: asked === 'abort' });
      expect(runs.at(-1)?.closing).toBe('completed');
    } else {
      told(end, asked === 'cancel' ? 'cancelled' : 'aborted');
      expect(runs.at(-1)?.closing).toBe(asked === 'cancel' ? null : 'aborted');
    }
    expect(scene.writes).toHaveLength(stage.writes.met);
    await endsExact(scene);
    expect(scene.writes).toHaveLength(stage.writes[asked]);
  });
});

describe.concurrent('blocked in its finish', () => {
  const stage: Stage = {
    options: { destination: { finish: FINISH } },
    before: async (scene) => {
      fine(scene);
      fine(scene);
      lost(scene);
    },
    reach: (scene, handle) => scene.untilWaiting(handle, 'blocked'),
    writes: { met: 3, cancel: 3, abort: 3 },
  };

  async function resolve(scene: HttpScene, verdict: Verdict): Promise<void> {
    const [finish] = await scene.batches('finish');
    await system.rows(
      `update retl.batch set send_deadline = clock_timestamp() - interval '1 second' where batch_id = decode($1, 'hex')`,
      [finish?.id],
    );
    await system.rows(`select retl.resolve_batch(decode($1, 'hex'), $2, 'looked there')`, [
      finish?.id,
      verdict,
    ]);
    await scene.signal('resume');
  }

  test.each([
    ['accepted', 'completed', true],
    ['not-applied', 'aborted', false],
  ] as const)(
    'rule 10: an abort waits for it; resolved as %s, the run is %s',
    async (verdict, outcome, abortTooLate) => {
      const { scene, handle } = await met(`abort-finish-${verdict}`, stage);
      await scene.signal('abort');
      await scene.until(handle, (p) => p.control === 'abort' && p.waiting?.kind === 'blocked');
      await resolve(scene, verdict);
      told(await ending(handle), outcome, { abortTooLate });
      expect((await scene.runs()).map(({ closing }) => closing)).toEqual([outcome]);
      expect(scene.audience.state.effects).toHaveLength(10);
      expect(scene.writes).toHaveLength(3);
    },
  );

  test('rule 10: a cancel lets go; the next run meets the same finish, and completes once it is resolved', async () => {
    const { scene, handle } = await met('cancel-finish', stage);
    await scene.signal('cancel');
    told(await ending(handle), 'cancelled');
    const next = await scene.start();
    await scene.untilWaiting(next, 'blocked');
    await resolve(scene, 'accepted');
    told(await ending(next), 'completed');
    // The run that was resumed, and a fresh one with a finish of its own.
    expect((await scene.runs()).map(({ closing }) => closing)).toEqual(['completed', 'completed']);
    expect(await scene.batches('finish')).toMatchObject([{ sending: 1 }, { sending: 1 }]);
    expect(scene.audience.state.effects).toHaveLength(10);
  });
});

test('blocked: a cancel lets go, the next run is blocked by the same request, and nothing is sent again', async () => {
  const { scene, handle } = await met('cancel-blocked', {
    options: { rows: 5 },
    before: async (one) => lost(one),
    reach: (one, run) => one.untilWaiting(run, 'blocked'),
    writes: { met: 1, cancel: 1, abort: 1 },
  });
  await scene.signal('cancel');
  told(await ending(handle), 'cancelled');
  const next = await scene.start();
  const { waiting } = await scene.untilWaiting(next, 'blocked');
  expect(scene.writes).toHaveLength(1);
  await system.rows(`select retl.resolve_batch(decode($1, 'hex'), 'accepted', 'looked there')`, [
    waiting?.batch?.replace('sha256:', ''),
  ]);
  await scene.signal('resume');
  told(await ending(next), 'completed');
  expect(scene.writes).toHaveLength(1);
  expect(scene.audience.state.members).toEqual(await scene.wanted());
});

describe.concurrent('an opening that is pending', () => {
  async function opening(name: string): Promise<{ readonly scene: LedgerScene; readonly handle: Handle }> {
    const scene = await LedgerScene.create(system, name, 'manual', 'slow');
    scene.ledger.stuck = 'sessions';
    const handle = await scene.start();
    await scene.until(handle, (p) => p.phase === 'init' && p.waiting?.kind === 'pending');
    return { scene, handle };
  }

  test('rule 8: a cancel lets go; the next run finds out about it first, and then opens one of its own', async () => {
    const { scene, handle } = await opening('cancel-opening');
    await scene.signal('cancel');
    told(await ending(handle), 'cancelled');
    const next = await scene.start();
    await scene.untilWaiting(next, 'pending');
    await sleep(1_000);
    expect(await scene.batches('init')).toMatchObject([{ state: 'staged', sending: 1, resends: 0 }]);
    scene.ledger.stuck = null;
    await scene.signal('poll');
    told(await ending(next), 'completed');
    expect((await scene.runs()).map(({ closing }) => closing)).toEqual(['discarded', 'completed']);
    await scene.expectExact(6);
  });

  test('rule 10: an abort waits until it is known what came of it, and begins nothing', async () => {
    const { scene, handle } = await opening('abort-opening');
    await scene.signal('abort');
    await scene.until(handle, (p) => p.control === 'abort' && p.waiting?.kind === 'pending');
    expect(await scene.runs()).toMatchObject([{ closing: null, phase: 'init' }]);
    scene.ledger.stuck = null;
    await scene.signal('poll');
    told(await ending(handle), 'aborted');
    expect(scene.ledger.effects).toEqual([]);
    told(await scene.run(), 'completed');
    await scene.expectExact(6);
  });
});
