/**
 * A worker killed by SIGKILL at every point of a request's life (design.md sections 6 and 10). All mirrors of a block stand at
 * their points when the one worker dies; another worker then takes all of them to their ends.
 */

import type { WorkflowHandleWithFirstExecutionRunId as Handle } from '@temporalio/client';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { Fault } from '../support/fake-audience.ts';
import { System } from '../support/system.ts';
import { HttpScene } from '../support/system-destinations.ts';
import type { Hold } from '../support/system-journal-proxy.ts';
import { completedBy, ending, eventually } from '../support/system-scene.ts';

/** Batches that leave at once are prepared and marked as sending in one commit; steps are marked one by one. */
const PREPARE = 'retl.prepare_batches(';
const MARK_STEP = 'retl.mark_sending($1,$2,$3,$4)';
const [INIT, FINISH] = [1, 2];

interface Stand {
  readonly scene: HttpScene;
  readonly handle: Handle;
}

class Stage {
  readonly stands = new Map<string, Stand>();
  constructor(
    readonly system: System,
    readonly idempotent: boolean,
  ) {}

  async mirror(name: string): Promise<HttpScene> {
    const kind = this.idempotent ? 'idempotent' : 'manual';
    return HttpScene.create(this.system, `${kind}-${name}`, { rows: 10, idempotent: this.idempotent });
  }

  /** Brings a mirror to a statement of the journal. */
  async at(
    name: string,
    hold: Hold,
    journal: (scene: HttpScene) => Promise<boolean>,
    fault?: Fault,
  ): Promise<void> {
    const scene = await this.mirror(name);
    if (fault !== undefined) scene.audience.fault(fault);
    const held = this.system.proxy.hold(hold);
    const handle = await scene.start();
    await held.reached;
    await eventually(() => journal(scene));
    this.stands.set(name, { scene, handle });
  }

  /** Brings a mirror to where its request has been applied, and its reply is still to come. */
  async inFlight(name: string, scene: HttpScene): Promise<void> {
    const before = scene.writes.length;
    scene.audience.fault({ kind: 'delay', ms: 60_000 });
    const handle = await scene.start();
    await scene.untilSeen(before + 1);
    this.stands.set(name, { scene, handle });
  }

  get(name: string): Stand {
    const stand = this.stands.get(name);
    if (stand === undefined) throw new Error(`no mirror stands at ${name}`);
    return stand;
  }
}

async function hasState(
  scene: HttpScene,
  action: 'init' | 'upsert' | 'finish',
  state: string,
): Promise<boolean> {
  return (await scene.batches(action)).some((batch) => batch.state === state);
}

async function bringAllToTheirPoints(stage: Stage): Promise<void> {
  await stage.at('unprepared', { statement: PREPARE, how: 'unseen' }, async () => true);
  const later: Fault = { kind: 'status', status: 429 };
  const again: Hold = { statement: 'retl.retry_batch(', how: 'unanswered' };
  await stage.at('prepared', again, (s) => hasState(s, 'upsert', 'prepared'), later);
  await stage.at('unsent', { statement: PREPARE, how: 'unanswered' }, (s) =>
    hasState(s, 'upsert', 'sending'),
  );
  await stage.inFlight('stored', await stage.mirror('stored'));
  // The second of two: while one receipt is on its way to the journal, the next request may leave.
  await stage.at('receipt', { statement: 'retl.settle_batch(', how: 'unanswered', nth: 2 }, async (s) => {
    const batches = await s.batches('upsert');
    return batches.length === 2 && batches.every((batch) => batch.state === 'settled');
  });
  await stage.at('init', { statement: MARK_STEP, how: 'unanswered', nth: INIT }, (s) =>
    hasState(s, 'init', 'sending'),
  );
  await stage.at('finish', { statement: MARK_STEP, how: 'unanswered', nth: FINISH }, (s) =>
    hasState(s, 'finish', 'sending'),
  );
  await stage.at('promoted', { statement: 'retl.promote(', how: 'unanswered' }, async (s) =>
    (await s.runs()).some((run) => run.closing === 'completed'),
  );
  const removing = await stage.mirror('removing');
  await removing.completed();
  await removing.exec(`delete from $table where id < 'm004'`);
  await stage.inFlight('removing', removing);
}

function onStage(idempotent: boolean): () => Stage {
  let stage: Stage;
  beforeAll(async () => {
    const system = await System.start();
    stage = new Stage(system, idempotent);
    const worker = await system.startWorker();
    await bringAllToTheirPoints(stage);
    await worker.kill();
    await system.startWorker();
  });
  afterAll(() => stage.system.stop());
  return () => stage;
}

/** The audience is what the query returns, and nothing took effect twice. */
async function expectExact({ scene, handle }: Stand, effects = 10): Promise<void> {
  await completedBy(handle);
  expect(scene.audience.state.members).toEqual(await scene.wanted());
  expect(scene.audience.state.effects).toHaveLength(effects);
}

