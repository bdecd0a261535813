/** Connections to the journal. Connections, statements, idle transactions and locks have time limits (design.md 5). */

import pg from 'pg';
import { journalError } from './errors.ts';

export interface JournalOptions {
  readonly url: string;
  /** Connections at most. An extraction keeps one as long as it reads; everything else gives its own back at once. */
  readonly max?: number;
  readonly applicationName?: string;
  /** How long a transaction may wait for its client, which holds its locks meanwhile. */
  readonly idleInTransactionMs?: number;
}

/** One connection, in a transaction. */
export type JournalClient = pg.PoolClient;

/** Either the pool or one connection of it. */
export type Queryable = Pick<pg.ClientBase, 'query'>;

const STATEMENT_MS = 1_800_000;

export function openJournal(options: JournalOptions): pg.Pool {
  const pool = new pg.Pool({
    connectionString: options.url,
    max: options.max ?? 12,
    application_name: options.applicationName ?? 'retl-mirror',
    connectionTimeoutMillis: 10_000,
    idleTimeoutMillis: 60_000,
    // Sealing or planning some fifty million members takes minutes.
    statement_timeout: STATEMENT_MS,
    // A server that vanished without a word: the client gives up by itself.
    query_timeout: STATEMENT_MS + 60_000,
    lock_timeout: 30_000,
    idle_in_transaction_session_timeout: options.idleInTransactionMs ?? 300_000,
    keepAlive: true,
    keepAliveInitialDelayMillis: 10_000,
  });
  // An idle connection that the server ends is not an error of anybody: the pool opens another.
  pool.on('error', () => {});
  // Nor is one that ends while a transaction waits for something else: its next statement fails.
  pool.on('connect', (client) => client.on('error', () => {}));
  return pool;
}

/** Runs one statement. @throws JournalError */
export async function run(
  db: Queryable,
  text: string,
  values: readonly unknown[] = [],
): Promise<readonly Record<string, unknown>[]> {
  try {
    const result = await db.query<Record<string, unknown>>(text, [...values]);
    return result.rows;
  } catch (error) {
    throw journalError(error);
  }
}

/** Calls a function of the journal and gives back its one value. @throws JournalError */
export async function call(db: Queryable, text: string, values: readonly unknown[]): Promise<unknown> {
  const rows = await run(db, `select ${text} as value`, values);
  return rows[0]?.value;
}

/** Runs `work` in one transaction on one connection; rolls back whatever it throws. @throws JournalError */
export async function transaction<T>(pool: pg.Pool, work: (client: pg.PoolClient) => Promise<T>): Promise<T> {
  let client: pg.PoolClient;
  try {
    client = await pool.connect();
  } catch (error) {
    throw journalError(error);
  }
  try {
    await run(client, 'begin');
    const value = await work(client);
    await run(client, 'commit');
    client.release();
    return value;
  } catch (error) {
    // Ending the connection rolls back without asking a server that may not answer.
    client.release(true);
    throw error;
  }
}

/** Several reads that see one state of the journal, and can write nothing. @throws JournalError; what `work` throws */
export function consistently<T>(pool: pg.Pool, work: (db: Queryable) => Promise<T>): Promise<T> {
  return transaction(pool, async (client) => {
    await run(client, 'set transaction isolation level repeatable read, read only');
    return work(client);
  });
}
