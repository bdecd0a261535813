/**
 * Everything a mirror needs on one machine: a PostgreSQL server with the journal's database and roles, and a Temporal
 * server with its UI. Used by `retl dev`, the demo and the end-to-end tests.
 */

import { createHash } from 'node:crypto';
import { mkdir, rm } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { Client } from 'pg';
import { type EmbeddedPostgres, startEmbeddedPostgres } from './embedded-postgres.ts';
import { keepPort, portFor } from './kept-port.ts';
import { lockStack, type StackLock } from './stack-lock.ts';
import { startTemporalServer, type TemporalServer } from './temporal-server.ts';

/** Owns the schema and migrates it; never used by a worker. */
export const OWNER_ROLE = 'retl_owner';
/** What workers log in as: a member of {@link RUNTIME_ROLE}, without DDL. */
export const WORKER_ROLE = 'retl_worker';
/** The group that the migrations grant the journal's use to. */
export const RUNTIME_ROLE = 'retl_runtime';
/** The groups of people who look at the journal: without values, and with them. */
const INSPECTOR_ROLE = 'retl_inspector';
const APPROVER_ROLE = 'retl_approver';
const READER_ROLE = 'retl_reader';

const JOURNAL_DATABASE = 'retl';
/** Where Temporal would like to listen; the next free port is taken instead of one in use. PostgreSQL's is kept (kept-port.ts). */
const TEMPORAL_PORTS = { grpc: 7233, ui: 8233 };

export interface StackOptions {
  /** The project's folder. */
  readonly projectFolder: string;
  /** For the servers' data and logs; git-ignored. */
  readonly dataDir: string;
  /** `false`: starts from nothing and leaves nothing. */
  readonly keepData: boolean;
  /** Called once the folder is this process's, before a server starts. */
  readonly locked?: () => Promise<void>;
  /** Told before anything slow. */
  readonly notice?: (message: string) => void;
}

export interface LostServer {
  readonly name: 'PostgreSQL' | 'Temporal';
  /** Its last words. */
  readonly logFile: string;
}

export interface DevStack {
  /** Journal database as {@link OWNER_ROLE}. */
  readonly ownerUrl: string;
  /** Journal database as {@link WORKER_ROLE}; usable once the journal is migrated. */
  readonly workerUrl: string;
  /** Superuser, database `postgres`. */
  readonly adminUrl: string;
  readonly temporal: TemporalServer;
  /** Resolves when a server has ended; also when it was stopped. */
  readonly lost: Promise<LostServer>;
  /** Makes a database with an owner role of the same name, where they do not exist; returns the owner's URL. */
  createDatabase(name: string): Promise<string>;
  /** Stops both servers; safe to call more than once. */
  stop(): Promise<void>;
}

/** Starts both servers; on any failure nothing is left running. */
export async function startDevStack(options: StackOptions): Promise<DevStack> {
  const dataDir = resolve(options.dataDir);
  await mkdir(dataDir, { recursive: true });
  const lock = await lockStack(dataDir);
  const started: { stop(): Promise<void> }[] = [];
  const stop = once(() => stopAll(started, lock, dataDir, options.keepData));
  try {
    await options.locked?.();
    const { postgres, temporal } = await startServers(options, dataDir, lock, started);
    const secret = new URL(postgres.adminUrl).password;
    await onServer(postgres.adminUrl, (client) => prepareJournal(client, secret));
    return {
      ownerUrl: roleUrl(postgres, OWNER_ROLE, JOURNAL_DATABASE),
      workerUrl: roleUrl(postgres, WORKER_ROLE, JOURNAL_DATABASE),
      adminUrl: postgres.adminUrl,
      temporal,
      lost: Promise.race([
        lost(postgres, { name: 'PostgreSQL', logFile: join(dataDir, 'postgres', 'postgres.log') }),
        lost(temporal, { name: 'Temporal', logFile: join(dataDir, 'temporal', 'temporal.log') }),
      ]),
      createDatabase: (name) => createDatabase(postgres, name),
      stop,
    };
  } catch (error) {
    await stop();
    throw error;
  }
}

async function lost(server: { readonly exited: Promise<unknown> }, which: LostServer): Promise<LostServer> {
  await server.exited;
  return which;
}

