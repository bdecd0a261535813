import { fileURLToPath } from 'node:url';
import { DefaultLogger, Runtime, Worker } from '@temporalio/worker';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { connectClient, type TemporalClient } from '../../src/client/connect.ts';
import { signalMirror } from '../../src/client/control.ts';
import { describeHolder } from '../../src/client/describe.ts';
import { startMirror } from '../../src/client/start.ts';
import { watchRun } from '../../src/client/watch.ts';
import { TASK_QUEUE } from '../../src/domain/messages.ts';
import { MIRROR, PROJECT } from '../config/support.ts';
import { createTestProject, type TestProject } from '../support/project.ts';
import { type DevServer, startDevServer } from '../support/temporal.ts';
import { type Running, retl, startRetl } from './support.ts';

let server: DevServer;
let worker: Worker;
let working: Promise<void>;
let project: TestProject;
let temporal: TemporalClient;

beforeAll(async () => {
  // Failing workflows are what is tried here; the SDK need not warn of each.
  Runtime.install({ logger: new DefaultLogger('ERROR') });
  server = await startDevServer();
  worker = await Worker.create({
    connection: server.env.nativeConnection,
    taskQueue: TASK_QUEUE,
    workflowsPath: fileURLToPath(new URL('./stub-workflow.ts', import.meta.url)),
  });
  working = worker.run();
  project = await createTestProject({ 'retl.yaml': PROJECT });
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
  await project?.remove();
  await server?.stop();
});

function run(...args: readonly string[]) {
  return retl(args, { cwd: project.folder, env: { TEMPORAL_ADDRESS: server.address } });
}

function start(...args: readonly string[]): Running {
  return startRetl(args, { cwd: project.folder, env: { TEMPORAL_ADDRESS: server.address } });
}

function events(stdout: string): readonly unknown[] {
  return stdout
    .trim()
    .split('\n')
    .map((line): unknown => JSON.parse(line));
}

test('a run is started and followed to its end; progress to stderr, the result to stdout, exit 0', async () => {
  const { code, stdout, stderr } = await run('run', 'completes');
  expect(code).toBe(0);
  expect(stdout).toBe('completes: completed\n  8 added, 0 changed, 0 removed, 2 unchanged\n');
  expect(stderr).toContain('sending additions: 4 of 8');
});

test('with --json every step is one JSON text per line, and the last tells the exit code', async () => {
  const { code, stdout, stderr } = await run('run', 'completes-json', '--json');
  const seen = events(stdout);
  expect(code).toBe(0);
  expect(stderr).toBe('');
  expect(seen[0]).toMatchObject({ event: 'started', workflowId: 'mirror/completes-json' });
  expect(seen.at(-1)).toMatchObject({ event: 'ended', outcome: 'completed', runId: '7', exitCode: 0 });
});

test.each([
  ['refused', 3],
  ['guard-held', 4],
  ['rejected', 5],
  ['invalid', 2],
  ['unavailable', 1],
])('a run that ends as %s exits with %i and repeats why', async (type, expected) => {
  const { code, stdout } = await run('run', `fails-as-${type}`);
  expect(code).toBe(expected);
  expect(stdout).toContain(`words of ${type}`);
});

test('leaks: a failure that nobody foresaw shows its type alone', async () => {
  const { code, stdout, stderr } = await run('run', 'fails-as-weird');
  expect(code).toBe(1);
  expect(stdout + stderr).toContain('(weird)');
  expect(stdout + stderr).not.toContain('words of');
});

test('a run is followed across continue-as-new', async () => {
  const { code, stdout } = await run('run', 'continues');
  expect(code).toBe(0);
  expect(stdout).toContain('8 added');
});

test('two-writers: a second run is refused with 3 and says what to do; a run after it is not', async () => {
  const first = await run('run', 'waits-twice', '--detach');
  expect(first.code).toBe(0);
  const second = await run('run', 'waits-twice', '--json');
  expect(second.code).toBe(3);
  expect(JSON.parse(second.stdout)).toMatchObject({ error: { code: 'busy' } });
  expect((await run('cancel', 'waits-twice')).code).toBe(0);
  await server.env.client.workflow.getHandle('mirror/waits-twice').result();
  expect((await run('run', 'waits-twice', '--detach')).code).toBe(0);
  await signalMirror(temporal, 'waits-twice', 'abort');
});