function keys(scene: HttpScene): readonly string[] {
  return scene.writes.map((write) => write.key);
}

describe.concurrent('a destination that cannot take a request twice', () => {
  const stage = onStage(false);

  test('nothing prepared yet: it is sent once', async () => {
    const stand = stage().get('unprepared');
    await expectExact(stand);
    expect(keys(stand.scene)).toHaveLength(2);
  });

  test('batch prepared: it is provably unsent, and is sent', async () => {
    const stand = stage().get('prepared');
    await expectExact(stand);
    // The sending that was refused, the same operations under a key of their own, and the second batch.
    expect(new Set(keys(stand.scene)).size).toBe(3);
    expect(keys(stand.scene)).toHaveLength(3);
  });

  test('rule 3: sending, the request not out: unknown, so blocked with the batch named, and never sent blindly', async () => {
    const { scene, handle } = stage().get('unsent');
    const { waiting } = await scene.untilWaiting(handle, 'blocked');
    const [batch] = await scene.batches('upsert');
    expect(waiting).toMatchObject({ code: 'found-sending', batch: `sha256:${batch?.id}` });
    expect(scene.writes).toEqual([]);
    await scene.signal('cancel');
    await ending(handle);
  });

  test('blind-replay: stored, the reply not read: blocked with the batch named; resolved, the run goes on', async () => {
    const { scene, handle } = stage().get('stored');
    const { waiting } = await scene.untilWaiting(handle, 'blocked');
    expect(waiting?.batch).toMatch(/^sha256:/);
    expect(scene.writes).toHaveLength(1);
    await stage().system.rows(`select retl.resolve_batch(decode($1, 'hex'), 'accepted', 'it is there')`, [
      waiting?.batch?.replace('sha256:', ''),
    ]);
    await scene.signal('resume');
    await expectExact({ scene, handle });
    expect(new Set(keys(scene)).size).toBe(2);
  });

  test('counts-last-attempt: the receipt committed: nothing of it is sent again, and all attempts count', async () => {
    const stand = stage().get('receipt');
    await expectExact(stand);
    expect(keys(stand.scene)).toHaveLength(2);
    const result = await completedBy(stand.handle);
    expect(result.counts).toMatchObject({ added: 10, toAdd: 10 });
  });

  test('an API without sessions has nothing to open twice: a lost init does not block', async () => {
    await expectExact(stage().get('init'));
  });

  test('a finish that needs no call does not block', async () => {
    await expectExact(stage().get('finish'));
  });

  test('promoted, the answer lost: the run is complete, and nothing is asked again', async () => {
    await expectExact(stage().get('promoted'));
    expect(await stage().get('promoted').scene.runs()).toHaveLength(1);
  });

  test('removals in flight: blocked, and nobody else is removed', async () => {
    const { scene, handle } = stage().get('removing');
    await scene.untilWaiting(handle, 'blocked');
    expect(scene.writes.filter((write) => write.method === 'DELETE')).toHaveLength(1);
    expect(scene.audience.state.members).toEqual(await scene.wanted());
  });
});

describe.concurrent('a destination for which twice equals once', () => {
  const stage = onStage(true);

  test.each([
    ['unprepared', 2],
    ['prepared', 3],
  ])('batch %s: it is sent once', async (name, writes) => {
    const stand = stage().get(name);
    await expectExact(stand);
    expect(new Set(keys(stand.scene)).size).toBe(writes);
    expect(keys(stand.scene)).toHaveLength(writes);
  });

  test('sending, the request not out: it goes out under the key that the journal names', async () => {
    const stand = stage().get('unsent');
    await expectExact(stand);
    const [batch] = await stand.scene.batches('upsert');
    expect(batch).toMatchObject({ state: 'settled', resends: 1, sending: 1 });
    expect(keys(stand.scene)[0]).toBe(`sha256:${batch?.id}`);
    expect(keys(stand.scene)).toHaveLength(2);
  });

  test('rule 2: stored, the reply not read: the same bytes go again once, under the same key', async () => {
    const stand = stage().get('stored');
    await expectExact(stand);
    const [first, second, third, ...more] = stand.scene.writes;
    expect(second).toEqual(first);
    expect(third?.key).not.toBe(first?.key);
    expect(more).toEqual([]);
  });

  test('the receipt committed: nothing of it is sent again', async () => {
    const stand = stage().get('receipt');
    await expectExact(stand);
    expect(keys(stand.scene)).toHaveLength(2);
  });

  test.each(['init', 'finish', 'promoted'])('%s: done again without harm', async (name) => {
    await expectExact(stage().get(name));
  });

  test('removals in flight: the same request again, and nobody else is removed', async () => {
    const stand = stage().get('removing');
    await expectExact(stand, 13);
    const removals = stand.scene.writes.filter((write) => write.method === 'DELETE');
    expect(removals).toHaveLength(2);
    expect(removals[1]).toEqual(removals[0]);
  });
});
