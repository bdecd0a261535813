/**
 * The membership of a target and, as a snapshot goes by, what becomes of each member; about 100 bytes each, whatever its
 * payload. Its digests are those of migrations/0002 (retl.generation_digest, retl.removal_set), to the byte.
 */

import { Buffer } from 'node:buffer';
import { createHash } from 'node:crypto';
import type { DiffCounts } from '../domain/plan.ts';
import { HashTable } from './hash-table.ts';

/** A row: identity hash, payload hash, mark, state. What was held gives way to what is wanted. */
const HASH = 8;
const PAYLOAD = HASH;
/** Two words: of a member that is held, its sequence number; of one that is wanted, how its removal reads. */
const MARK = PAYLOAD + HASH;
const STATE = MARK + 2;
const ROW = STATE + 1;
const HASH_BYTES = 32;

const ABSENT = 0;
const HELD = 1;
const UNCHANGED = 2;
const CHANGED = 3;
const ADDED = 4;
/** More than one row gives it, and not alike. */
const CONFLICT = 8;

export type Fate = 'added' | 'changed' | 'unchanged' | 'collapsed' | 'conflict';

export interface MemberCounts extends DiffCounts {
  /** Given again by another row, alike. */
  readonly collapsed: number;
}

export class MemberTable {
  readonly #rows = new HashTable(HASH, ROW);
  readonly #payload = Buffer.alloc(HASH_BYTES);
  readonly #mark = Buffer.alloc(8);
  #held = 0;
  #added = 0;
  #changed = 0;
  #unchanged = 0;
  #refreshed = 0;
  #isStale: ((sequence: bigint) => boolean) | null = null;
  #collapsed = 0;
  #conflicts = 0;

  /** Of unchanged members, counts those whose acceptance is stale: to be said before any is wanted. */
  refreshWhere(isStale: (sequence: bigint) => boolean): void {
    this.#isStale = isStale;
  }

