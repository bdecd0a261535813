/** The source contract's harness for PostgreSQL, and what the adapter's own tests share with it. */

import { Client } from 'pg';
import type { PostgresSourceConfig } from '../../src/sources/postgres/config.ts';
import { postgresSource } from '../../src/sources/postgres/source.ts';
import { createTestDatabase } from '../support/postgres.ts';
import type { SourceHarness } from './source.contract.ts';

const ITEMS = `
CREATE TABLE items (n int PRIMARY KEY, label text NOT NULL, version int NOT NULL DEFAULT 0, padding text NOT NULL);
INSERT INTO items SELECT g, 'row ' || g, 0, repeat('x', 8000) FROM generate_series(1, 5000) g;
ANALYZE items`;

const SECRET = 'hunter2-never-shown';

/** The configuration for a URL, with fields laid over it. */
export function configOf(url: string, extra: { readonly [key: string]: unknown } = {}): PostgresSourceConfig {
  return postgresSource.connectionSchema.parse({ url, ...extra });
}

export interface PostgresHarness extends SourceHarness<PostgresSourceConfig> {
  readonly url: string;
  /** A superuser's connection to the same database, for tests to change and look at things. */
  readonly admin: Client;
}

export async function startPostgresHarness(): Promise<PostgresHarness> {
  const database = await createTestDatabase();
  const admin = new Client({ connectionString: database.url });
  await admin.connect();
  await admin.query(ITEMS);
  const config = { ...configOf(database.url), password: SECRET };
  return {
    adapter: postgresSource,
    config,
    unreachable: { ...config, host: '127.0.0.1', port: 1 },
    secret: SECRET,
    url: database.url,
    admin,
    queries: {
      items: 'SELECT n, label, version, padding FROM items ORDER BY n',
      nothing: 'SELECT n, label, version FROM items WHERE false',
      nullAndEmpty: `SELECT NULL::text AS a, ''::text AS b`,
      duplicateColumns: 'SELECT n, label, n FROM items',
      unknownTable: 'SELECT n FROM no_such_table',
      writing: 'DELETE FROM items RETURNING n',
      slow: 'SELECT pg_sleep(60)::text AS n',
      failsLate: 'SELECT n, 1 / (4000 - n) AS x, padding FROM items ORDER BY n',
    },
    change: async () => {
      await admin.query('UPDATE items SET version = version + 1 WHERE n % 2 = 0');
      await admin.query('DELETE FROM items WHERE n = 1');
      await admin.query(`INSERT INTO items VALUES (5001, 'row 5001', 0, repeat('x', 8000))`);
    },
    restore: async () => {
      await admin.query('UPDATE items SET version = 0 WHERE version <> 0');
      await admin.query(`INSERT INTO items VALUES (1, 'row 1', 0, repeat('x', 8000))`);
      await admin.query('DELETE FROM items WHERE n = 5001');
    },
    sessions: () => count(admin, 'count(*)'),
    kill: async () => {
      await count(admin, 'count(pg_terminate_backend(pid))');
    },
    close: async () => {
      await admin.end();
      await database.drop();
    },
  };
}

async function count(admin: Client, what: 'count(*)' | 'count(pg_terminate_backend(pid))'): Promise<number> {
  const { rows } = await admin.query<{ n: string }>(
    `SELECT ${what} AS n FROM pg_stat_activity
     WHERE datname = current_database() AND pid <> pg_backend_pid() AND application_name = 'retl-mirror'`,
  );
  return Number(rows[0]?.n);
}
