/**
 * A PostgreSQL server of one's own, from the programs of the npm package, for tests, the demo and `retl dev`. It listens on the loopback
 * address only. Its cluster is made beside its final place and moved there when complete, so that an interrupted first
 * start leaves nothing half-made.
 */

import { execFile } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { existsSync, openSync } from 'node:fs';
import { mkdir, mkdtemp, readFile, rename, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { type GuardedChild, spawnGuarded } from './guarded-child.ts';
import { freePort } from './ports.ts';
import { findPostgresBinaries, type PostgresBinaries } from './postgres-binaries.ts';
import { commandOf, endProcess } from './processes.ts';
import { handOver, type Identity, type Launch, launchFor, serverIdentity } from './unprivileged.ts';

const run = promisify(execFile);

/** The major version of the programs; a cluster of another one cannot be opened. */
const MAJOR = '18';
const START_WITHIN_MS = 60_000;
const START_TRIES = 5;

export interface EmbeddedPostgres {
  readonly port: number;
  readonly pid: number;
  /** `postgres://…` of the superuser, database `postgres`. */
  readonly adminUrl: string;
  /** Resolves when the server has ended, whether it was stopped or not. */
  readonly exited: Promise<unknown>;
  /** Fast shutdown: open connections are ended. Removes the folder of a throw-away server. */
  stop(): Promise<void>;
}

export type PostgresOptions =
  /** For tests: a temporary folder, no password, no fsync; gone at the end. */
  | { readonly kind: 'throw-away' }
  /** Keeps its data in `folder`; `choosePort` says where it is to listen, and is asked again where somebody was quicker. */
  | { readonly kind: 'kept'; readonly folder: string; readonly choosePort: () => Promise<number> };

interface Cluster {
  /** The PGDATA folder. */
  readonly data: string;
  readonly logFile: string;
  readonly password: string | null;
  readonly settings: readonly string[];
  readonly identity: Identity | null;
  readonly launch: Launch;
  readonly removeFolder?: string;
}

const COMMON_SETTINGS = [
  'listen_addresses=127.0.0.1',
  'unix_socket_directories=',
  'max_connections=200',
  'log_min_messages=warning',
  'timezone=UTC',
  'log_timezone=UTC',
];
const UNSAFE_FAST_SETTINGS = ['fsync=off', 'full_page_writes=off', 'synchronous_commit=off'];

/** Starts a server and waits until it takes connections. */
export async function startEmbeddedPostgres(options: PostgresOptions): Promise<EmbeddedPostgres> {
  const binaries = await findPostgresBinaries();
  const identity = serverIdentity();
  if (options.kind === 'throw-away') {
    const cluster = await throwAwayCluster(binaries, identity);
    return startServer(binaries, cluster, () => freePort());
  }
  const cluster = await keptCluster(binaries, identity, options.folder);
  return startServer(binaries, cluster, options.choosePort);
}

async function throwAwayCluster(binaries: PostgresBinaries, identity: Identity | null): Promise<Cluster> {
  const folder = await mkdtemp(join(tmpdir(), 'retl-postgres-'));
  handOver(folder, identity);
  const launch = launchFor(identity, [binaries.postgres, folder]);
  const cluster = {
    data: join(folder, 'data'),
    logFile: join(folder, 'postgres.log'),
    password: null,
    settings: [...COMMON_SETTINGS, ...UNSAFE_FAST_SETTINGS],
    identity,
    launch,
    removeFolder: folder,
  };
  try {
    await initialise(binaries, launch, cluster.data, ['--auth=trust']);
    return cluster;
  } catch (error) {
    await rm(folder, { recursive: true, force: true });
    throw error;
  }
}

async function keptCluster(
  binaries: PostgresBinaries,
  identity: Identity | null,
  folder: string,
): Promise<Cluster> {
  await mkdir(folder, { recursive: true });
  const data = join(folder, 'data');
  const password = await keptPassword(join(folder, 'password'));
  const launch = launchFor(identity, [binaries.postgres, folder]);
  if (existsSync(data)) await prepareOldCluster(data, identity);
  else await makeKeptCluster(binaries, launch, identity, data, password);
  const logFile = join(folder, 'postgres.log');
  return { data, logFile, password, settings: COMMON_SETTINGS, identity, launch };
}

async function makeKeptCluster(
  binaries: PostgresBinaries,
  launch: Launch,
  identity: Identity | null,
  data: string,
  password: string,
): Promise<void> {
  // A folder of the server's own user, so that a root-owned parent needs no other mode.
  const making = `${data}.making`;
  await rm(making, { recursive: true, force: true });
  await mkdir(making, { mode: 0o700 });
  handOver(making, identity);
  const passwordFile = join(making, 'password');
  await writeFile(passwordFile, `${password}\n`, { mode: 0o600 });
  handOver(passwordFile, identity);
  const cluster = join(making, 'data');
  await initialise(binaries, launch, cluster, ['--auth=scram-sha-256', `--pwfile=${passwordFile}`]);
  await rename(cluster, data);
  await rm(making, { recursive: true, force: true });
}

/** One locale on every platform: code-point order, and upper and lower by Unicode's rules. */
async function initialise(
  binaries: PostgresBinaries,
  launch: Launch,
  data: string,
  auth: readonly string[],
): Promise<void> {
  const args = [
    '--username=postgres',
    '--encoding=UTF8',
    '--locale=C',
    '--locale-provider=builtin',
    '--builtin-locale=C.UTF-8',
    '--no-sync',
    '--no-instructions',
    ...auth,
    `--pgdata=${data}`,
  ];
  const [command, ...rest] = [...launch.prefix, binaries.initdb, ...args];
  if (command === undefined) throw new Error('an empty command line');
  try {
    await run(command, rest, { ...launch.identity, cwd: dirname(data), env: serverEnv() });
  } catch (error) {
    const words = error instanceof Error ? error.message : String(error);
    throw new Error(`PostgreSQL's initdb failed in ${data}: ${words}`);
  }
}

async function startServer(
  binaries: PostgresBinaries,
  cluster: Cluster,
  choosePort: () => Promise<number>,
): Promise<EmbeddedPostgres> {
  try {
    for (let attempt = 1; ; attempt += 1) {
      const port = await choosePort();
      const child = await launchServer(binaries, cluster, port);
      const ready = await waitUntilReady(child, cluster.data);
      if (ready === 'ready') return serverHandle(child, cluster, port);
      await child.stop();
      // Another program may have taken the port in the meantime.
      const words = await lastWords(cluster.logFile);
      if (attempt === START_TRIES || !words.includes('could not bind')) {
        throw new Error(`PostgreSQL did not start (${ready}). Its log, ${cluster.logFile}, ends:\n${words}`);
      }
    }
  } catch (error) {
    if (cluster.removeFolder !== undefined) await rm(cluster.removeFolder, { recursive: true, force: true });
    throw error;
  }
}

async function launchServer(
  binaries: PostgresBinaries,
  cluster: Cluster,
  port: number,
): Promise<GuardedChild> {
  const settings = [...cluster.settings, `port=${port}`].flatMap((setting) => ['-c', setting]);
  const { prefix, identity } = cluster.launch;
  const [command, ...args] = [...prefix, binaries.postgres, '-D', cluster.data, ...settings];
  if (command === undefined) throw new Error('an empty command line');
  const log = openSync(cluster.logFile, 'a');
  return spawnGuarded(command, args, {
    spawn: { ...identity, cwd: cluster.data, env: serverEnv(), stdio: ['ignore', log, log] },
    stopSignal: 'SIGINT',
    stopWithinMs: 20_000,
    ...(cluster.removeFolder === undefined ? {} : { removeFolder: cluster.removeFolder }),
  });
}

/** The server writes its state into the eighth line of its pid file, which needs no password to read. */
async function waitUntilReady(child: GuardedChild, data: string): Promise<'ready' | 'ended' | 'too slow'> {
  let ended = false;
  void child.exited.then(() => {
    ended = true;
  });
  const deadline = Date.now() + START_WITHIN_MS;
  while (Date.now() < deadline) {
    if (ended) return 'ended';
    const lines = (await readFile(join(data, 'postmaster.pid'), 'utf8').catch(() => '')).split('\n');
    if (lines[0]?.trim() === String(child.pid) && lines[7]?.trim() === 'ready') return 'ready';
    await new Promise((resolve) => setTimeout(resolve, 25));
  }
  return 'too slow';
}

function serverHandle(child: GuardedChild, cluster: Cluster, port: number): EmbeddedPostgres {
  const credentials = cluster.password === null ? 'postgres' : `postgres:${cluster.password}`;
  return {
    port,
    pid: child.pid,
    exited: child.exited,
    adminUrl: `postgres://${credentials}@127.0.0.1:${port}/postgres`,
    async stop() {
      await child.stop();
      if (cluster.removeFolder !== undefined) {
        await rm(cluster.removeFolder, { recursive: true, force: true });
      }
    },
  };
}

/** Data of an earlier start: made by the same version and user, and nobody's server runs on it. */
async function prepareOldCluster(data: string, identity: Identity | null): Promise<void> {
  const { uid } = await stat(data);
  const ours = identity?.uid ?? process.getuid?.() ?? uid;
  if (uid !== ours) {
    throw new Error(
      `${data} belongs to user ${uid}, but PostgreSQL would run as user ${ours} now. ` +
        'It holds development data only: remove the folder, or run this command as the user who made it.',
    );
  }
  await checkVersion(data);
  await clearStalePidFile(data);
}

/**
 * After a crash the pid file names a process that is gone, or whose id now belongs to another program, which
 * PostgreSQL cannot tell from itself. The caller holds the folder's lock, so a server that still runs is left over.
 */
async function clearStalePidFile(data: string): Promise<void> {
  const file = join(data, 'postmaster.pid');
  const pid = Number((await readFile(file, 'utf8').catch(() => '')).split('\n')[0]);
  if (!Number.isSafeInteger(pid) || pid <= 0) return;
  if ((await commandOf(pid)).includes(data) && !(await endProcess(pid, 'SIGINT', 10_000))) {
    throw new Error(`A PostgreSQL server (process ${pid}) still runs on ${data}; end it by hand.`);
  }
  await rm(file, { force: true });
}

async function checkVersion(data: string): Promise<void> {
  const version = (await readFile(join(data, 'PG_VERSION'), 'utf8').catch(() => 'an unknown version')).trim();
  if (version === MAJOR) return;
  throw new Error(
    `${data} was made by PostgreSQL ${version}; this project brings ${MAJOR}. ` +
      'It holds development data only: remove the folder and start again, or dump it with the old version first.',
  );
}

/** Made once per cluster, so that other users of this machine cannot log in. */
async function keptPassword(file: string): Promise<string> {
  const kept = await readFile(file, 'utf8').catch(() => '');
  if (kept.trim() !== '') return kept.trim();
  const made = randomBytes(18).toString('hex');
  await writeFile(file, `${made}\n`, { mode: 0o600 });
  return made;
}

/** The server must not see PG… settings of the developer's shell. */
function serverEnv(): NodeJS.ProcessEnv {
  const env = Object.entries(process.env).filter(([name]) => !name.startsWith('PG'));
  return { ...Object.fromEntries(env), LC_ALL: 'C', LANG: 'C' };
}

async function lastWords(logFile: string): Promise<string> {
  const log = await readFile(logFile, 'utf8').catch(() => '');
  return log.trimEnd().split('\n').slice(-5).join('\n');
}