test.each([
  ['cancel', 'cancelled'],
  ['abort', 'aborted'],
])('a run that is stopped by %s exits with 7', async (command, outcome) => {
  const following = start('run', `waits-for-${command}`);
  await following.says('sending additions');
  expect((await run(command, `waits-for-${command}`)).code).toBe(0);
  const { code, stdout } = await following.ended;
  expect(code).toBe(7);
  expect(stdout).toContain(outcome);
});

test('pause and resume reach the run that is under way', async () => {
  const following = start('run', 'waits-paused');
  await following.says('sending additions');
  await run('pause', 'waits-paused');
  await following.says('paused; `retl resume` goes on');
  await run('resume', 'waits-paused', '--json');
  await run('cancel', 'waits-paused');
  expect((await following.ended).code).toBe(7);
});

test('Ctrl-C without a terminal only stops following: the run goes on, exit 130', async () => {
  const following = start('run', 'waits-on');
  await following.says('sending additions');
  following.signal('SIGINT');
  const { code, stderr } = await following.ended;
  expect(code).toBe(130);
  expect(stderr).toContain('The run goes on.');
  expect(await describeHolder(temporal, 'waits-on')).toMatchObject({ kind: 'open' });
  await signalMirror(temporal, 'waits-on', 'cancel');
});

test('a blocked run is not waited for where nobody watches: exit 6, and the batch is named', async () => {
  const { code, stderr } = await run('run', 'waits-as-blocked');
  expect(code).toBe(6);
  expect(stderr).toContain('blocked: connection-reset (batch sha256:abc)');
  await signalMirror(temporal, 'waits-as-blocked', 'cancel');
});

test('a parked run is told as held where nobody watches: exit 4, what it asks, and how to answer', async () => {
  const { code, stdout, stderr } = await run('run', 'waits-as-parked');
  expect(code).toBe(4);
  expect(stdout).toContain('parked by the guard; nobody was removed');
  expect(stdout).toContain('it would remove 900 of 1,000 members (90%)');
  expect(stdout).toContain('retl approve waits-as-parked');
  expect(stderr).not.toContain('completed');
  await signalMirror(temporal, 'waits-as-parked', 'cancel');
});

test('a second start of a run that is parked says that it waits for an answer, and how to give it', async () => {
  expect((await run('run', 'waits-3-as-parked', '--detach')).code).toBe(0);
  const second = await run('run', 'waits-3-as-parked');
  expect(second.code).toBe(3);
  expect(second.stderr).toContain('waits for an answer');
  expect(second.stderr).toContain('it would remove 900 of 1,000 members (90%)');
  expect(second.stderr).toContain('`retl approve waits-3-as-parked`');
  await signalMirror(temporal, 'waits-3-as-parked', 'cancel');
});

test('with --wait a parked run is followed on, and JSON has what it asks', async () => {
  const following = start('run', 'waits-2-as-parked', '--wait', '--json');
  await following.says('"event":"parked"');
  await signalMirror(temporal, 'waits-2-as-parked', 'cancel');
  const { code, stdout } = await following.ended;
  expect(code).toBe(7);
  const seen = events(stdout);
  expect(seen).toContainEqual(
    expect.objectContaining({ event: 'parked', mirror: 'waits-2-as-parked', removals: 900, held: 1000 }),
  );
  expect(seen.filter((event) => JSON.stringify(event).includes('"event":"parked"'))).toHaveLength(1);
});

test('several runs are followed at once, each under its name, and the worst exit code counts', async () => {
  const { code, stdout, stderr } = await run(
    'run',
    'fails-1-as-rejected',
    'completes-1',
    'fails-1-as-invalid',
  );
  expect(code).toBe(5);
  expect(stdout).toContain('completes-1: completed');
  expect(stdout).toContain('fails-1-as-invalid: stopped');
  expect(stderr).toContain('completes-1: sending additions');
});

