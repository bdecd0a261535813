/**
 * After the finish is accepted: folds what was accepted into the membership, promotes the generation and completes the
 * run in one transaction, and drops superseded generations that nothing refers to. No provider call before the promotion.
 */

import type { RunCounts } from '../domain/run.ts';
import { fold, promote, prune } from '../journal/runs.ts';
import { goOn, type RunAttempt, withAttempt } from './attempt.ts';
import { unlessClosed } from './closed.ts';
import type { Dependencies } from './deps.ts';
import { completeReplacement } from './replacement.ts';
import type { RunRef } from './results.ts';
import { tidyTarget } from './tidy-target.ts';

/** Batches folded in one transaction; 200 batches of 1,000 members take about a second. */
export const FOLD_BATCHES = 200;
const PRUNE_AT_ONCE = 5;

/** @throws JournalError */
export async function promoteRun(deps: Dependencies, ref: RunRef): Promise<{ readonly counts: RunCounts }> {
  return unlessClosed(
    deps,
    ref,
    () => withAttempt(deps, ref, 'promote', foldAndPromote),
    (closing, counts) => (closing === 'completed' ? { counts } : null),
  );
}

async function foldAndPromote(a: RunAttempt): Promise<{ readonly counts: RunCounts }> {
  const { journal } = a.deps;
  if (a.record.strategy === 'native-replace') await completeReplacement(a);
  while ((await fold(journal, a.attempt, FOLD_BATCHES)) > 0) goOn(a);
  await promote(journal, a.attempt);
  await prune(journal, a.record.run, PRUNE_AT_ONCE);
  if (a.record.strategy === 'native-replace') await tidyTarget(a);
  await a.deps.committed?.();
  return { counts: await a.counts() };
}
