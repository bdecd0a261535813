/**
 * Log snapshots as indexers and checkpoints read them (design.md sections 5 and 7): every member of every target as of a
 * boundary of the log. Replaying the newest one, and then the log from the position after its boundary, gives what replaying the
 * log from its beginning gave.
 */

import { createHash } from 'node:crypto';
import {
  type LogPosition,
  logPosition,
  type MirrorId,
  mirrorId,
  type Sha256,
  sha256FromHex,
  type TargetId,
  targetId,
} from '../domain/ids.ts';
import { hashBytes } from './batches.ts';
import type { SnapshotId } from './compaction.ts';
import { big, bigOrNull, bytes, date, type Row, text, textOrNull, texts } from './decode.ts';
import { JournalError } from './errors.ts';
import { type AcceptedValues, acceptedValues } from './held-members.ts';
import { int64 } from './log.ts';
import { type Queryable, run } from './pool.ts';

/** What is kept of a log snapshot for good, its rows gone or not: what a checkpoint's snapshot id is held against. */
export interface LogSnapshot {
  readonly id: SnapshotId;
  readonly boundary: LogPosition;
  /** The entry hash at the boundary. */
  readonly boundaryHash: Sha256;
  /** Only the newest complete one can be read. */
  readonly state: 'building' | 'complete' | 'superseded';
  readonly members: bigint;
  /** `null` while it is being built. */
  readonly digest: Sha256 | null;
  /** The head of the log when it was completed: the entry after that carries its digest in its link. */
  readonly linkedAt: LogPosition | null;
  readonly startedAt: Date;
}

const SNAPSHOTS = `
  select snapshot_id, boundary, encode(boundary_hash, 'hex') as boundary_hash, members, encode(digest, 'hex') as digest,
    linked_at, started_at, case when state in ('complete', 'superseded') then state else 'building' end as state
  from retl.log_snapshot`;

/** All there ever were, oldest first. @throws JournalError */
export async function logSnapshots(db: Queryable): Promise<readonly LogSnapshot[]> {
  return (await run(db, `${SNAPSHOTS} order by snapshot_id`)).map(decodeSnapshot);
}

/** @throws JournalError */
export async function logSnapshot(db: Queryable, id: SnapshotId): Promise<LogSnapshot | null> {
  const [row] = await run(db, `${SNAPSHOTS} where snapshot_id = $1`, [id]);
  return row === undefined ? null : decodeSnapshot(row);
}

/** Where a full replay begins; `null`: at the beginning of the log. @throws JournalError */
export async function latestSnapshot(db: Queryable): Promise<LogSnapshot | null> {
  const [row] = await run(db, `${SNAPSHOTS} where state = 'complete'`);
  return row === undefined ? null : decodeSnapshot(row);
}

function decodeSnapshot(row: Row): LogSnapshot {
  const digest = textOrNull(row, 'digest');
  const linkedAt = bigOrNull(row, 'linked_at');
  return {
    id: big(row, 'snapshot_id'),
    boundary: logPosition(big(row, 'boundary')),
    boundaryHash: sha256FromHex(text(row, 'boundary_hash')),
    state: text(row, 'state') as LogSnapshot['state'],
    members: big(row, 'members'),
    digest: digest === null ? null : sha256FromHex(digest),
    linkedAt: linkedAt === null ? null : logPosition(linkedAt),
    startedAt: date(row, 'started_at'),
  };
}

/** A member as of the boundary. The hashes are 32 bytes, and views of a larger buffer: copy what is to be kept. */
export interface SnapshotMember {
  readonly identityHash: Buffer;
  readonly payloadHash: Buffer;
  /** Of the bytes that its removal sends: the identity hash where they are the identity. */
  readonly removalHash: Buffer;
  /** Of the operation that was accepted last; `sequence >> 32n` is its run. */
  readonly sequence: bigint;
  /** The position since which it is held without a break. */
  readonly since: bigint;
  /** The position of its last acceptance. */
  readonly position: bigint;
  /** When each of the two was recorded, in microseconds since 1970, UTC. */
  readonly sinceAt: bigint;
  readonly acceptedAt: bigint;
  /** Canonical JSON; `null` where values were not asked for, or, of a damaged journal, are missing. */
  readonly identity: string | null;
  readonly payload: string | null;
  /** The bytes of its removal, likewise. */
  readonly removal: string | null;
}

/** Where a page ends: the next one begins after it. */
export interface SnapshotCursor {
  readonly target: bigint;
  readonly identityHash: Buffer;
}

export type SnapshotPage =
  | {
      readonly kind: 'members';
      /** By target, in order of the identity hash. */
      readonly targets: readonly {
        readonly target: TargetId;
        readonly mirror: MirrorId;
        readonly members: readonly SnapshotMember[];
      }[];
      readonly next: SnapshotCursor;
    }
  | { readonly kind: 'end' }
  /** What it refers to may have gone: a newer one is where a replay begins. */
  | { readonly kind: 'compacted' };

const PAGE = 10_000;
const MEMBER_BYTES = 120;

