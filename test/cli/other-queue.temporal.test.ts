/** Two environments in one Temporal namespace: a command reaches the runs of its own workers, and no other's. */

import { fileURLToPath } from 'node:url';
import { defineSearchAttributeKey } from '@temporalio/common';
import { Worker } from '@temporalio/worker';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { missingWorker } from '../../src/cli/no-worker.ts';
import { answerParked } from '../../src/client/answer.ts';
import { connectClient, type TemporalClient } from '../../src/client/connect.ts';
import { signalMirror } from '../../src/client/control.ts';
import { describeHolder } from '../../src/client/describe.ts';
import { findRun, otherRuns } from '../../src/client/find-run.ts';
import { startMirror } from '../../src/client/start.ts';
import { MIRROR_WORKFLOW, RUN_ATTRIBUTES } from '../../src/domain/messages.ts';
import { MIRROR, PROJECT } from '../config/support.ts';
import { createTestProject, type TestProject } from '../support/project.ts';
import { type DevServer, startDevServer } from '../support/temporal.ts';
import { retl } from './support.ts';

const OURS = 'retl-mirror-staging';
const THEIRS = 'retl-mirror-production';
const SHOWN = `sha256:${'ab'.repeat(32)}`;

let server: DevServer;
let worker: Worker;
let working: Promise<void>;
let folder: TestProject;
let ours: TemporalClient;
let theirs: TemporalClient;

beforeAll(async () => {
  server = await startDevServer();
  worker = await Worker.create({
    connection: server.env.nativeConnection,
    taskQueue: OURS,
    workflowsPath: fileURLToPath(new URL('./stub-workflow.ts', import.meta.url)),
  });
  working = worker.run();
  const settings = { profile: null, address: server.address, namespace: null };
  ours = await connectClient({ ...settings, taskQueue: OURS });
  theirs = await connectClient({ ...settings, taskQueue: THEIRS });
  folder = await createTestProject({
    'retl.yaml': `${PROJECT}temporal:\n  task_queue: ${OURS}\n`,
    'mirrors/waits-theirs.yaml': MIRROR,
    'mirrors/waits-free.yaml': MIRROR,
  });
});
afterAll(async () => {
  await ours?.close();
  await theirs?.close();
  worker?.shutdown();
  await working;
  await folder?.remove();
  await server?.stop();
});

const as = (...args: readonly string[]) =>
  retl(args, { cwd: folder.folder, env: { TEMPORAL_ADDRESS: server.address } });

/** A run of ours under an id that is not the usual one, as a schedule or a person starts it. */
const startAs = (workflowId: string, mirror: string, named = false) =>
  server.env.client.workflow.start(MIRROR_WORKFLOW, {
    workflowId,
    taskQueue: OURS,
    args: [{ mirror }],
    ...(named
      ? {
          typedSearchAttributes: [
            { key: defineSearchAttributeKey(RUN_ATTRIBUTES.mirror, 'KEYWORD'), value: mirror },
          ],
        }
      : {}),
  });

test('a run of the other environment is not signalled, not answered and not started over, and the words say why', async () => {
  await startMirror(theirs, 'waits-theirs');
  const other = { kind: 'other-queue', workflowId: 'mirror/waits-theirs', taskQueue: THEIRS };
  for (const signal of ['cancel', 'abort', 'pause', 'resume', 'poll'] as const)
    expect(await signalMirror(ours, 'waits-theirs', signal)).toEqual(other);
  expect(await signalMirror(ours, 'waits-theirs', 'cancel', 'mirror/waits-theirs')).toEqual(other);
  expect(await answerParked(ours, 'waits-theirs', 'approve', { shown: SHOWN })).toEqual(other);
  expect(await startMirror(ours, 'waits-theirs')).toEqual(other);
  const cancelled = await as('cancel', 'waits-theirs');
  expect(cancelled.code).toBe(3);
  expect(cancelled.stderr).toContain(`runs on task queue ${THEIRS}`);
  expect(cancelled.stderr).toContain('--env');
  const started = await as('run', 'waits-theirs', '--json');
  expect(JSON.parse(started.stdout)).toMatchObject({ error: { code: 'other-queue' } });
  const history = await server.env.client.workflow.getHandle('mirror/waits-theirs').fetchHistory();
  expect(history.events?.filter((event) => event.workflowExecutionSignaledEventAttributes)).toEqual([]);
});

test('without the journal, a name of which no file is here and no run is under way is unknown', async () => {
  const { code, stdout } = await as('poll', 'waits-fre', '--json');
  expect(code).toBe(2);
  expect(JSON.parse(stdout)).toMatchObject({
    error: { code: 'config.unknown-mirror', details: { 'did you mean': 'waits-free' } },
  });
});

