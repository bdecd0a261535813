/** Reads planned operations a page ahead of what is being sent, within a bound of bytes. */

import type { Action } from '../../domain/request.ts';
import { readOperations, type StoredOperation } from '../../journal/operations.ts';
import type { RunAttempt } from '../attempt.ts';
import { FIRST_PAGE_ROWS, PAGE_BYTES } from './policy.ts';

export class OperationPages {
  #from: bigint;
  #rows: number;
  readonly #maxRows: number;
  #ahead: Promise<readonly StoredOperation[]> | null = null;

  constructor(
    private readonly a: RunAttempt,
    private readonly action: Action,
    from: bigint,
    private readonly end: bigint,
    maxRows: number,
  ) {
    this.#from = from;
    this.#maxRows = Math.max(1, maxRows);
    this.#rows = Math.min(FIRST_PAGE_ROWS, this.#maxRows);
  }

  /** Whether every operation has been given out. */
  get exhausted(): boolean {
    return this.#ahead === null && this.#from > this.end;
  }

  /** The next page, in order; empty at the end. Starts reading the one after it. */
  async next(): Promise<readonly StoredOperation[]> {
    const page = await (this.#ahead ?? this.#read());
    this.#ahead = null;
    const bytes = page.reduce((sum, op) => sum + op.payload.length + op.identity.length, 0);
    if (page.length > 0) {
      const fitting = Math.floor(PAGE_BYTES / Math.max(1, bytes / page.length));
      this.#rows = Math.max(1, Math.min(this.#maxRows, this.#rows * 8, fitting));
    }
    if (this.#from <= this.end) {
      this.#ahead = this.#read();
      // Whoever calls next() hears of a failure; until then it is not unhandled.
      this.#ahead.catch(() => {});
    }
    return page;
  }

  #read(): Promise<readonly StoredOperation[]> {
    if (this.#from > this.end) return Promise.resolve([]);
    const from = this.#from;
    const last = from + BigInt(this.#rows) - 1n;
    const to = last < this.end ? last : this.end;
    this.#from = to + 1n;
    return readOperations(this.a.deps.journal, this.a.record, this.action, from, to);
  }
}
