/**
 * A journal of one's own, as it stands in production: migrated by an owner that is no superuser, written by a login role that
 * has nothing but retl_runtime. `admin` is the superuser, to look and to tamper.
 */

import { randomBytes } from 'node:crypto';
import pg from 'pg';
import { JournalError } from '../../src/journal/errors.ts';
import { migrate } from '../../src/journal/migrate.ts';
import { openJournal } from '../../src/journal/pool.ts';
import { createTestDatabase } from './postgres.ts';

export interface TestJournal {
  /** As the worker connects. */
  readonly runtime: pg.Pool;
  readonly runtimeUrl: string;
  readonly runtimeRole: string;
  readonly owner: pg.Pool;
  readonly ownerUrl: string;
  readonly ownerRole: string;
  readonly admin: pg.Pool;
  readonly adminUrl: string;
  close(): Promise<void>;
}

/** Roles and an empty database that `ownerUrl` owns; nothing is migrated. */
export async function createEmptyJournal(options: { createRole?: boolean } = {}): Promise<TestJournal> {
  const database = await createTestDatabase();
  const suffix = randomBytes(6).toString('hex');
  const ownerRole = `journal_owner_${suffix}`;
  const runtimeRole = `journal_runtime_${suffix}`;
  const admin = new pg.Pool({ connectionString: database.url, max: 2 });
  const name = decodeURIComponent(new URL(database.url).pathname.slice(1));
  await admin.query(`
    create role ${ownerRole} login ${options.createRole === true ? 'createrole' : ''};
    create role ${runtimeRole} login;
    alter database ${name} owner to ${ownerRole};
    revoke temporary on database ${name} from public`);
  const ownerUrl = as(database.url, ownerRole);
  const runtimeUrl = as(database.url, runtimeRole);
  const owner = new pg.Pool({ connectionString: ownerUrl, max: 2 });
  const runtime = openJournal({ url: runtimeUrl, max: 24 });
  // Dropping the database ends what a pool has not closed yet.
  for (const pool of [admin, owner]) pool.on('error', () => {});
  return {
    runtime,
    runtimeUrl,
    runtimeRole,
    owner,
    ownerUrl,
    ownerRole,
    admin,
    adminUrl: database.url,
    async close() {
      await Promise.all([runtime.end(), owner.end()]);
      await admin.query(`drop owned by ${ownerRole} cascade; drop owned by ${runtimeRole} cascade`);
      await admin.query(`reassign owned by ${ownerRole} to current_user`);
      await admin.end();
      await database.drop();
      const server = new pg.Client({ connectionString: database.adminUrl });
      await server.connect();
      await server.query(`drop role ${ownerRole}; drop role ${runtimeRole}`);
      await server.end();
    },
  };
}

/** A migrated journal. */
export async function createTestJournal(): Promise<TestJournal> {
  const journal = await createEmptyJournal();
  await ensureRuntimeRole(journal.admin);
  await journal.admin.query(`grant retl_runtime to ${journal.runtimeRole}`);
  await migrate({ ownerUrl: journal.ownerUrl, runtimeRole: journal.runtimeRole });
  return journal;
}

/** Groups belong to the whole server: other files may create them at the same time. */
export async function ensureRuntimeRole(admin: pg.Pool): Promise<void> {
  for (const role of ['retl_runtime', 'retl_inspector', 'retl_reader', 'retl_approver'])
    await admin
      .query(`create role ${role} nologin`)
      .catch((error: { code?: string }) =>
        ['42710', '23505'].includes(error.code ?? '') ? undefined : Promise.reject(error),
      );
}

function as(url: string, role: string): string {
  const own = new URL(url);
  own.username = role;
  own.password = '';
  return own.href;
}

/** The SQLSTATE that a statement or a journal function fails with; `null` where it does not fail. */
export async function stateOf(work: Promise<unknown>): Promise<string | null> {
  try {
    await work;
    return null;
  } catch (error) {
    if (error instanceof JournalError) return error.sqlState;
    return error instanceof pg.DatabaseError ? (error.code ?? '') : Promise.reject(error);
  }
}

/** Makes what a run has had accepted a day old. The entries' hashes are those of before. */
export async function backdate({ admin }: Pick<TestJournal, 'admin'>, runNumber: bigint): Promise<void> {
  await admin.query(`begin; set local session_replication_role = replica;
    update retl.log_entry set recorded_at = recorded_at - interval '1 day' where run_id = ${runNumber}; commit`);
}