test('a pattern passes it over', async () => {
  await startMirror(ours, 'waits-free');
  const { code, stdout } = await as('cancel', 'waits-*', '--yes', '--json');
  expect(code).toBe(0);
  expect(JSON.parse(stdout)).toMatchObject({ mirrors: [{ mirror: 'waits-free', kind: 'sent' }] });
  expect(await describeHolder(ours, 'waits-theirs')).toMatchObject({ kind: 'open', taskQueue: THEIRS });
});

test('a run that a schedule or a person has started is found, and no other mirror’s that is called alike', async () => {
  await startAs('mirror/waits-many-2026-11-30T15:00:00Z', 'waits-many');
  await startAs('by-hand', 'waits-many', true);
  await startAs('mirror/waits-many-more', 'waits-many-more');
  await startAs('mirror/waits-many-2026-11-30T15:00:00Z-x', 'waits-many-x');
  await startAs('mirror/waits-many-2026-11-30T16:00:00Z', 'waits-else', true);
  await vi.waitFor(
    async () =>
      expect(await otherRuns(ours, 'waits-many')).toEqual([
        'mirror/waits-many-2026-11-30T15:00:00Z',
        'by-hand',
      ]),
    { timeout: 20_000, interval: 200 },
  );
  expect(await otherRuns(theirs, 'waits-many')).toEqual([]);
  expect(await findRun(ours, 'waits-many')).toEqual({
    kind: 'ours',
    workflowId: 'mirror/waits-many-2026-11-30T15:00:00Z',
  });
  expect(await findRun(ours, 'waits-many-more')).toMatchObject({ kind: 'ours' });
  expect(await findRun(ours, 'nothing')).toEqual({ kind: 'none', workflowId: 'mirror/nothing' });
});

test('without the journal, what a scheduled run asks is shown and answered', async () => {
  await startAs('mirror/waits-2-as-parked-2026-11-30T15:00:00Z', 'waits-2-as-parked');
  await vi.waitFor(async () => expect(await otherRuns(ours, 'waits-2-as-parked')).toHaveLength(1), {
    timeout: 20_000,
    interval: 200,
  });
  const { askedByTemporal } = await import('../../src/cli/answer-temporal.ts');
  expect(await askedByTemporal(ours, 'waits-2-as-parked')).toMatchObject({
    workflowId: 'mirror/waits-2-as-parked-2026-11-30T15:00:00Z',
    parked: { removals: 900 },
  });
  await expect(askedByTemporal(ours, 'waits-theirs')).rejects.toMatchObject({ code: 'other-queue' });
});

test('where the search attributes are not registered, ids tell', async () => {
  await server.env.connection.operatorService.removeSearchAttributes({
    namespace: 'default',
    searchAttributes: [RUN_ATTRIBUTES.mirror],
  });
  const query = `${RUN_ATTRIBUTES.mirror} = "waits-many"`;
  await vi.waitFor(() => expect(ours.client.workflow.count(query)).rejects.toThrow(), {
    timeout: 20_000,
    interval: 500,
  });
  expect(await otherRuns(ours, 'waits-2-as-parked')).toEqual([
    'mirror/waits-2-as-parked-2026-11-30T15:00:00Z',
  ]);
});

test('Temporal’s UI says what a run is and what may be said to it', async () => {
  const handle = server.env.client.workflow.getHandle('mirror/waits-free');
  const { staticDetails } = await handle.describe();
  expect(await staticDetails()).toContain('the mirror **waits-free**');
});

test('where nobody has said where Temporal is, nothing is started unless a worker of the project is there', async () => {
  const byDefault = { ...theirs, isNamed: false };
  await expect(missingWorker(byDefault)).rejects.toMatchObject({ code: 'no-worker', exit: 3 });
  expect(await missingWorker({ ...ours, isNamed: false })).toBeNull();
  expect(await missingWorker(ours)).toBeNull();
});

test('every command that starts something warns that no worker is there, and starts it all the same where Temporal is named', async () => {
  const lonely = await createTestProject({
    'retl.yaml': `${PROJECT}temporal: { task_queue: nobody }\nindexes: { lonely: { kind: membership-search } }\n`,
    'mirrors/waits-lonely.yaml': `${MIRROR}schedule: { every: 12h }\n`,
  });
  const started = async (...args: readonly string[]) => {
    const at = { cwd: lonely.folder, env: { TEMPORAL_ADDRESS: server.address } };
    const { code, stderr } = await retl(args, at);
    return [args.join(' '), code, /warning: no worker polls task queue nobody; .*`retl worker`/.test(stderr)];
  };
  const commands = [
    ['run', 'waits-lonely', '--detach'],
    ['index', 'run', 'lonely'],
    ['maintenance', 'run', '--detach'],
    ['schedules', 'apply'],
  ];
  const done = await Promise.all(commands.map((args) => started(...args)));
  expect(done).toEqual(commands.map((args) => [args.join(' '), 0, true]));
  expect(await started('schedules', 'trigger', 'waits-lonely')).toEqual([
    'schedules trigger waits-lonely',
    0,
    true,
  ]);
  await lonely.remove();
});
