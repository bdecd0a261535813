/**
 * What people ask of a run (design.md section 4, Control): signals, and Temporal's own cancel, which counts as `cancel`.
 * All of them stop the launching of requests; an activity under way is told, and waited for.
 */

import { CancellationScope, condition, setHandler } from '@temporalio/workflow';
import type { Carried } from '../domain/messages.ts';
import { abortSignal, cancelSignal, lookSignal, pauseSignal, pollSignal, resumeSignal } from './messages.ts';
import { untilStopped } from './stoppable.ts';

/** An activity under way, and who may stop it. */
interface Stoppable {
  readonly by: 'everybody' | 'cancel';
  readonly scope: CancellationScope;
}

export class Control {
  paused: boolean;
  request: 'none' | 'cancel' | 'abort';
  /** Temporal itself was asked to cancel this execution, so that it must end as cancelled. */
  cancelledByTemporal = false;
  /** Somebody wants staged work to be asked about at once. */
  pollAsked: boolean;
  #messages = 0;
  #underWay: Stoppable | null = null;

  constructor(carried: Carried | undefined) {
    this.paused = carried?.paused ?? false;
    this.request = carried?.control ?? 'none';
    this.pollAsked = carried?.poll ?? false;
    setHandler(cancelSignal, () => this.#stop('cancel'));
    setHandler(abortSignal, () => this.#stop('abort'));
    setHandler(pauseSignal, () => {
      this.#messages += 1;
      this.paused = true;
      this.#tell('pause');
      this.heard();
    });
    setHandler(resumeSignal, () => {
      this.#messages += 1;
      this.paused = false;
      this.heard();
    });
    setHandler(pollSignal, () => {
      this.#messages += 1;
      this.pollAsked = true;
      this.heard();
    });
    setHandler(lookSignal, () => this.look());
    CancellationScope.current().cancelRequested.catch(() => {
      this.cancelledByTemporal = true;
      this.#stop('cancel');
    });
  }

  /** Grows with every message. Whoever is about to wait says which of them it has heeded. */
  get messages(): number {
    return this.#messages;
  }

  /** Something stands in the journal: whoever waits looks again. Launching is none of its business. */
  look(): void {
    this.#messages += 1;
    this.heard();
  }

  /** Called whenever somebody has said something: what is shown may have changed. */
  heard: () => void = () => {};

  /** Whether an activity was told to stop and is still finishing what it has in flight. */
  get draining(): boolean {
    return this.#underWay?.scope.consideredCancelled ?? false;
  }

  /** Whether nothing may be launched now. */
  get stopping(): boolean {
    return this.paused || this.request !== 'none';
  }

  /**
   * Runs an activity that is told to stop as soon as somebody asks for it, and waits for what it then says. `null` where
   * it never began, or was stopped without an answer.
   */
  async stoppable<T>(work: () => Promise<T>): Promise<T | null> {
    return this.stopping ? null : this.#run('everybody', work);
  }

  /** What an activity is told of a wish to poll at once: it is told once. */
  takePoll(): { readonly pollNow?: true } {
    if (!this.pollAsked) return {};
    this.pollAsked = false;
    return { pollNow: true };
  }

  /** Runs an activity that only a cancel that comes meanwhile may stop; `null` where it did. */
  async unlessCancelled<T>(work: () => Promise<T>): Promise<T | null> {
    return this.#run('cancel', work);
  }

  /** Waits for `ms` (`null`: for ever), or until there is a message after the first `heeded`. `why`: for the UI's history. */
  async wait(ms: number | null, heeded: number, why: string): Promise<void> {
    const spoken = () => this.#messages > heeded;
    if (ms === null) await condition(spoken);
    else await condition(spoken, Math.max(1, Math.ceil(ms)), { summary: why });
  }

  /** Waits while paused; a cancel or an abort ends the pause. */
  async whilePaused(): Promise<void> {
    await condition(() => !this.paused || this.request !== 'none');
  }

  async #run<T>(by: Stoppable['by'], work: () => Promise<T>): Promise<T | null> {
    const scope = new CancellationScope({ cancellable: true });
    this.#underWay = { by, scope };
    try {
      return await untilStopped(scope, work);
    } finally {
      this.#underWay = null;
    }
  }

  #stop(request: 'cancel' | 'abort'): void {
    this.#messages += 1;
    // An abort outlives a cancel that comes after it.
    if (this.request !== 'abort') this.request = request;
    this.#tell(request);
    this.heard();
  }

  #tell(message: 'cancel' | 'abort' | 'pause'): void {
    if (this.#underWay?.by === 'everybody' || this.#underWay?.by === message) this.#underWay.scope.cancel();
  }
}
