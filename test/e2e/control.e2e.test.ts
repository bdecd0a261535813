/** Control (design.md section 4): cancel, abort, pause and resume, wherever they meet a run; and who may run at all. */

import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { listRuns } from '../../src/journal/inspect.ts';
import { System } from '../support/system.ts';
import { HttpScene } from '../support/system-destinations.ts';
import { completedBy, ending, eventually } from '../support/system-scene.ts';

let system: System;
beforeAll(async () => {
  system = await System.start();
  await system.startWorker();
});
afterAll(() => system.stop());

/** Longer than a heartbeat takes to bring the news of a cancel. */
const IN_FLIGHT_MS = 5_000;
const SLOW_READ = 'select id, plan from $table, (select pg_sleep(20)) s';

/** Backends of the source that still work for somebody. */
async function sleepers({ table }: HttpScene): Promise<number> {
  const { rows } = await system.source.query(
    `select from pg_stat_activity where query like '%pg_sleep(20)%' and query like '%' || $1 || '%' and pid <> pg_backend_pid() and state = 'active'`,
    [table],
  );
  return rows.length;
}

describe.concurrent('cancel', () => {
  test('cancel-late: a request in flight is recorded, no further batch is sent, and the next run resumes the generation', async () => {
    const scene = await HttpScene.create(system, 'cancel-late', { rows: 20 });
    scene.audience.fault({ kind: 'delay', ms: IN_FLIGHT_MS });
    const handle = await scene.start();
    await scene.untilSeen(1);
    await scene.signal('cancel');
    const end = await ending(handle);
    expect(end).toMatchObject({ kind: 'result', result: { outcome: 'cancelled', counts: { added: 5 } } });
    expect(scene.writes).toHaveLength(1);
    const states = (await scene.batches('upsert')).map((b) => b.state);
    expect(states.filter((state) => state !== 'prepared')).toEqual(['settled']);
    expect(await scene.runs()).toMatchObject([{ closing: null, phase: 'additions' }]);

    await scene.exec(`insert into $table values ('late', 'vip')`);
    await scene.completed();
    // The sealed generation first, then a fresh run that sees what came since.
    expect(await scene.runs()).toMatchObject([{ closing: 'completed' }, { closing: 'completed' }]);
    expect(scene.audience.state.members).toEqual(await scene.wanted());
    expect(scene.audience.state.effects).toHaveLength(21);
  });

  test('Temporal’s own cancel does the same, and the execution ends as cancelled', async () => {
    const scene = await HttpScene.create(system, 'temporal-cancel', { rows: 20 });
    scene.audience.fault({ kind: 'delay', ms: IN_FLIGHT_MS });
    const handle = await scene.start();
    await scene.untilSeen(1);
    await handle.cancel();
    expect(await ending(handle)).toEqual({ kind: 'cancelled' });
    expect(scene.writes).toHaveLength(1);
    await scene.completed();
    expect(scene.audience.state.effects).toHaveLength(20);
  });

  test('rule 8: a cancelled extraction leaves no query behind, and the next run reads the source anew', async () => {
    const scene = await HttpScene.create(system, 'cancel-extract', { rows: 3, query: SLOW_READ });
    const handle = await scene.start();
    await eventually(async () => (await sleepers(scene)) === 1);
    await scene.signal('cancel');
    expect(await ending(handle)).toMatchObject({ kind: 'result', result: { outcome: 'cancelled' } });
    await eventually(async () => (await sleepers(scene)) === 0, 5_000);
    expect(scene.writes).toEqual([]);
    await scene.configure({});
    await scene.completed();
    expect(await scene.runs()).toMatchObject([{ closing: 'discarded' }, { closing: 'completed' }]);
    expect(scene.audience.state.members).toEqual(await scene.wanted());
  });

  test('cancel while a provider’s delay is waited for ends at once', async () => {
    const scene = await HttpScene.create(system, 'cancel-429', { rows: 5 });
    scene.audience.fault({ kind: 'status', status: 429, headers: { 'retry-after': '3600' } });
    const handle = await scene.start();
    const { waiting } = await scene.untilWaiting(handle, 'retry');
    expect(waiting).toMatchObject({ code: 'http-429' });
    await scene.signal('cancel');
    expect(await ending(handle)).toMatchObject({ kind: 'result', result: { outcome: 'cancelled' } });
    expect(scene.writes).toHaveLength(1);
  });
});

