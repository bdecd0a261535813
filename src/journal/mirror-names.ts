/** The names of mirrors, which the log has by number. A name is never changed. */

import { type MirrorId, mirrorId } from '../domain/ids.ts';
import { big, text } from './decode.ts';
import { type Queryable, run } from './pool.ts';

/** @throws JournalError */
export async function mirrorNames(db: Queryable): Promise<ReadonlyMap<MirrorId, string>> {
  const rows = await run(db, 'select mirror_id, name from retl.mirror');
  return new Map(rows.map((row) => [mirrorId(big(row, 'mirror_id')), text(row, 'name')]));
}
