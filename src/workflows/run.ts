/**
 * One logical run as the workflow sees it: steps that are repeated until they are done, waits that are durable and shown,
 * and endings that leave nothing unresolved behind.
 */

import { ActivityFailure } from '@temporalio/workflow';
import type { CloseArgs, GuardResult, Held, RunRef, StepResult } from '../activities/results.ts';
import { assertNever } from '../domain/assert-never.ts';
import type { MirrorResult, Waiting } from '../domain/messages.ts';
import { isSealed, type Phase, type RunCounts } from '../domain/run.ts';
import type { Control } from './control.ts';
import { misconfiguredInWords, planStale, rejectedInWords, unapprovedInWords } from './ending-words.ts';
import { type Cause, causeOf, Ending, fail } from './endings.ts';
import type { Parking } from './parking.ts';
import { close, deliver, finish, init, promote, release } from './proxies.ts';
import type { View } from './view.ts';
import { unresolvedAfter, type Wait, waitOf } from './waits.ts';
import { LONGEST_WINDOW_MS, windowMs } from './windows.ts';

/** What an activity is told where somebody wants staged work to be asked about at once. */
export type PollWish = ReturnType<Control['takePoll']>;
type StepCall = (windowMs: number, poll: PollWish) => Promise<StepResult>;

export class Run {
  #phase: Phase = 'init';

  constructor(
    readonly ref: RunRef,
    private readonly control: Control,
    private readonly parking: Parking,
    private readonly view: View,
    private readonly carryOn: () => Promise<void>,
  ) {}

  /** Repeats an activity until it is done, between windows, waits and pauses. @throws Ending */
  async step(phase: Phase, call: StepCall): Promise<void> {
    this.#enter(phase);
    for (let window = 0; ; window++) {
      await this.#mayGoOn();
      // Not before something has been done: an execution must be worth the second that a new one costs.
      if (window > 0) await this.carryOn();
      const heeded = this.control.messages;
      const result = await this.control.stoppable(() => call(windowMs(window), this.control.takePoll()));
      if (result === null) continue;
      if (result.kind !== 'held') this.parking.clear();
      this.view.count(result.counts);
      switch (result.kind) {
        case 'done':
          return;
        case 'held':
          await this.#park(result, heeded);
          break;
        case 'guard-rejected':
        case 'guard-expired':
          throw new Ending(result.kind, result.code);
        case 'more':
        case 'stopped':
          break;
        case 'wait':
        case 'pending':
        case 'blocked':
          await this.#waitFor(waitOf(result), heeded);
          break;
        case 'rejected':
          throw new Ending('rejected', result.code);
        case 'misconfigured':
          throw new Ending('misconfigured', result.code);
        default:
          // A worker of another release has answered: not to be asked again and again.
          return assertNever(result);
      }
    }
  }

  /** Asks the guard until it lets the run pass; resolves to how many removals were approved beforehand. @throws Ending */
  async judged(call: () => Promise<GuardResult>): Promise<number> {
    let approved = 0;
    await this.step('guard', async () => {
      const result = await call();
      switch (result.kind) {
        case 'passed':
          approved = result.approved;
          return { kind: 'done', counts: result.counts };
        case 'invalid':
          throw new Ending('invalid', result.code, result.message);
        case 'plan-stale':
          throw new Ending('plan-stale', 'run.plan-stale');
        default:
          return result;
      }
    });
    return approved;
  }

  /** Runs an activity that is done when it returns; `check` looks at what it says. @throws Ending */
  async once<T extends { readonly counts: RunCounts }>(
    phase: Phase,
    call: () => Promise<T>,
    check: (result: T) => void,
  ): Promise<void> {
    this.#enter(phase);
    let result: T | null = null;
    while (result === null) {
      await this.#mayGoOn();
      result = await this.control.stoppable(call);
    }
    this.view.count(result.counts);
    check(result);
  }

