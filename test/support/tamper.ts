/** Damage to a journal that its own functions would not do. */

import { type LogVerdict, verifyLog } from '../../src/journal/verify-log.ts';
import type { TestJournal } from './journal.ts';

/** Does something to the log as a superuser who switches the triggers off, has it verified, and undoes it. */
export async function tampered(journal: TestJournal, sql: string, effects = true): Promise<LogVerdict> {
  const client = await journal.admin.connect();
  try {
    await client.query(`begin; set local session_replication_role = replica; ${sql}`);
    return await verifyLog(client, { effects });
  } finally {
    await client.query('rollback');
    client.release();
  }
}
