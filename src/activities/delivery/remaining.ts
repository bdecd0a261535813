/** What of an action has not been made a request yet: a range of the run's planned operations (rules 1 and 4). */

import type { Action } from '../../domain/request.ts';
import { lastPrepared, openBatches } from '../../journal/batch-record.ts';
import type { RunAttempt } from '../attempt.ts';

/** Inclusive; empty where `from` lies past `end`. */
export interface Remaining {
  readonly from: bigint;
  readonly end: bigint;
}

/** The journal alone says where the run's requests end: there is no cursor beside it. @throws JournalError */
export async function remaining(a: RunAttempt, action: Action): Promise<Remaining> {
  const { firstSequence, additionsEnd, removalsEnd } = a.record;
  if (firstSequence === null || additionsEnd === null) throw new Error('rule 1: the run has no plan');
  const end = action === 'upsert' ? additionsEnd : removalsEnd;
  if (end === null) throw new Error('rule 1: no removal is planned yet');
  const last = await lastPrepared(a.deps.journal, a.attempt, action);
  const first = action === 'upsert' ? firstSequence : additionsEnd + 1n;
  return { from: last === null ? first : last + 1n, end };
}

/** Whether anything is left to send: planned, or open in another way than staged. @throws JournalError */
export async function mustSend(a: RunAttempt, action: Action): Promise<boolean> {
  const open = await openBatches(a.deps.journal, a.attempt);
  if (open.some((batch) => batch.state !== 'staged')) return true;
  const { from, end } = await remaining(a, action);
  return from <= end;
}
