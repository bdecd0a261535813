/**
 * Rows that break a rule: the run fails before anything is sent, and says which rule, how many rows break it, and by which
 * key hashes the first of them can be found (design.md section 10). So the source is read to its end all the same.
 */

import { RetlError } from '../domain/errors.ts';

const KEYS_NAMED = 10;

export class RowFailures {
  #first: RetlError | null = null;
  #same = 0;
  #others = 0;
  readonly #keys: string[] = [];

  get any(): boolean {
    return this.#first !== null;
  }

  /** @throws what is not about a row's data, unchanged. */
  add(error: unknown): void {
    if (!(error instanceof RetlError) || !error.code.startsWith('data.')) throw error;
    this.#first ??= error;
    if (error.code !== this.#first.code) {
      this.#others += 1;
      return;
    }
    this.#same += 1;
    const { keyHash } = error.details;
    if (typeof keyHash === 'string' && this.#keys.length < KEYS_NAMED) this.#keys.push(keyHash);
  }

  /** @throws RetlError of the first failure, with the counts of all; does nothing where there was none. */
  throwIfAny(): void {
    if (this.#first === null) return;
    const { keyHash: _, ...details } = this.#first.details;
    throw new RetlError(this.#first.code, {
      ...details,
      count: this.#same,
      ...(this.#others > 0 ? { otherFailures: this.#others } : {}),
      ...(this.#keys.length > 0 ? { keyHashes: this.#keys } : {}),
    });
  }
}
