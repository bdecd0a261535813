/**
 * The whole system for one test file: a Temporal dev server, a journal of its own that is migrated by an owner and used by
 * a restricted role through a proxy, a source database, a project folder, and workers in processes of their own. Each
 * test adds a scene: a mirror with its own source table and its own destination.
 */

import { mkdir, rename, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import type { Client as TemporalSdkClient } from '@temporalio/client';
import pg from 'pg';
import { stringify } from 'yaml';
import type { TemporalClient } from '../../src/client/connect.ts';
import { TASK_QUEUE } from '../../src/domain/messages.ts';
import { migrate } from '../../src/journal/migrate.ts';
import { createTestDatabase, type TestDatabase } from './postgres.ts';
import { createTestProject, type TestProject } from './project.ts';
import { JournalProxy } from './system-journal-proxy.ts';
import { startDevServer } from './temporal.ts';
import { WorkerProcess } from './worker-process.ts';

const OWNER = 'system_owner';
const WORKER = 'system_worker';
/** Reads the source, and can do nothing else. */
export const READER = 'system_reader';

export interface SystemOptions {
  /** A Temporal server of the test's own, in place of one in memory. */
  readonly temporal?: { readonly client: TemporalSdkClient; readonly address: string };
  /** A PostgreSQL database for the journal, in place of one on the server that all tests share. */
  readonly journal?: TestDatabase;
  /** The worker's program, in place of the product's own; as in {@link WorkerProcess}. */
  readonly worker?: string;
  /** What stands in the workers' environment beyond what they need. */
  readonly env?: { readonly [name: string]: string };
  /** Further sections of `retl.yaml`. */
  readonly project?: object;
}

type Cleanup = () => Promise<unknown>;

export class System {
  readonly #workers: WorkerProcess[] = [];
  readonly #connections: { [name: string]: object } = {};
  #writing: Promise<void> = Promise.resolve();

  private constructor(
    readonly temporal: TemporalClient,
    /** Between the workers and the journal. */
    readonly proxy: JournalProxy,
    readonly project: TestProject,
    /** As a superuser: to look at what the worker's role may not touch. */
    readonly journal: pg.Pool,
    readonly source: pg.Pool,
    readonly sourceUrl: string,
    /** What a process of the project needs in its environment. */
    readonly env: { readonly [name: string]: string },
    private readonly cleanups: Cleanup[],
    private readonly program: string | undefined,
    private readonly sections: object,
  ) {}

  static async start(options: SystemOptions = {}): Promise<System> {
    const cleanups: Cleanup[] = [];
    const defer = <T>(value: T, cleanup: (value: T) => Promise<unknown>): T => {
      cleanups.push(() => cleanup(value));
      return value;
    };
    const temporal = options.temporal ?? (await startTemporal(defer));
    const database = options.journal ?? defer(await createTestDatabase(), (d) => d.drop());
    const source = defer(await createTestDatabase(), (d) => d.drop());
    const journal = defer(poolOf(database.url), (pool) => pool.end());
    const shop = defer(poolOf(source.url), (pool) => pool.end());
    await makeRoles(journal);
    // The journal may stand on a server of its own.
    await makeRoles(shop);
    await prepareJournal(journal, database.url);
    await shop.query(`alter default privileges in schema public grant select on tables to ${READER}`);
    const { hostname, port } = new URL(database.url);
    const proxy = defer(await JournalProxy.start({ host: hostname, port: Number(port) }), (p) => p.close());
    const project = defer(await createTestProject(), (p) => p.remove());
    const env = {
      ...options.env,
      RETL_JOURNAL_URL: as(WORKER, through(proxy, database.url)),
      TEMPORAL_ADDRESS: temporal.address,
    };
    const client: TemporalClient = {
      client: temporal.client,
      address: temporal.address,
      isNamed: true,
      namespace: 'default',
      taskQueue: TASK_QUEUE,
      close: async () => undefined,
    };
    const sourceUrl = as(READER, source.url);
    const system = new System(
      client,
      proxy,
      project,
      journal,
      shop,
      sourceUrl,
      env,
      cleanups,
      options.worker,
      options.project ?? {},
    );
    await system.connect('shop', { type: 'postgres', url: sourceUrl });
    return system;
  }

  /** Starts a worker and, at the end, stops it; all workers write into one log. `env` goes before what they share. */
  async startWorker(env: { readonly [name: string]: string } = {}): Promise<WorkerProcess> {
    const worker = await WorkerProcess.start({
      ...(this.program === undefined ? {} : { program: this.program }),
      projectFolder: this.project.folder,
      env: { ...this.env, ...env },
      logFile: join(this.project.folder, 'worker.log'),
    });
    this.#workers.push(worker);
    return worker;
  }

  /** Adds or replaces a connection of `retl.yaml`, which workers read anew for every run. */
  async connect(name: string, connection: object): Promise<void> {
    this.#connections[name] = connection;
    await this.write('retl.yaml', {
      ...this.sections,
      journal: { url: `\${env:RETL_JOURNAL_URL}` },
      connections: this.#connections,
    });
  }

  /** Writes a file of the project whole and in turn: a worker may read it at any moment, for another test's run. */
  async write(path: string, content: object): Promise<void> {
    const text = stringify(content);
    this.#writing = this.#writing.then(async () => {
      const made = join(this.project.folder, '.making');
      await writeFile(made, text);
      await mkdir(dirname(join(this.project.folder, path)), { recursive: true });
      await rename(made, join(this.project.folder, path));
    });
    await this.#writing;
  }

  /** Takes what must be undone at the end, before the servers stop. */
  defer(cleanup: Cleanup): void {
    this.cleanups.push(cleanup);
  }

  /** Rows of a query on the journal, by a superuser. */
  async rows<Row extends pg.QueryResultRow>(
    text: string,
    values: readonly unknown[] = [],
  ): Promise<readonly Row[]> {
    return (await this.journal.query<Row>(text, [...values])).rows;
  }

  async stopWorkers(): Promise<void> {
    await Promise.all(this.#workers.splice(0).map((worker) => worker.stop()));
  }

  async stop(): Promise<void> {
    await this.stopWorkers();
    for (const cleanup of this.cleanups.reverse()) await cleanup();
  }
}

