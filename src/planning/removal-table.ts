/** The removal payloads of wanted members, where they are not told by the identity hash, and whether two members share one. */

import { HashTable } from './hash-table.ts';

/** A row: hash of the payload, identity hash of the first member that has it, whether it stands among the shared ones. */
const HASH = 8;
const IDENTITY = HASH;
const SHARED = IDENTITY + HASH;
const HASH_BYTES = 32;

export class RemovalTable {
  readonly #rows = new HashTable(HASH, SHARED + 1);
  readonly #shared: string[] = [];
  readonly #bytes = Buffer.alloc(HASH_BYTES);

  /** Of one member, once. Hashes are latin-1 text. */
  add(removal: string, identity: string): void {
    const found = this.#rows.find(removal);
    if (found < 0) {
      const row = this.#rows.add(removal);
      this.#rows.setHash(row, IDENTITY, identity);
      return;
    }
    this.#share(found);
    this.#shared.push(Buffer.from(identity, 'latin1').toString('hex'));
  }

  has(removal: string): boolean {
    return this.#rows.find(removal) >= 0;
  }

  /**
   * Identity hashes, in hex and in their order, of members that do not have their payload alone.
   * @param removesByIdentity whether there is a member that a payload with this hash removes because it is its identity
   */
  shared(removesByIdentity: (removal: string) => boolean): readonly string[] {
    for (let row = 0; row < this.#rows.size; row += 1) {
      this.#rows.copy(row, 0, HASH, this.#bytes, 0);
      if (removesByIdentity(this.#bytes.toString('latin1'))) this.#share(row);
    }
    return this.#shared.sort();
  }

  #share(row: number): void {
    if (this.#rows.word(row, SHARED) === 1) return;
    this.#rows.setWord(row, SHARED, 1);
    this.#shared.push(this.#rows.hex(row, IDENTITY));
  }
}
