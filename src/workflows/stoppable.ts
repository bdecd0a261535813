/** Runs an activity that a message may stop, and tells what was stopped from what has failed. */

import { type CancellationScope, isCancellation } from '@temporalio/workflow';
import { isUnavailable } from './endings.ts';

/** Runs `work` in a scope that whoever may stop it cancels; `null` where it was stopped without an answer. */
export async function untilStopped<T>(scope: CancellationScope, work: () => Promise<T>): Promise<T | null> {
  try {
    return await scope.run(work);
  } catch (error) {
    // Temporal retries nothing that was told to stop. What would have been tried again has stopped, and not failed.
    if (isCancellation(error) || (scope.consideredCancelled && isUnavailable(error))) return null;
    throw error;
  }
}
