/**
 * One transaction, and what its end proves. Until COMMIT is sent nothing can have been applied, whatever goes wrong;
 * from then on only the server's answer tells.
 *
 * Settings are made inside each transaction, so that it does not matter which connection serves it (a pooler in front
 * of the server included), nor what the role or the database is configured to.
 */

import pg from 'pg';
import { type PostgresConnection, poolConfig } from './connection.ts';
import { isDefect, provesRollback, sqlstateOf } from './sqlstate.ts';

export type TransactionEnd<T> =
  /** COMMIT was acknowledged, as durably as the server is configured to. */
  | { readonly kind: 'committed'; readonly value: T }
  /** The work chose to roll back. */
  | { readonly kind: 'rolled-back'; readonly value: T }
  /** Provably nothing was applied. */
  | { readonly kind: 'failed'; readonly error: unknown }
  /** The drain limit has passed; provably nothing was applied. */
  | { readonly kind: 'cancelled' }
  /** COMMIT was sent, and its answer is missing or proves nothing. */
  | { readonly kind: 'in-doubt' };

/** What the work of a transaction asks for. */
export type Work<T> = (client: pg.PoolClient) => Promise<{ readonly commit: boolean; readonly value: T }>;

export interface Database {
  /** @throws what `work` throws as a fault of its own, with nothing applied: a lost connection is told as one, a mistake is not. */
  transact<T>(signal: AbortSignal, work: Work<T>): Promise<TransactionEnd<T>>;
  /** Ends every connection once it is free; safe to call more than once. */
  close(): Promise<void>;
}

/** Opens nothing yet: connections are made when they are needed, `max` at most. */
export function openDatabase(connection: PostgresConnection, max: number): Database {
  const pool = new pg.Pool(poolConfig(connection, max));
  // A connection that dies is noticed by the query that needs it; without listeners its event would end the process.
  pool.on('error', () => undefined);
  pool.on('connect', (client) => client.on('error', () => undefined));
  let closed: Promise<void> | undefined;
  return {
    transact: (signal, work) => transact(pool, beginStatement(connection), signal, work),
    close: () => {
      closed ??= pool.end();
      return closed;
    },
  };
}

/**
 * `row_security = off` makes a query fail where a policy would otherwise hide rows from it. A server or role that
 * does not wait for its own disk (`synchronous_commit = off`) would acknowledge what a crash can undo.
 */
function beginStatement({ timeouts }: PostgresConnection): string {
  return `
    BEGIN ISOLATION LEVEL READ COMMITTED;
    SET LOCAL statement_timeout = ${timeouts.statement};
    SET LOCAL lock_timeout = ${timeouts.lock};
    SET LOCAL idle_in_transaction_session_timeout = ${timeouts.idleInTransaction};
    SET LOCAL row_security = off;
    SET LOCAL datestyle = 'ISO, YMD';
    SET LOCAL intervalstyle = 'postgres';
    SET LOCAL timezone = 'UTC';
    SET LOCAL lc_monetary = 'C';
    SELECT pg_catalog.set_config('synchronous_commit', 'on', true)
     WHERE pg_catalog.current_setting('synchronous_commit') = 'off'`;
}

async function transact<T>(
  pool: pg.Pool,
  begin: string,
  signal: AbortSignal,
  work: Work<T>,
): Promise<TransactionEnd<T>> {
  if (signal.aborted) return { kind: 'cancelled' };
  let client: pg.PoolClient;
  try {
    client = await pool.connect();
  } catch (error) {
    return { kind: 'failed', error };
  }
  const lease = new Lease(client, signal);
  const end = await run(client, begin, signal, work);
  const sound = end.kind === 'failed' ? await rollback(client, end.error) : hasEnded(end);
  lease.end(sound);
  if (end.kind === 'failed' && isDefect(end.error)) throw end.error;
  return end;
}

function hasEnded<T>(end: TransactionEnd<T>): boolean {
  return end.kind === 'committed' || end.kind === 'rolled-back';
}

/** Whether the connection may serve again: only the server's own errors leave it in a known state. */
async function rollback(client: pg.PoolClient, error: unknown): Promise<boolean> {
  if (sqlstateOf(error) === null) return false;
  try {
    await client.query('ROLLBACK');
    return true;
  } catch {
    return false; // the server has closed it
  }
}

async function run<T>(
  client: pg.PoolClient,
  begin: string,
  signal: AbortSignal,
  work: Work<T>,
): Promise<TransactionEnd<T>> {
  let done: Awaited<ReturnType<Work<T>>>;
  try {
    if (signal.aborted) return { kind: 'cancelled' };
    await client.query(begin);
    done = await work(client);
    if (!done.commit) {
      await client.query('ROLLBACK');
      return { kind: 'rolled-back', value: done.value };
    }
  } catch (error) {
    return signal.aborted ? { kind: 'cancelled' } : { kind: 'failed', error };
  }
  return signal.aborted ? { kind: 'cancelled' } : commit(client, done.value);
}

async function commit<T>(client: pg.PoolClient, value: T): Promise<TransactionEnd<T>> {
  const replication = watchReplication(client);
  try {
    const { command } = await client.query('COMMIT');
    if (command !== 'COMMIT') return { kind: 'failed', error: new Error('the server rolled back') };
    return replication.missed() ? { kind: 'in-doubt' } : { kind: 'committed', value };
  } catch (error) {
    return provesRollback(error) ? { kind: 'failed', error } : { kind: 'in-doubt' };
  } finally {
    replication.end();
  }
}

/**
 * Where the wait for a synchronous standby is cut short, COMMIT still says COMMIT, with a warning that the standby may
 * not have it: a failover could undo it. The warning is known by the routine that gives it, for its text is translated.
 */
function watchReplication(client: pg.PoolClient): { missed(): boolean; end(): void } {
  let missed = false;
  const onNotice = (notice: { readonly routine?: string | undefined }): void => {
    if (notice.routine === 'SyncRepWaitForLSN') missed = true;
  };
  client.on('notice', onNotice);
  return { missed: () => missed, end: () => client.off('notice', onNotice) };
}

/** A connection on loan. The drain signal cuts it off, which the server answers by rolling back. */
class Lease {
  private over = false;
  private readonly cut = (): void => this.end(false);

  constructor(
    private readonly client: pg.PoolClient,
    private readonly signal: AbortSignal,
  ) {
    signal.addEventListener('abort', this.cut, { once: true });
    if (signal.aborted) this.cut();
  }

  /** Gives the connection back, or destroys it where its state is not known. */
  end(sound: boolean): void {
    if (this.over) return;
    this.over = true;
    this.signal.removeEventListener('abort', this.cut);
    this.client.release(!sound);
  }
}
