/** `retl schedules` on a real server: Temporal decides what is skipped, and the tests ask it. */

import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { DefaultLogger, Runtime, Worker } from '@temporalio/worker';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { connectClient, type TemporalClient } from '../../src/client/connect.ts';
import { signalMirror } from '../../src/client/control.ts';
import { triggerSchedule } from '../../src/client/schedule-runs.ts';
import { applySchedule, readSchedule, type Schedule } from '../../src/client/schedules.ts';
import { TASK_QUEUE } from '../../src/domain/messages.ts';
import { MAINTENANCE_NAME, type ScheduleSettings } from '../../src/domain/schedule.ts';
import { retl } from '../cli/support.ts';
import { MIRROR, PROJECT } from '../config/support.ts';
import { createTestProject, type TestProject } from '../support/project.ts';
import { type DevServer, startDevServer } from '../support/temporal.ts';

let server: DevServer;
let worker: Worker;
let working: Promise<void>;
let temporal: TemporalClient;
const projects: TestProject[] = [];

beforeAll(async () => {
  // Failing workflows are what is tried here; the SDK need not warn of each.
  Runtime.install({ logger: new DefaultLogger('ERROR') });
  server = await startDevServer();
  worker = await Worker.create({
    connection: server.env.nativeConnection,
    taskQueue: TASK_QUEUE,
    workflowsPath: fileURLToPath(new URL('../cli/stub-workflow.ts', import.meta.url)),
  });
  working = worker.run();
  temporal = await connectClient({
    profile: null,
    address: server.address,
    namespace: null,
    taskQueue: TASK_QUEUE,
  });
});

afterAll(async () => {
  await temporal?.close();
  worker?.shutdown();
  await working;
  for (const project of projects) await project.remove();
  await server?.stop();
});

/** Mirrors by name, each with what stands behind `schedule:`; `null`: no schedule. */
async function projectOf(schedules: { readonly [mirror: string]: string | null }): Promise<TestProject> {
  // All of them share one task queue, and with it the schedule of maintenance.
  const project = await createTestProject({ 'retl.yaml': `${PROJECT}maintenance: { enabled: false }\n` });
  projects.push(project);
  for (const [mirror, schedule] of Object.entries(schedules)) await write(project, mirror, schedule);
  return project;
}

function write(project: TestProject, mirror: string, schedule: string | null): Promise<void> {
  const text = schedule === null ? MIRROR : `${MIRROR}schedule: ${schedule}\n`;
  return project.write(`mirrors/${mirror}.yaml`, text);
}

function run(project: TestProject, ...args: readonly string[]) {
  const options = { cwd: project.folder, env: { TEMPORAL_ADDRESS: server.address } };
  return retl(['schedules', ...args], options);
}

async function there(mirror: string): Promise<Schedule> {
  const schedule = await readSchedule(temporal, mirror);
  if (schedule === null) throw new Error(`no schedule of ${mirror}`);
  return schedule;
}

async function until(mirror: string, holds: (schedule: Schedule) => boolean): Promise<Schedule> {
  for (const end = Date.now() + 30_000; Date.now() < end; await sleep(200)) {
    const schedule = await there(mirror);
    if (holds(schedule)) return schedule;
  }
  throw new Error(`the schedule of ${mirror} did not come to that`);
}

/** Temporal's list of schedules lags behind. */
async function untilListed(...mirrors: readonly string[]): Promise<void> {
  for (const end = Date.now() + 30_000; Date.now() < end; await sleep(200)) {
    const ids: string[] = [];
    for await (const { scheduleId } of temporal.client.schedule.list()) ids.push(scheduleId);
    if (mirrors.every((mirror) => ids.includes(`mirror/${mirror}`))) return;
  }
  throw new Error('the schedules are not listed');
}

const HOURLY: ScheduleSettings = {
  times: { kind: 'every', everyMs: 3_600_000 },
  jitterMs: 0,
  overlap: 'skip',
  catchUpMs: 3_600_000,
  pauseOnFailure: false,
};