async function startServers(
  options: StackOptions,
  dataDir: string,
  lock: StackLock,
  started: { stop(): Promise<void> }[],
): Promise<{ postgres: EmbeddedPostgres; temporal: TemporalServer }> {
  const folders = { postgres: join(dataDir, 'postgres'), temporal: join(dataDir, 'temporal') };
  if (!options.keepData) await removeData(dataDir);
  const postgres = await startEmbeddedPostgres({
    kind: 'kept',
    folder: folders.postgres,
    choosePort: () => portFor(dataDir),
  });
  started.push(postgres);
  if (options.keepData) await keepPort(dataDir, postgres.port);
  await lock.record(postgres.pid);
  const temporal = await startTemporalServer({
    projectFolder: options.projectFolder,
    folder: folders.temporal,
    state: 'file',
    ports: TEMPORAL_PORTS,
    notice: options.notice ?? (() => undefined),
  });
  started.push(temporal);
  if (temporal.pid !== null) await lock.record(temporal.pid);
  return { postgres, temporal };
}

async function stopAll(
  started: readonly { stop(): Promise<void> }[],
  lock: StackLock,
  dataDir: string,
  keepData: boolean,
): Promise<void> {
  await Promise.all(started.map((server) => server.stop()));
  if (!keepData) await removeData(dataDir);
  await lock.release();
}

/** Only what the servers made: the folder may hold other things. */
async function removeData(dataDir: string): Promise<void> {
  for (const name of ['postgres', 'temporal', 'ports.json']) {
    await rm(join(dataDir, name), { recursive: true, force: true });
  }
}

async function prepareJournal(client: Client, secret: string): Promise<void> {
  const groups = [RUNTIME_ROLE, INSPECTOR_ROLE, READER_ROLE, APPROVER_ROLE];
  for (const group of groups) await ensureRole(client, group, null);
  await ensureRole(client, OWNER_ROLE, rolePassword(secret, OWNER_ROLE));
  await ensureRole(client, WORKER_ROLE, rolePassword(secret, WORKER_ROLE));
  // On a developer's own machine who runs the worker is also who looks at values.
  await client.query(`GRANT ${RUNTIME_ROLE}, ${READER_ROLE} TO ${WORKER_ROLE}`);
  // So that a migration may grant them to further roles; the owner itself gets no rights from it.
  await client.query(`GRANT ${groups.join(', ')} TO ${OWNER_ROLE} WITH ADMIN TRUE, INHERIT FALSE, SET FALSE`);
  await ensureDatabase(client, JOURNAL_DATABASE, OWNER_ROLE);
}

async function createDatabase(postgres: EmbeddedPostgres, name: string): Promise<string> {
  if (!/^[a-z_]{1,40}$/.test(name)) throw new Error(`not a plain database name: ${name}`);
  const secret = new URL(postgres.adminUrl).password;
  await onServer(postgres.adminUrl, async (client) => {
    await ensureRole(client, name, rolePassword(secret, name));
    await ensureDatabase(client, name, name);
  });
  return roleUrl(postgres, name, name);
}

/** `password` null: a group that cannot log in. The password is set anew, so that an old data folder agrees. */
async function ensureRole(client: Client, name: string, password: string | null): Promise<void> {
  const { rowCount } = await client.query('SELECT FROM pg_roles WHERE rolname = $1', [name]);
  if (rowCount === 0) await client.query(`CREATE ROLE ${name} NOLOGIN`);
  if (password !== null) await client.query(`ALTER ROLE ${name} LOGIN PASSWORD '${password}'`);
}

async function ensureDatabase(client: Client, name: string, owner: string): Promise<void> {
  const { rowCount } = await client.query('SELECT FROM pg_database WHERE datname = $1', [name]);
  if (rowCount === 0) await client.query(`CREATE DATABASE ${name} OWNER ${owner} TEMPLATE template0`);
  await client.query(`REVOKE ALL ON DATABASE ${name} FROM PUBLIC`);
  if (name === JOURNAL_DATABASE) {
    await client.query(`GRANT CONNECT ON DATABASE ${name} TO ${RUNTIME_ROLE}`);
  }
}

/** The same at every start, so that URLs which the user has copied stay right. */
function rolePassword(secret: string, role: string): string {
  return createHash('sha256').update(`${secret}/${role}`).digest('hex').slice(0, 36);
}

function roleUrl(postgres: EmbeddedPostgres, role: string, database: string): string {
  const url = new URL(postgres.adminUrl);
  const secret = url.password;
  url.username = role;
  url.password = rolePassword(secret, role);
  url.pathname = `/${database}`;
  return url.href;
}

async function onServer(url: string, work: (client: Client) => Promise<void>): Promise<void> {
  const client = new Client({ connectionString: url });
  await client.connect();
  try {
    await work(client);
  } finally {
    await client.end();
  }
}

function once(work: () => Promise<void>): () => Promise<void> {
  let running: Promise<void> | undefined;
  return () => {
    running ??= work();
    return running;
  };
}