async function startTemporal(
  defer: <T>(value: T, cleanup: (value: T) => Promise<unknown>) => T,
): Promise<{ readonly client: TemporalSdkClient; readonly address: string }> {
  const server = defer(await startDevServer(), (s) => s.stop());
  return { client: server.env.client, address: server.address };
}

function poolOf(url: string): pg.Pool {
  const pool = new pg.Pool({ connectionString: url, max: 4 });
  pool.on('error', () => undefined);
  return pool;
}

/** Roles belong to the whole server, which other test files use at the same time. */
async function makeRoles(db: pg.Pool): Promise<void> {
  const make = (role: string, rights: string): string =>
    `if not exists (select from pg_roles where rolname = '${role}') then create role ${role} ${rights}; end if;`;
  await db.query(`
    do $$ begin
      perform pg_advisory_xact_lock(hashtextextended('retl system tests', 0));
      ${make('retl_runtime', 'nologin')}
      ${make('retl_inspector', 'nologin')}
      ${make('retl_reader', 'nologin')}
      ${make('retl_approver', 'nologin')}
      ${make(OWNER, `login password '${OWNER}'`)}
      ${make(WORKER, `login password '${WORKER}' in role retl_runtime`)}
      ${make(READER, `login password '${READER}'`)}
    exception when duplicate_object or unique_violation then
      null; -- a migration of another file was faster; the second call below makes the rest
    end $$`);
}

/** The owner migrates; a superuser only hands the database over. */
async function prepareJournal(db: pg.Pool, url: string): Promise<void> {
  await makeRoles(db);
  const name = new URL(url).pathname.slice(1);
  await db.query(`alter database ${name} owner to ${OWNER}`);
  await migrate({ ownerUrl: as(OWNER, url) });
}

/** A role's name is its password, for servers that ask for one. */
function as(role: string, url: string): string {
  const changed = new URL(url);
  changed.username = role;
  if (changed.password !== '') changed.password = role;
  return changed.href;
}

function through(proxy: JournalProxy, url: string): string {
  const changed = new URL(url);
  changed.hostname = '127.0.0.1';
  changed.port = String(proxy.port);
  return changed.href;
}