/** Members that follow `after` (`null`: from the first), at most `members` of them. @throws JournalError */
export async function readSnapshotPage(
  db: Queryable,
  id: SnapshotId,
  after: SnapshotCursor | null,
  options: { readonly members?: number; readonly values?: boolean; readonly removals?: boolean } = {},
): Promise<SnapshotPage> {
  const limit = options.members ?? (options.values === true ? PAGE / 5 : PAGE);
  const from = [after?.target ?? 0n, after?.identityHash ?? Buffer.alloc(0), limit];
  const rows = await present(run(db, pageQuery(id), from));
  if (rows === null) return { kind: 'compacted' };
  const times = await timesOf(db, rows);
  const targets = rows.map((row) => ({
    target: targetId(big(row, 'target_id')),
    mirror: mirrorId(big(row, 'mirror_id')),
    members: unpack(bytes(row, 'packed'), times),
  }));
  const last = targets.at(-1);
  const end = last?.members.at(-1);
  if (last === undefined || end === undefined) return { kind: 'end' };
  const next = { target: last.target, identityHash: Buffer.from(end.identityHash) };
  if (options.values !== true) return { kind: 'members', targets, next };
  const sequences = targets.flatMap(({ members }) => members.map(({ sequence }) => sequence));
  const values =
    (await present(acceptedValues(db, sequences, options.removals))) ?? new Map<bigint, AcceptedValues>();
  // Once a newer snapshot is complete, what only this one refers to may go, before its own rows do.
  if (values.size < sequences.length && (await logSnapshot(db, id))?.state !== 'complete')
    return { kind: 'compacted' };
  const withValues = targets.map((one) => ({
    ...one,
    members: one.members.map((member) => ({ ...member, ...values.get(member.sequence) })),
  }));
  return { kind: 'members', targets: withValues, next };
}

/** `null` where a table has gone: 42P01. @throws JournalError */
async function present<T>(read: Promise<T>): Promise<T | null> {
  try {
    return await read;
  } catch (error) {
    if (error instanceof JournalError && error.sqlState === '42P01') return null;
    throw error;
  }
}

function pageQuery(id: SnapshotId): string {
  return `
    select p.target_id, t.mirror_id, array_agg(distinct p.since) || array_agg(distinct p.position) as positions,
      string_agg(p.identity_hash || p.payload_hash || coalesce(p.removal_hash, p.identity_hash) || int8send(p.sequence)
        || int8send(p.since) || int8send(p.position), ''::bytea) as packed
    from (select * from retl.snapshot_${id} where (target_id, identity_hash) > ($1::bigint, $2::bytea)
      order by target_id, identity_hash limit $3) p
    join retl.target t using (target_id) group by p.target_id, t.mirror_id order by p.target_id`;
}

const TIMES = `
  select position, (extract(epoch from recorded_at) * 1000000)::bigint as at from retl.log_entry
  where position = any($1::bigint[])`;

/** When the positions that a page names were recorded: few, for an entry is of many members. */
async function timesOf(db: Queryable, rows: readonly Row[]): Promise<ReadonlyMap<bigint, bigint>> {
  const positions = new Set(rows.flatMap((row) => texts(row, 'positions')));
  const found = await run(db, TIMES, [[...positions]]);
  return new Map(found.map((row) => [big(row, 'position'), big(row, 'at')]));
}

function unpack(packed: Buffer, times: ReadonlyMap<bigint, bigint>): readonly SnapshotMember[] {
  const members: SnapshotMember[] = [];
  for (let at = 0; at < packed.length; at += MEMBER_BYTES) {
    const since = packed.readBigInt64BE(at + 104);
    const position = packed.readBigInt64BE(at + 112);
    members.push({
      identityHash: packed.subarray(at, at + 32),
      payloadHash: packed.subarray(at + 32, at + 64),
      removalHash: packed.subarray(at + 64, at + 96),
      sequence: packed.readBigInt64BE(at + 96),
      since,
      position,
      sinceAt: times.get(since) ?? 0n,
      acceptedAt: times.get(position) ?? 0n,
      identity: null,
      payload: null,
      removal: null,
    });
  }
  return members.sort((a, b) => a.identityHash.compare(b.identityHash));
}

/**
 * The digest of a snapshot's rows, taken page by page outside of the database that wrote it: sha256 over a header (log id,
 * boundary, entry hash there), then one link for each target and first byte of the identity hash that has members, and their
 * number at the end.
 */
export class SnapshotDigest {
  #rolling: Buffer;
  #slice: { target: bigint; first: number; count: bigint; hash: ReturnType<typeof createHash> } | null = null;
  #members = 0n;

  constructor(logId: string, boundary: LogPosition, boundaryHash: Sha256) {
    this.#rolling = sha(
      Buffer.from('retl-mirror/log-snapshot/1\0', 'utf8'),
      Buffer.from(logId.replaceAll('-', ''), 'hex'),
      int64(boundary),
      hashBytes(boundaryHash),
    );
  }

  add(target: bigint, member: SnapshotMember): void {
    const first = member.identityHash[0] ?? 0;
    if (this.#slice?.target !== target || this.#slice.first !== first) {
      this.#close();
      this.#slice = { target, first, count: 0n, hash: createHash('sha256') };
    }
    this.#slice.count += 1n;
    this.#members += 1n;
    this.#slice.hash.update(member.identityHash).update(member.payloadHash).update(member.removalHash);
    for (const n of [member.sequence, member.since, member.position]) this.#slice.hash.update(int64(n));
  }

  digest(): Sha256 {
    this.#close();
    return sha256FromHex(sha(this.#rolling, int64(this.#members)).toString('hex'));
  }

  #close(): void {
    const slice = this.#slice;
    if (slice === null) return;
    const { target, first, count, hash } = slice;
    this.#rolling = sha(this.#rolling, int64(target), Buffer.from([first]), int64(count), hash.digest());
    this.#slice = null;
  }
}

function sha(...parts: readonly Buffer[]): Buffer {
  return createHash('sha256').update(Buffer.concat(parts)).digest();
}
