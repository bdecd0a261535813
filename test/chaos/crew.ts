/** Two workers, each of which may be killed or frozen at any moment, and is replaced. */

import { setTimeout as sleep } from 'node:timers/promises';
import type { System } from '../support/system.ts';
import type { WorkerProcess } from '../support/worker-process.ts';

export class Crew {
  readonly #workers: (WorkerProcess | null)[];
  /** How many are frozen now, and when the last one woke up, ms since 1970. */
  frozen = 0;
  thawedAt = 0;

  constructor(
    private readonly system: System,
    private readonly size: number,
  ) {
    this.#workers = Array.from({ length: size }, () => null);
  }

  async man(): Promise<void> {
    for (let slot = 0; slot < this.size; slot += 1) await this.#replace(slot);
  }

  /** SIGKILL, and another one after a while. @returns false: there is nobody at the place */
  async kill(slot: number, idleMs: number): Promise<boolean> {
    const worker = this.#take(slot);
    if (worker === null) return false;
    await worker.kill();
    await sleep(idleMs);
    await this.#replace(slot);
    return true;
  }

  /** SIGSTOP; after a while SIGCONT, or the end. */
  async freeze(slot: number, ms: number, dies: boolean): Promise<boolean> {
    const worker = this.#take(slot);
    if (worker === null) return false;
    worker.freeze();
    this.frozen += 1;
    await sleep(ms);
    if (dies) await worker.kill();
    else worker.thaw();
    this.frozen -= 1;
    this.thawedAt = Date.now();
    if (dies) await this.#replace(slot);
    else this.#workers[slot] = worker;
    return true;
  }

  /** Whoever is at a place is nobody's to touch until he is back. */
  #take(slot: number): WorkerProcess | null {
    const worker = this.#workers[slot] ?? null;
    this.#workers[slot] = null;
    return worker;
  }

  /** A worker that finds no server ends; the next one may find it. */
  async #replace(slot: number): Promise<void> {
    for (let attempt = 1; ; attempt += 1) {
      try {
        this.#workers[slot] = await this.system.startWorker();
        return;
      } catch (error) {
        if (attempt === 20) throw error;
        await sleep(1_000);
      }
    }
  }
}
