/** A deployment: workers are asked to stop (SIGTERM) in the middle of everything, and others take up what they leave. */

import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { System } from '../support/system.ts';
import { HttpScene } from '../support/system-destinations.ts';
import { completedBy, ending, eventually } from '../support/system-scene.ts';
import { startTcpProxy } from '../support/tcp-proxy.ts';
import type { WorkerProcess } from '../support/worker-process.ts';

let system: System;
let worker: WorkerProcess;
beforeAll(async () => {
  system = await System.start();
  worker = await system.startWorker();
});
afterAll(() => system.stop());

test('in extraction, in additions and in folding: what is in flight is recorded, and every run goes on elsewhere', async () => {
  const reading = await HttpScene.create(system, 'deploy-reading', {
    rows: 3,
    query: 'select id, plan from $table, (select pg_sleep(6)) s',
  });
  const sending = await HttpScene.create(system, 'deploy-sending', { rows: 30 });
  // Folded in three steps.
  const folding = await HttpScene.create(system, 'deploy-folding', {
    rows: 450,
    mirror: { batch: { rows: 1, in_flight: 16 } },
  });
  const step = system.proxy.hold({ statement: 'retl.fold(', how: 'unanswered', nth: 2 });
  const foldingRun = await folding.start();
  await step.reached;
  const readingRun = await reading.start();
  await reading.until(readingRun, (p) => p.phase === 'extract');
  sending.audience.always({ kind: 'delay', ms: 2_000 });
  const sendingRun = await sending.start();
  await sending.untilSeen(2);

  const stopped = worker.stop();
  await sleep(1_500);
  step.release();
  await stopped;
  sending.audience.always(null);
  expect(
    (await sending.batches()).filter((batch) => batch.state !== 'settled' && batch.state !== 'prepared'),
  ).toEqual([]);

  worker = await system.startWorker();
  for (const [scene, run] of [
    [reading, readingRun],
    [sending, sendingRun],
    [folding, foldingRun],
  ] as const) {
    await completedBy(run);
    expect(scene.audience.state.members).toEqual(await scene.wanted());
    expect(scene.audience.state.effects).toHaveLength(scene.audience.state.members.size);
  }
});

test('cancel while the source does not even answer: the run is cancelled, and not called broken', async () => {
  const url = new URL(system.sourceUrl);
  const line = await startTcpProxy({ host: url.hostname, port: Number(url.port) });
  system.defer(() => line.close());
  url.host = `${line.host}:${line.port}`;
  await system.connect('mute', { type: 'postgres', url: url.href, connect_timeout_ms: 30_000 });
  const scene = await HttpScene.create(system, 'mute-source', { rows: 3, source: 'mute' });
  line.freeze();
  const handle = await scene.start();
  await eventually(() => line.accepted > 0);
  await scene.signal('cancel');
  expect(await ending(handle)).toMatchObject({ kind: 'result', result: { outcome: 'cancelled' } });
});

test('rule 2: a member whose identity was altered behind the journal’s back is not removed, nor is anybody in its place, until it is mended', async () => {
  const scene = await HttpScene.create(system, 'forged', { rows: 6, idempotent: true });
  await scene.completed();
  const [{ id } = { id: '' }] = await system.rows<{ id: string }>(
    `select generation_id as id from retl.generation join retl.run using (run_id) join retl.mirror using (mirror_id)
     where name = $1`,
    [scene.mirror],
  );
  const forge = (from: string, to: string) =>
    system.rows(
      `update retl.generation_${id} set identity = replace(identity, '${from}', '${to}')
       where identity_hash = sha256('{"id":"m001"}'::bytea)`,
    );
  await forge('m001', 'm002');
  await scene.exec("delete from $table where id = 'm001'");
  const sent = scene.writes.length;
  const members = new Map(scene.audience.state.members);
  const end = await scene.run();
  expect(end).toMatchObject({
    kind: 'failed',
    type: 'invalid',
    message: expect.stringMatching(/^journal\.damaged: /),
  });
  expect(JSON.stringify(end)).not.toMatch(/m00\d/);
  expect(scene.writes).toHaveLength(sent);
  expect(scene.audience.state.members).toEqual(members);
  await forge('m002', 'm001');
  await scene.completed();
  expect(scene.audience.state.members).toEqual(await scene.wanted());
});

test('rule 2: rows that were altered behind the journal’s back are not sent, and the worker says where it noticed', async () => {
  const scene = await HttpScene.create(system, 'altered', { rows: 5, idempotent: true });
  scene.audience.fault({ kind: 'status', status: 503 });
  const handle = await scene.start();
  await scene.untilWaiting(handle, 'retry');
  const [{ id } = { id: '' }] = await system.rows<{ id: string }>(
    `select generation_id as id from retl.generation join retl.run using (run_id) join retl.mirror using (mirror_id)
     where name = $1`,
    [scene.mirror],
  );
  await system.rows(`update retl.generation_${id} set upsert = replace(upsert, 'vip', 'canary')`);
  expect(await ending(handle)).toMatchObject({ kind: 'failed' });
  expect(scene.writes).toHaveLength(1);
  const output = await worker.output();
  expect(output).toMatch(/outgoing\.ts:\d+/);
  expect(output).not.toContain('canary');
});
