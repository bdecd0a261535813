/** The adapters' small key-value store: read whole at the start of an attempt, written with receipts. */

import { text } from './decode.ts';
import { type Queryable, run } from './pool.ts';

/** @throws JournalError */
export async function readStore(db: Queryable, target: bigint): Promise<Map<string, string>> {
  const rows = await run(db, 'select key, value from retl.store where target_id = $1', [target]);
  return new Map(rows.map((row) => [text(row, 'key'), text(row, 'value')]));
}
