/**
 * An index's hold on the log, as `hold_log` says now (design.md section 7): a build that was begun under another word is not
 * built anew for that. A hold that begins late keeps all that the log has still, and does not bring back what is gone.
 */

import { logPosition } from '../domain/ids.ts';
import { compactionHolds, holdCompaction, releaseCompaction } from '../journal/compaction.ts';
import type { Queryable } from '../journal/pool.ts';
import type { Indexer } from './indexer.ts';
import { beginning } from './new-build.ts';

/** A compaction may be completed between two steps; another one takes far longer than to try again. */
const TRIES = 3;

/** Only of an index whose build is of this log. A hold that stands is left where it is. @throws JournalError */
export async function alignHold(
  journal: Queryable,
  { definition: { name }, holdsLog }: Pick<Indexer, 'definition' | 'holdsLog'>,
): Promise<void> {
  const isHeld = (await compactionHolds(journal)).some(({ index }) => index === name);
  if (isHeld === holdsLog) return;
  if (!holdsLog) return releaseCompaction(journal, name);
  for (let tried = 0; tried < TRIES; tried += 1) {
    const from = (await beginning(journal))?.boundary ?? logPosition(0);
    if ((await holdCompaction(journal, name, from)).kind === 'held') return;
  }
}
