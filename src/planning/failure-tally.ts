/**
 * Failures of rows, while the rest is read to its end: the first is told, with how many break the same rule, how many another,
 * and where the first few of the same stand (design.md section 10).
 */

import { type ErrorDetails, RetlError } from '../domain/errors.ts';

/** So many places are named. */
const PLACES_NAMED = 10;

export class FailureTally {
  #first: RetlError | null = null;
  #same = 0;
  #others = 0;
  readonly #places: string[] = [];

  /** `isSame`: whether a failure breaks the rule that the first one broke. */
  constructor(private readonly isSame: (failure: RetlError, first: RetlError) => boolean) {}

  get any(): boolean {
    return this.#first !== null;
  }

  /**
   * `placeOf`: where the row can be found; `null`: nowhere.
   * @throws what is not about a row's data, unchanged.
   */
  add(error: unknown, placeOf: (failure: RetlError) => string | null): void {
    if (!(error instanceof RetlError) || !error.code.startsWith('data.')) throw error;
    this.#first ??= error;
    if (!this.isSame(error, this.#first)) {
      this.#others += 1;
      return;
    }
    this.#same += 1;
    const place = placeOf(error);
    if (place !== null && this.#places.length < PLACES_NAMED) this.#places.push(place);
  }

  /**
   * `placed`: how the places are told.
   * @throws RetlError of the first failure, with the counts of all; does nothing where there was none.
   */
  throwIfAny(placed: (places: readonly string[]) => ErrorDetails): void {
    if (this.#first === null) return;
    const { keyHash: _, ...details } = this.#first.details;
    throw new RetlError(this.#first.code, {
      ...details,
      count: this.#same,
      ...(this.#others > 0 ? { otherFailures: this.#others } : {}),
      ...placed(this.#places),
    });
  }
}
