/** The adapter's key-value store as one attempt sees it: what a request writes is buffered (design.md section 3, rule 2). */

import { AsyncLocalStorage } from 'node:async_hooks';
import type { Store } from '../destinations/port.ts';
import type { StoreWrites } from '../journal/batches.ts';
import { exactText, storeKey } from '../journal/safe-text.ts';

/** Store writes made while one request is served: they commit with its receipt, and with no other. */
export class RequestStore implements Store {
  readonly #committed: Map<string, string>;
  readonly #current = new AsyncLocalStorage<Map<string, string | null>>();

  constructor(committed: Map<string, string>) {
    this.#committed = committed;
  }

  get(key: string): string | undefined {
    const own = this.#current.getStore()?.get(key);
    return own === undefined ? this.#committed.get(key) : (own ?? undefined);
  }

  /** @throws Error where the journal could not keep it whole: now, and not when an outcome is to be recorded with it */
  set(key: string, value: string): void {
    this.#writes().set(storeKey(key), exactText(value));
  }

  delete(key: string): void {
    this.#writes().set(storeKey(key), null);
  }

  #writes(): Map<string, string | null> {
    const writes = this.#current.getStore();
    if (writes === undefined) throw new Error('the store can be written only while a request is served');
    return writes;
  }

  /** Runs `work` with a buffer of its own; resolves to what it returned and what it wrote. */
  async collect<T>(work: () => Promise<T>): Promise<{ readonly value: T; readonly writes: StoreWrites }> {
    const writes = new Map<string, string | null>();
    return { value: await this.#current.run(writes, work), writes };
  }

  committed(writes: StoreWrites): void {
    for (const [key, value] of writes) {
      if (value === null) this.#committed.delete(key);
      else this.#committed.set(key, value);
    }
  }
}
