/** An index beside a mirror, on real workers: a run's completion wakes it, a schedule starts it (design.md section 8). */

import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Client } from '@temporalio/client';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { parse } from 'yaml';
import { indexProgress, runIndex, signalIndex } from '../../src/client/indexes.ts';
import { ERROR_CODES } from '../../src/domain/errors.ts';
import { INDEX_WORKFLOW, type IndexProgress, indexWorkflowId } from '../../src/domain/index-messages.ts';
import { retl } from '../cli/support.ts';
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
  worker = await system.startWorker();
  await until(({ place }) => place?.rows === '11');

  await signalIndex(system.temporal, 'people', 'rebuild');
  await until(({ phase, place }) => phase === 'caught-up' && place?.build === '2' && place.rows === '11');
  expect(await signalIndex(system.temporal, 'people', 'stop')).toEqual({ kind: 'sent' });
  expect(await temporal.workflow.getHandle(workflowId).result()).toMatchObject({ outcome: 'stopped' });
  expect(await signalIndex(system.temporal, 'people', 'wake')).toEqual({ kind: 'not-running' });
  await schedule.delete();
});

interface Told {
  readonly state: string;
  readonly code: string | null;
  readonly remedy: string | null;
}

/** What `retl index status` says of its workflow: as a cell of the table and beside it, and as JSON. */
async function told(
  exit: 0 | 1 = 0,
): Promise<{ readonly row: string; readonly notes: string; readonly workflow: Told }> {
  const status = (...args: readonly string[]) =>
    retl(['index', 'status', 'people', ...args], { cwd: system.project.folder, env: system.env });
  const [plain, json] = await Promise.all([status(), status('--json')]);
  expect(plain.code, plain.stderr).toBe(exit);
  const { indexes } = JSON.parse(json.stdout) as { readonly indexes: readonly { readonly workflow: Told }[] };
  const [index] = indexes;
  if (index === undefined) throw new Error('no index was told of');
  return { row: plain.stdout.split('\n')[1] ?? '', notes: plain.stderr, workflow: index.workflow };
}

const index = (...args: readonly string[]) =>
  retl(['index', ...args], { cwd: system.project.folder, env: system.env });

/** Nobody is told that work goes on which does not: neither by `run` nor by `rebuild`. A new build is begun, and waits. */
async function commandsWhilePaused(): Promise<void> {
  const resume = expect.stringContaining('`retl index resume people`');
  expect(await index('run', 'people')).toEqual({
    ...{ code: 3, stdout: `people: paused (workflow ${indexWorkflowId('people')})\n`, stderr: resume },
  });
  const rebuilt = await index('rebuild', 'people');
  expect(rebuilt).toMatchObject({ code: 0, stdout: expect.stringMatching(/ begun\n$/), stderr: resume });
  expect(rebuilt.stderr).toContain('Nothing works on it yet.\n');
  const json = await index('rebuild', 'people', '--json');
  expect(JSON.parse(json.stdout)).toMatchObject({ running: false, workflow: { state: 'paused' } });
  // Begun by its workflow, it waits as well, and readers have what they had.
  await signalIndex(system.temporal, 'people', 'rebuild');
  const builds = `select state from retl_index.index_build where state in ('live', 'building') and build_id > $1 or state = 'live'
    order by state`;
  const { build } = JSON.parse(json.stdout) as { readonly build: string };
  await eventually(async () => (await system.rows(builds, [build])).length === 2);
  expect(await indexProgress(system.temporal, 'people')).toMatchObject({ progress: { phase: 'paused' } });
  expect(await index('resume', 'people')).toMatchObject({ code: 0, stdout: 'people: resume sent\n' });
  await until(({ phase, place }) => phase === 'caught-up' && Number(place?.build) > Number(build));
}

test('how its workflow stands is told beside how far it is: not running, paused, refused and why, without a worker', async () => {
  expect(await told()).toMatchObject({
    row: expect.stringMatching(/^people +live +2 .* not running$/),
    notes: expect.stringContaining('`retl index run people`'),
    workflow: { state: 'not-running', code: null },
  });
  await runIndex(system.temporal, 'people');
  await until(({ phase }) => phase === 'caught-up');
  await signalIndex(system.temporal, 'people', 'pause');
  await until(({ phase }) => phase === 'paused');
  expect(await told()).toMatchObject({
    row: expect.stringMatching(/ paused$/),
    notes: expect.stringContaining('`retl index resume people`'),
    workflow: { state: 'paused' },
  });
  await commandsWhilePaused();
  await system.rows(`update retl_index.index_build set entry_hash = 'sha256:' || repeat('ab', 32)`);
  const { remedy } = ERROR_CODES['index.log-diverged'];
  for (const what of ['run', 'resume'])
    expect(await index(what, 'people')).toMatchObject({
      code: 1,
      stdout: expect.stringMatching(/^people: (resume sent|refused: index\.log-diverged \()/),
      stderr: expect.stringContaining(remedy),
    });
  await until(({ phase }) => phase === 'refused');
  // The index itself is found to be of another log, too: that is told once, and is no success.
  expect(await told(1)).toMatchObject({
    row: expect.stringMatching(/ refused: index\.log-diverged$/),
    notes: expect.stringContaining(remedy),
    workflow: { state: 'refused', code: 'index.log-diverged', remedy: expect.stringContaining(remedy) },
  });
  await worker.kill();
  expect(await told(1)).toMatchObject({
    row: expect.stringMatching(/^people +live +\d+ .* no worker$/),
    notes: expect.stringContaining('no worker answers on task queue'),
    workflow: { state: 'no-worker' },
  });
  expect((await index('run', 'people')).stdout).toContain('people: waits for a worker (');
}, 120_000);
