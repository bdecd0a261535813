/** A Temporal development server with its UI, its state kept in one file; or the server named by TEMPORAL_ADDRESS. */

import { execFile } from 'node:child_process';
import { openSync } from 'node:fs';
import { mkdir, readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { cacheFolder } from './cache-folder.ts';
import { type GuardedChild, spawnGuarded } from './guarded-child.ts';
import { freePort, freePortFrom } from './ports.ts';
import { findTemporalCli } from './temporal-cli.ts';

const run = promisify(execFile);
const START_WITHIN_MS = 60_000;
const START_TRIES = 3;

/** What makes the UI's list of runs readable (design.md section 8). */
export const SEARCH_ATTRIBUTES = ['RetlMirror', 'RetlPhase', 'RetlOutcome'] as const;

export interface TemporalServer {
  readonly address: string;
  /** `null` for a server without UI, or one that was not started here. */
  readonly uiUrl: string | null;
  readonly pid: number | null;
  /** Resolves when the server has ended, whether it was stopped or not; never of one that was not started here. */
  readonly exited: Promise<unknown>;
  stop(): Promise<void>;
}

export interface TemporalOptions {
  /** The project's folder, whose `.retl/` is the last resort for the cache. */
  readonly projectFolder: string;
  /** Where log and state are kept. */
  readonly folder: string;
  /** `memory` forgets everything at the end, `folder` included: for tests. */
  readonly state: 'file' | 'memory';
  /** Where it would like to listen; `null`: anywhere. */
  readonly ports: { readonly grpc: number; readonly ui: number } | null;
  /** Told before anything slow. */
  readonly notice: (message: string) => void;
}

interface Ports {
  readonly grpc: number;
  readonly ui: number;
}

/**
 * Starts a server and waits until its namespace answers. With TEMPORAL_ADDRESS set it starts nothing, except for
 * tests, which want a server that no other work is on.
 */
export async function startTemporalServer(options: TemporalOptions): Promise<TemporalServer> {
  const external = options.state === 'memory' ? undefined : process.env.TEMPORAL_ADDRESS;
  if (external !== undefined && external !== '') {
    return {
      address: external,
      uiUrl: null,
      pid: null,
      exited: new Promise(() => undefined),
      stop: async () => undefined,
    };
  }
  const cli = await findTemporalCli(cacheFolder(options.projectFolder), options.notice);
  await mkdir(options.folder, { recursive: true });
  const logFile = join(options.folder, 'temporal.log');
  for (let attempt = 1; ; attempt += 1) {
    const ports = await choosePorts(options);
    const child = await launch(cli, options, ports, logFile);
    const state = await waitUntilReady(cli, child, `127.0.0.1:${ports.grpc}`);
    if (state === 'ready') return handle(child, ports, options);
    await child.stop();
    const log = await readFile(logFile, 'utf8').catch(() => '');
    // Another program may have taken a port in the meantime; the server may say so long before its last words.
    if (attempt === START_TRIES || !/address already in use|can't set internal port/i.test(log)) {
      throw new Error(
        `The Temporal server did not start (${state}). Its log, ${logFile}, ends:\n${lastWords(log)}`,
      );
    }
  }
}

async function choosePorts({ ports }: TemporalOptions): Promise<Ports> {
  if (ports === null) return { grpc: await freePort(), ui: await freePort() };
  return { grpc: await freePortFrom(ports.grpc), ui: await freePortFrom(ports.ui) };
}

async function launch(
  cli: string,
  options: TemporalOptions,
  ports: Ports,
  logFile: string,
): Promise<GuardedChild> {
  const args = ['server', 'start-dev', '--ip', '127.0.0.1', '--port', String(ports.grpc)];
  if (options.state === 'file') {
    args.push('--ui-port', String(ports.ui), '--ui-disable-news-fetch');
    args.push('--db-filename', join(options.folder, 'temporal.db'));
  } else {
    args.push('--headless');
  }
  for (const name of SEARCH_ATTRIBUTES) args.push('--search-attribute', `${name}=Keyword`);
  const log = openSync(logFile, 'a');
  return spawnGuarded(cli, [...args, '--log-level', 'warn'], {
    spawn: { env: cliEnv(), stdio: ['ignore', log, log] },
    stopSignal: 'SIGTERM',
    stopWithinMs: 10_000,
    ...(options.state === 'memory' ? { removeFolder: options.folder } : {}),
  });
}

/** The namespace is made a moment after the port opens, so it is the namespace that is asked for. */
async function waitUntilReady(
  cli: string,
  child: GuardedChild,
  address: string,
): Promise<'ready' | 'ended' | 'too slow'> {
  let ended = false;
  void child.exited.then(() => {
    ended = true;
  });
  const deadline = Date.now() + START_WITHIN_MS;
  const question = ['operator', 'namespace', 'describe', '--namespace', 'default', '--address', address];
  while (Date.now() < deadline) {
    if (ended) return 'ended';
    const answers = await run(cli, question, { env: cliEnv(), timeout: 5_000 }).then(
      () => true,
      () => false,
    );
    if (answers && !ended) return 'ready';
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
  return 'too slow';
}

function handle(child: GuardedChild, ports: Ports, options: TemporalOptions): TemporalServer {
  return {
    address: `127.0.0.1:${ports.grpc}`,
    uiUrl: options.state === 'file' ? `http://127.0.0.1:${ports.ui}` : null,
    pid: child.pid,
    exited: child.exited,
    async stop() {
      await child.stop();
      if (options.state === 'memory') await rm(options.folder, { recursive: true, force: true });
    },
  };
}

/** The program reads TEMPORAL_… as its own options; the developer's profile must not leak into a local server. */
function cliEnv(): NodeJS.ProcessEnv {
  return Object.fromEntries(Object.entries(process.env).filter(([name]) => !name.startsWith('TEMPORAL_')));
}

function lastWords(log: string): string {
  return log.trimEnd().split('\n').slice(-5).join('\n');
}
