/**
 * A window of delivery: as many batches as fit its time, several in flight, each journaled before it is sent and its
 * outcome written when it is known (rules 2 to 5). It stops launching on the first answer that is not an acceptance, on a
 * stop from outside, and at the end of its time; what is in flight is always waited for and recorded.
 */

import type { BatchOutcome } from '../../destinations/port.ts';
import { type BatchId, type Sequence, sequence } from '../../domain/ids.ts';
import type { Action, Operation } from '../../domain/request.ts';
import {
  type BatchRecord,
  lastPrepared,
  markNotApplied,
  markRefused,
  markResending,
  markSending,
  markStaged,
  markUnknown,
  openBatches,
  prepareBatches,
  type Rejection,
  retryBatch,
  type StoreWrites,
  settleBatch,
} from '../../journal/batches.ts';
import { DRAIN_MS, type OpenWriter, type RunAttempt } from '../attempt.ts';
import { type Outgoing, RequestBuilder } from './outgoing.ts';
import { OperationPages } from './pages.ts';
import { backoffMs, receiptText, SEND_DEADLINE_MS } from './policy.ts';
import { withRetries } from './record.ts';

/** Why a window ended. */
export type WindowEnd =
  | { readonly kind: 'done' }
  | { readonly kind: 'more' }
  | { readonly kind: 'stopped' }
  | { readonly kind: 'wait'; readonly code: string; readonly ms: number; readonly batch: BatchId }
  | { readonly kind: 'blocked'; readonly code: string; readonly batch: BatchId }
  | { readonly kind: 'rejected'; readonly code: string }
  | { readonly kind: 'misconfigured'; readonly code: string };

export interface WindowLimits {
  /** Milliseconds since the epoch after which nothing more is launched. */
  readonly until: number;
  /** Resolve what is open and launch nothing new. */
  readonly resolveOnly: boolean;
}

/** The more serious end wins where several requests in flight end a window. */
const GRAVITY: Readonly<Record<WindowEnd['kind'], number>> = {
  done: 0,
  more: 1,
  stopped: 2,
  wait: 3,
  misconfigured: 4,
  rejected: 5,
  blocked: 6,
};

export class DeliveryWindow {
  readonly #builder: RequestBuilder;
  readonly #flying = new Set<Promise<void>>();
  #end: WindowEnd | null = null;
  #crash: unknown = null;

  constructor(
    private readonly a: RunAttempt,
    private readonly w: OpenWriter,
    private readonly action: Action,
    private readonly limits: WindowLimits,
  ) {
    this.#builder = new RequestBuilder(a, w, action);
  }

  /** @throws JournalError and whatever is a bug; only after what was in flight has been recorded or given up. */
  async run(): Promise<WindowEnd> {
    try {
      await this.#resolveOpen();
      if (this.#end === null && !this.limits.resolveOnly) await this.#deliver();
    } catch (error) {
      this.#crash ??= error;
    }
    await this.#drain();
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
      else if (!this.limits.resolveOnly) this.#launch(await this.#builder.rebuild(batch));
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
    const ms = (batch.retryAt?.getTime() ?? 0) - Date.now();
    if (ms > 0) return this.#stopWith({ kind: 'wait', code: batch.reason ?? 'retry', ms, batch: batch.id });
    const pieces = await this.#builder.again(batch, batch.reason?.startsWith(TOO_LARGE) ?? false);
    await retryBatch(
      this.a.deps.journal,
      this.a.attempt,
      batch.id,
      pieces.map((p) => p.draft),
    );
    for (const piece of pieces) {
      await this.#roomInFlight();
      if (this.#mustStop()) return;
      this.#launch(piece);
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
      return this.#ask(outgoing, batch, () =>
        this.w.writer.poll(outgoing.request, batch.jobIds, receipt ?? {}),
      );
    }
    if (recovery === 'idempotent') {
      await markResending(this.a.deps.journal, this.a.attempt, batch.id, SEND_DEADLINE_MS);
    }
    await this.#ask(outgoing, batch, () => this.w.writer.reconcileBatch(outgoing.request, receipt));
  }

  async #ask(outgoing: Outgoing, batch: BatchRecord, call: () => Promise<BatchOutcome>): Promise<void> {
    const { value, writes } = await this.w.store.collect(() => answered(call));
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

  /** Prepares batches in small groups, so that little is left prepared when the window ends, and launches them. */
  async #send(batches: readonly Outgoing[]): Promise<void> {
    const group = Math.max(2, this.w.destination.limits.inFlight);
    for (let i = 0; i < batches.length && !this.#mustStop(); i += group) {
      const some = batches.slice(i, i + group);
      await prepareBatches(
        this.a.deps.journal,
        this.a.attempt,
        this.action,
        some.map((b) => b.draft),
      );
      for (const batch of some) {
        await this.#roomInFlight();
        if (this.#mustStop()) return;
        this.#launch(batch);
      }
    }
  }

  #launch(outgoing: Outgoing): void {
    const flight = this.#fly(outgoing)
      .catch((error: unknown) => {
        this.#crash ??= error;
      })
      .finally(() => this.#flying.delete(flight));
    this.#flying.add(flight);
  }

  async #fly(outgoing: Outgoing): Promise<void> {
    await markSending(this.a.deps.journal, this.a.attempt, outgoing.draft.id, SEND_DEADLINE_MS);
    const { writer, store } = this.w;
    const { value, writes } = await store.collect(() =>
      answered(() =>
        this.action === 'upsert' ? writer.upsert(outgoing.request) : writer.remove(outgoing.request),
      ),
    );
    await this.#record(outgoing, value, writes, outgoing.sending);
  }