describe.concurrent('pause', () => {
  test('in extraction: nothing is held open, and resume reads anew', async () => {
    const scene = await HttpScene.create(system, 'pause-extract', { rows: 3, query: SLOW_READ });
    const handle = await scene.start();
    await eventually(async () => (await sleepers(scene)) === 1);
    await scene.signal('pause');
    const paused = await scene.untilWaiting(handle, 'paused');
    expect(paused).toMatchObject({ phase: 'extract', paused: true });
    await eventually(async () => (await sleepers(scene)) === 0, 5_000);
    await scene.signal('resume');
    await eventually(async () => (await sleepers(scene)) === 1);
    await scene.signal('cancel');
    await ending(handle);
  });

  test('in additions: what is in flight is recorded, then nothing moves until resume', async () => {
    const scene = await HttpScene.create(system, 'pause-additions', { rows: 20 });
    scene.audience.fault({ kind: 'delay', ms: IN_FLIGHT_MS });
    const handle = await scene.start();
    await scene.untilSeen(1);
    await scene.signal('pause');
    const paused = await scene.untilWaiting(handle, 'paused');
    expect(paused.counts).toMatchObject({ added: 5, toAdd: 20 });
    await sleep(500);
    expect(scene.writes).toHaveLength(1);
    await scene.signal('resume');
    expect((await completedBy(handle)).counts).toMatchObject({ added: 20 });
    expect(scene.audience.state.effects).toHaveLength(20);
  });

  test('while a provider’s delay is waited for: it outlives the delay, and the delay outlives it', async () => {
    const scene = await HttpScene.create(system, 'pause-429', { rows: 5 });
    scene.audience.fault({ kind: 'status', status: 429, headers: { 'retry-after': '3' } });
    const handle = await scene.start();
    const { waiting } = await scene.untilWaiting(handle, 'retry');
    await scene.signal('pause');
    await scene.untilWaiting(handle, 'paused');
    await scene.signal('resume');
    const again = await scene.untilWaiting(handle, 'retry');
    expect(Math.abs((again.waiting?.untilMs ?? 0) - (waiting?.untilMs ?? 0))).toBeLessThan(1_000);
    expect(scene.writes).toHaveLength(1);
    await completedBy(handle);
    expect(scene.writes).toHaveLength(2);
  });

  test('while blocked: it is shown as paused, and still blocked after resume', async () => {
    const scene = await HttpScene.create(system, 'pause-blocked', { rows: 5 });
    scene.audience.fault({ kind: 'reset', applied: true });
    const handle = await scene.start();
    const blocked = await scene.untilWaiting(handle, 'blocked');
    await scene.signal('pause');
    await scene.untilWaiting(handle, 'paused');
    await scene.signal('resume');
    expect((await scene.untilWaiting(handle, 'blocked')).waiting?.batch).toBe(blocked.waiting?.batch);
    expect(scene.writes).toHaveLength(1);
    await scene.signal('cancel');
    expect(await ending(handle)).toMatchObject({ kind: 'result', result: { outcome: 'cancelled' } });
  });
});

describe.concurrent('abort', () => {
  test('abort-erases: what was accepted stays, takes part in the next diff, and is not sent again', async () => {
    const scene = await HttpScene.create(system, 'abort', { rows: 20 });
    scene.audience.fault({ kind: 'delay', ms: IN_FLIGHT_MS });
    const handle = await scene.start();
    await scene.untilSeen(1);
    await scene.signal('abort');
    expect(await ending(handle)).toMatchObject({
      kind: 'result',
      result: { outcome: 'aborted', counts: { added: 5 } },
    });
    expect(await scene.runs()).toMatchObject([{ closing: 'aborted' }]);
    expect((await scene.completed()).counts).toMatchObject({ added: 15, unchanged: 5 });
    expect(scene.audience.state.effects).toHaveLength(20);
  });

  test('rule 10: an abort while blocked waits for the batch, and ends when an operator has resolved it', async () => {
    const scene = await HttpScene.create(system, 'abort-blocked', { rows: 5 });
    scene.audience.fault({ kind: 'reset', applied: true });
    const handle = await scene.start();
    await scene.untilWaiting(handle, 'blocked');
    await scene.signal('abort');
    const waiting = await scene.until(handle, (p) => p.control === 'abort' && p.waiting?.kind === 'blocked');
    await resolve(waiting.waiting?.batch, 'accepted');
    await scene.signal('resume');
    expect(await ending(handle)).toMatchObject({ kind: 'result', result: { outcome: 'aborted' } });
    expect(await scene.held()).toBe(0); // folded by the next run, which finds nothing to do
    expect((await scene.completed()).counts).toMatchObject({ added: 0, unchanged: 5 });
    expect(scene.writes).toHaveLength(1);
  });

  test('rule 10: an abort after the finish was accepted is too late, and says so', async () => {
    const scene = await HttpScene.create(system, 'abort-too-late', {
      rows: 5,
      destination: { finish: { method: 'POST', path: '/finish', body: { json: { members: [] } } } },
    });
    scene.audience.fault({ kind: 'rows' });
    scene.audience.fault({ kind: 'delay', ms: 1_500 });
    const handle = await scene.start();
    await scene.until(handle, (p) => p.phase === 'finish');
    await scene.signal('abort');
    expect(await ending(handle)).toMatchObject({
      kind: 'result',
      result: { outcome: 'completed', abortTooLate: true },
    });
    expect(await scene.runs()).toMatchObject([{ closing: 'completed' }]);
  });
});