  /** The finish is accepted: an abort is too late, and so is a cancel. */
  async promoted(call: () => Promise<{ readonly counts: RunCounts }>): Promise<void> {
    this.#enter('promote');
    this.view.count((await call()).counts);
  }

  /** Runs the phases and turns whatever ends them into the end of the run. @throws ApplicationFailure */
  async guarded(phases: () => Promise<void>): Promise<MirrorResult> {
    return this.#toTheEnd(async () => {
      await phases();
      return this.#result('completed');
    });
  }

  /**
   * An extraction that was never sealed, or a generation that must not be resumed: closed, once nothing is unresolved.
   * Resolves to `null` where a fresh run may follow. @throws ApplicationFailure
   */
  async discard(phase: Phase, closing: CloseArgs['closing']): Promise<MirrorResult | null> {
    this.#phase = phase;
    return this.#toTheEnd(async () => {
      const closed = await this.#close(closing, null);
      switch (this.control.request) {
        case 'none':
          return null;
        case 'cancel':
          return this.#result(closed ? 'cancelled' : 'completed');
        case 'abort':
          return this.#result(closed ? 'aborted' : 'completed');
        default:
          return assertNever(this.control.request);
      }
    });
  }

  /** What ends the work may itself be ended: by a cancel while it waits, or by a journal that stays away. */
  async #toTheEnd<T>(work: () => Promise<T>): Promise<T | MirrorResult> {
    let next: () => Promise<T | MirrorResult> = work;
    for (;;) {
      try {
        return await next();
      } catch (error) {
        this.parking.clear();
        if (error instanceof Ending) next = () => this.#ended(error);
        else if (error instanceof ActivityFailure) next = () => this.#failed(causeOf(error));
        else throw error;
      }
    }
  }

  async #ended(ending: Ending): Promise<MirrorResult> {
    switch (ending.how) {
      case 'cancel':
        await this.#release('cancelled', null);
        return this.#result('cancelled');
      case 'abort':
        return this.#result((await this.#close('aborted', null)) ? 'aborted' : 'completed');
      case 'rejected':
        await this.#close('rejected', ending.code);
        this.view.ended('rejected');
        throw fail('rejected', ending.code, rejectedInWords(ending.code, this.view.counts));
      case 'guard-rejected':
      case 'guard-expired':
        await this.#close(ending.how, ending.code);
        this.view.ended(ending.how);
        throw fail('guard-held', `run.${ending.how}`, unapprovedInWords(ending, this.view.counts));
      case 'plan-stale':
        await this.#close('discarded', 'run.plan-stale');
        this.view.ended('refused');
        throw planStale();
      case 'invalid':
        await this.#close('invalid', ending.code);
        this.view.ended('invalid');
        throw fail('invalid', ending.code, ending.message);
      case 'misconfigured':
        await this.#release('failed', ending.code);
        this.view.ended('misconfigured');
        throw fail('invalid', ending.code, misconfiguredInWords(ending.code));
      default:
        return assertNever(ending.how);
    }
  }

  /** An activity failed for good. Before the seal nothing was sent, and bad data or settings end the run. */
  async #failed(cause: Cause): Promise<never> {
    if (cause.type === 'fenced') {
      throw fail('refused', cause.code, `${cause.message}: another execution has the run`);
    }
    const code = cause.code.slice(0, 80);
    if (cause.type === 'invalid' && !isSealed(this.#phase)) await this.#closeIfPossible('invalid', code);
    else await this.#release('failed', code);
    this.view.ended(cause.type);
    const type = cause.type === 'defect' ? 'invalid' : cause.type;
    throw fail(type, cause.code, cause.message);
  }

  /** A run that cannot be closed must not hide why it ended. */
  async #closeIfPossible(closing: CloseArgs['closing'], reason: string): Promise<void> {
    try {
      await this.#close(closing, reason);
    } catch (error) {
      if (!(error instanceof ActivityFailure)) throw error;
      await this.#release('failed', reason);
    }
  }

  /**
   * Closes the run once nothing of it is unresolved (rule 10). Resolves to false where its finish turned out to be
   * accepted: then it is promoted, and completes. @throws Ending where it must wait and somebody cancels: then the next
   * execution resolves and closes it. Only an abort outlives a cancel.
   */
  async #close(closing: CloseArgs['closing'], reason: string | null): Promise<boolean> {
    let heeded = this.control.messages;
    let last: StepResult | null = null;
    for (;;) {
      const result = await this.control.unlessCancelled(() => close({ ...this.ref, closing, reason }));
      if (result !== null) this.view.count(result.counts);
      if (result?.kind === 'closed') return true;
      if (result?.kind === 'too-late') {
        await this.promoted(() => promote(this.ref));
        return false;
      }
      // A step's wait counts only where something still has to be waited for.
      const wait = last === null ? null : unresolvedAfter(last);
      if (wait !== null) await this.#waitFor(wait, heeded);
      if (closing !== 'aborted' && this.control.request === 'cancel') throw new Ending('cancel', 'cancel');
      // The next execution comes to these two ends by itself; from the others it would take up the run.
      if (last !== null && (closing === 'aborted' || closing === 'rejected')) await this.carryOn();
      heeded = this.control.messages;
      last = await this.control.unlessCancelled(() => this.#resolve());
      if (last !== null) this.view.count(last.counts);
    }
  }

  /** Resolves what is open, and launches nothing new. */
  #resolve(): Promise<StepResult> {
    const ref = { ...this.ref, resolveOnly: true, ...this.control.takePoll() };
    switch (this.#phase) {
      case 'additions':
        return deliver({ ...ref, action: 'upsert', windowMs: LONGEST_WINDOW_MS });
      case 'removals':
        return deliver({ ...ref, action: 'remove', windowMs: LONGEST_WINDOW_MS });
      case 'finish':
        return finish(ref);
      default:
        return init(ref);
    }
  }

  /** A journal that is away must not hide why the run ended; whoever comes next asks Temporal about this holder. */
  async #release(how: 'cancelled' | 'failed', reason: string | null): Promise<void> {
    await release({ ...this.ref, how, reason }).catch(() => {});
  }

  #enter(phase: Phase): void {
    this.#phase = phase;
    this.view.enter(phase);
  }

  async #mayGoOn(): Promise<void> {
    if (this.control.paused && this.control.request === 'none') {
      const waiting: Waiting = { kind: 'paused', code: 'paused', untilMs: null, batch: null };
      await this.view.while(waiting, () => this.control.whilePaused());
    }
    if (this.control.request !== 'none') throw new Ending(this.control.request, this.control.request);
  }

  /** The question stands in the journal: here it is shown, until somebody answers, asks to look again, or the time is up. */
  async #park(question: Held, heeded: number): Promise<void> {
    const { code, deadlineMs } = this.parking.asks(this.ref.run, question);
    const waiting: Waiting = { kind: 'parked', code, untilMs: deadlineMs, batch: null };
    await this.view.while(waiting, () =>
      this.control.wait(question.leftMs, heeded, 'Wait for an answer to the guard'),
    );
  }

  async #waitFor({ kind, code, ms, batch, ageMs }: Wait, heeded: number): Promise<void> {
    const now = Date.now();
    const since = ageMs === null ? {} : { sinceMs: now - ageMs };
    const waiting: Waiting = { kind, code, untilMs: ms === null ? null : now + ms, batch, ...since };
    await this.view.while(waiting, () => this.control.wait(ms, heeded, `Wait: ${code}`));
  }

  #result(outcome: MirrorResult['outcome']): MirrorResult {
    this.view.ended(outcome);
    const abortTooLate = outcome === 'completed' && this.control.request === 'abort';
    return { outcome, runId: this.ref.run, counts: this.view.counts, abortTooLate };
  }
}
