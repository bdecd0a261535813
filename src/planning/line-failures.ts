/** Rows of a file that break a rule: which rule, how many rows break it, and in which lines the first of them stand. */

import { type ErrorDetails, RetlError } from '../domain/errors.ts';

const LINES_NAMED = 10;

export class LineFailures {
  /** Of the row that is being read. */
  line = 0;
  #first: RetlError | null = null;
  #same = 0;
  #others = 0;
  readonly #lines: string[] = [];

  get any(): boolean {
    return this.#first !== null;
  }

  /** @throws what is not about a row's data, unchanged. */
  add(error: unknown): void {
    if (!(error instanceof RetlError) || !error.code.startsWith('data.')) throw error;
    this.#first ??= error;
    if (error.code !== this.#first.code || error.details.rule !== this.#first.details.rule) {
      this.#others += 1;
      return;
    }
    this.#same += 1;
    if (this.#lines.length < LINES_NAMED) this.#lines.push(String(this.line));
  }

  /** @throws RetlError of the first failure, with the counts of all; does nothing where there was none. */
  throwIfAny(): void {
    if (this.#first === null) return;
    // The key's hash is of a line's number here: it finds nothing.
    const { keyHash: _, ...details } = this.#first.details;
    throw new RetlError(this.#first.code, {
      ...details,
      count: this.#same,
      ...(this.#others > 0 ? { otherFailures: this.#others } : {}),
      lines: this.#lines,
    } satisfies ErrorDetails);
  }
}