  /** Takes over from the journal what is held, in the order in which it was accepted. Hashes are latin-1 text. */
  hold(identity: string, payload: string, sequence: bigint): void {
    const row = this.#rowOf(identity);
    if (this.#rows.word(row, STATE) === ABSENT) this.#held += 1;
    this.#rows.setWord(row, STATE, HELD);
    this.#rows.setHash(row, PAYLOAD, payload);
    this.#mark.writeBigUInt64BE(sequence);
    this.#setMark(row);
  }

  /** The same for an accepted removal. */
  release(identity: string): void {
    const row = this.#rows.find(identity);
    if (row < 0 || this.#rows.word(row, STATE) !== HELD) return;
    this.#rows.setWord(row, STATE, ABSENT);
    this.#held -= 1;
  }

  /**
   * A member that the snapshot gives.
   * @param removal hash of its removal's text where that is not told by the identity hash; else empty.
   */
  want(identity: string, payload: string, removal: string): Fate {
    const row = this.#rowOf(identity);
    const state = this.#rows.word(row, STATE);
    const acceptedIn = this.#sequence(row);
    this.#mark.fill(0).write(removal, 0, 8, 'latin1');
    if (state > HELD) return this.#again(row, state, payload);
    const fate = state === ABSENT ? 'added' : this.#hasPayload(row, payload) ? 'unchanged' : 'changed';
    if (fate === 'added') this.#added += 1;
    else if (fate === 'changed') this.#changed += 1;
    else {
      this.#unchanged += 1;
      if (this.#isStale?.(acceptedIn) === true) this.#refreshed += 1;
    }
    this.#rows.setWord(row, STATE, fate === 'added' ? ADDED : fate === 'changed' ? CHANGED : UNCHANGED);
    this.#rows.setHash(row, PAYLOAD, payload);
    this.#setMark(row);
    return fate;
  }

  get counts(): MemberCounts {
    return {
      held: this.#held,
      added: this.#added,
      changed: this.#changed,
      removed: this.#held - this.#changed - this.#unchanged,
      unchanged: this.#unchanged,
      ...(this.#isStale === null ? {} : { refreshed: this.#refreshed }),
      collapsed: this.#collapsed,
    };
  }

  /** Identities that several rows give, and not alike: how many, and the first of them in their order, in hex. */
  conflicts(most: number): { readonly count: number; readonly identities: readonly string[] } {
    const rows = this.#conflicts === 0 ? [] : this.#rows.sorted((row) => this.#state(row) > CONFLICT);
    return {
      count: this.#conflicts,
      identities: [...rows.slice(0, most)].map((row) => this.#rows.hex(row, 0)),
    };
  }

  /** Of what the snapshot gives, as the seal computes it; 64 hex digits. */
  generationDigest(): string {
    const rows = this.#rows.sorted((row) => this.#state(row) > HELD);
    const all = createHash('sha256');
    const member = Buffer.alloc(2 * HASH_BYTES);
    let at = 0;
    for (let slice = 0; slice < 256; slice++) {
      const hashed = createHash('sha256');
      for (; at < rows.length; at++) {
        const row = rows[at] ?? 0;
        if (this.#rows.word(row, 0) >>> 24 !== slice) break;
        this.#rows.copy(row, 0, 2 * HASH, member, 0);
        hashed.update(member);
      }
      all.update(hashed.digest());
    }
    return all.digest('hex');
  }

  /** Of what is held and not given, as the plan of a run computes it; 64 hex digits. */
  removalDigest(): string {
    const hashed = createHash('sha256');
    const identity = Buffer.alloc(HASH_BYTES);
    for (const row of this.#removed()) {
      this.#rows.copy(row, 0, HASH, identity, 0);
      hashed.update(identity);
    }
    return hashed.digest('hex');
  }

  /** The first of the members to be removed, in order of the identity hash, by the operation that each was accepted in. */
  removals(most: number): readonly { readonly identity: string; readonly sequence: bigint }[] {
    return [...this.#removed().subarray(0, most)].map((row) => ({
      identity: this.#rows.hex(row, 0),
      sequence: this.#sequence(row),
    }));
  }

  /** Of the members that are held, and not yet wanted, the operations by which they are, in the order of their acceptance. */
  heldSequences(): BigUint64Array {
    const found = new BigUint64Array(this.#held);
    let count = 0;
    for (const row of this.#removed()) found[count++] = this.#sequence(row);
    return found.subarray(0, count).sort();
  }

  /** The operation that a member which is to be removed, or not yet wanted, was accepted in; `null`: it is not one. */
  heldBy(identity: string): bigint | null {
    const row = this.#rows.find(identity);
    return row >= 0 && this.#state(row) === HELD ? this.#sequence(row) : null;
  }

  isWanted(identity: string): boolean {
    const row = this.#rows.find(identity);
    return row >= 0 && this.#state(row) > HELD;
  }

  /** Whether there is a wanted member with this hash whose identity is what removes it. */
  isRemovedByIdentity(identity: string): boolean {
    const row = this.#rows.find(identity);
    return row >= 0 && this.#state(row) > HELD && this.#sequence(row) === 0n;
  }

  #removed(): Uint32Array {
    return this.#rows.sorted((row) => this.#state(row) === HELD);
  }

  #again(row: number, state: number, payload: string): Fate {
    const isAlike =
      this.#hasPayload(row, payload) &&
      this.#rows.word(row, MARK) === this.#mark.readUInt32BE(0) &&
      this.#rows.word(row, MARK + 1) === this.#mark.readUInt32BE(4);
    if (isAlike) {
      this.#collapsed += 1;
      return 'collapsed';
    }
    if (state < CONFLICT) this.#conflicts += 1;
    this.#rows.setWord(row, STATE, state | CONFLICT);
    return 'conflict';
  }

  #rowOf(identity: string): number {
    const row = this.#rows.find(identity);
    return row < 0 ? this.#rows.add(identity) : row;
  }

  #state(row: number): number {
    return this.#rows.word(row, STATE);
  }

  #sequence(row: number): bigint {
    return (BigInt(this.#rows.word(row, MARK)) << 32n) | BigInt(this.#rows.word(row, MARK + 1));
  }

  #hasPayload(row: number, payload: string): boolean {
    this.#payload.write(payload, 'latin1');
    for (let i = 0; i < HASH; i++)
      if (this.#rows.word(row, PAYLOAD + i) !== this.#payload.readUInt32BE(4 * i)) return false;
    return true;
  }

  #setMark(row: number): void {
    this.#rows.setWord(row, MARK, this.#mark.readUInt32BE(0));
    this.#rows.setWord(row, MARK + 1, this.#mark.readUInt32BE(4));
  }
}
