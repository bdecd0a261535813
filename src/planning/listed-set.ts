/**
 * What the journal knows a target to hold, and then, page by page, what the target says of it: about 90 bytes each. Both sides
 * come in the target's own words, so that equal texts mean equal members.
 */

import { type Folding, identityHashInput } from '../domain/folding.ts';
import { sha256Latin1 } from './hash.ts';
import { HashTable } from './hash-table.ts';
import { lacksIdentity } from './listed-identity.ts';

const HASH = 8;
/** A row: hash of the identity, hash of the payload, number of the operation by which it is held, state. */
const PAYLOAD = HASH;
const SEQUENCE = PAYLOAD + HASH;
const STATE = SEQUENCE + 2;
const ROW = STATE + 1;
const HASH_BYTES = 32;

/** Held by the journal's word, and not told of yet. */
const HELD = 1;
const HELD_WITHOUT_PAYLOAD = 2;
/** The target has told of it. */
const TOLD = 4;

export interface TargetsMember {
  readonly identity: string;
  /** `null`: not told. */
  readonly payload: string | null;
}

/** `repeated`: the target tells of one member twice, so that its identities are not what they are here. */
export type Match = 'same' | 'different' | 'uncompared' | 'unexpected' | 'repeated';

export class ListedSet {
  readonly #rows = new HashTable(HASH, ROW);
  readonly #bytes = Buffer.alloc(HASH_BYTES);
  readonly #fold: (identity: string) => string;
  #held = 0;
  readonly #counts = { same: 0, different: 0, uncompared: 0, unexpected: 0, repeated: 0 };

  constructor(folding: readonly Folding[]) {
    this.#fold = identityHashInput(folding);
  }

  /** A member that the journal holds, as the target would tell of it. */
  hold({ identity, payload }: TargetsMember, sequence: bigint): void {
    const hash = this.#hashOf(identity);
    const found = this.#rows.find(hash);
    if (found < 0) this.#held += 1;
    const row = found < 0 ? this.#rows.add(hash) : found;
    this.#rows.setWord(row, STATE, payload === null ? HELD_WITHOUT_PAYLOAD : HELD);
    this.#write(row, PAYLOAD, sha256Latin1(payload ?? ''));
    this.#rows.setWord(row, SEQUENCE, Number(sequence >> 32n));
    this.#rows.setWord(row, SEQUENCE + 1, Number(sequence & 0xffff_ffffn));
  }

  /** A member that the target tells of; `sequence` is that of the operation by which the journal holds it. */
  tell({ identity, payload }: TargetsMember): { readonly match: Match; readonly sequence: bigint | null } {
    if (lacksIdentity(identity)) {
      this.#counts.unexpected += 1;
      return { match: 'unexpected', sequence: null };
    }
    const hash = this.#hashOf(identity);
    const found = this.#rows.find(hash);
    const row = found < 0 ? this.#rows.add(hash) : found;
    const state = this.#rows.word(row, STATE);
    const match = this.#match(row, state, payload);
    this.#counts[match] += 1;
    this.#rows.setWord(row, STATE, state | TOLD);
    return { match, sequence: found < 0 || state === TOLD ? null : this.#sequence(row) };
  }

  get counts(): Readonly<Record<Match, number>> & { readonly held: number; readonly missing: number } {
    const { same, different, uncompared } = this.#counts;
    return { ...this.#counts, held: this.#held, missing: this.#held - same - different - uncompared };
  }

  /** The first members that the journal holds and the target has not told of, by their operations. */
  missing(most: number): readonly bigint[] {
    const rows = this.#rows.sorted((row) => (this.#rows.word(row, STATE) & TOLD) === 0);
    return [...rows.subarray(0, most)].map((row) => this.#sequence(row));
  }

  #match(row: number, state: number, payload: string | null): Match {
    if ((state & TOLD) !== 0) return 'repeated';
    if (state === 0) return 'unexpected';
    if (state === HELD_WITHOUT_PAYLOAD || payload === null) return 'uncompared';
    this.#bytes.write(sha256Latin1(payload), 'latin1');
    for (let i = 0; i < HASH; i++)
      if (this.#rows.word(row, PAYLOAD + i) !== this.#bytes.readUInt32BE(i * 4)) return 'different';
    return 'same';
  }

  #write(row: number, at: number, hash: string): void {
    this.#bytes.write(hash, 'latin1');
    for (let i = 0; i < HASH; i++) this.#rows.setWord(row, at + i, this.#bytes.readUInt32BE(i * 4));
  }

  #sequence(row: number): bigint {
    return (BigInt(this.#rows.word(row, SEQUENCE)) << 32n) | BigInt(this.#rows.word(row, SEQUENCE + 1));
  }

  #hashOf(identity: string): string {
    return sha256Latin1(this.#fold(identity));
  }
}
