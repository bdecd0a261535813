/**
 * A window of delivery: as many batches as fit its time, several in flight, each journaled before it is sent and its
 * outcome written when it is known (rules 2 to 5). It stops launching on the first answer that is not an acceptance, on a
 * stop from outside, and at the end of its time; what is in flight is always waited for and recorded.
 */

import type { BatchOutcome } from '../../destinations/port.ts';
import type { BatchId } from '../../domain/ids.ts';
import type { Action, Operation } from '../../domain/request.ts';
import { type BatchRecord, lastPrepared, openBatches } from '../../journal/batch-record.ts';
import {
  markResending,
  markSending,
  prepareSending,
  retryBatch,
  type StoreWrites,
} from '../../journal/batches.ts';
import { journalError } from '../../journal/errors.ts';
import { answered } from '../answered.ts';
import type { OpenWriter, RunAttempt } from '../attempt.ts';
import { DrainLimit } from './drain.ts';
import { graver, type WindowEnd } from './ends.ts';
import { type Outgoing, RequestBuilder } from './outgoing.ts';
import { OperationPages } from './pages.ts';
import { sendDeadlineMs, TOO_LARGE } from './policy.ts';
import { Recorder } from './recorder.ts';
import { Clearance, markedOnce, SENT_TOO_LATE } from './sending.ts';

export interface WindowLimits {
  /** Reading of `performance.now()`, which nobody sets back, after which nothing more is launched. */
  readonly until: number;
  /** Resolve what is open and launch nothing new. */
  readonly resolveOnly: boolean;
}

/** Receipts waiting for the journal, at most, for each request in flight. */
const UNRECORDED = 4;

export class DeliveryWindow {
  readonly #builder: RequestBuilder;
  readonly #recorder: Recorder;
  readonly #flying = new Set<Promise<void>>();
  readonly #recording = new Set<Promise<void>>();
  readonly #deadlineMs: number;
  /** An answer that ends the window is being written down. */
  #halting = false;
  #end: WindowEnd | null = null;
  #crash: unknown = null;

  constructor(
    private readonly a: RunAttempt,
    private readonly w: OpenWriter,
    private readonly action: Action,
    private readonly limits: WindowLimits,
  ) {
    this.#builder = new RequestBuilder(a, w, action);
    this.#recorder = new Recorder(a, w);
    this.#deadlineMs = sendDeadlineMs(w.destination.capabilities);
  }

