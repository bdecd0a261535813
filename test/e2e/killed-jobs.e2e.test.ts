/** Workers that are killed while a destination works asynchronously: one job, whatever moment it was (rules 3 and 5). */

import { afterEach, beforeEach, expect, test } from 'vitest';
import { System } from '../support/system.ts';
import { JobsScene } from '../support/system-jobs.ts';
import { completedBy, eventually } from '../support/system-scene.ts';
import type { WorkerProcess } from '../support/worker-process.ts';

let system: System;
let worker: WorkerProcess;
beforeEach(async () => {
  system = await System.start();
  worker = await system.startWorker();
});
afterEach(() => system.stop());

test('between the staging and its receipt: the job is found by a look-up, and no second one is begun', async () => {
  const scene = await JobsScene.create(system, 'killed-staging', {
    destination: { lookup: { by_key: { path: '/keys/{key}' } } },
  });
  scene.api.writes.push({ answer: 'never', applied: true });
  const handle = await scene.start();
  await scene.untilJobs(1);
  await worker.kill();
  expect(await scene.batches('upsert')).toMatchObject([{ state: 'sending' }]);
  await system.startWorker();
  expect((await completedBy(handle)).counts).toMatchObject({ added: 5 });
  expect(scene.api.jobs).toHaveLength(1);
  expect(await scene.batches('upsert')).toMatchObject([{ state: 'settled', sending: 1, resends: 0 }]);
});

test('between a poll and its receipt: the batch is staged still, and is asked about once more', async () => {
  const scene = await JobsScene.create(system, 'killed-poll', { rows: 10 });
  scene.api.reads.push('never', 'never');
  const handle = await scene.start();
  await eventually(() => scene.seen.some((line) => line.startsWith('GET jobs')));
  await worker.kill();
  expect((await scene.batches('upsert')).map((b) => b.state)).toEqual(['staged', 'staged']);
  await system.startWorker();
  expect((await completedBy(handle)).counts).toMatchObject({ added: 10 });
  expect(scene.api.jobs).toHaveLength(2);
  expect(scene.holds).toHaveLength(10);
});
