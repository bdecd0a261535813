/** The workflow `index` on a real server, with the real activities, a real journal and real tables (design.md section 8). */

import { setTimeout as sleep } from 'node:timers/promises';
import { Worker } from '@temporalio/worker';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { createIndexActivities } from '../../src/activities/index-follow.ts';
import { RetlError } from '../../src/domain/errors.ts';
import { INDEX_WORKFLOW, type IndexProgress, indexWorkflowId } from '../../src/domain/index-messages.ts';
import { membershipSearch } from '../../src/indexing/postgres/search.ts';
import { rollback } from '../../src/indexing/rebuild.ts';
import { IndexScene, rows } from '../support/index-scene.ts';
import { type EagerServer, startEagerServer } from './eager-server.ts';
import { recordExecution } from './record-execution.ts';
import { bundleOf } from './stage.ts';

const TASK_QUEUE = 'index-follow';

let scene: IndexScene;
let server: EagerServer;
let worker: Worker;
let running: Promise<void>;
/** Indexes whose system is away. */
const away = new Set<string>();

beforeAll(async () => {
  [scene, server] = await Promise.all([IndexScene.open(), startEagerServer(60)]);
  await scene.run('a', rows(0, 12, '1'));
  const logger = { info: () => undefined, warn: () => undefined };
  const activities = createIndexActivities({
    replay: scene.deps(),
    logger,
    open: async (name) => {
      if (away.has(name)) throw new RetlError('index.unavailable', {});
      const url = scene.journal.runtimeUrl;
      const opened = scene.indexer(name, membershipSearch, { url });
      return { ...opened, close: () => scene.release(opened) };
    },
    names: async () => [],
  });
  worker = await Worker.create({
    connection: server.env.nativeConnection,
    taskQueue: TASK_QUEUE,
    workflowBundle: await bundleOf('src/workflows/index.ts'),
    activities,
  });
  running = worker.run();
});
afterAll(async () => {
  worker.shutdown();
  await running;
  await server.stop();
  await scene.close();
});

const start = (name: string, workflowId = indexWorkflowId(name)) =>
  server.env.client.workflow.start(INDEX_WORKFLOW, {
    workflowId,
    taskQueue: TASK_QUEUE,
    args: [{ index: name }],
  });
type Handle = Awaited<ReturnType<typeof start>>;

/** Asks until the answer is as wanted. */
async function until(handle: Handle, wanted: (p: IndexProgress) => boolean): Promise<IndexProgress> {
  for (let tries = 0; ; tries += 1) {
    const progress = await handle.query<IndexProgress>('progress');
    if (wanted(progress)) return progress;
    if (tries === 150) throw new Error(`still ${JSON.stringify(progress)}`);
    await sleep(100);
  }
}

const record = (name: string, workflowId: string, runId: string) =>
  recordExecution(server, `index-histories/${name}`, workflowId, runId);

test('it builds, catches up, sleeps, wakes when a run has committed, and stops', async () => {
  const handle = await start('people');
  const first = await until(handle, ({ phase }) => phase === 'caught-up');
  expect(first.place).toMatchObject({ state: 'live', rows: '12', lag: { positions: '0', ms: 0 } });
  await scene.run('b', rows(0, 5, '1'));
  await handle.signal('wake');
  await until(handle, ({ place }) => place?.rows === '17');
  expect(await scene.shown('people')).toBe(await scene.expected());
  await handle.signal('stop');
  expect(await handle.result()).toMatchObject({ outcome: 'stopped', place: { rows: '17' } });
  await record('followed', handle.workflowId, handle.firstExecutionRunId);
});

