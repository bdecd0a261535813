/**
 * A builder that is frozen in the middle of a COPY (design.md section 7). Its transaction is not idle, and a server that waits
 * for a COPY's client looks at no other time limit either: it would hold its build for as long as its machine keeps the connection
 * open. So whoever is held up looks itself: who has sent nothing from one look to the next has its connection ended, and
 * nothing of its page is there.
 */

import type pg from 'pg';
import { RetlError } from '../../domain/errors.ts';
import { text } from '../../journal/decode.ts';
import { query } from './database.ts';

/**
 * COPYs that wait for their clients in a transaction that has a build locked, each with what changes once it goes on. Of
 * sessions whose role this one is no member of, nothing is shown.
 */
const WAITING = `
  select a.pid, concat_ws(' ', a.pid, a.query_start, c.bytes_processed) as standing
  from pg_locks l join pg_stat_activity a using (pid) join pg_stat_progress_copy c using (pid)
  where l.relation = to_regclass($1) and l.database = c.datid and c.datname = current_database()
    and l.mode = 'RowShareLock' and l.granted and a.state = 'active' and a.wait_event = 'ClientRead'`;

const END = `select pg_terminate_backend(pid, 5000) from (${WAITING}) w where standing = any($2)`;

const LOCK_TIMEOUT = '55P03';

/**
 * Does what needs the lock of a build. Between two looks lies the time that a statement waits for a lock.
 * @param work may be repeated where it was refused a lock
 * @param schema quoted
 * @throws RetlError; what `work` throws
 */
export function pastFrozen<T>(pool: pg.Pool, schema: string, work: () => Promise<T>): Promise<T> {
  return unlessLocked(work, async (refused) => {
    const seen = await waiting(pool, schema);
    if (seen.length === 0) throw refused;
    return unlessLocked(work, async (refusedAgain) => {
      if (!(await endUnmoved(pool, schema, seen))) throw refusedAgain;
      return work();
    });
  });
}

async function unlessLocked<T>(
  work: () => Promise<T>,
  onLocked: (refused: unknown) => Promise<T>,
): Promise<T> {
  try {
    return await work();
  } catch (error) {
    if (isLockTimeout(error)) return onLocked(error);
    throw error;
  }
}

function isLockTimeout(error: unknown): boolean {
  return error instanceof RetlError && error.details.sql_state === LOCK_TIMEOUT;
}

async function waiting(pool: pg.Pool, schema: string): Promise<readonly string[]> {
  const rows = await query(pool, WAITING, [`${schema}.index_build`]);
  return rows.map((row) => text(row, 'standing'));
}

/** Whether it has ended a connection. */
async function endUnmoved(pool: pg.Pool, schema: string, seen: readonly string[]): Promise<boolean> {
  return (await query(pool, END, [`${schema}.index_build`, seen])).length > 0;
}
