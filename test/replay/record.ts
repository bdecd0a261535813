/**
 * Records histories by running mirrors for real: a Temporal server, a journal, a worker, a destination that misbehaves on
 * demand. Run it by `npm run replay:record`, for a new kind of history or a new line in an old one, never to make a failing
 * replay pass: sleeping workflows have the old history (CONTRIBUTING.md).
 */

import { execFile } from 'node:child_process';
import { writeFile } from 'node:fs/promises';
import { hostname } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { promisify } from 'node:util';
import { afterAll, beforeAll, test } from 'vitest';
import { cacheFolder } from '../../src/dev/cache-folder.ts';
import { findTemporalCli } from '../../src/dev/temporal-cli.ts';
import { System } from '../support/system.ts';
import { HttpScene, type HttpSceneOptions } from '../support/system-destinations.ts';
import { JobsScene } from '../support/system-jobs.ts';
import { completedBy, ending } from '../support/system-scene.ts';
import { type EagerServer, startEagerServer } from '../workflow/eager-server.ts';
import type { HISTORIES } from './histories.ts';

/** More than any of the runs below needs that is not meant to continue as new. */
const SUGGESTED_AFTER = 90;

let server: EagerServer;
let system: System;
beforeAll(async () => {
  server = await startEagerServer(SUGGESTED_AFTER);
  system = await System.start({ temporal: { client: server.env.client, address: server.address } });
  await system.startWorker();
});
afterAll(async () => {
  await system.stop();
  await server.stop();
});

/** Rows with values that a history would show unmistakably. */
const ROWS = `create table $table (id text primary key, plan text);
  insert into $table select 'person-' || n, 'secret-plan' from generate_series(1, 12) n`;
const SLOW_MS = 4_000;
/** More polls than any run lives to see. */
const FOR_EVER = 1_000_000;

async function sceneOf(name: string, options: HttpSceneOptions = {}): Promise<HttpScene> {
  return HttpScene.create(system, name, { rows: ROWS, ...options });
}

/** Names of machines and paths of stacks are no business of a replay. */
function scrubbed(key: string, value: unknown): unknown {
  if (key === 'identity') return 'recorder';
  if (key === 'stackTrace') return '';
  return typeof value === 'string' ? value.replaceAll(`@${hostname()}`, '@recorder') : value;
}

async function record(name: (typeof HISTORIES)[number], workflowId: string, runId: string): Promise<void> {
  const cli = await findTemporalCli(cacheFolder(join(import.meta.dirname, '..', '..')), () => undefined);
  const ids = ['--workflow-id', workflowId, '--run-id', runId];
  const { stdout } = await promisify(execFile)(
    cli,
    ['workflow', 'show', '--address', server.address, ...ids, '--output', 'json'],
    { maxBuffer: 64 * 1024 * 1024 },
  );
  const { events } = JSON.parse(stdout, scrubbed) as { readonly events: readonly unknown[] };
  const lines = events.map((event) => JSON.stringify(event));
  await writeFile(
    join(import.meta.dirname, 'histories', `${name}.json`),
    `{"events":[\n${lines.join(',\n')}\n]}\n`,
  );
}

test('a run with additions, changes and removals', async () => {
  const scene = await sceneOf('completed');
  await scene.completed();
  await scene.exec(
    `update $table set plan = 'other-secret' where id < 'person-12'; delete from $table where id = 'person-9'`,
  );
  const handle = await scene.start();
  await completedBy(handle);
  await record('completed', handle.workflowId, handle.firstExecutionRunId);
});

test('across a continue-as-new, with somebody who asks again and again in spite of the provider’s delay', async () => {
  const scene = await sceneOf('continued');
  scene.audience.fault({ kind: 'status', status: 429, headers: { 'retry-after': '12' } });
  const handle = await scene.start();
  for (let i = 0; i < 9; i += 1) {
    await scene.untilWaiting(handle, 'retry');
    await scene.signal('resume');
    await sleep(500);
  }
  await completedBy(handle);
  const { runId } = await server.env.client.workflow.getHandle(handle.workflowId).describe();
  await record('continued', handle.workflowId, handle.firstExecutionRunId);
  await record('continuation', handle.workflowId, runId);
});

test('cancelled by the signal, and the run that resumes it and goes on with a fresh one', async () => {
  const scene = await sceneOf('cancelled');
  scene.audience.fault({ kind: 'delay', ms: SLOW_MS });
  const handle = await scene.start();
  await scene.untilSeen(1);
  await scene.signal('cancel');
  await ending(handle);
  await record('cancelled', handle.workflowId, handle.firstExecutionRunId);
  const next = await scene.start();
  await completedBy(next);
  await record('resumed', next.workflowId, next.firstExecutionRunId);
});

