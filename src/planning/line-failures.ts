/** Rows of a file that break a rule: which rule, how many rows break it, and in which lines the first of them stand. */

import { FailureTally } from './failure-tally.ts';

export class LineFailures {
  /** Of the row that is being read. */
  line = 0;
  readonly #tally = new FailureTally(
    (failure, first) => failure.code === first.code && failure.details.rule === first.details.rule,
  );

  get any(): boolean {
    return this.#tally.any;
  }

  /** @throws what is not about a row's data, unchanged. */
  add(error: unknown): void {
    this.#tally.add(error, () => String(this.line));
  }

  /** @throws RetlError of the first failure, with the counts of all; does nothing where there was none. */
  throwIfAny(): void {
    // A key's hash would be of a line's number here, and find nothing: lines are told instead.
    this.#tally.throwIfAny((lines) => ({ lines }));
  }
}