async function resolve(batch: string | null | undefined, verdict: 'accepted' | 'not-applied'): Promise<void> {
  const hex = String(batch).replace(/^sha256:/, '');
  await system.rows(`select retl.resolve_batch(decode($1, 'hex'), $2, 'looked at the audience')`, [
    hex,
    verdict,
  ]);
}

describe.concurrent('exclusivity', () => {
  test('two-writers: a second run of the mirror is refused, whichever workflow id it has', async () => {
    const scene = await HttpScene.create(system, 'two-runs', { rows: 10 });
    scene.audience.fault({ kind: 'delay', ms: 1_500 });
    const first = await scene.start();
    await scene.untilSeen(1);
    expect(await scene.run('started-by-hand')).toMatchObject({
      kind: 'failed',
      type: 'refused',
      message: expect.stringContaining('run.busy'),
    });
    await completedBy(first);
    expect(scene.audience.state.effects).toHaveLength(10);
    await scene.completed('started-by-hand');
  });

  test('two-writers: a second run is told what the open one waits for, and what it needs', async () => {
    const scene = await HttpScene.create(system, 'two-blocked', { rows: 5 });
    scene.audience.fault({ kind: 'reset', applied: true });
    const handle = await scene.start('two-blocked-by-hand');
    const batch = (await scene.untilWaiting(handle, 'blocked')).waiting?.batch;
    const needed = `retl resolve ${scene.mirror} ${batch} --accepted`;
    expect(await scene.run()).toMatchObject({ type: 'refused', message: expect.stringContaining(needed) });
    // The journal alone says the same.
    const [run] = await listRuns(system.journal, { mirror: scene.mirror, states: ['blocked'], limit: 1 });
    expect(run?.doing).toMatchObject({ state: 'blocked', code: 'connection-reset', batch });
    await handle.signal('pause');
    await scene.untilWaiting(handle, 'paused');
    const resumes = expect.stringContaining(`it is=paused (additions); it needs=\`retl resume`);
    expect(await scene.run()).toMatchObject({ type: 'refused', message: resumes });
    await resolve(batch, 'accepted');
    await handle.signal('resume');
    await completedBy(handle);
    expect(scene.writes).toHaveLength(1);
  });

  test('two-writers: a second mirror of one target is refused before it reads anything', async () => {
    const owner = await HttpScene.create(system, 'target-owner', { rows: 3 });
    await owner.completed();
    const other = await HttpScene.create(system, 'target-other', { rows: 3 });
    // Another connection’s name, the same place.
    await system.connect('target-other-api', { type: 'http', base_url: `${owner.audience.url}/` });
    expect(await other.run()).toMatchObject({
      kind: 'failed',
      type: 'refused',
      message: expect.stringContaining('run.target-owned'),
    });
    expect(await other.runs()).toEqual([]);
  });

  test('a mirror that is not configured is an error of the input, not of the worker', async () => {
    const handle = await system.temporal.client.workflow.start('mirror', {
      workflowId: 'mirror/nobody',
      taskQueue: system.temporal.taskQueue,
      args: [{ mirror: 'nobody' }],
    });
    expect(await ending(handle)).toMatchObject({
      kind: 'failed',
      type: 'invalid',
      message: expect.stringContaining('config.unknown-mirror'),
    });
  });
});