test('apply creates, changes nothing when repeated, and updates what the file changes', async () => {
  const project = await projectOf({ 'apply-a': '{ every: 1h, jitter: 30s }', 'apply-b': null });
  await write(
    project,
    'apply-c',
    '{ cron: "*/20 6-8 1-7 jan,JUN *", time_zone: Europe/Berlin, overlap: buffer_one, catch_up: 2d, pause_on_failure: true }',
  );
  const dry = await run(project, 'apply', '--dry-run');
  expect(dry.stdout).toContain('would create  apply-a');
  expect(await readSchedule(temporal, 'apply-a')).toBeNull();

  const first = await run(project, 'apply');
  expect(first.stdout).toBe('created    apply-a\ncreated    apply-c\n');
  expect(first.code).toBe(0);
  expect(await there('apply-a')).toMatchObject({ owner: 'ours', asApplied: true, paused: false });
  expect((await there('apply-c')).form).toMatchObject({
    times: 'cron */20 6-8 1-7 1,6 *',
    time_zone: 'Europe/Berlin',
    overlap: 'buffer_one',
    catch_up: '2d',
    pause_on_failure: 'true',
    limits: 'none',
  });
  expect(await readSchedule(temporal, 'apply-b')).toBeNull();
  const again = JSON.parse((await run(project, 'apply', '--json')).stdout) as object;
  expect(again).toEqual({
    dryRun: false,
    changes: [
      { kind: 'unchanged', mirror: 'apply-a' },
      { kind: 'unchanged', mirror: 'apply-c' },
    ],
  });

  await write(project, 'apply-a', '{ every: 2h }');
  const updated = await run(project, 'apply');
  expect(updated.stdout).toBe(
    'updated    apply-a\n    times: every 1h → every 2h\n    jitter: 30s → none\nunchanged  apply-c\n',
  );
  expect((await there('apply-a')).form).toMatchObject({ times: 'every 2h', jitter: 'none' });
});

test('what somebody changes in Temporal is told and mended; a paused schedule stays paused', async () => {
  const project = await projectOf({ drift: '{ cron: "0 6 * * 1-5" }' });
  await run(project, 'apply');
  await temporal.client.schedule.getHandle('mirror/drift').update((now) => ({
    ...now,
    spec: { intervals: [{ every: '1m' }] },
    policies: { ...now.policies, overlap: 'ALLOW_ALL' },
    state: { paused: true, note: 'by hand', remainingActions: 3 },
  }));
  const listed = await run(project, 'list', 'drift');
  expect(listed.stdout).toContain('paused, differs');
  expect(listed.stdout).toContain('overlap: allow_all → skip');
  const mended = await run(project, 'apply');
  expect(mended.stdout).toContain('somebody has changed it in Temporal since it was applied');
  expect(mended.stdout).toContain('times: every 1m → cron 0 6 * * 1-5');
  expect(mended.stdout).toContain('limits: 3 more starts → none');
  expect(await there('drift')).toMatchObject({
    paused: true,
    note: 'by hand',
    asApplied: true,
    form: { overlap: 'skip', limits: 'none' },
  });
});