test('two-writers: of several, the one that is under way is refused and the others go on', async () => {
  await startMirror(temporal, 'waits-busy');
  const { code, stdout } = await run('run', 'waits-busy', 'completes-2', '--json');
  expect(code).toBe(3);
  expect(events(stdout)).toContainEqual(
    expect.objectContaining({ event: 'ended', mirror: 'waits-busy', outcome: 'busy', exitCode: 3 }),
  );
  expect(events(stdout)).toContainEqual(
    expect.objectContaining({ event: 'ended', mirror: 'completes-2', outcome: 'completed' }),
  );
  await signalMirror(temporal, 'waits-busy', 'cancel');
});

test('a worker that is missing is named within seconds', async () => {
  const other = await createTestProject({
    'retl.yaml': `${PROJECT}temporal:\n  task_queue: nobody-polls\n`,
  });
  const following = startRetl(['run', 'lonely', '--json'], {
    cwd: other.folder,
    env: { TEMPORAL_ADDRESS: server.address },
  });
  await following.says('"event":"no-answer"');
  following.signal('SIGINT');
  expect((await following.ended).code).toBe(130);
  await server.env.client.workflow.getHandle('mirror/lonely').terminate();
  await other.remove();
});

test('a pattern cancels the runs that are under way, and asks before it does', async () => {
  const several = await createTestProject({
    'retl.yaml': PROJECT,
    'mirrors/waits-x.yaml': MIRROR,
    'mirrors/waits-y.yaml': MIRROR,
  });
  const there = { cwd: several.folder, env: { TEMPORAL_ADDRESS: server.address } };
  expect((await retl(['cancel', 'waits-*'], there)).code).toBe(3);
  await startMirror(temporal, 'waits-x');
  const unasked = await retl(['cancel', 'waits-*'], there);
  expect(unasked.code).toBe(2);
  expect(unasked.stderr).toContain('add --yes');
  expect(await describeHolder(temporal, 'waits-x')).toMatchObject({ kind: 'open' });
  const done = await retl(['cancel', 'waits-*', '--yes', '--json'], there);
  expect(done.code).toBe(0);
  expect(JSON.parse(done.stdout)).toEqual({
    signal: 'cancel',
    mirrors: [{ mirror: 'waits-x', kind: 'sent', workflowId: 'mirror/waits-x' }],
  });
  await several.remove();
});

test.each(['cancel', 'abort', 'pause', 'resume'])('%s without a run is refused with 3', async (command) => {
  const { code, stderr } = await run(command, 'never-started');
  expect(code).toBe(3);
  expect(stderr).toContain('No run of never-started is under way.');
});

test('a run that is terminated or cancelled in Temporal is told as that', async () => {
  const started = await startMirror(temporal, 'waits-terminated');
  if (started.kind !== 'started') throw new Error('not started');
  await server.env.client.workflow.getHandle(started.workflowId).terminate();
  const seen = [];
  for await (const event of watchRun(temporal, started)) seen.push(event);
  expect(seen.at(-1)).toEqual({ kind: 'ended', ending: { kind: 'terminated' } });
  expect(await describeHolder(temporal, 'waits-terminated')).toMatchObject({
    kind: 'closed',
    status: 'TERMINATED',
  });
  expect(await describeHolder(temporal, 'never-started')).toMatchObject({ kind: 'none' });
});

test('what follows a run reads its own result, not that of a later run of the same mirror', async () => {
  const first = await startMirror(temporal, 'waits-again');
  if (first.kind !== 'started') throw new Error('not started');
  await signalMirror(temporal, 'waits-again', 'cancel');
  await server.env.client.workflow.getHandle(first.workflowId, first.runId).result();
  await startMirror(temporal, 'waits-again');
  const seen = [];
  for await (const event of watchRun(temporal, first)) seen.push(event);
  expect(seen.at(-1)).toMatchObject({
    kind: 'ended',
    ending: { kind: 'result', result: { outcome: 'cancelled' } },
  });
  await signalMirror(temporal, 'waits-again', 'abort');
});
