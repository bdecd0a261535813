/**
 * A real OpenSearch on the loopback address, without Docker: one node as a Java process. It can be killed and started again
 * on its data. Where there is no Java, tests skip with a word; in CI they never do.
 */

import { execFile } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { promisify } from 'node:util';
import { cacheFolder } from '../../../src/dev/cache-folder.ts';
import { type GuardedChild, spawnGuarded } from '../../../src/dev/guarded-child.ts';
import { freePort } from '../../../src/dev/ports.ts';
import { openSearchJars } from './jars.ts';

const PROJECT = resolve(import.meta.dirname, '..', '..', '..');
const NODE = join(import.meta.dirname, 'OpenSearchNode.java');
const LEAST_JAVA = 17;
const READY_WITHIN_MS = 90_000;

export interface OpenSearchServer {
  readonly url: string;
  /** SIGKILL; what was acknowledged is in its translog. */
  kill(): Promise<void>;
  /** On the same data and port. */
  start(): Promise<void>;
  stop(): Promise<void>;
}

const run = promisify(execFile);

/** Why these tests cannot run here, in words; `null`: they can, or must, since this is CI. */
export async function withoutOpenSearch(): Promise<string | null> {
  if (process.env.CI) return null;
  // The launcher compiles the node's source, which a JDK alone can.
  const found = await run('javac', ['-version']).catch(() => null);
  const version = Number(/javac (\d+)/.exec(`${found?.stdout}${found?.stderr}`)?.[1] ?? 0);
  return version >= LEAST_JAVA ? null : `skipped: there is no JDK ${LEAST_JAVA} or later on PATH`;
}

/** Little memory, and quick to start. */
const SMALL = ['-Xms384m', '-Xmx384m', '-XX:+UseSerialGC', '-XX:TieredStopAtLevel=1'];

/** @param java options of the Java machine. @throws Error where it cannot be had or does not start */
export async function startOpenSearch(java: readonly string[] = SMALL): Promise<OpenSearchServer> {
  const jars = await openSearchJars(cacheFolder(PROJECT));
  const folder = await mkdtemp(join(tmpdir(), 'retl-opensearch-'));
  const port = await freePort();
  const url = `http://127.0.0.1:${port}`;
  let child: GuardedChild | null = null;
  const server: OpenSearchServer = {
    url,
    async kill() {
      child?.process.kill('SIGKILL');
      await child?.exited;
    },
    async start() {
      child = await spawnGuarded('java', [...java, '-cp', join(jars, '*'), NODE, folder, String(port)], {
        spawn: { cwd: folder, stdio: 'ignore' },
        stopSignal: 'SIGTERM',
        stopWithinMs: 10_000,
        removeFolder: folder,
      });
      await untilReady(url, child.exited);
    },
    async stop() {
      // Nothing in it is to be kept.
      await server.kill();
      await rm(folder, { recursive: true, force: true });
    },
  };
  await server.start().catch(async (error: unknown) => {
    await server.stop();
    throw error;
  });
  return server;
}

async function untilReady(url: string, exited: Promise<unknown>): Promise<void> {
  let over = false;
  void exited.then(() => {
    over = true;
  });
  for (const until = Date.now() + READY_WITHIN_MS; Date.now() < until && !over; ) {
    // A node that answers may still be opening the shards that it has found.
    const health = '/_cluster/health?wait_for_status=green&timeout=30s';
    const up = await fetch(url + health).then(
      async (reply) => reply.ok && !JSON.stringify(await reply.json()).includes('"timed_out":true'),
      () => false,
    );
    if (up) return;
    await new Promise((wake) => setTimeout(wake, 100));
  }
  throw new Error(`OpenSearch ${over ? 'has ended' : 'does not answer'}: it needs Java ${LEAST_JAVA}.`);
}