  /** @throws JournalError and whatever is a bug; only after what was in flight has been recorded or given up. */
  async run(): Promise<WindowEnd> {
    const drain = new DrainLimit(this.a.stop, () => this.w.abandon());
    try {
      await this.#resolveOpen();
      if (this.#end === null && !this.limits.resolveOnly) await this.#deliver();
    } catch (error) {
      this.#crash ??= error;
    }
    await this.#landAll();
    drain.end();
    if (this.#crash !== null) throw this.#crash;
    return this.#end ?? { kind: 'done' };
  }

  /** Rule 5: what an earlier attempt left open comes first; nothing is planned until none of it is left. */
  async #resolveOpen(): Promise<void> {
    const open = await openBatches(this.a.deps.journal, this.a.attempt);
    for (const batch of open.filter((b) => b.state !== 'not-applied')) {
      if (this.#mustStop()) return;
      await this.#roomInFlight();
      if (batch.state !== 'prepared') await this.#reconcile(batch);
      else if (!this.limits.resolveOnly) this.#launch(await this.#builder.rebuild(batch), null);
    }
    await this.#landAll();
    for (const batch of this.limits.resolveOnly ? [] : open.filter((b) => b.state === 'not-applied')) {
      if (this.#mustStop()) return;
      await this.#tryAgain(batch);
    }
    await this.#landAll();
  }

  /** Rule 4: proven not applied, so its operations may be prepared again, when their time has come. */
  async #tryAgain(batch: BatchRecord): Promise<void> {
    const ms = batch.retryInMs;
    if (ms > 0) return this.#stopWith({ kind: 'wait', code: batch.reason ?? 'retry', ms, batch: batch.id });
    const pieces = await this.#builder.again(batch, batch.reason?.startsWith(TOO_LARGE) ?? false);
    const drafts = pieces.map((p) => p.draft);
    if (!(await this.#mayPlan(() => retryBatch(this.a.deps.journal, this.a.attempt, batch.id, drafts))))
      return;
    for (const piece of pieces) {
      await this.#roomInFlight();
      if (this.#mustStop()) return;
      this.#launch(piece, null);
    }
  }

  /** Rule 3: an unknown batch leaves that state by reconciliation only. */
  async #reconcile(batch: BatchRecord): Promise<void> {
    const { recovery } = this.w.destination.capabilities;
    if (batch.state === 'unknown' && recovery === 'manual') {
      return this.#stopWith({ kind: 'blocked', code: batch.reason ?? 'cannot-be-verified', batch: batch.id });
    }
    const outgoing = await this.#builder.rebuild(batch);
    const receipt = batch.receipt === null ? null : JSON.parse(batch.receipt);
    if (batch.state === 'staged') {
      return this.#ask(outgoing, batch, async () => {
        const answer = await this.w.writer.poll(
          outgoing.request,
          batch.jobIds,
          receipt ?? {},
          batch.progress,
        );
        return answer.kind === 'missing' ? { kind: 'unknown', code: answer.code } : answer;
      });
    }
    const resent = outgoing.resent || recovery === 'idempotent';
    const clearance = new Clearance();
    if (recovery === 'idempotent') {
      await markResending(this.a.deps.journal, this.a.attempt, batch.id, this.#deadlineMs);
    }
    await this.#ask({ ...outgoing, resent }, batch, () =>
      clearance.tooLate
        ? Promise.resolve({ kind: 'unknown', code: SENT_TOO_LATE })
        : this.w.writer.reconcileBatch(outgoing.request, receipt, batch.progress),
    );
  }

  async #ask(outgoing: Outgoing, batch: BatchRecord, call: () => Promise<BatchOutcome>): Promise<void> {
    const { value, writes } = await this.w.store.collect(() => answered(call));
    // Rule 3: an absence that is seen before the send deadline proves nothing.
    const early = batch.deadlineInMs;
    if (batch.state === 'unknown' && early > 0 && this.w.destination.capabilities.recovery === 'lookup') {
      if (value.kind !== 'accepted' && value.kind !== 'settled') {
        return this.#stopWith({ kind: 'wait', code: 'before-send-deadline', ms: early, batch: batch.id });
      }
    }
    // A poll or a look-up that fails says nothing about the request: the batch stays as it is.
    if (batch.state === 'staged' && value.kind === 'unknown') {
      return this.#stopWith({ kind: 'blocked', code: value.code, batch: batch.id });
    }
    await this.#record(outgoing, value, writes, batch.resends + 1);
    if (value.kind === 'unknown' && this.w.destination.capabilities.recovery === 'lookup') {
      this.#stopWith({ kind: 'blocked', code: value.code, batch: batch.id });
    }
  }

  /** New batches, from where the run's batches end. */
  async #deliver(): Promise<void> {
    const { journal } = this.a.deps;
    const { firstSequence, additionsEnd, removalsEnd } = this.a.record;
    if (firstSequence === null || additionsEnd === null) throw new Error('rule 1: the run has no plan');
    const end = this.action === 'upsert' ? additionsEnd : removalsEnd;
    if (end === null) throw new Error('rule 1: no removal is planned yet');
    const last = await lastPrepared(journal, this.a.attempt, this.action);
    const from = last === null ? (this.action === 'upsert' ? firstSequence : additionsEnd + 1n) : last + 1n;
    const { rows, inFlight } = this.w.destination.limits;
    const pages = new OperationPages(this.a, this.action, from, end, rows * Math.max(4, inFlight));

    let waiting: Operation[] = [];
    let first = from;
    while (!this.#mustStop() && (waiting.length > 0 || !pages.exhausted)) {
      const page = await pages.next();
      waiting = [...waiting, ...page.map((op) => this.#builder.operation(op, 1))];
      const { batches, taken } = this.#builder.cut(waiting, first, 1, pages.exhausted);
      waiting = waiting.slice(taken);
      first += BigInt(taken);
      await this.#send(batches);
    }
  }

  /** Makes as many batches durable as there is room for in flight, in one commit, and lets them go (rules 2 and 3). */
  async #send(batches: readonly Outgoing[]): Promise<void> {
    const { inFlight } = this.w.destination.limits;
    for (let sent = 0; sent < batches.length; ) {
      await this.#roomInFlight();
      if (this.#mustStop()) return;
      const some = batches.slice(sent, sent + inFlight - this.#flying.size);
      const drafts = some.map((b) => b.draft);
      const ids = drafts.map((draft) => draft.id);
      const { journal } = this.a.deps;
      const clearance = new Clearance();
      const prepare = () => prepareSending(journal, this.a.attempt, this.action, drafts, this.#deadlineMs);
      if (!(await this.#mayPlan(() => this.#marked(ids, prepare)))) return;
      for (const batch of some) this.#launch(batch, clearance);
      sent += some.length;
    }
  }

  /**
   * Plans requests. The answer to another one may have come meanwhile and be in the journal already, which then plans
   * nothing more (rule 5): false, and the window ends as that answer says.
   */
  async #mayPlan(plan: () => Promise<void>): Promise<boolean> {
    try {
      await plan();
      return true;
    } catch (error) {
      if (this.#halting && journalError(error).kind === 'rule') return false;
      throw error;
    }
  }

  /** `clearance`: of a request that is marked as sending already. */
  #launch(outgoing: Outgoing, clearance: Clearance | null): void {
    const flight = this.#fly(outgoing, clearance)
      .catch((error: unknown) => {
        this.#crash ??= error;
      })
      .finally(() => this.#flying.delete(flight));
    this.#flying.add(flight);
  }

  /** Ends when the answer is there: writing it down no longer takes up room at the destination. */
  async #fly(outgoing: Outgoing, marked: Clearance | null): Promise<void> {
    const clearance = marked ?? new Clearance();
    if (marked === null) {
      const { id } = outgoing.draft;
      await this.#marked([id], () => markSending(this.a.deps.journal, this.a.attempt, id, this.#deadlineMs));
    }
    const { value, writes } = await this.w.store.collect(() =>
      answered(() => this.#call(outgoing, clearance)),
    );
    const recording = this.#record(outgoing, value, writes, outgoing.sending)
      .catch((error: unknown) => {
        this.#crash ??= error;
      })
      .finally(() => this.#recording.delete(recording));
    this.#recording.add(recording);
    if (acceptsAll(value)) return;
    // Rule 5: whatever is no acceptance stops the launching now, and not when the journal has taken it down.
    this.#halting = true;
    await recording;
  }

  /** Held back too long, it is not sent at all: of a first sending that proves that nothing was applied. */
  async #call({ request }: Outgoing, clearance: Clearance): Promise<BatchOutcome> {
    if (clearance.tooLate)
      return { kind: 'not-applied', code: SENT_TOO_LATE, retryAfterMs: null, tooLarge: false };
    const { writer } = this.w;
    return this.action === 'upsert' ? writer.upsert(request) : writer.remove(request);
  }

  #marked(ids: readonly BatchId[], commit: () => Promise<void>): Promise<void> {
    return markedOnce(this.a.deps.journal, this.a.attempt, ids, commit);
  }

  async #record(outgoing: Outgoing, given: BatchOutcome, writes: StoreWrites, tries: number): Promise<void> {
    const end = await this.#recorder.record(outgoing, given, writes, tries);
    if (end !== null) this.#stopWith(end);
  }

  #stopWith(end: WindowEnd): void {
    this.#end = graver(this.#end, end);
  }

  #mustStop(): boolean {
    if (this.a.stop.aborted) this.#stopWith({ kind: 'stopped' });
    else if (performance.now() >= this.limits.until) this.#stopWith({ kind: 'more' });
    return this.#halting || this.#end !== null || this.#crash !== null;
  }

  /** Room at the destination, and not too many receipts that wait for the journal. */
  async #roomInFlight(): Promise<void> {
    const { inFlight } = this.w.destination.limits;
    while (this.#flying.size >= inFlight) await Promise.race(this.#flying);
    while (this.#recording.size >= inFlight * UNRECORDED) await Promise.race(this.#recording);
  }

  async #landAll(): Promise<void> {
    while (this.#flying.size + this.#recording.size > 0) {
      await Promise.race([...this.#flying, ...this.#recording]);
    }
  }
}

function acceptsAll(outcome: BatchOutcome): boolean {
  if (outcome.kind === 'settled') return outcome.outcomes.every((one) => one.kind === 'accepted');
  return outcome.kind === 'accepted';
}
