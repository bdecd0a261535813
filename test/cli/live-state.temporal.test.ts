/** What `retl status` adds from Temporal: only what is about the run that the journal names. */

import { fileURLToPath } from 'node:url';
import { Worker } from '@temporalio/worker';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { Project } from '../../src/cli/environment.ts';
import { liveState } from '../../src/cli/live-state.ts';
import { connectClient, type TemporalClient } from '../../src/client/connect.ts';
import { startMirror } from '../../src/client/start.ts';
import { secretsOf } from '../../src/config/secrets.ts';
import { TASK_QUEUE } from '../../src/domain/messages.ts';
import type { RunCounts } from '../../src/domain/run.ts';
import type { RunSummary } from '../../src/journal/inspect.ts';
import { PROJECT } from '../config/support.ts';
import { createTestProject, type TestProject } from '../support/project.ts';
import { type DevServer, startDevServer } from '../support/temporal.ts';

let server: DevServer;
let worker: Worker;
let working: Promise<void>;
let folder: TestProject;
let project: Project;
let temporal: TemporalClient;

beforeAll(async () => {
  server = await startDevServer();
  worker = await Worker.create({
    connection: server.env.nativeConnection,
    taskQueue: TASK_QUEUE,
    workflowsPath: fileURLToPath(new URL('./stub-workflow.ts', import.meta.url)),
  });
  working = worker.run();
  folder = await createTestProject({ 'retl.yaml': `${PROJECT}temporal:\n  address: ${server.address}\n` });
  project = {
    dir: folder.folder,
    environment: null,
    envFiles: [],
    fromFiles: new Set<string>(),
    secrets: secretsOf(folder.folder),
  };
  const { address } = server;
  temporal = await connectClient({ profile: null, address, namespace: null, taskQueue: TASK_QUEUE });
});
afterAll(async () => {
  await temporal?.close();
  worker?.shutdown();
  await working;
  await folder?.remove();
  await server?.stop();
});

const NO_COUNTS: RunCounts = {
  sourceRows: 0,
  members: 0,
  excluded: 0,
  toAdd: 0,
  toChange: 0,
  toRemove: 0,
  unchanged: 0,
  added: 0,
  changed: 0,
  removed: 0,
  rejected: 0,
};

/** An open run, held by the workflow of the mirror; the stub says that it works on run 7. */
const held = (mirror: string, runId: string): RunSummary => ({
  runId,
  mirror,
  state: 'open',
  phase: 'additions',
  reason: null,
  holder: `default/mirror/${mirror}`,
  released: null,
  openedAt: new Date(0),
  closedAt: null,
  parked: null,
  changedTarget: false,
  counts: NO_COUNTS,
  unresolvedBatches: 0,
  unknownBatches: 0,
  doing: { state: 'running', code: null, batch: null, since: null },
});

test('what a workflow says is shown of its own run only: one that was refused, or waits to be admitted, is passed over', async () => {
  await startMirror(temporal, 'waits-live');
  expect(await liveState(project, held('waits-live', '7'))).toMatchObject({
    kind: 'answers',
    progress: { runId: '7' },
  });
  expect(await liveState(project, held('waits-live', '6'))).toEqual({ kind: 'unknown' });
  await server.env.client.workflow.getHandle('mirror/waits-live').terminate();
});

test('counts-last-attempt: a run whose workflow is over is told as abandoned, and not by its last words', async () => {
  await startMirror(temporal, 'waits-over');
  await server.env.client.workflow.getHandle('mirror/waits-over').terminate();
  expect(await liveState(project, held('waits-over', '7'))).toEqual({
    kind: 'abandoned',
    status: 'TERMINATED',
  });
  expect(await liveState(project, held('waits-unknown', '7'))).toEqual({ kind: 'unknown' });
});