test('paused it stays where it is, rebuilds when it is told to, and continues as new without losing either', async () => {
  const handle = await start('paused');
  await until(handle, ({ phase }) => phase === 'caught-up');
  const before = (await until(handle, ({ place }) => place !== null)).place?.build;
  await handle.signal('pause');
  await until(handle, ({ phase }) => phase === 'paused');
  await scene.run('c', rows(0, 5, '1'));
  for (let n = 0; n < 20; n += 1) {
    await handle.signal('wake');
    await sleep(30);
  }
  expect((await until(handle, ({ phase }) => phase === 'paused')).phase).toBe('paused');
  await handle.signal('rebuild');
  await handle.signal('resume');
  const latest = server.env.client.workflow.getHandle(handle.workflowId);
  const after = await until(
    { ...handle, query: latest.query.bind(latest) },
    ({ phase, place }) => phase === 'caught-up' && place?.build !== before,
  );
  expect(after.place).toMatchObject({ state: 'live' });
  expect(await scene.shown('paused')).toBe(await scene.expected());
  const { raw } = await latest.describe();
  expect(raw.workflowExecutionInfo?.firstRunId).toBe(handle.firstExecutionRunId);
  expect(raw.workflowExecutionInfo?.execution?.runId).not.toBe(handle.firstExecutionRunId);
  await record('continued', handle.workflowId, handle.firstExecutionRunId);
  await latest.signal('stop');
  await latest.result();
});

test('under another id than the index’s own it has that one follow, or wakes it, and ends', async () => {
  const own = server.env.client.workflow.getHandle(indexWorkflowId('scheduled'));
  const first = await start('scheduled', 'index/scheduled-2026-11-30T15:00:00Z');
  expect(await first.result()).toEqual({ outcome: 'handed-over', workflowId: own.workflowId, started: true });
  await record('handed-over', first.workflowId, first.firstExecutionRunId);
  const followed = { ...first, query: own.query.bind(own) };
  const { place } = await until(followed, ({ phase }) => phase === 'caught-up');
  await scene.run('e', rows(0, 3, '1'));
  const second = await start('scheduled', 'index/scheduled-2026-11-30T16:00:00Z');
  expect(await second.result()).toEqual({
    outcome: 'handed-over',
    workflowId: own.workflowId,
    started: false,
  });
  await record('already-followed', second.workflowId, second.firstExecutionRunId);
  await until(followed, (p) => p.place?.rows === `${Number(place?.rows) + 3}`);
  await own.signal('stop');
  expect(await own.result()).toMatchObject({ outcome: 'stopped', place: { build: place?.build } });
});

test('rolled back it stays there until somebody has it rebuilt', async () => {
  const handle = await start('frozen');
  await until(handle, ({ phase }) => phase === 'caught-up');
  const indexer = scene.indexer('frozen');
  const reference = await scene.checkpoint(indexer);
  const then = await scene.shown('frozen');
  await scene.run('d', rows(0, 4, '1'));
  await handle.signal('wake');
  await until(handle, ({ place }) => place !== null && place.rows !== then.split('\n').length.toString());
  await rollback(scene.deps(), indexer, reference);
  await handle.signal('wake');
  expect(await until(handle, ({ phase }) => phase === 'frozen')).toMatchObject({ code: 'index.frozen' });
  expect(await scene.shown('frozen')).toBe(then);
  await handle.signal('rebuild');
  await until(handle, ({ phase }) => phase === 'caught-up');
  expect(await scene.shown('frozen')).toBe(await scene.expected());
  await handle.signal('stop');
  await handle.result();
});

test('what a person must look at is shown by its code and waits; an input that is none is refused', async () => {
  const indexer = scene.indexer('damaged');
  await scene.follow(indexer);
  const reference = await scene.checkpoint(indexer);
  await scene.tamper('delete from retl.artifact where reference = $1', [
    Buffer.from(reference.slice('sha256:'.length), 'hex'),
  ]);
  const handle = await start('damaged');
  expect(await until(handle, ({ phase }) => phase === 'refused')).toMatchObject({ code: 'artifact.missing' });
  await handle.signal('rebuild');
  await until(handle, ({ phase }) => phase === 'caught-up');
  await handle.cancel();
  await expect(handle.result()).rejects.toThrow();
  expect((await handle.describe()).status.name).toBe('CANCELLED');
  await expect((await start('Bad Name')).result()).rejects.toMatchObject({ cause: { type: 'invalid' } });
});

test('a stop is heard while a rebuild is tried again and again because the index is away', async () => {
  const handle = await start('away');
  await until(handle, ({ phase }) => phase === 'caught-up');
  away.add('away');
  await handle.signal('rebuild');
  for (;;) {
    const { raw } = await handle.describe();
    if (raw.pendingActivities?.some(({ attempt }) => (attempt ?? 0) > 1)) break;
    await sleep(100);
  }
  // All the attempts would take minutes.
  await handle.signal('stop');
  expect(await handle.result()).toMatchObject({ outcome: 'stopped' });
});