test('one whose schedule is gone is left until --prune; what others have made is left for good', async () => {
  const project = await projectOf({ 'prune-a': '{ every: 1h }', 'prune-b': '{ every: 1h }' });
  const theirs = { ...temporal, taskQueue: 'theirs' };
  await run(project, 'apply');
  await applySchedule(theirs, 'prune-theirs', HOURLY, { dryRun: false, takeOver: false });
  await temporal.client.schedule.create({
    scheduleId: 'mirror/prune-hand',
    spec: { intervals: [{ every: '1h' }] },
    action: { type: 'startWorkflow', workflowType: 'other', taskQueue: TASK_QUEUE },
  });
  await untilListed('prune-a', 'prune-b', 'prune-theirs', 'prune-hand');
  await write(project, 'prune-b', null);
  const kept = await run(project, 'apply');
  expect(kept.stdout).toContain('left over  prune-b');
  expect(kept.code).toBe(0);
  await there('prune-b');

  await project.write('mirrors/prune-a.yaml', 'broken: [');
  expect((await run(project, 'apply', '--prune')).code).toBe(2);
  await there('prune-b');
  await write(project, 'prune-a', '{ every: 1h }');

  expect((await run(project, 'apply', '--prune', '--dry-run')).stdout).toContain('would delete  prune-b');
  await there('prune-b');
  expect((await run(project, 'apply', '--prune')).stdout).toContain('deleted    prune-b');
  expect(await readSchedule(temporal, 'prune-b')).toBeNull();
  expect(await there('prune-theirs')).toMatchObject({ owner: 'other-queue' });
  expect(await there('prune-hand')).toMatchObject({ owner: 'unmanaged' });

  await write(project, 'prune-hand', '{ every: 2h }');
  const refused = await run(project, 'apply');
  expect(refused.stdout).toContain('refused    prune-hand');
  expect(refused.code).toBe(3);
  expect((await run(project, 'pause', 'prune-theirs')).code).toBe(3);
  expect((await run(project, 'apply', '--take-over')).code).toBe(0);
  expect(await there('prune-hand')).toMatchObject({ owner: 'ours', asApplied: true });
  await run(project, 'delete', 'prune-*');
  expect(await there('prune-theirs')).toMatchObject({ paused: false });
});

test('skipped-runs: starts that meet a run under way are skipped, counted and shown; no two overlap', async () => {
  const project = await projectOf({ 'waits-long': '{ every: 2s }' });
  await run(project, 'apply');
  const { running, counts } = await until('waits-long', (schedule) => schedule.counts.skipped >= 2);
  expect(counts.started).toBe(1);
  expect(running).toHaveLength(1);
  const refused = await run(project, 'trigger', 'waits-long');
  expect(refused.stdout).toContain('a run of this schedule is under way');
  expect(refused.code).toBe(3);
  const shown = JSON.parse((await run(project, 'list', '--json', 'waits-long')).stdout) as {
    readonly schedules: readonly [{ readonly schedule: Schedule; readonly lastOutcome: string }];
  };
  expect(shown.schedules[0].lastOutcome).toBe('running');
  expect(shown.schedules[0].schedule.counts.skipped).toBeGreaterThanOrEqual(2);
  await run(project, 'pause', 'waits-long');
  await signalMirror(temporal, 'waits-long', 'cancel', running[0]);
  await until('waits-long', (schedule) => schedule.running.length === 0);
  const { stdout } = await run(project, 'list', 'waits-long');
  expect(stdout).toMatch(/^MIRROR +TIMES +STATE +NEXT +LAST RUN +STARTED +RUNS +SKIPPED +MISSED$/m);
  expect(stdout).toMatch(
    /^waits-long +every 2s +paused +none +cancelled +\d+s ago +1 +(?:[2-9]|\d{2,}) +0$/m,
  );
});

test('with buffer_one, one start waits for its turn behind the run under way, and no second beside it', async () => {
  const buffering = { ...HOURLY, overlap: 'buffer_one' } as const;
  await applySchedule(temporal, 'waits-turn', buffering, { dryRun: false, takeOver: false });
  const first = await triggerSchedule(temporal, await there('waits-turn'));
  const { running } = await until('waits-turn', (schedule) => schedule.running.length === 1);
  expect(first).toEqual({ kind: 'started', workflowId: running[0] });
  expect(await triggerSchedule(temporal, await there('waits-turn'))).toEqual({ kind: 'waits' });
  expect((await there('waits-turn')).counts.started).toBe(1);
  await signalMirror(temporal, 'waits-turn', 'cancel', running[0]);
  const after = await until('waits-turn', (schedule) => schedule.counts.started === 2);
  expect(after.running).toHaveLength(1);
  await signalMirror(temporal, 'waits-turn', 'cancel', after.running[0]);
});

test('times that the server refuses are an error of the configuration, in our words', async () => {
  const times = { kind: 'cron', cron: '@daily', timeZone: 'Mars/Olympus_Mons' } as const;
  const applied = applySchedule(temporal, 'mars', { ...HOURLY, times }, { dryRun: false, takeOver: false });
  await expect(applied).rejects.toMatchObject({ code: 'config.schedule', details: { mirror: 'mars' } });
});

