/**
 * A step of the session that its destination took for later: staged, asked about when its time has come, settled when the
 * answer says so (rule 10). A finish that is pending promotes nothing.
 */

import type { StepFound, StepOutcome } from '../destinations/port.ts';
import type { BatchId } from '../domain/ids.ts';
import type { BatchRecord } from '../journal/batch-record.ts';
import { markRefused, markStaged, notePoll, type StoreWrites, settleStep } from '../journal/batches.ts';
import { JOBS_LOST } from '../journal/open-state.ts';
import { answered } from './answered.ts';
import type { OpenWriter, RunAttempt } from './attempt.ts';
import { nameJobs } from './delivery/checked.ts';
import { receiptText } from './delivery/policy.ts';
import { isDue, lostJobs, pollAfterMs, stillStaged } from './delivery/polling.ts';
import { withRetries } from './delivery/record.ts';

import type { StepResult } from './results.ts';

/** An answer that names no job leaves nothing to ask for: it is unknown what became of the step. */
export function checkedStep(outcome: StepOutcome): StepOutcome {
  if (outcome.kind !== 'pending' || nameJobs(outcome.jobIds)) return outcome;
  return { kind: 'unknown', code: 'reply-lacks-job-id' };
}

type PendingOutcome = Extract<StepOutcome, { kind: 'pending' }>;

/** Journals that the destination has taken the step for later. @throws JournalError */
export async function stage(
  a: RunAttempt,
  id: BatchId,
  outcome: PendingOutcome,
  writes: StoreWrites,
): Promise<StepResult> {
  const ms = pollAfterMs(0, outcome.pollAfterMs, a.settings.batch.pollDeadlineMs);
  const receipt = receiptText(outcome.receipt);
  await withRetries(() => markStaged(a.deps.journal, a.attempt, id, outcome.jobIds, receipt, ms, writes));
  return { kind: 'pending', code: 'staged', ms, batch: id, ageMs: 0, counts: await a.counts() };
}

/** Asks what became of a staged step, where it is time to. @throws JournalError */
export async function pollStep(
  a: RunAttempt,
  w: OpenWriter,
  batch: BatchRecord,
  pollNow: boolean,
  ask: () => Promise<StepFound>,
): Promise<StepResult> {
  const { journal } = a.deps;
  if (!isDue(batch, pollNow, a.settings.batch.pollDeadlineMs)) {
    const lost = lostJobs(batch.reason);
    if (lost !== null) return jobsLost(a, batch, lost);
    return waiting(a, batch, batch.reason ?? 'staged', batch.pollInMs);
  }
  const { value, writes } = await w.store.collect(() => answered<StepFound>(ask));
  const outcome = value.kind === 'missing' ? value : checkedStep(value);
  switch (outcome.kind) {
    case 'accepted':
      await withRetries(() => settleStep(journal, a.attempt, batch.id, receiptText(outcome.receipt), writes));
      return { kind: 'done', counts: await a.counts() };
    case 'refused':
      await withRetries(() => markRefused(journal, a.attempt, batch.id, outcome.code, outcome.reason));
      // Rule 3: it says nothing about an earlier copy, and the journal keeps the step unknown: a person decides.
      return batch.resends > 0
        ? { kind: 'blocked', code: outcome.code, batch: batch.id, counts: await a.counts() }
        : { kind: 'rejected', code: outcome.code, counts: await a.counts() };
    case 'pending':
      return underWay(a, batch, outcome, writes);
    case 'missing':
      await unanswered(a, batch, `${JOBS_LOST}${outcome.code}`, null);
      return jobsLost(a, batch, outcome.code);
    case 'not-applied':
      return unanswered(a, batch, outcome.code, outcome.retryAfterMs);
    default:
      return unanswered(a, batch, outcome.code, null);
  }
}

/** Asking again would bring the same, and proves nothing: a person decides, or asks. */
async function jobsLost(a: RunAttempt, batch: BatchRecord, code: string): Promise<StepResult> {
  return { kind: 'blocked', code, batch: batch.id, counts: await a.counts() };
}

async function underWay(
  a: RunAttempt,
  batch: BatchRecord,
  outcome: PendingOutcome,
  writes: StoreWrites,
): Promise<StepResult> {
  const { jobIds } = batch;
  if (outcome.jobIds.length !== jobIds.length || outcome.jobIds.some((id, n) => id !== jobIds[n])) {
    return unanswered(a, batch, 'reply-names-other-jobs', null);
  }
  const ms = nextMs(a, batch, outcome.pollAfterMs);
  const receipt = receiptText(outcome.receipt);
  await withRetries(() => markStaged(a.deps.journal, a.attempt, batch.id, jobIds, receipt, ms, writes));
  return waiting(a, batch, 'staged', ms);
}

/** A question that fails says nothing about the step: it stays staged, and shows why. */
async function unanswered(
  a: RunAttempt,
  batch: BatchRecord,
  code: string,
  retryAfterMs: number | null,
): Promise<StepResult> {
  const ms = nextMs(a, batch, retryAfterMs);
  await withRetries(() => notePoll(a.deps.journal, a.attempt, batch.id, code, ms));
  return waiting(a, batch, code, ms);
}

function nextMs(a: RunAttempt, batch: BatchRecord, asked: number | null | undefined): number {
  return pollAfterMs(batch.polls + 1, asked, a.settings.batch.pollDeadlineMs - batch.stagedForMs);
}

async function waiting(a: RunAttempt, batch: BatchRecord, code: string, ms: number): Promise<StepResult> {
  const end = stillStaged(batch, a.settings.batch.pollDeadlineMs, code, ms);
  return { ...end, counts: await a.counts() };
}
