/**
 * One snapshot of the source, held against the membership row by row: counts, and what the seal would refuse. It answers as
 * retl.seal does (migrations/0002), from hashes alone; texts pass by.
 */

import { RetlError } from '../domain/errors.ts';
import { utf8Length } from '../domain/utf8.ts';
import type { CandidateMember } from '../journal/candidate.ts';
import { sha256Latin1 } from './hash.ts';
import { HashTable } from './hash-table.ts';
import type { MemberTable } from './member-table.ts';
import { RemovalTable } from './removal-table.ts';
import type { RowSink } from './row-reader.ts';
import type { ShownMembers } from './shown-members.ts';

const KEYS_NAMED = 10;
/** Half of a source key's hash, which tells keys apart, and a word that says whether the key stands twice. */
const KEY_WORDS = 4;

export interface SealLimits {
  /** Bytes of one stored payload, at most. */
  readonly upsert: number;
  readonly remove: number;
  /** Canonical JSON array of the promoted snapshot's key types; `null`: none was promoted. */
  readonly keyTypes: string | null;
  /** Whether members are removed one by one, and not by what is left out of a replacement. */
  readonly removesEach: boolean;
}

export class DesiredSet implements RowSink {
  readonly #keys = new HashTable(KEY_WORDS, KEY_WORDS + 1);
  readonly #twice = new FirstHashes();
  readonly #removals = new RemovalTable();
  readonly #tooLarge: string[] = [];
  #tooLargeCount = 0;
  #rows = 0;
  #excluded = 0;

  /** @param shown `null`: no values. */
  constructor(
    private readonly members: MemberTable,
    private readonly limits: SealLimits,
    private readonly shown: ShownMembers | null,
  ) {}

  get sourceRows(): number {
    return this.#rows;
  }

  get excluded(): number {
    return this.#excluded;
  }

  addExcluded(sourceKey: string): void {
    this.#excluded += 1;
    this.#addKey(sourceKey);
  }

  addMember(sourceKey: string, memberNo: number, m: CandidateMember): void {
    if (memberNo === 0) this.#addKey(sourceKey);
    if (this.#isTooLarge(m)) {
      this.#tooLargeCount += 1;
      if (this.#tooLarge.length < KEYS_NAMED) this.#tooLarge.push(hex(sha256Latin1(sourceKey)));
    }
    const before = this.shown === null ? null : this.members.heldBy(m.identityHash);
    const fate = this.members.want(m.identityHash, m.payloadHash, m.removalHash ?? '');
    if (m.removalHash !== null && fate !== 'collapsed' && fate !== 'conflict')
      this.#removals.add(m.removalHash, m.identityHash);
    this.shown?.saw(fate, m, before);
  }

  /** What the seal would say. @throws RetlError `data.*` with count and the first key or identity hashes */
  check(keyTypes: string): void {
    if (this.limits.keyTypes !== null && this.limits.keyTypes !== keyTypes)
      throw new RetlError('data.key-type-changed', { count: this.#rows });
    if (this.#twice.count > 0) throw broken('data.duplicate-key', this.#twice.count, this.#twice.first);
    if (this.#tooLargeCount > 0)
      throw broken('data.operation-too-large', this.#tooLargeCount, this.#tooLarge);
    const { count, identities } = this.members.conflicts(KEYS_NAMED);
    if (count > 0)
      throw new RetlError('data.conflicting-payloads', { count, identityHashes: identities.map(named) });
    if (!this.limits.removesEach) return;
    const shared = this.#removals.shared((identity) => this.members.isRemovedByIdentity(identity));
    if (shared.length > 0) {
      const identityHashes = shared.slice(0, KEYS_NAMED).map(named);
      throw new RetlError('data.shared-removal', { count: shared.length, identityHashes });
    }
  }

  /** Whether these bytes, by their hash, remove a member that the snapshot gives. */
  isRemovedBy(removal: string): boolean {
    return this.#removals.has(removal) || this.members.isRemovedByIdentity(removal);
  }

  #addKey(sourceKey: string): void {
    this.#rows += 1;
    const hash = sha256Latin1(sourceKey);
    const row = this.#keys.find(hash);
    if (row < 0) this.#keys.add(hash);
    else if (this.#keys.word(row, KEY_WORDS) === 0) {
      this.#keys.setWord(row, KEY_WORDS, 1);
      this.#twice.add(hex(hash));
    }
  }

  #isTooLarge({ identity, upsert, remove }: CandidateMember): boolean {
    return isLonger(upsert, this.limits.upsert) || isLonger(remove ?? identity, this.limits.remove);
  }
}

/** A character is one to three bytes: most texts need no counting. */
function isLonger(text: string, bytes: number): boolean {
  return text.length * 3 > bytes && utf8Length(text) > bytes;
}

/** How many hashes, and the first few in their order. */
class FirstHashes {
  #count = 0;
  #first: readonly string[] = [];

  get count(): number {
    return this.#count;
  }

  get first(): readonly string[] {
    return this.#first;
  }

  add(hash: string): void {
    this.#count += 1;
    this.#first = [...this.#first, hash].sort().slice(0, KEYS_NAMED);
  }
}

function hex(hash: string): string {
  return Buffer.from(hash, 'latin1').toString('hex');
}

function named(hash: string): string {
  return `sha256:${hash}`;
}

function broken(
  code: 'data.duplicate-key' | 'data.operation-too-large',
  count: number,
  keys: readonly string[],
): RetlError {
  return new RetlError(code, { count, keyHashes: keys.map(named) });
}
