/**
 * What people ask of a run (design.md section 4, Control): signals, and Temporal's own cancel, which counts as `cancel`.
 * All of them stop the launching of requests; an activity under way is told, and waited for.
 */

import { CancellationScope, condition, isCancellation, setHandler } from '@temporalio/workflow';
import type { Carried } from '../domain/messages.ts';
import { abortSignal, cancelSignal, pauseSignal, resumeSignal } from './messages.ts';

export class Control {
  paused: boolean;
  request: 'none' | 'cancel' | 'abort';
  /** Temporal itself was asked to cancel this execution, so that it must end as cancelled. */
  cancelledByTemporal = false;
  /** Grows with every message: whoever waits looks again. */
  #messages = 0;
  #scope: CancellationScope | null = null;

  constructor(carried: Carried | undefined) {
    this.paused = carried?.paused ?? false;
    this.request = carried?.control ?? 'none';
    setHandler(cancelSignal, () => this.#stop('cancel'));
    setHandler(abortSignal, () => this.#stop('abort'));
    setHandler(pauseSignal, () => {
      this.#messages += 1;
      this.paused = true;
      this.#scope?.cancel();
    });
    setHandler(resumeSignal, () => {
      this.#messages += 1;
      this.paused = false;
    });
    CancellationScope.current().cancelRequested.catch(() => {
      this.cancelledByTemporal = true;
      this.#stop('cancel');
    });
  }

  /** Whether nothing may be launched now. */
  get stopping(): boolean {
    return this.paused || this.request !== 'none';
  }

  /**
   * Runs an activity that is told to stop as soon as somebody asks for it, and waits for what it then says. `null` where
   * it never began.
   */
  async stoppable<T>(work: () => Promise<T>): Promise<T | null> {
    if (this.stopping) return null;
    const scope = new CancellationScope({ cancellable: true });
    this.#scope = scope;
    try {
      return await scope.run(work);
    } catch (error) {
      if (isCancellation(error)) return null;
      throw error;
    } finally {
      this.#scope = null;
    }
  }

  /** Waits for `ms` (`null`: for ever), or until the next message. */
  async wait(ms: number | null): Promise<void> {
    const seen = this.#messages;
    const spoken = () => this.#messages > seen;
    if (ms === null) await condition(spoken);
    else await condition(spoken, Math.max(1, Math.ceil(ms)));
  }

  /** Waits while paused; a cancel or an abort ends the pause. */
  async whilePaused(): Promise<void> {
    await condition(() => !this.paused || this.request !== 'none');
  }

  #stop(request: 'cancel' | 'abort'): void {
    this.#messages += 1;
    // An abort outlives a cancel that comes after it.
    if (this.request !== 'abort') this.request = request;
    this.#scope?.cancel();
  }
}