test('cancelled by Temporal, in an extraction that the next run discards', async () => {
  const query = 'select id, plan from $table, (select pg_sleep(20)) s';
  const scene = await sceneOf('discarded', { query });
  const handle = await scene.start();
  await scene.until(handle, (p) => p.phase === 'extract');
  await handle.cancel();
  await ending(handle);
  await record('cancelled-by-temporal', handle.workflowId, handle.firstExecutionRunId);
  await scene.configure({});
  const next = await scene.start();
  await completedBy(next);
  await record('discarded', next.workflowId, next.firstExecutionRunId);
});

test('paused and resumed', async () => {
  const scene = await sceneOf('paused');
  scene.audience.fault({ kind: 'delay', ms: SLOW_MS });
  const handle = await scene.start();
  await scene.untilSeen(1);
  await scene.signal('pause');
  await scene.untilWaiting(handle, 'paused');
  await scene.signal('resume');
  await completedBy(handle);
  await record('paused', handle.workflowId, handle.firstExecutionRunId);
});

test('a wait that a provider asked for, still open', async () => {
  const scene = await sceneOf('waiting');
  scene.audience.fault({ kind: 'status', status: 429, headers: { 'retry-after': '3600' } });
  const handle = await scene.start();
  await scene.untilWaiting(handle, 'retry');
  await record('waiting', handle.workflowId, handle.firstExecutionRunId);
  await scene.signal('cancel');
  await ending(handle);
});

test('blocked, still open; then aborted, which waits for the batch', async () => {
  const scene = await sceneOf('blocked');
  scene.audience.fault({ kind: 'reset', applied: true });
  const handle = await scene.start();
  const { waiting } = await scene.untilWaiting(handle, 'blocked');
  await record('blocked', handle.workflowId, handle.firstExecutionRunId);
  await scene.signal('abort');
  await scene.until(handle, (p) => p.control === 'abort' && p.waiting?.kind === 'blocked');
  const batch = String(waiting?.batch).replace(/^sha256:/, '');
  await system.rows(`select retl.resolve_batch(decode($1, 'hex'), 'accepted', 'looked')`, [batch]);
  await scene.signal('resume');
  await ending(handle);
  await record('aborted', handle.workflowId, handle.firstExecutionRunId);
});

test('jobs under way, still open; then polled at once; and another, aborted meanwhile', async () => {
  const scene = await JobsScene.create(system, 'pending', { rows: ROWS });
  scene.api.polls = FOR_EVER;
  const handle = await scene.start();
  await scene.untilWaiting(handle, 'pending');
  await sleep(SLOW_MS);
  await record('pending', handle.workflowId, handle.firstExecutionRunId);
  for (const job of scene.api.jobs) job.polls = 0;
  scene.api.polls = 0;
  await scene.signal('poll');
  await completedBy(handle);
  await record('polled', handle.workflowId, handle.firstExecutionRunId);
  scene.api.polls = FOR_EVER;
  await scene.exec(`update $table set plan = 'other-secret'`);
  const next = await scene.start();
  await scene.untilWaiting(next, 'pending');
  await scene.signal('abort');
  await scene.until(next, (p) => p.control === 'abort' && p.waiting?.kind === 'pending');
  for (const job of scene.api.jobs) job.polls = 0;
  await scene.signal('poll');
  await ending(next);
  await record('pending-aborted', next.workflowId, next.firstExecutionRunId);
});

test('parked by the guard, still open; then approved; and another, rejected', async () => {
  const scene = await sceneOf('parked');
  await scene.completed();
  await scene.exec(`delete from $table where id <> 'person-1'`);
  const handle = await scene.start();
  const asked = await scene.untilParked(handle);
  await record('parked', handle.workflowId, handle.firstExecutionRunId);
  await scene.answer(handle, 'approve', asked);
  await completedBy(handle);
  await record('approved', handle.workflowId, handle.firstExecutionRunId);
  await scene.exec(`delete from $table`);
  const next = await scene.start();
  await scene.answer(next, 'reject', await scene.untilParked(next));
  await ending(next);
  await record('guard-rejected', next.workflowId, next.firstExecutionRunId);
});

test('members refused by the destination', async () => {
  const scene = await sceneOf('refused');
  scene.audience.fault({ kind: 'rows', reject: [2] });
  const handle = await scene.start();
  await ending(handle);
  await record('rejected', handle.workflowId, handle.firstExecutionRunId);
});
