/**
 * What an earlier attempt left open, one batch at a time: unknown ones are reconciled (rule 3), staged ones asked about
 * (rule 5). Neither question begins anything at the destination but where its adapter declares a replay to be safe.
 */

import type { BatchOutcome, PollOutcome } from '../../destinations/port.ts';
import type { BatchRecord } from '../../journal/batch-record.ts';
import { markResending, markStaged, notePoll, type StoreWrites } from '../../journal/batches.ts';
import { JournalError } from '../../journal/errors.ts';
import { JOBS_LOST } from '../../journal/open-state.ts';
import { answered } from '../answered.ts';
import type { OpenWriter, RunAttempt } from '../attempt.ts';
import { checked } from './checked.ts';
import type { WindowEnd } from './ends.ts';
import type { Outgoing, RequestBuilder } from './outgoing.ts';
import { receiptText, sendDeadlineMs, UNANSWERED_MS } from './policy.ts';
import { isDue, lostJobs, pollAfterMs, stillStaged } from './polling.ts';
import { withRetries } from './record.ts';
import type { Recorder } from './recorder.ts';
import { Clearance, SENT_TOO_LATE } from './sending.ts';

/** Says why the window must end; `null` where the batch is accepted whole. */
type Found = Promise<WindowEnd | null>;

export class Reconciler {
  constructor(
    private readonly a: RunAttempt,
    private readonly w: OpenWriter,
    private readonly builder: RequestBuilder,
    private readonly recorder: Recorder,
    private readonly pollNow: boolean,
  ) {}

