/** An index beside a mirror, on real workers: a run's completion wakes it, a schedule starts it (design.md section 8). */

import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Client } from '@temporalio/client';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { parse } from 'yaml';
import { indexProgress, runIndex, signalIndex } from '../../src/client/indexes.ts';
import { INDEX_WORKFLOW, type IndexProgress, indexWorkflowId } from '../../src/domain/index-messages.ts';
import { System } from '../support/system.ts';
import { HttpScene } from '../support/system-destinations.ts';
import { eventually } from '../support/system-scene.ts';
import type { WorkerProcess } from '../support/worker-process.ts';

let system: System;
let scene: HttpScene;
let worker: WorkerProcess;
let temporal: Client;
beforeAll(async () => {
  system = await System.start();
  temporal = system.temporal.client;
  scene = await HttpScene.create(system, 'indexed', { rows: 12, idempotent: true });
  const settings: object = parse(await readFile(join(system.project.folder, 'retl.yaml'), 'utf8'));
  await system.write('retl.yaml', { ...settings, indexes: { people: { kind: 'membership-search' } } });
  worker = await system.startWorker();
});
afterAll(() => system.stop());

const until = (wanted: (progress: IndexProgress) => boolean) =>
  eventually(async () => {
    const found = await indexProgress(system.temporal, 'people');
    return found.kind === 'running' && wanted(found.progress);
  });

test('it has caught up once a run has completed, which has woken it; stopped, it ends', async () => {
  const workflowId = indexWorkflowId('people');
  expect(await runIndex(system.temporal, 'people')).toEqual({ kind: 'follows', workflowId });
  await until(({ phase }) => phase === 'caught-up');
  await scene.completed();
  await until(({ place }) => place?.rows === '12');
  const shown = await system.rows<{ mirror: string }>('select distinct mirror from retl_index.people');
  expect(shown).toEqual([{ mirror: 'indexed' }]);
  // Another project of the namespace, which has an index of the same name.
  const theirs = { ...system.temporal, taskQueue: 'another-project' };
  const foreign = { kind: 'other-queue', workflowId, taskQueue: system.temporal.taskQueue };
  expect(await runIndex(theirs, 'people')).toEqual(foreign);
  expect(await signalIndex(theirs, 'people', 'stop')).toEqual(foreign);
  expect(await indexProgress(theirs, 'people')).toEqual(foreign);
  expect(await signalIndex(system.temporal, 'people', 'stop')).toEqual({ kind: 'sent' });
  const handle = temporal.workflow.getHandle(workflowId);
  expect(await handle.result()).toMatchObject({ outcome: 'stopped', place: { rows: '12' } });
  const { events } = await handle.fetchHistory();
  const signals = events?.map((event) => event.workflowExecutionSignaledEventAttributes?.signalName);
  // One with its start, one from the run.
  expect(signals?.filter((name) => name === 'wake')).toHaveLength(2);
});

test('a schedule starts it under its own id, where it hears everything, through the loss of its worker too', async () => {
  const workflowId = indexWorkflowId('people');
  const schedule = await temporal.schedule.create({
    scheduleId: workflowId,
    spec: { calendars: [{ year: 2099 }] },
    action: {
      type: 'startWorkflow',
      workflowType: INDEX_WORKFLOW,
      workflowId,
      taskQueue: system.temporal.taskQueue,
      args: [{ index: 'people' }],
    },
  });
  /** What the n-th start by the schedule has come to. */
  const started = async (n: number) => {
    await schedule.trigger();
    await eventually(async () => (await schedule.describe()).info.recentActions.length === n);
    const start = (await schedule.describe()).info.recentActions.at(-1);
    const { workflowId: id = '' } = start?.action.workflow ?? {};
    return temporal.workflow.getHandle(id).result();
  };
  expect(await started(1)).toEqual({ outcome: 'handed-over', workflowId, started: true });
  await until(({ phase, place }) => phase === 'caught-up' && place?.build === '1');

  await signalIndex(system.temporal, 'people', 'pause');
  await until(({ phase }) => phase === 'paused');
  await scene.exec(`delete from $table where id = (select min(id) from $table)`);
  await scene.completed();
  expect(await started(2)).toEqual({ outcome: 'handed-over', workflowId, started: false });
  expect(await indexProgress(system.temporal, 'people')).toMatchObject({
    progress: { phase: 'paused', place: { rows: '12' } },
  });
  await worker.kill();
  await signalIndex(system.temporal, 'people', 'resume');
  await system.startWorker();
  await until(({ place }) => place?.rows === '11');

  await signalIndex(system.temporal, 'people', 'rebuild');
  await until(({ phase, place }) => phase === 'caught-up' && place?.build === '2' && place.rows === '11');
  expect(await signalIndex(system.temporal, 'people', 'stop')).toEqual({ kind: 'sent' });
  expect(await temporal.workflow.getHandle(workflowId).result()).toMatchObject({ outcome: 'stopped' });
  expect(await signalIndex(system.temporal, 'people', 'wake')).toEqual({ kind: 'not-running' });
  await schedule.delete();
});
