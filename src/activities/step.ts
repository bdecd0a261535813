/**
 * A step of the session, init or finish: prepared, sending, accepted, journaled like a batch (design.md section 4). An
 * answer that was lost leaves it unknown; it is then reconciled and never simply sent again (rules 3 and 10).
 */

import type { FinishRequest, StepFound, StepOutcome } from '../destinations/port.ts';
import { type BatchId, sha256FromHex } from '../domain/ids.ts';
import { batchId } from '../domain/request.ts';
import { type BatchRecord, stepBatch } from '../journal/batch-record.ts';
import {
  markNotApplied,
  markRefused,
  markResending,
  markSending,
  markUnknown,
  prepareStep,
  type StoreWrites,
  settleStep,
} from '../journal/batches.ts';
import { sha256Hex } from '../planning/hash.ts';
import { answered } from './answered.ts';
import type { OpenWriter, RunAttempt } from './attempt.ts';
import { backoffMs, receiptText, sendDeadlineMs, UNANSWERED_MS } from './delivery/policy.ts';
import { withRetries } from './delivery/record.ts';
import { Clearance, markedOnce, SENT_TOO_LATE } from './delivery/sending.ts';
import type { StepResult } from './results.ts';
import { checkedStep, pollStep, stage } from './step-poll.ts';

export interface StepCalls {
  readonly action: 'init' | 'finish';
  /** Rule 10: a run that is being ended resolves what is open, and begins nothing. */
  readonly resolveOnly: boolean;
  /** Ask about pending work now, whether or not its time has come. */
  readonly pollNow: boolean;
  /** What is sent; its hash stands in the journal before it is. */
  request(id: BatchId): FinishRequest | null;
  send(request: FinishRequest | null): Promise<StepOutcome>;
  reconcile(request: FinishRequest | null, batch: BatchRecord): Promise<StepFound>;
}

/** Brings the step as far as it goes in this attempt. @throws JournalError */
export async function runStep(a: RunAttempt, w: OpenWriter, calls: StepCalls): Promise<StepResult> {
  const found = await stepBatch(a.deps.journal, a.attempt, calls.action);
  switch (found?.state) {
    case 'settled':
      return { kind: 'done', counts: await a.counts() };
    case 'refused':
      return { kind: 'rejected', code: found.reason ?? 'refused', counts: await a.counts() };
    case 'staged':
      return pollStep(a, w, found, calls.pollNow, () => calls.reconcile(calls.request(found.id), found));
    case 'unknown':
      return reconcile(a, w, calls, found);
    default:
      return calls.resolveOnly ? { kind: 'done', counts: await a.counts() } : begin(a, w, calls, found);
  }
}

/** Sends a step that is not under way: never prepared, or never sent, or proven not applied. */
async function begin(
  a: RunAttempt,
  w: OpenWriter,
  calls: StepCalls,
  found: BatchRecord | null,
): Promise<StepResult> {
  const waitMs = found?.retryInMs ?? 0;
  switch (found?.state) {
    case 'not-applied':
      if (waitMs > 0) return waiting(a, found.reason ?? 'not-applied', waitMs, found.id);
      return send(a, w, calls, await prepare(a, calls, found.sending + 1), found.sending + 1);
    case 'prepared':
      return send(a, w, calls, found.id, found.sending);
    default:
      return send(a, w, calls, await prepare(a, calls, 1), 1);
  }
}

async function prepare(a: RunAttempt, calls: StepCalls, ordinal: number): Promise<BatchId> {
  const id = batchId(
    {
      mirror: `${a.record.logId}/${a.record.mirror}`,
      run: a.record.run,
      action: calls.action,
      operations: [],
      ordinal,
    },
    sha256Hex,
  );
  const text = JSON.stringify(calls.request(id));
  await prepareStep(a.deps.journal, a.attempt, calls.action, id, sha256FromHex(sha256Hex(text)), text.length);
  return id;
}

async function send(
  a: RunAttempt,
  w: OpenWriter,
  calls: StepCalls,
  id: BatchId,
  ordinal: number,
): Promise<StepResult> {
  const { journal } = a.deps;
  const clearance = new Clearance();
  const deadlineMs = sendDeadlineMs(w.destination.capabilities);
  await markedOnce(journal, a.attempt, [id], () => markSending(journal, a.attempt, id, deadlineMs));
  const { value, writes } = await w.store.collect(() =>
    answered(async () => (clearance.tooLate ? HELD_BACK : calls.send(calls.request(id)))),
  );
  const retryable = w.destination.capabilities.recovery !== 'manual';
  return record(a, id, value, writes, { tries: ordinal, retryable, resent: false });
}

