/**
 * A window of delivery: as many batches as fit its time, several in flight, each journaled before it is sent and its
 * outcome written when it is known (rules 2 to 5). It stops launching on the first answer that is not an acceptance, or a
 * rejection that the run goes on after; on a stop from outside, and at the end of its time. What is in flight is always waited
 * for and recorded.
 */

import type { BatchOutcome } from '../../destinations/port.ts';
import type { BatchId } from '../../domain/ids.ts';
import type { Action, Operation } from '../../domain/request.ts';
import { type BatchRecord, openBatches } from '../../journal/batch-record.ts';
import { markSending, prepareSending, retryBatch, type StoreWrites } from '../../journal/batches.ts';
import { journalError } from '../../journal/errors.ts';
import { answered } from '../answered.ts';
import type { OpenWriter, RunAttempt } from '../attempt.ts';
import { checked } from './checked.ts';
import { DrainLimit } from './drain.ts';
import { graver, type WindowEnd } from './ends.ts';
import { type Outgoing, RequestBuilder } from './outgoing.ts';
import { OperationPages } from './pages.ts';
import { isHalved, mostStaged, sendDeadlineMs, UNRECORDED } from './policy.ts';
import { Reconciler } from './reconcile.ts';
import { Recorder } from './recorder.ts';
import { acceptsAll, Rejections } from './rejections.ts';
import { remaining } from './remaining.ts';
import { Clearance, markedOnce, SENT_TOO_LATE } from './sending.ts';

export interface WindowLimits {
  /** Reading of `performance.now()`, which nobody sets back, after which nothing more is launched. */
  readonly until: number;
  /** Resolve what is open and launch nothing new. */
  readonly resolveOnly: boolean;
  /** Ask about everything that is staged, whether or not its time has come. */
  readonly pollNow: boolean;
}

/** What was sent once, and proven not to have been applied. */
type Sent = Pick<BatchRecord, 'id' | 'first' | 'last' | 'sending'>;

export class DeliveryWindow {
  readonly #builder: RequestBuilder;
  readonly #recorder: Recorder;
  readonly #flying = new Set<Promise<void>>();
  readonly #recording = new Set<Promise<void>>();
  readonly #reconciler: Reconciler;
  readonly #deadlineMs: number;
  readonly #asynchronous: boolean;
  readonly #maxStaged: number;
  /** Batches that are staged now. */
  #staged = 0;
  /** An answer that ends the launching has come, and may still have to be written down. */
  #halting = false;
  #end: WindowEnd | null = null;
  #crash: unknown = null;

  constructor(
    private readonly a: RunAttempt,
    private readonly w: OpenWriter,
    private readonly action: Action,
    private readonly limits: WindowLimits,
    private readonly rejections = new Rejections({ kind: 'stop' }, 0),
  ) {
    this.#builder = new RequestBuilder(a, w, action);
    this.#recorder = new Recorder(a, w, rejections, this.#builder);
    this.#reconciler = new Reconciler(a, w, this.#builder, this.#recorder, limits.pollNow);
    this.#deadlineMs = sendDeadlineMs(w.destination.capabilities);
    this.#maxStaged = mostStaged(w.destination.capabilities);
    this.#asynchronous = this.#maxStaged < Infinity;
  }

