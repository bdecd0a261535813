/**
 * Recomputes the log independently of the database that wrote it: the chain of entry hashes, into which the digests of log
 * snapshots are linked; the rejected operations that each entry leaves out; and, where asked, each batch's id from the operations
 * that its effects are read from, their texts from their hashes, and the newest log snapshot with each member's texts.
 */

import { createHash } from 'node:crypto';
import { type LogPosition, logPosition, type Sha256, sha256FromHex } from '../domain/ids.ts';
import { hashBytes } from './batches.ts';
import { big } from './decode.ts';
import { entryHash, int64, type LogEntry, type LogHead, logHead, readEntries } from './log.ts';
import { type LogSnapshot, logSnapshots } from './log-snapshot.ts';
import { type Queryable, run } from './pool.ts';
import { checkEffects } from './verify-effects.ts';
import { verifySnapshot } from './verify-snapshot.ts';

export type BrokenRule =
  /** An entry is missing. */
  | 'position'
  /** The entry does not follow the one before, or a log snapshot that was completed in between. */
  | 'previous-hash'
  /** The entry itself is not what was written. */
  | 'entry-hash'
  /** Its rejected operations are not those that it leaves out. */
  | 'left-out'
  /** Operations are missing, or their payloads are not those that were accepted. */
  | 'effects'
  /** Its operations are not those that its batch was made of. */
  | 'batch-id'
  /** Of one of its operations, or missing: it is not the one whose hash the operation has. */
  | 'identity'
  /** Likewise the bytes that remove a member, or will remove it. */
  | 'removal'
  /** The head is not the last entry. */
  | 'head'
  /** The log does not begin where its newest snapshot ends. */
  | 'earliest'
  /** A log snapshot was taken of another log than this one. */
  | 'snapshot-boundary'
  | 'snapshot-digest'
  /** Of a member of the newest snapshot, missing or another one. */
  | 'snapshot-payload'
  | 'snapshot-identity'
  | 'snapshot-removal';

export type LogVerdict =
  | { readonly kind: 'intact'; readonly position: LogPosition }
  /** The first position at which something is not what was written, and in which respect. */
  | { readonly kind: 'broken'; readonly position: LogPosition; readonly rule: BrokenRule };

export interface VerifyOptions {
  /** Also reads every effect, member and payload: as much work as a replay. */
  readonly effects: boolean;
  /** Told after each page of entries. */
  readonly progress?: (verified: LogPosition, head: LogPosition) => void;
}

const PAGE = 500;
const GENESIS = sha256FromHex('0'.repeat(64));

/** Up to where the log has been verified, with what the entry there carries. */
export interface VerifiedPlace {
  readonly position: LogPosition;
  readonly entryHash: Sha256;
}

const BEGINNING: VerifiedPlace = { position: logPosition(0), entryHash: GENESIS };

/**
 * Verifies the log from its beginning to its head, while it grows.
 * @throws JournalError
 */
export async function verifyLog(
  db: Queryable,
  options: VerifyOptions = { effects: false },
): Promise<LogVerdict> {
  const verdict = await verifyLogFrom(db, BEGINNING, () => false, options);
  if (verdict.kind === 'more') throw new Error('nobody has stopped it');
  return verdict;
}

/**
 * The same in parts: from a place that an earlier part has come to (`null`: the beginning), until `stopped` says so after a page
 * of entries. The newest log snapshot is the last part's.
 * @throws JournalError
 */
export async function verifyLogFrom(
  db: Queryable,
  from: VerifiedPlace | null,
  stopped: () => boolean,
  options: VerifyOptions,
): Promise<LogVerdict | ({ readonly kind: 'more' } & VerifiedPlace)> {
  const { head, snapshots } = await readWhole(db);
  const walk = new Walk(db, head, snapshots, options, from ?? BEGINNING);
  const ended = await walk.run(stopped);
  if (ended !== null) return ended;
  const newest = snapshots.find(({ state }) => state === 'complete');
  const begins = newest === undefined ? 1n : newest.boundary + 1n;
  if (head.earliest !== begins) return { kind: 'broken', position: head.earliest, rule: 'earliest' };
  if (newest !== undefined && options.effects) {
    const verdict = await verifySnapshot(db, head.logId, newest);
    if (verdict.kind === 'broken') return verdict;
  }
  return { kind: 'intact', position: head.position };
}

/** The head together with the snapshots that it is linked to: none is completed in between. */
async function readWhole(
  db: Queryable,
): Promise<{ readonly head: LogHead; readonly snapshots: readonly LogSnapshot[] }> {
  for (;;) {
    const head = await logHead(db);
    const snapshots = (await logSnapshots(db)).filter(({ digest }) => digest !== null);
    if ((await logHead(db)).earliest === head.earliest)
      return { head, snapshots: snapshots.filter(({ linkedAt }) => (linkedAt ?? 0n) <= head.position) };
  }
}

