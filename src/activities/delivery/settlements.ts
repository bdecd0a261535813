/**
 * Settles batches in groups: receipts that arrive while a commit is under way share the next one. A commit waits for the
 * disk and holds the log's head, so that a fast destination is bound by how many there are.
 */

import {
  type Rejection,
  type Settlement,
  type StoreWrites,
  settleBatch,
  settleBatches,
} from '../../journal/batches.ts';
import { journalError } from '../../journal/errors.ts';
import type { Attempt, JournalPool } from '../../journal/runs.ts';
import { withRetries } from './record.ts';

/** Receipts in one transaction at most. */
const GROUP = 16;

interface Waiting {
  readonly settlement: Settlement;
  resolve(): void;
  reject(error: unknown): void;
}

export class Settlements {
  readonly #waiting: Waiting[] = [];
  #busy = false;

  constructor(
    private readonly journal: JournalPool,
    private readonly attempt: Attempt,
  ) {}

  /** Resolves when the receipt is committed. @throws JournalError */
  async settle(settlement: Settlement, rejections: readonly Rejection[], store: StoreWrites): Promise<void> {
    // What has more than a receipt commits by itself.
    if (rejections.length > 0 || store.size > 0) return this.#alone(settlement, rejections, store);
    await new Promise<void>((resolve, reject) => {
      this.#waiting.push({ settlement, resolve, reject });
      void this.#flush();
    });
  }

  #alone(
    { batch, receipt }: Settlement,
    rejections: readonly Rejection[],
    store: StoreWrites,
  ): Promise<void> {
    return withRetries(() => settleBatch(this.journal, this.attempt, batch, receipt, rejections, store));
  }

  async #flush(): Promise<void> {
    if (this.#busy) return;
    this.#busy = true;
    while (this.#waiting.length > 0) {
      const group = this.#waiting.splice(0, GROUP);
      const settlements = group.map((w) => w.settlement);
      try {
        await withRetries(() => settleBatches(this.journal, this.attempt, settlements));
        for (const w of group) w.resolve();
      } catch (error) {
        // A journal that is away is away for each of them: the batches are found in `sending` later.
        if (journalError(error).kind === 'unavailable') for (const w of group) w.reject(error);
        else await this.#oneByOne(group);
      }
    }
    this.#busy = false;
  }

  /** One that the journal refuses must not take the receipts of the others with it. */
  async #oneByOne(group: readonly Waiting[]): Promise<void> {
    for (const w of group) await this.#alone(w.settlement, [], new Map()).then(w.resolve, w.reject);
  }
}
