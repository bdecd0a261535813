/** What people ask of an index: signals, and Temporal's own cancel, which counts as `stop`. */

import { CancellationScope, condition, defineQuery, defineSignal, setHandler } from '@temporalio/workflow';
import type { IndexCarried, IndexProgress } from '../domain/index-messages.ts';
import { untilStopped } from './stoppable.ts';

export const indexProgressQuery = defineQuery<IndexProgress>('progress');

export class IndexControl {
  paused: boolean;
  rebuild: boolean;
  stop = false;
  cancelled = false;
  #messages = 0;
  #underWay: CancellationScope | null = null;

  constructor(carried: IndexCarried | undefined) {
    this.paused = carried?.paused ?? false;
    this.rebuild = carried?.rebuild ?? false;
    const on = (name: string, heard: () => void) =>
      setHandler(defineSignal(name), () => {
        this.#messages += 1;
        heard();
      });
    on('pause', () => this.#halt(() => (this.paused = true)));
    on('rebuild', () => this.#halt(() => (this.rebuild = true)));
    on('stop', () => this.#halt(() => (this.stop = true)));
    on('resume', () => {
      this.paused = false;
    });
    on('wake', () => {});
    CancellationScope.current().cancelRequested.catch(() => {
      this.#messages += 1;
      this.cancelled = true;
      this.#halt(() => (this.stop = true));
    });
  }

  /** Grows with every message. Whoever is about to wait says which of them it has heeded. */
  get messages(): number {
    return this.#messages;
  }

  /** Waits for `ms` (`null`: for ever), or until there is a message after the first `heeded`. */
  async wait(ms: number | null, heeded: number, why: string): Promise<void> {
    const spoken = () => this.#messages > heeded;
    if (ms === null) await condition(spoken);
    else await condition(spoken, ms, { summary: why });
  }

  /** Runs an activity that a message may end between two pages; `null` where it was stopped without an answer. */
  async stoppable<T>(work: () => Promise<T>): Promise<T | null> {
    const scope = new CancellationScope({ cancellable: true });
    this.#underWay = scope;
    try {
      return await untilStopped(scope, work);
    } finally {
      this.#underWay = null;
    }
  }

  #halt(ask: () => void): void {
    ask();
    this.#underWay?.cancel();
  }
}