/** Held back too long, it is not sent at all: of a first sending that proves that nothing was applied. */
const HELD_BACK: StepOutcome = {
  kind: 'not-applied',
  code: SENT_TOO_LATE,
  retryAfterMs: null,
  tooLarge: false,
};

/** Asks the adapter, whatever its recovery of batches: a step may need no call, or have a word of its own on being sent twice. */
async function reconcile(
  a: RunAttempt,
  w: OpenWriter,
  calls: StepCalls,
  batch: BatchRecord,
): Promise<StepResult> {
  // The destination's own delay counts for a copy that goes again, too.
  if (batch.retryInMs > 0) return waiting(a, batch.reason ?? 'retry', batch.retryInMs, batch.id);
  const { recovery } = w.destination.capabilities;
  const resends = recovery === 'idempotent';
  const clearance = new Clearance();
  const deadlineMs = sendDeadlineMs(w.destination.capabilities);
  if (resends) await markResending(a.deps.journal, a.attempt, batch.id, deadlineMs);
  const request = calls.request(batch.id);
  const { value, writes } = await w.store.collect(() =>
    answered<StepFound>(async () =>
      clearance.tooLate
        ? { kind: 'unknown', code: SENT_TOO_LATE, unanswered: true }
        : calls.reconcile(request, batch),
    ),
  );
  // A question that fails says nothing about the step: it is asked again.
  if (!resends && value.kind === 'unknown' && 'unanswered' in value) {
    return waiting(a, value.code, UNANSWERED_MS, batch.id);
  }
  // Rule 3: before the send deadline nothing but an acceptance proves anything about what was sent.
  const early = resends ? 0 : batch.deadlineInMs;
  if (early > 0 && DENIALS.includes(value.kind)) return waiting(a, 'before-send-deadline', early, batch.id);
  const resent = resends || batch.resends > 0;
  // Of what is not known to be pending no job can be missing.
  const found: StepOutcome = value.kind === 'missing' ? { kind: 'unknown', code: value.code } : value;
  return record(a, batch.id, found, writes, {
    tries: batch.resends + 1,
    retryable: recovery === 'idempotent',
    resent,
  });
}

const DENIALS: readonly StepFound['kind'][] = ['not-applied', 'misconfigured', 'refused'];

interface Sent {
  /** How often it was sent: what the wait grows with. */
  readonly tries: number;
  /** Whether a later attempt can find out what an unknown outcome was. */
  readonly retryable: boolean;
  /** Whether the answer is about a copy that went again. */
  readonly resent: boolean;
}

async function record(
  a: RunAttempt,
  id: BatchId,
  given: StepOutcome,
  writes: StoreWrites,
  { tries, retryable, resent }: Sent,
): Promise<StepResult> {
  const { journal } = a.deps;
  const outcome = checkedStep(given);
  switch (outcome.kind) {
    case 'accepted':
      await withRetries(() => settleStep(journal, a.attempt, id, receiptText(outcome.receipt), writes));
      return { kind: 'done', counts: await a.counts() };
    case 'pending':
      return stage(a, id, outcome, writes);
    case 'not-applied': {
      const ms = Math.max(outcome.retryAfterMs ?? 0, backoffMs(tries));
      await withRetries(() => markNotApplied(journal, a.attempt, id, outcome.code, ms));
      return waiting(a, outcome.code, ms, id);
    }
    case 'misconfigured':
      await withRetries(() => markNotApplied(journal, a.attempt, id, outcome.code, 0));
      return { kind: 'misconfigured', code: outcome.code, counts: await a.counts() };
    case 'refused':
      await withRetries(() => markRefused(journal, a.attempt, id, outcome.code, outcome.reason));
      // Rule 3: it says nothing about the first copy, and the journal keeps the step unknown: a person decides.
      if (resent) return { kind: 'blocked', code: outcome.code, batch: id, counts: await a.counts() };
      return { kind: 'rejected', code: outcome.code, counts: await a.counts() };
    case 'unknown':
      await withRetries(() => markUnknown(journal, a.attempt, id, outcome.code));
      if (!retryable) return { kind: 'blocked', code: outcome.code, batch: id, counts: await a.counts() };
      return waiting(a, outcome.code, backoffMs(tries), id);
  }
}

async function waiting(a: RunAttempt, code: string, ms: number, batch: BatchId): Promise<StepResult> {
  return { kind: 'wait', code, ms, batch, counts: await a.counts() };
}
