/** What of an answer can be believed at all (rules 2 and 5): one that does not fit its request accepts nothing. */

import type { BatchOutcome, BatchRequest } from '../../destinations/port.ts';

const LONGEST_JOB_ID = 1_024;

/** An answer that does not fit its request accepts nothing. */
export function checked(
  { request }: { readonly request: Pick<BatchRequest, 'operations'> },
  outcome: BatchOutcome,
): BatchOutcome {
  if (outcome.kind === 'settled' && outcome.outcomes.length !== request.operations.length) {
    return { kind: 'unknown', code: 'reply-does-not-match' };
  }
  if (outcome.kind === 'staged' && !nameJobs(outcome.jobIds)) {
    return { kind: 'unknown', code: 'reply-lacks-job-id' };
  }
  return outcome;
}

/** An id that the journal would have to change names nothing that can be asked for. */
export function nameJobs(ids: readonly string[]): boolean {
  const names = (id: string) =>
    id !== '' && id.length <= LONGEST_JOB_ID && id.isWellFormed() && !id.includes('\0');
  return ids.length > 0 && ids.every(names);
}