type Broken = Extract<LogVerdict, { kind: 'broken' }>;

/** From entry to entry, with what the next one must carry. */
class Walk {
  #position: LogPosition;
  #hash: Sha256;
  #earliest: LogPosition;

  constructor(
    private readonly db: Queryable,
    private readonly head: LogHead,
    private readonly snapshots: readonly LogSnapshot[],
    private readonly options: VerifyOptions,
    from: VerifiedPlace,
  ) {
    this.#position = from.position;
    this.#hash = from.entryHash;
    this.#earliest = head.earliest;
  }

  /** `null`: it has come to the head, and nothing is broken. */
  async run(stopped: () => boolean): Promise<Broken | ({ readonly kind: 'more' } & VerifiedPlace) | null> {
    const { db, head } = this;
    while (this.#position < head.position) {
      const page = await readEntries(db, this.#position, PAGE);
      const entries = page.filter(({ position }) => position <= head.position);
      if (entries.length === 0) return this.#broken('position');
      const leftOut = await leftOutOf(db, entries);
      for (const entry of entries) {
        const rule = this.#chain(entry) ?? checkLeftOut(entry, leftOut) ?? (await this.#effects(entry));
        if (rule !== null) return this.#broken(rule);
        this.#position = entry.position;
        this.#hash = entry.entryHash;
      }
      this.options.progress?.(this.#position, head.position);
      if (this.#position < head.position && stopped())
        return { kind: 'more', position: this.#position, entryHash: this.#hash };
    }
    const isHead = this.#hash === head.entryHash && this.#link() === head.link;
    return isHead ? null : { kind: 'broken', position: this.#position, rule: 'head' };
  }

  #broken(rule: BrokenRule): Broken {
    return { kind: 'broken', position: logPosition(this.#position + 1n), rule };
  }

  #chain(entry: LogEntry): BrokenRule | null {
    if (entry.position !== this.#position + 1n) return 'position';
    if (entry.previousHash !== this.#link()) return 'previous-hash';
    if (entryHash(entry) !== entry.entryHash) return 'entry-hash';
    const taken = this.snapshots.filter(({ boundary }) => boundary === entry.position);
    return taken.every(({ boundaryHash }) => boundaryHash === entry.entryHash) ? null : 'snapshot-boundary';
  }

  /** What the next entry must carry: the hash of this one, and the digests of the snapshots completed since. */
  #link(): Sha256 {
    return this.snapshots
      .filter(({ linkedAt }) => linkedAt === this.#position)
      .reduce((link, { digest }) => (digest === null ? link : linked(link, digest)), this.#hash);
  }

  async #effects(entry: LogEntry): Promise<BrokenRule | null> {
    if (!this.options.effects || entry.first === null || entry.position < this.#earliest) return null;
    const rule = await checkEffects(this.db, this.head.logId, entry);
    // A compaction may have been completed meanwhile.
    if (rule !== null) this.#earliest = (await logHead(this.db)).earliest;
    return entry.position < this.#earliest ? null : rule;
  }
}

function linked(link: Sha256, digest: Sha256): Sha256 {
  const both = Buffer.concat([hashBytes(link), hashBytes(digest)]);
  return sha256FromHex(createHash('sha256').update(both).digest('hex'));
}

const LEFT_OUT = `
  select e.position, x.sequence
  from retl.log_entry e join retl.rejection x on x.sequence between e.first_sequence and e.last_sequence
  where e.position between $1 and $2 order by x.sequence`;

/** The rejected operations of a page of entries, in order, by position. */
async function leftOutOf(
  db: Queryable,
  entries: readonly LogEntry[],
): Promise<ReadonlyMap<bigint, readonly bigint[]>> {
  const found = new Map<bigint, bigint[]>();
  for (const row of await run(db, LEFT_OUT, [entries[0]?.position, entries.at(-1)?.position])) {
    const position = big(row, 'position');
    const own = found.get(position);
    if (own === undefined) found.set(position, [big(row, 'sequence')]);
    else own.push(big(row, 'sequence'));
  }
  return found;
}

function checkLeftOut(
  entry: LogEntry,
  leftOut: ReadonlyMap<bigint, readonly bigint[]>,
): 'left-out' | 'effects' | null {
  if (entry.first === null || entry.last === null) return null;
  const own = leftOut.get(entry.position) ?? [];
  const hash = createHash('sha256');
  for (const sequence of own) hash.update(int64(sequence));
  if (sha256FromHex(hash.digest('hex')) !== entry.effectsHash) return 'left-out';
  return BigInt(entry.effects + own.length) === entry.last - entry.first + 1n ? null : 'effects';
}
