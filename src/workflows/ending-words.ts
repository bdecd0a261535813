/** How a run ended, in words: what Temporal's UI and the command line show of a failure. Codes and counts only. */

import type { ApplicationFailure } from '@temporalio/workflow';
import { ERROR_CODES } from '../domain/errors.ts';
import type { RunCounts } from '../domain/run.ts';
import { type Ending, fail } from './endings.ts';

/** What a saved plan showed is not what the run would do. */
export function planStale(why: string = ERROR_CODES['run.plan-stale'].meaning): ApplicationFailure {
  return fail('refused', 'run.plan-stale', `run.plan-stale: ${why} ${ERROR_CODES['run.plan-stale'].remedy}`);
}

export function unapprovedInWords(
  { how, code }: Pick<Ending, 'how' | 'code'>,
  { toRemove }: RunCounts,
): string {
  const known = how === 'guard-expired' ? 'run.guard-expired' : 'run.guard-rejected';
  const { meaning, remedy } = ERROR_CODES[known];
  return `${known} (${code}): the run would remove ${toRemove} members. ${meaning} ${remedy}`;
}

export function misconfiguredInWords(code: string): string {
  return (
    `destination.misconfigured (${code}): nothing was applied. ` +
    'Mend credentials, rights or settings, then run again: the sealed generation is resumed.'
  );
}

export function rejectedInWords(code: string, counts: RunCounts): string {
  const members = counts.rejected === 1 ? '1 member' : `${counts.rejected} members`;
  const rows = counts.rejected === 0 ? 'a whole request' : members;
  return (
    `run.rejected (${code}): the destination refused ${rows}; what was accepted stays accepted. ` +
    '`retl rejections` lists what was refused; the next run reads the source anew and tries again.'
  );
}
