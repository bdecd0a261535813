/**
 * What an answer means for its batch (rules 2, 3, 5 and 6): the outcome is written to the journal, and comes back as a
 * reason to end the window, or as none.
 */

import type { BatchOutcome } from '../../destinations/port.ts';
import { type Sequence, sequence } from '../../domain/ids.ts';
import { settleParts } from '../../journal/batch-parts.ts';
import {
  markNotApplied,
  markRefused,
  markStaged,
  markUnknown,
  type Rejection,
  type StoreWrites,
} from '../../journal/batches.ts';
import type { OpenWriter, RunAttempt } from '../attempt.ts';
import { checked } from './checked.ts';
import type { WindowEnd } from './ends.ts';
import type { Outgoing, RequestBuilder } from './outgoing.ts';
import { bounded, type Piece, piecesOf, type Settled, unappliedCode } from './parts.ts';
import { backoffMs, DIVIDED, receiptText, TOO_LARGE } from './policy.ts';
import { pollAfterMs } from './polling.ts';
import { withRetries } from './record.ts';
import type { Refusal, Rejections } from './rejections.ts';
import { Settlements } from './settlements.ts';

export class Recorder {
  readonly #settlements: Settlements;

  constructor(
    private readonly a: RunAttempt,
    private readonly w: OpenWriter,
    private readonly rejections: Rejections,
    private readonly builder: RequestBuilder,
  ) {
    this.#settlements = new Settlements(a.deps.journal, a.attempt);
  }

  /**
   * @param tries how often these operations, or these bytes, have been sent: what the wait grows with.
   * @returns why the window must end; `null` where everything was accepted, or rejected and the run goes on.
   * @throws JournalError
   */
  async record(
    outgoing: Outgoing,
    given: BatchOutcome,
    writes: StoreWrites,
    tries: number,
  ): Promise<WindowEnd | null> {
    const { journal } = this.a.deps;
    const { attempt } = this.a;
    const { id } = outgoing.draft;
    const outcome = checked(outgoing, given);
    switch (outcome.kind) {
      case 'accepted':
        return this.#settle(outgoing, outcome, writes);
      case 'settled':
        return this.#settled(outgoing, outcome, writes, tries);
      case 'staged':
        return this.#staged(outgoing, outcome, writes);
      case 'not-applied':
        return this.#notApplied(outgoing, outcome, tries);
      case 'misconfigured':
        await withRetries(() => markNotApplied(journal, attempt, id, outcome.code, 0));
        return { kind: 'misconfigured', code: outcome.code };
      case 'refused':
        return this.#refused(outgoing, outcome);
      case 'unknown':
        await withRetries(() => markUnknown(journal, attempt, id, outcome.code));
        if (this.w.destination.capabilities.recovery === 'manual') {
          return { kind: 'blocked', code: outcome.code, batch: id };
        }
        return { kind: 'wait', code: outcome.code, ms: backoffMs(tries), batch: id };
    }
  }

