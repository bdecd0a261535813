/**
 * Rows that break a rule: the run fails before anything is sent, and says which rule, how many rows break it, and by which
 * key hashes the first of them can be found (design.md section 10). So the source is read to its end all the same.
 */

import { FailureTally } from './failure-tally.ts';

export class RowFailures {
  readonly #tally = new FailureTally((failure, first) => failure.code === first.code);

  get any(): boolean {
    return this.#tally.any;
  }

  /** @throws what is not about a row's data, unchanged. */
  add(error: unknown): void {
    this.#tally.add(error, ({ details: { keyHash } }) => (typeof keyHash === 'string' ? keyHash : null));
  }

  /** @throws RetlError of the first failure, with the counts of all; does nothing where there was none. */
  throwIfAny(): void {
    this.#tally.throwIfAny((keyHashes) => (keyHashes.length > 0 ? { keyHashes } : {}));
  }
}
