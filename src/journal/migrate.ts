/**
 * Forward-only migrations, as the owner: each is a plain SQL file of `migrations/`, applied once and in order, each in a
 * transaction of its own. Two installers at once are safe: the version table is locked first. A binary older than the
 * schema refuses it.
 */

import { createHash } from 'node:crypto';
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import pg from 'pg';
import { RetlError } from '../domain/errors.ts';
import { flag, number, one, text } from './decode.ts';
import { journalError } from './errors.ts';
import { type Queryable, run } from './pool.ts';

export interface Migration {
  readonly number: number;
  readonly name: string;
  readonly sql: string;
  readonly sha256: string;
}

const FILE = /^(\d{4})_[a-z0-9_]+\.sql$/;
const LOCK_WAIT_S = 60;
/** Roles without a login that the migrations grant rights to. */
const GROUPS = ['retl_runtime', 'retl_inspector', 'retl_reader', 'retl_approver'];
const FOLDER = fileURLToPath(new URL('../../migrations/', import.meta.url));

/** `if not exists` asks for the right to create schemas even where there is one; an administrator may have made it. */
const SCHEMA = `
  do $$ begin
    if to_regnamespace('retl') is null then
      create schema retl;
    end if;
  end $$`;

/** A schema of somebody else's would let him replace what runs as its owner. */
const SCHEMA_IS_OWN = `
  select pg_has_role(current_user, nspowner, 'USAGE') as own from pg_namespace where nspname = 'retl'`;

const VERSION_TABLE = `
  create table if not exists retl.migration (
    number integer primary key,
    name text not null,
    sha256 text not null,
    applied_at timestamptz not null default now()
  )`;

/** The migrations that come with this version, in order. */
export async function migrations(folder = FOLDER): Promise<readonly Migration[]> {
  const names = (await readdir(folder)).filter((n) => FILE.test(n)).sort();
  return Promise.all(
    names.map(async (name) => {
      const sql = await readFile(join(folder, name), 'utf8');
      return {
        number: Number(name.slice(0, 4)),
        name,
        sql,
        sha256: createHash('sha256').update(sql).digest('hex'),
      };
    }),
  );
}

export interface MigrateOptions {
  /** Connects as the role that owns the schema; the runtime never does. */
  readonly ownerUrl: string;
  /** A login role to be given the rights of the runtime; omit where an administrator does that. */
  readonly runtimeRole?: string;
  /** Where the migrations are; those that come with this version, unless a test brings its own. */
  readonly folder?: string;
}

/**
 * Brings the journal's schema up to date; resolves to the names of what it applied (empty: nothing to do).
 * @throws RetlError `journal.newer`, `journal.changed`, `journal.migration`, `journal.owner`, `journal.roles`; JournalError
 */
export async function migrate(options: MigrateOptions): Promise<readonly string[]> {
  const wanted = await migrations(options.folder);
  const client = new pg.Client({ connectionString: options.ownerUrl, connectionTimeoutMillis: 10_000 });
  client.on('error', () => {});
  try {
    await client.connect();
  } catch (error) {
    throw journalError(error);
  }
  try {
    // One lock for the whole installation: the second installer finds the work done. Anybody can take such a lock, so
    // that the wait for it has a limit.
    await run(client, `set lock_timeout = '${LOCK_WAIT_S}s'`);
    await run(client, "select pg_advisory_lock(hashtextextended('retl.migration', 0))");
    await prepareSchema(client);
    const applied = await applyAll(client, wanted);
    if (options.runtimeRole !== undefined) await grantRuntime(client, options.runtimeRole);
    return applied;
  } finally {
    await client.end();
  }
}

async function prepareSchema(client: pg.Client): Promise<void> {
  try {
    await run(client, SCHEMA);
    const own = flag(one(await run(client, SCHEMA_IS_OWN)), 'own');
    if (!own) throw new RetlError('journal.owner', {});
    await run(client, VERSION_TABLE);
  } catch (error) {
    if (error instanceof RetlError) throw error;
    throw isDenied(error) ? new RetlError('journal.owner', {}) : error;
  }
}

/** Where an administrator has granted it already, the owner need not be allowed to. */
async function grantRuntime(client: pg.Client, role: string): Promise<void> {
  const asked = `select pg_has_role($1::name, 'retl_runtime', 'MEMBER') as member from pg_roles where rolname = $1`;
  const [row] = await run(client, asked, [role]);
  if (row !== undefined && flag(row, 'member')) return;
  try {
    await run(client, `grant retl_runtime to ${client.escapeIdentifier(role)}`);
  } catch (error) {
    throw isDenied(error) ? new RetlError('journal.roles', { grant: 'retl_runtime', to: role }) : error;
  }
}

/** 42501: insufficient privilege. */
function isDenied(error: unknown): boolean {
  return journalError(error).sqlState === '42501';
}

async function applyAll(client: pg.Client, wanted: readonly Migration[]): Promise<readonly string[]> {
  const present = await appliedMigrations(client);
  checkHistory(present, wanted);
  const names: string[] = [];
  for (const m of wanted) {
    if (present.has(m.number)) continue;
    try {
      await client.query('begin');
      await client.query(m.sql);
      await client.query('insert into retl.migration (number, name, sha256) values ($1, $2, $3)', [
        m.number,
        m.name,
        m.sha256,
      ]);
      await client.query('commit');
    } catch (error) {
      await client.query('rollback').catch(() => {});
      const { sqlState } = journalError(error);
      if (sqlState === 'RM010') throw new RetlError('journal.roles', { create: GROUPS });
      throw new RetlError('journal.migration', { file: m.name, sqlstate: sqlState });
    }
    names.push(m.name);
  }
  return names;
}

async function appliedMigrations(db: Queryable): Promise<Map<number, string>> {
  const rows = await run(db, 'select number, sha256 from retl.migration order by number');
  return new Map(rows.map((row) => [number(row, 'number'), text(row, 'sha256')]));
}

function checkHistory(present: ReadonlyMap<number, string>, wanted: readonly Migration[]): void {
  const known = new Map(wanted.map((m) => [m.number, m]));
  for (const [n, digest] of present) {
    const m = known.get(n);
    if (m === undefined) throw new RetlError('journal.newer', { migration: n });
    if (m.sha256 !== digest) throw new RetlError('journal.changed', { file: m.name });
  }
}

/**
 * Checks that the journal has exactly the schema that this version needs.
 * @throws RetlError `journal.missing`, `journal.newer`, `journal.changed`; JournalError
 */
export async function requireSchema(db: Queryable): Promise<void> {
  const wanted = await migrations();
  let present: Map<number, string>;
  try {
    present = await appliedMigrations(db);
  } catch (error) {
    const e = journalError(error);
    // 3F000, 42P01: no schema or table; 42501: the role may not look, so nothing was granted to it.
    if (['3F000', '42P01', '42501'].includes(e.sqlState)) throw new RetlError('journal.missing', {});
    throw e;
  }
  checkHistory(present, wanted);
  if (present.size < wanted.length) throw new RetlError('journal.missing', { applied: present.size });
}
