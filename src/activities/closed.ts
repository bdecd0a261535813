/**
 * An attempt that finds its run closed is refused (rule 9). Where it was an earlier attempt of the same activity that closed
 * it, and only the answer was lost, that answer is given again.
 */

import { runId } from '../domain/ids.ts';
import type { Closing, RunCounts } from '../domain/run.ts';
import { JournalError } from '../journal/errors.ts';
import { countRun, loadRun } from '../journal/run-record.ts';
import type { Dependencies } from './deps.ts';
import type { RunRef } from './results.ts';

/** `answer` says what `work` would have answered to a run that was closed so; `null`: that is not its doing. */
export async function unlessClosed<T>(
  deps: Dependencies,
  ref: RunRef,
  work: () => Promise<T>,
  answer: (closing: Closing, counts: RunCounts) => T | null,
): Promise<T> {
  try {
    return await work();
  } catch (error) {
    if (!(error instanceof JournalError) || error.kind !== 'fenced') throw error;
    const id = runId(ref.run);
    const { closing } = await loadRun(deps.journal, id);
    const found = closing === null ? null : answer(closing, await countRun(deps.journal, id));
    if (found === null) throw error;
    return found;
  }
}