  /** Rule 5: not an acceptance. Of an adapter that does not work like that, nobody knows what it means. */
  async #staged(
    outgoing: Outgoing,
    outcome: Extract<BatchOutcome, { kind: 'staged' }>,
    writes: StoreWrites,
  ): Promise<WindowEnd> {
    const { id } = outgoing.draft;
    const deadlineMs = this.a.settings.batch.pollDeadlineMs;
    const ms = pollAfterMs(0, outcome.pollAfterMs, deadlineMs);
    const receipt = receiptText(outcome.receipt);
    const { journal } = this.a.deps;
    await withRetries(() => markStaged(journal, this.a.attempt, id, outcome.jobIds, receipt, ms, writes));
    this.w.store.committed(writes);
    if (this.w.destination.capabilities.batchDelivery === 'accepted') {
      return { kind: 'blocked', code: 'staged', batch: id };
    }
    return { kind: 'pending', code: 'staged', ms, batch: id, ageMs: 0 };
  }

  /** Rule 4: operations that were proven not applied go again, once those beside them are settled. */
  async #settled(
    outgoing: Outgoing,
    given: Settled,
    writes: StoreWrites,
    tries: number,
  ): Promise<WindowEnd | null> {
    const told = bounded(outgoing, given, this.w.destination.capabilities.visible === 'on_accept');
    const code = unappliedCode(told);
    if (code === null) return this.#settle(outgoing, told, writes);
    const pieces = piecesOf(this.builder, outgoing, told);
    if (pieces.length > 1) return this.#part(outgoing, told, pieces, code, writes);
    return this.#notApplied(
      outgoing,
      { kind: 'not-applied', code, retryAfterMs: null, tooLarge: false },
      tries,
    );
  }

  async #part(
    outgoing: Outgoing,
    told: Settled,
    pieces: readonly Piece[],
    code: string,
    writes: StoreWrites,
  ): Promise<WindowEnd | null> {
    const { id } = outgoing.draft;
    const rejections = rejectionsOf(outgoing, told);
    const ms = backoffMs(outgoing.sending);
    const settlement = { batch: id, receipt: receiptText(told.receipt), code, retryMs: ms };
    const { journal } = this.a.deps;
    await withRetries(() => settleParts(journal, this.a.attempt, settlement, pieces, rejections, writes));
    // The journal has kept the batch unknown, and nothing of what was written.
    if (outgoing.resent) return doubtful(outgoing, code);
    const unapplied = told.outcomes.filter(({ kind }) => kind === 'not-applied').length;
    this.#count(outgoing, rejections.length, unapplied);
    this.w.store.committed(writes);
    const [one] = rejections;
    if (one !== undefined && !this.rejections.goesOn) return { kind: 'rejected', code: one.code };
    return { kind: 'wait', code, ms, batch: id };
  }

  async #settle(
    outgoing: Outgoing,
    outcome: Extract<BatchOutcome, { kind: 'accepted' | 'settled' }>,
    writes: StoreWrites,
  ): Promise<WindowEnd | null> {
    const rejections = outcome.kind === 'settled' ? rejectionsOf(outgoing, outcome) : [];
    const [one] = rejections;
    const { id } = outgoing.draft;
    const settlement = { batch: id, receipt: receiptText(outcome.receipt) };
    await this.#settlements.settle(settlement, rejections, writes);
    // Whether it came at once or from a job: the journal has kept the batch unknown, and nothing of what was written.
    const decided = this.w.destination.capabilities.lastCopyDecides === true;
    if (outgoing.resent && one !== undefined && !decided) return doubtful(outgoing, one.code);
    this.#count(outgoing, rejections.length);
    this.w.store.committed(writes);
    return one === undefined || this.rejections.goesOn ? null : { kind: 'rejected', code: one.code };
  }

  /** Nothing was applied, and never will be. */
  async #refused(outgoing: Outgoing, refusal: Refusal): Promise<WindowEnd | null> {
    const { journal } = this.a.deps;
    const { attempt } = this.a;
    const { id } = outgoing.draft;
    const { code, reason } = refusal;
    const passes = this.rejections.passes(refusal, outgoing);
    if (passes && outgoing.request.operations.length === 1) return this.#offender(outgoing, code, reason);
    if (passes && this.rejections.takeDivision(outgoing)) {
      await withRetries(() => markNotApplied(journal, attempt, id, `${DIVIDED}:${code}`, 0));
      this.rejections.divide(outgoing);
      return null;
    }
    await withRetries(() => markRefused(journal, attempt, id, code, reason, passes));
    if (passes) this.#count(outgoing, outgoing.request.operations.length);
    if (passes) return null;
    return outgoing.resent ? doubtful(outgoing, code) : { kind: 'rejected', code };
  }

  /** A request of one member that was refused as a whole: it is that member who was. */
  async #offender(outgoing: Outgoing, code: string, reason: string): Promise<null> {
    const { draft, first } = outgoing;
    const settlement = { batch: draft.id, receipt: receiptText({ refused: code }) };
    await this.#settlements.settle(settlement, [{ sequence: first, code, reason }], new Map());
    this.#count(outgoing, 1);
    return null;
  }

  #count({ request }: Outgoing, rejected: number, unapplied = 0): void {
    const { deps, record } = this.a;
    const accepted = request.operations.length - rejected - unapplied;
    deps.metrics.members(record.mirror, request.action, accepted, rejected);
  }

  async #notApplied(
    outgoing: Outgoing,
    outcome: Extract<BatchOutcome, { kind: 'not-applied' }>,
    tries: number,
  ): Promise<WindowEnd | null> {
    const { journal } = this.a.deps;
    const { id } = outgoing.draft;
    if (outcome.tooLarge && !outgoing.resent && outgoing.request.operations.length === 1) {
      const words = 'one member alone is too large for the destination';
      if (this.rejections.goesOn) return this.#offender(outgoing, outcome.code, words);
      await withRetries(() => markRefused(journal, this.a.attempt, id, outcome.code, words));
      return { kind: 'rejected', code: outcome.code };
    }
    const asked = outcome.retryAfterMs ?? 0;
    // Halves are other requests: they wait no longer than the destination asks. A copy that was sent again is not halved,
    // since its refusal says nothing about the first: it stays unknown, and to send it once more would change nothing.
    const halves = outcome.tooLarge && !outgoing.resent;
    const ms = halves ? asked : Math.max(asked, backoffMs(tries));
    const code = outcome.tooLarge ? `${TOO_LARGE}:${outcome.code}` : outcome.code;
    await withRetries(() => markNotApplied(journal, this.a.attempt, id, code, ms));
    if (outcome.tooLarge && outgoing.resent) return doubtful(outgoing, code);
    return { kind: 'wait', code, ms, batch: id };
  }
}

/**
 * Rule 3: what the destination refuses of a copy that was sent again, it may have accepted of the first: the journal keeps
 * the batch unknown. To send it once more would only be refused once more: a person decides.
 */
function doubtful(outgoing: Outgoing, code: string): WindowEnd {
  return { kind: 'blocked', code, batch: outgoing.draft.id };
}

function rejectionsOf(outgoing: Outgoing, outcome: Settled): readonly Rejection[] {
  return outcome.outcomes.flatMap((o, i) => {
    const at: Sequence = sequence(outgoing.first + BigInt(i));
    return o.kind === 'rejected' ? [{ sequence: at, code: o.code, reason: o.reason }] : [];
  });
}
