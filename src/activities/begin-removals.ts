/**
 * Plans the removals of a run (rule 1). What they send was stored when each member was accepted, perhaps long ago: all of them are
 * proven before the first can be prepared, in the transaction that plans them (rule 2). Where one is not what was stored none is
 * planned, and once its row is mended the run plans them anew.
 */

import { readOperations } from '../journal/operations.ts';
import { transaction } from '../journal/pool.ts';
import { loadRun } from '../journal/run-record.ts';
import { beginRemovals, type GuardAnswer } from '../journal/runs.ts';
import type { RunAttempt } from './attempt.ts';

const PROVEN_AT_ONCE = 5_000n;

/** The guard looks again: `null` where they are planned. @throws JournalError; RetlError `journal.damaged` */
export async function planRemovals(
  { deps, attempt }: Pick<RunAttempt, 'deps' | 'attempt'>,
  largestRemoval: number,
): Promise<GuardAnswer | null> {
  return transaction(deps.journal, async (client) => {
    const held = await beginRemovals(client, attempt, largestRemoval);
    if (held !== null) return held;
    const record = await loadRun(client, attempt.run);
    const end = record.removalsEnd ?? 0n;
    for (let from = (record.additionsEnd ?? end) + 1n; from <= end; from += PROVEN_AT_ONCE) {
      const last = from + PROVEN_AT_ONCE - 1n;
      await readOperations(client, record, 'remove', from, last < end ? last : end);
    }
    return null;
  });
}