  /** @throws JournalError and whatever is a bug; only after what was in flight has been recorded or given up. */
  async run(): Promise<WindowEnd> {
    const drain = new DrainLimit(this.a.stop, () => this.w.abandon());
    try {
      await this.#resolveOpen();
      if (this.#end === null && !this.limits.resolveOnly) {
        await this.#sendHalves();
        await this.#deliver();
        await this.#sendHalves();
      }
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
    this.#staged = open.filter((b) => b.state === 'staged').length;
    for (const batch of open.filter((b) => b.state !== 'not-applied')) {
      // Each once a round: one that waits, was refused or needs a person must not keep the others from being asked about.
      if (this.#isOver()) return;
      if (this.#mustLeave() && this.#reconciler.sends(batch)) continue;
      await this.#roomInFlight();
      if (batch.state === 'staged') this.#fly(() => this.#resolve(batch));
      else if (batch.state !== 'prepared') await this.#resolve(batch);
      else if (!this.limits.resolveOnly && !this.#mayNotSend())
        this.#launch(await this.#builder.rebuild(batch), null);
    }
    await this.#landAll();
    for (const batch of this.limits.resolveOnly ? [] : open.filter((b) => b.state === 'not-applied')) {
      if (this.#end !== null || this.#mustStop()) return;
      await this.#tryAgain(batch);
    }
    await this.#landAll();
  }

  async #resolve(batch: BatchRecord): Promise<void> {
    const end = await this.#reconciler.resolve(batch);
    if (end !== null) this.#stopWith(end);
    else if (batch.state === 'staged') this.#staged -= 1;
  }

  /** Rule 4: proven not applied, so its operations may be prepared again, when their time has come. */
  async #tryAgain(batch: BatchRecord): Promise<void> {
    const ms = batch.retryInMs;
    if (ms > 0) return this.#stopWith({ kind: 'wait', code: batch.reason ?? 'retry', ms, batch: batch.id });
    await this.#sendAgain(batch, isHalved(batch.reason));
  }

  async #sendAgain(batch: Sent, halve: boolean): Promise<void> {
    const pieces = await this.#builder.again(batch, halve);
    const drafts = pieces.map((p) => p.draft);
    if (!(await this.#mayPlan(() => retryBatch(this.a.deps.journal, this.a.attempt, batch.id, drafts))))
      return;
    for (const piece of pieces) {
      await this.#roomInFlight();
      if (this.#mayNotSend()) return;
      this.#launch(piece, null);
    }
  }

  /** Requests that were refused as a whole go again in halves, and the halves, until nobody but those to blame is left. */
  async #sendHalves(): Promise<void> {
    for (;;) {
      const refused = this.rejections.next();
      if (refused === null && this.#flying.size + this.#recording.size === 0) return;
      if (refused === null) await Promise.race([...this.#flying, ...this.#recording]);
      else if (this.#mayNotSend()) return;
      else {
        const { draft, first, sending } = refused;
        await this.#sendAgain({ id: draft.id, first, last: draft.last, sending }, true);
      }
    }
  }

  /** New batches, from where the run's batches end. */
  async #deliver(): Promise<void> {
    const { from, end } = await remaining(this.a, this.action);
    const { rows, inFlight } = this.w.destination.limits;
    const pages = new OperationPages(this.a, this.action, from, end, rows * Math.max(4, inFlight));

    let waiting: Operation[] = [];
    let first = from;
    while (!this.#mayNotSend() && (waiting.length > 0 || !pages.exhausted)) {
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
      if (this.#mayNotSend()) return;
      const room = Math.min(inFlight, this.#maxStaged - this.#staged) - this.#flying.size;
      const some = batches.slice(sent, sent + room);
      const drafts = some.map((b) => b.draft);
      const { journal } = this.a.deps;
      const clearance = new Clearance();
      const prepare = () => prepareSending(journal, this.a.attempt, this.action, drafts, this.#deadlineMs);
      const ids = drafts.map((draft) => draft.id);
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
    this.#fly(() => this.#sendOne(outgoing, clearance));
  }

  #fly(work: () => Promise<void>): void {
    const flight = work()
      .catch((error: unknown) => {
        this.#crash ??= error;
      })
      .finally(() => this.#flying.delete(flight));
    this.#flying.add(flight);
  }

  /** Ends when the answer is there: writing it down no longer takes up room at the destination. */
  async #sendOne(outgoing: Outgoing, marked: Clearance | null): Promise<void> {
    const clearance = marked ?? new Clearance();
    if (marked === null) {
      const { id } = outgoing.draft;
      await this.#marked([id], () => markSending(this.a.deps.journal, this.a.attempt, id, this.#deadlineMs));
    }
    const { value, writes } = await this.w.store.collect(() =>
      answered(() => this.#call(outgoing, clearance)),
    );
    const outcome = checked(outgoing, value);
    const isStaged = outcome.kind === 'staged' && this.#asynchronous;
    if (isStaged) this.#staged += 1;
    const recording = this.#record(outgoing, outcome, writes, outgoing.sending)
      .catch((error: unknown) => {
        this.#crash ??= error;
      })
      .finally(() => this.#recording.delete(recording));
    this.#recording.add(recording);
    if (isStaged || acceptsAll(outcome) || this.rejections.passes(outcome, outgoing)) return;
    // Rule 5: whatever is no acceptance, and not passed over, stops the launching now, and not when the journal has taken it down.
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

  /** Rule 5: what was staged by this very attempt does not stop it. */
  #stopWith(end: WindowEnd): void {
    this.#halting ||= end.kind !== 'pending';
    this.#end = graver(this.#end, end);
  }

  /** Whether nothing more is launched, or, below, even sent again, or even asked. */
  #mustStop(): boolean {
    return this.#mustLeave() || this.#halting;
  }

  #mustLeave(): boolean {
    return this.#isOver() || this.#end?.kind === 'rejected' || this.#end?.kind === 'misconfigured';
  }

  #isOver(): boolean {
    const outOfTime = performance.now() >= this.limits.until;
    if (this.a.stop.aborted) this.#stopWith({ kind: 'stopped' });
    else if (outOfTime) this.#stopWith({ kind: 'more' });
    return outOfTime || this.a.stop.aborted || this.#crash !== null;
  }

  /** Nor does it send more than the provider keeps jobs for. */
  #mayNotSend(): boolean {
    return this.#mustStop() || this.#staged >= this.#maxStaged;
  }

  /** Room at the destination, and not too many receipts that wait for the journal. */
  async #roomInFlight(): Promise<void> {
    const { inFlight } = this.w.destination.limits;
    const isFull = () =>
      this.#flying.size >= inFlight ||
      (this.#flying.size > 0 && this.#flying.size + this.#staged >= this.#maxStaged);
    while (isFull()) await Promise.race(this.#flying);
    while (this.#recording.size >= inFlight * UNRECORDED) await Promise.race(this.#recording);
  }

  async #landAll(): Promise<void> {
    while (this.#flying.size + this.#recording.size > 0) {
      await Promise.race([...this.#flying, ...this.#recording]);
    }
  }
}