  async #record(outgoing: Outgoing, given: BatchOutcome, writes: StoreWrites, tries: number): Promise<void> {
    const { journal } = this.a.deps;
    const { attempt } = this.a;
    const { id } = outgoing.draft;
    const outcome = checked(outgoing, given);
    switch (outcome.kind) {
      case 'accepted':
      case 'settled': {
        const rejections = outcome.kind === 'settled' ? rejectionsOf(outgoing, outcome) : [];
        await withRetries(() =>
          settleBatch(journal, attempt, id, receiptText(outcome.receipt), rejections, writes),
        );
        this.w.store.committed(writes);
        const [one] = rejections;
        if (one !== undefined) this.#stopWith({ kind: 'rejected', code: one.code });
        return;
      }
      case 'staged':
        await withRetries(() =>
          markStaged(journal, attempt, id, outcome.jobIds, receiptText(outcome.receipt), 0),
        );
        return this.#stopWith({ kind: 'blocked', code: 'staged', batch: id });
      case 'not-applied':
        return this.#notApplied(outgoing, outcome, tries);
      case 'misconfigured':
        await withRetries(() => markNotApplied(journal, attempt, id, outcome.code, 0));
        return this.#stopWith({ kind: 'misconfigured', code: outcome.code });
      case 'refused':
        await withRetries(() => markRefused(journal, attempt, id, outcome.code, outcome.reason));
        return this.#stopWith({ kind: 'rejected', code: outcome.code });
      case 'unknown':
        await withRetries(() => markUnknown(journal, attempt, id, outcome.code));
        if (this.w.destination.capabilities.recovery === 'manual') {
          return this.#stopWith({ kind: 'blocked', code: outcome.code, batch: id });
        }
        return this.#stopWith({ kind: 'wait', code: outcome.code, ms: backoffMs(tries), batch: id });
    }
  }

  async #notApplied(
    outgoing: Outgoing,
    outcome: Extract<BatchOutcome, { kind: 'not-applied' }>,
    tries: number,
  ): Promise<void> {
    const { journal } = this.a.deps;
    const { id } = outgoing.draft;
    if (outcome.tooLarge && outgoing.request.operations.length === 1) {
      await withRetries(() =>
        markRefused(journal, this.a.attempt, id, outcome.code, 'one member alone is too large'),
      );
      return this.#stopWith({ kind: 'rejected', code: outcome.code });
    }
    const code = outcome.tooLarge ? `${TOO_LARGE}:${outcome.code}` : outcome.code;
    const ms = outcome.tooLarge
      ? (outcome.retryAfterMs ?? 0)
      : Math.max(outcome.retryAfterMs ?? 0, backoffMs(tries));
    await withRetries(() => markNotApplied(journal, this.a.attempt, id, code, ms));
    this.#stopWith({ kind: 'wait', code, ms, batch: id });
  }

  #stopWith(end: WindowEnd): void {
    const now = this.#end;
    const graver = now === null || GRAVITY[end.kind] > GRAVITY[now.kind];
    // Of two waits the longer one: waking for the shorter would only find the other.
    const longer = now?.kind === 'wait' && end.kind === 'wait' && end.ms > now.ms;
    if (graver || longer) this.#end = end;
  }

  #mustStop(): boolean {
    if (this.a.stop.aborted) this.#stopWith({ kind: 'stopped' });
    else if (Date.now() >= this.limits.until) this.#stopWith({ kind: 'more' });
    return this.#end !== null || this.#crash !== null;
  }

  async #roomInFlight(): Promise<void> {
    while (this.#flying.size >= this.w.destination.limits.inFlight) await Promise.race(this.#flying);
  }

  async #landAll(): Promise<void> {
    while (this.#flying.size > 0) await Promise.race(this.#flying);
  }

  /** Requests in flight finish and are recorded; past the drain limit the rest is told to give up. */
  async #drain(): Promise<void> {
    let timer: NodeJS.Timeout | undefined;
    const startLimit = () => {
      timer ??= setTimeout(() => this.w.abandon(), DRAIN_MS);
    };
    if (this.a.stop.aborted) startLimit();
    this.a.stop.addEventListener('abort', startLimit, { once: true });
    try {
      await this.#landAll();
    } finally {
      clearTimeout(timer);
      this.a.stop.removeEventListener('abort', startLimit);
    }
  }
}

const TOO_LARGE = 'too-large';

/** A writer that throws has answered nothing: the outcome is unknown. */
async function answered(call: () => Promise<BatchOutcome>): Promise<BatchOutcome> {
  try {
    return await call();
  } catch {
    return { kind: 'unknown', code: 'adapter-threw' };
  }
}

/** An answer that does not fit its request accepts nothing. */
function checked(outgoing: Outgoing, outcome: BatchOutcome): BatchOutcome {
  if (outcome.kind === 'settled' && outcome.outcomes.length !== outgoing.request.operations.length) {
    return { kind: 'unknown', code: 'reply-does-not-match' };
  }
  if (outcome.kind === 'staged' && !outcome.jobIds.some((id) => id !== '')) {
    return { kind: 'unknown', code: 'reply-lacks-job-id' };
  }
  return outcome;
}

function rejectionsOf(
  outgoing: Outgoing,
  outcome: Extract<BatchOutcome, { kind: 'settled' }>,
): readonly Rejection[] {
  return outcome.outcomes.flatMap((o, i) => {
    const at: Sequence = sequence(outgoing.first + BigInt(i));
    return o.kind === 'rejected' ? [{ sequence: at, code: o.code, reason: o.reason }] : [];
  });
}