test('pause, resume, trigger and delete act by name and by pattern, and say what became of each', async () => {
  const project = await projectOf({ 'acts-a': '{ every: 12h }', 'acts-b': '{ every: 12h }' });
  await run(project, 'apply');
  await untilListed('acts-a', 'acts-b');
  const paused = await run(project, 'pause', 'acts-*');
  expect(paused.stdout).toBe(
    'acts-a: paused; a run that is under way goes on\nacts-b: paused; a run that is under way goes on\n',
  );
  expect((await run(project, 'pause', 'acts-a')).stdout).toBe('acts-a: paused already\n');
  expect((await run(project, 'list', 'acts-a')).stdout).toContain(
    'acts-a: Paused by `retl schedules pause`; `retl schedules resume acts-a` goes on.',
  );
  const triggered = JSON.parse((await run(project, 'trigger', 'acts-a', '--json')).stdout) as object;
  expect(triggered).toMatchObject({
    schedules: [
      { mirror: 'acts-a', kind: 'started', workflowId: expect.stringMatching(/^mirror\/acts-a-\d{4}-/) },
    ],
  });
  await until('acts-a', (schedule) => schedule.running.length === 0);
  expect((await run(project, 'list', 'acts-a')).stdout).toContain('completed');
  expect((await run(project, 'resume', 'acts-?')).stdout).toMatch(/acts-a: resumed; next start \d{4}-/);
  expect((await run(project, 'delete', 'acts-*')).stdout).toBe('acts-a: deleted\nacts-b: deleted\n');
  const gone = await run(project, 'pause', 'acts-a', '--json');
  expect(gone.code).toBe(3);
  expect(JSON.parse(gone.stdout)).toMatchObject({ error: { code: 'no-schedule' } });
});

test('a run that ends as refused counts as started and not as skipped; with pause_on_failure it pauses', async () => {
  const project = await projectOf({ 'fails-as-refused': '{ every: 12h, pause_on_failure: true }' });
  await run(project, 'apply');
  await run(project, 'trigger', 'fails-as-refused');
  const { counts } = await until('fails-as-refused', (schedule) => schedule.paused);
  expect(counts).toEqual({ started: 1, skipped: 0, missed: 0 });
  const { stdout } = await run(project, 'list', 'fails-as-refused');
  expect(stdout).toMatch(/paused +none +refused/);
  expect(stdout).toContain('paused due to workflow failure');
});

test('maintenance has a schedule without being asked for, is controlled by --maintenance, and goes with --prune once it is disabled', async () => {
  const project = await projectOf({ kept: '{ every: 1h }' });
  await project.write('retl.yaml', PROJECT);
  const first = await run(project, 'apply');
  expect(first.stdout).toContain('created    (maintenance)\n');
  const schedule = await there(MAINTENANCE_NAME);
  expect(schedule).toMatchObject({ owner: 'ours', asApplied: true, paused: false });
  expect(schedule.form).toMatchObject({ times: 'every 1d', workflow: 'maintenance as maintenance with {}' });
  expect((await run(project, 'list')).stdout).toMatch(/\(maintenance\) +every 1d +active/);
  expect((await run(project, 'pause', '--maintenance')).stdout).toContain('(maintenance): paused');
  expect((await there('kept')).paused).toBe(false);
  expect((await there(MAINTENANCE_NAME)).note).toContain('retl schedules resume --maintenance');
  await project.write('retl.yaml', `${PROJECT}maintenance: { schedule: { every: 6h } }\n`);
  expect((await run(project, 'apply')).stdout).toContain(
    'updated    (maintenance)\n    times: every 1d → every 6h\n',
  );
  await untilListed('kept');
  await project.write('retl.yaml', `${PROJECT}maintenance: { enabled: false }\n`);
  expect((await run(project, 'apply')).stdout).toContain(
    'left over  (maintenance): `maintenance` is not enabled',
  );
  expect((await run(project, 'apply', '--prune')).stdout).toContain('deleted    (maintenance)');
  expect(await readSchedule(temporal, MAINTENANCE_NAME)).toBeNull();
});
