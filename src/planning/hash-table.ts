/**
 * Rows of fixed width, each found by the hash it begins with, in typed arrays: a million of them are a few large
 * allocations, and no objects. Hashes come as latin-1 text of one character a byte, as the hash function gives them, and are
 * kept as big-endian words, so that numeric order is the order of the bytes.
 */

import { Buffer } from 'node:buffer';

const ROWS_PER_CHUNK = 16_384;
const FIRST_SLOTS = 1_024;
const WORD = 4;
const HASH_BYTES = 32;

export class HashTable {
  readonly #keyWords: number;
  readonly #rowWords: number;
  readonly #chunks: Uint32Array[] = [];
  /** Open addressing: row + 1, or 0 where a slot is free. A hash needs no further hashing. */
  #slots = new Uint32Array(FIRST_SLOTS);
  #size = 0;
  readonly #bytes: Buffer;
  readonly #words: Uint32Array;
  readonly #hash = Buffer.alloc(HASH_BYTES);

  /** @param keyWords of the hash; a longer one is cut to it. @param rowWords of the whole row, the hash among them. */
  constructor(keyWords: number, rowWords: number) {
    this.#keyWords = keyWords;
    this.#rowWords = rowWords;
    this.#bytes = Buffer.alloc(keyWords * WORD);
    this.#words = new Uint32Array(keyWords);
  }

  get size(): number {
    return this.#size;
  }

  /** The row of this hash; -1 where there is none. */
  find(hash: string): number {
    this.#read(hash);
    return (this.#slots[this.#slotOf()] ?? 0) - 1;
  }

  /** Appends a row of zeros for a hash that {@link find} has just not found. */
  add(hash: string): number {
    if ((this.#size + 1) * 4 > this.#slots.length * 3) this.#grow();
    this.#read(hash);
    const row = this.#size;
    if (row % ROWS_PER_CHUNK === 0) this.#chunks.push(new Uint32Array(ROWS_PER_CHUNK * this.#rowWords));
    this.#size += 1;
    this.#slots[this.#slotOf()] = row + 1;
    this.#chunkOf(row).set(this.#words, this.#at(row));
    return row;
  }

  /** A word of a row; `index` counts from the row's beginning, its hash among them. */
  word(row: number, index: number): number {
    return this.#chunkOf(row)[this.#at(row) + index] ?? 0;
  }

  setWord(row: number, index: number, value: number): void {
    this.#chunkOf(row)[this.#at(row) + index] = value;
  }

  /** Another hash of a row, whole, from `index` on. */
  setHash(row: number, index: number, hash: string): void {
    const chunk = this.#chunkOf(row);
    const from = this.#at(row) + index;
    this.#hash.write(hash, 'latin1');
    for (let at = 0; at < HASH_BYTES; at += WORD) chunk[from + at / WORD] = this.#hash.readUInt32BE(at);
  }

  /** The whole hash that begins at `index`, in hex. */
  hex(row: number, index: number): string {
    const bytes = Buffer.alloc(HASH_BYTES);
    this.copy(row, index, HASH_BYTES / WORD, bytes, 0);
    return bytes.toString('hex');
  }

  /** Writes `count` words of a row to `into`, as the bytes they came from. */
  copy(row: number, index: number, count: number, into: Buffer, offset: number): void {
    const chunk = this.#chunkOf(row);
    const from = this.#at(row) + index;
    for (let i = 0; i < count; i++) into.writeUInt32BE(chunk[from + i] ?? 0, offset + i * WORD);
  }

  /** Row numbers in the order of their hashes, those that `wanted` names. */
  sorted(wanted: (row: number) => boolean): Uint32Array {
    let count = 0;
    for (let row = 0; row < this.#size; row++) if (wanted(row)) count += 1;
    const rows = new Uint32Array(count);
    let at = 0;
    for (let row = 0; row < this.#size; row++) if (wanted(row)) rows[at++] = row;
    return rows.sort((a, b) => this.#compare(a, b));
  }

  #compare(a: number, b: number): number {
    for (let i = 0; i < this.#keyWords; i++) {
      const difference = this.word(a, i) - this.word(b, i);
      if (difference !== 0) return difference;
    }
    return 0;
  }

  #chunkOf(row: number): Uint32Array {
    const chunk = this.#chunks[Math.floor(row / ROWS_PER_CHUNK)];
    if (chunk === undefined) throw new RangeError('no such row');
    return chunk;
  }

  #at(row: number): number {
    return (row % ROWS_PER_CHUNK) * this.#rowWords;
  }

  #read(hash: string): void {
    this.#bytes.write(hash, 'latin1');
    for (let i = 0; i < this.#keyWords; i++) this.#words[i] = this.#bytes.readUInt32BE(i * WORD);
  }

  /** Where the hash that was read stands, or could stand. */
  #slotOf(): number {
    const mask = this.#slots.length - 1;
    let slot = (this.#words[0] ?? 0) & mask;
    for (;;) {
      const row = (this.#slots[slot] ?? 0) - 1;
      if (row < 0 || this.#isRead(row)) return slot;
      slot = (slot + 1) & mask;
    }
  }

  #isRead(row: number): boolean {
    const chunk = this.#chunkOf(row);
    const at = this.#at(row);
    for (let i = 0; i < this.#keyWords; i++) if (chunk[at + i] !== this.#words[i]) return false;
    return true;
  }

  #grow(): void {
    const slots = new Uint32Array(this.#slots.length * 2);
    const mask = slots.length - 1;
    for (let row = 0; row < this.#size; row++) {
      let slot = this.word(row, 0) & mask;
      while (slots[slot] !== 0) slot = (slot + 1) & mask;
      slots[slot] = row + 1;
    }
    this.#slots = slots;
  }
}