  get #pollDeadlineMs(): number {
    return this.a.settings.batch.pollDeadlineMs;
  }

  /** Whether more than a question goes out for it: the request itself, for the first time or again. */
  sends({ state }: BatchRecord): boolean {
    return (
      (state !== 'staged' && this.w.destination.capabilities.recovery === 'idempotent') ||
      state === 'prepared'
    );
  }

  /** @throws JournalError */
  async resolve(batch: BatchRecord): Found {
    return batch.state === 'staged' ? this.#poll(batch) : this.#reconcile(batch);
  }

  /** Rule 3: an unknown batch leaves that state by reconciliation only. */
  async #reconcile(batch: BatchRecord): Found {
    const { recovery } = this.w.destination.capabilities;
    if (batch.state === 'unknown' && recovery === 'manual') {
      return { kind: 'blocked', code: batch.reason ?? 'cannot-be-verified', batch: batch.id };
    }
    // The destination's own delay counts for a copy that goes again, too.
    if (batch.retryInMs > 0) {
      return { kind: 'wait', code: batch.reason ?? 'retry', ms: batch.retryInMs, batch: batch.id };
    }
    // It left that state when this attempt began: a newer one has sent it since, and nobody asks about that.
    if (batch.state === 'sending') throw superseded();
    const outgoing = await this.builder.rebuild(batch);
    const resent = outgoing.resent || recovery === 'idempotent';
    const clearance = new Clearance();
    if (recovery === 'idempotent') {
      const deadlineMs = sendDeadlineMs(this.w.destination.capabilities);
      await markResending(this.a.deps.journal, this.a.attempt, batch.id, deadlineMs);
    }
    const { value, writes } = await this.w.store.collect(() =>
      answered<BatchOutcome>(async () =>
        clearance.tooLate
          ? { kind: 'unknown', code: SENT_TOO_LATE }
          : this.w.writer.reconcileBatch(outgoing.request, receiptOf(batch), batch.progress),
      ),
    );
    return this.#learn({ ...outgoing, resent }, batch, value, writes);
  }

  async #learn(outgoing: Outgoing, batch: BatchRecord, value: BatchOutcome, writes: StoreWrites): Found {
    const looksUp = this.w.destination.capabilities.recovery === 'lookup';
    // A question that fails says nothing: it is asked again. One that is answered, and does not help, would be answered so again.
    if (looksUp && value.kind === 'unknown' && value.unanswered === true) {
      return { kind: 'wait', code: value.code, ms: UNANSWERED_MS, batch: batch.id };
    }
    // Rule 3: an absence that is seen before the send deadline proves nothing.
    const early = batch.deadlineInMs;
    if (batch.state === 'unknown' && early > 0 && looksUp && !AFFIRMATIVE.includes(value.kind)) {
      return { kind: 'wait', code: 'before-send-deadline', ms: early, batch: batch.id };
    }
    const end = await this.recorder.record(outgoing, value, writes, batch.resends + 1);
    if (value.kind !== 'unknown' || !looksUp) return end;
    return { kind: 'blocked', code: value.code, batch: batch.id };
  }

  /** Once a round: not before its time, unless somebody asks. */
  async #poll(batch: BatchRecord): Found {
    // Nobody has asked for a round of polls of an adapter that has none: whoever looks again, asks.
    if (this.#polls && !isDue(batch, this.pollNow, this.#pollDeadlineMs)) {
      const lost = lostJobs(batch.reason);
      if (lost !== null) return { kind: 'blocked', code: lost, batch: batch.id };
      return this.#still(batch, batch.reason ?? 'staged', batch.pollInMs);
    }
    const outgoing = await this.builder.rebuild(batch);
    const { value, writes } = await this.w.store.collect(() =>
      answered<PollOutcome>(() =>
        this.w.writer.poll(outgoing.request, batch.jobIds, receiptOf(batch) ?? {}, batch.progress),
      ),
    );
    const answer = value.kind === 'missing' ? value : checked(outgoing, value);
    switch (answer.kind) {
      case 'accepted':
      case 'settled':
      case 'refused':
        return this.recorder.record(outgoing, answer, writes, batch.resends + 1);
      case 'staged':
        return this.#underWay(batch, answer, writes);
      case 'missing':
        await this.#unanswered(batch, `${JOBS_LOST}${answer.code}`, null);
        return { kind: 'blocked', code: answer.code, batch: batch.id };
      case 'not-applied':
        return this.#unanswered(batch, answer.code, answer.retryAfterMs);
      default:
        return this.#unanswered(batch, answer.code, null);
    }
  }

  async #underWay(
    batch: BatchRecord,
    answer: Extract<PollOutcome, { kind: 'staged' }>,
    writes: StoreWrites,
  ): Found {
    const { jobIds } = batch;
    if (answer.jobIds.length !== jobIds.length || answer.jobIds.some((id, n) => id !== jobIds[n])) {
      return this.#unanswered(batch, 'reply-names-other-jobs', null);
    }
    const ms = this.#nextMs(batch, answer.pollAfterMs);
    const receipt = receiptText(answer.receipt);
    const { journal } = this.a.deps;
    await withRetries(() => markStaged(journal, this.a.attempt, batch.id, jobIds, receipt, ms, writes));
    this.w.store.committed(writes);
    return this.#still(batch, 'staged', ms);
  }

  /** A question that fails says nothing about the jobs: the batch stays as it is, and shows why. */
  async #unanswered(batch: BatchRecord, code: string, retryAfterMs: number | null): Promise<WindowEnd> {
    const ms = this.#nextMs(batch, retryAfterMs);
    await withRetries(() => notePoll(this.a.deps.journal, this.a.attempt, batch.id, code, ms));
    return this.#still(batch, code, ms);
  }

  /** What an adapter that does not work like that has staged authorises nothing, and waits for a person. */
  #still(batch: BatchRecord, code: string, ms: number): WindowEnd {
    if (!this.#polls) return { kind: 'blocked', code, batch: batch.id };
    return stillStaged(batch, this.#pollDeadlineMs, code, ms);
  }

  get #polls(): boolean {
    return this.w.destination.capabilities.batchDelivery === 'asynchronous';
  }

  #nextMs(batch: BatchRecord, asked: number | null | undefined): number {
    return pollAfterMs(batch.polls + 1, asked, this.#pollDeadlineMs - batch.stagedForMs);
  }
}

function superseded(): JournalError {
  return new JournalError('fenced', 'RM001', 'rule 9: this attempt has been superseded');
}

/** What is proven by a look-up at any time: that the request arrived. */
const AFFIRMATIVE: readonly BatchOutcome['kind'][] = ['accepted', 'settled', 'staged'];

function receiptOf(batch: BatchRecord) {
  return batch.receipt === null ? null : JSON.parse(batch.receipt);
}
