/**
 * The commit just before the first byte (rule 3), whose answer may be lost. What is found in `sending` later is unknown, and
 * may be so for ever; but the attempt that made the commit, and has not sent yet, knows that nothing has left.
 */

import type { BatchId } from '../../domain/ids.ts';
import { areSending } from '../../journal/batches.ts';
import type { Attempt, JournalPool } from '../../journal/runs.ts';
import { withRetries } from './record.ts';

/**
 * Marks batches as sending by `commit`, tried again while the journal is away; resolves once they are, by this attempt, and
 * none has been sent. @throws JournalError
 */
export async function markedOnce(
  journal: JournalPool,
  attempt: Attempt,
  ids: readonly BatchId[],
  commit: () => Promise<void>,
): Promise<void> {
  let tried = false;
  await withRetries(async () => {
    if (tried && (await areSending(journal, attempt, ids))) return;
    try {
      await commit();
    } catch (error) {
      // The server may have gone on with the first try, and refuses the second one for that.
      if (tried && (await areSending(journal, attempt, ids))) return;
      throw error;
    } finally {
      tried = true;
    }
  });
}
