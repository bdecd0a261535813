/**
 * When staged work is asked about again, and until when (rule 5). Staged is not accepted, however long it takes; past its
 * deadline a batch is shown as blocked, and is neither failed nor sent again.
 */

import type { BatchRecord } from '../../journal/batch-record.ts';
import { JOBS_LOST } from '../../journal/open-state.ts';
import type { WindowEnd } from './ends.ts';

/** Cadence where neither the provider nor the adapter has one: it begins here, doubles, and ends at five minutes. */
const POLL_FIRST_MS = 1_000;
const POLL_MAX_MS = 300_000;
const LONGEST_PAUSE_MS = 86_400_000;

/** Reason of a batch whose jobs have not come to an end in time. */
export const POLL_DEADLINE = 'poll-deadline';

/** What the destination said when it could tell nothing of the jobs; `null`: it has not said so. */
export function lostJobs(reason: string | null): string | null {
  return reason?.startsWith(JOBS_LOST) ? reason.slice(JOBS_LOST.length) : null;
}

/**
 * Ms until the next question.
 * @param polls how often it was asked in vain.
 * @param asked what the answer asks to wait, in ms; absent or no number: nothing.
 * @param leftMs until the deadline, so that it is noticed in time; 0: it has passed.
 */
export function pollAfterMs(polls: number, asked: number | null | undefined, leftMs: number): number {
  const wanted = Number.isFinite(asked) ? Math.min(LONGEST_PAUSE_MS, Math.max(0, Number(asked))) : 0;
  const first = Math.max(POLL_FIRST_MS, wanted);
  const ms = Math.min(Math.max(POLL_MAX_MS, wanted), first * 2 ** Math.min(polls, 16));
  return leftMs > 0 ? Math.min(ms, leftMs) : ms;
}

/** A staged batch, seen at one moment. */
export type Staged = Pick<BatchRecord, 'id' | 'pollInMs' | 'stagedForMs' | 'polls' | 'reason'>;

/** Whether it is to be asked about now: its time has come, somebody asks, or its deadline has passed and somebody looks. */
export function isDue(batch: Staged, pollNow: boolean, deadlineMs: number): boolean {
  return pollNow || batch.pollInMs <= 0 || batch.stagedForMs >= deadlineMs;
}

/** What is waited for while it is still staged. `ms`: until the next question. */
export function stillStaged(
  batch: Staged,
  deadlineMs: number,
  code: string,
  ms: number,
): Extract<WindowEnd, { kind: 'pending' | 'blocked' }> {
  const { id, stagedForMs } = batch;
  if (stagedForMs >= deadlineMs) return { kind: 'blocked', code: POLL_DEADLINE, batch: id };
  return { kind: 'pending', code, ms, batch: id, ageMs: stagedForMs };
}
