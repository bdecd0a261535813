/**
 * The log: the journal's one append-only list of what was accepted (design.md section 5). Positions are gapless and in the
 * order of commits, for each is taken under the row lock of the head. Every entry carries the hash of the one before, and
 * names its batch, whose id is made of its operations; their rows stay as long as the log needs them.
 */

import { createHash } from 'node:crypto';
import {
  type BatchId,
  type LogPosition,
  logPosition,
  type MirrorId,
  mirrorId,
  type RunId,
  runId,
  type Sequence,
  type Sha256,
  sequence,
  sha256FromHex,
  type TargetId,
  targetId,
} from '../domain/ids.ts';
import { hashBytes } from './batches.ts';
import { big, bigOrNull, bytes, flag, number, one, type Row, text } from './decode.ts';
import { boundedRows } from './operations.ts';
import { type Queryable, run } from './pool.ts';

export type EntryKind = 'additions' | 'removals' | 'finish';

export interface LogHead {
  readonly logId: string;
  /** 0 where nothing was ever accepted. */
  readonly position: LogPosition;
  readonly entryHash: Sha256;
  /** What the next entry carries as the hash before its own: the entry's, and those of snapshots completed since. */
  readonly link: Sha256;
  /** The first position whose effects can be read. */
  readonly earliest: LogPosition;
}

export interface LogEntry {
  readonly position: LogPosition;
  readonly kind: EntryKind;
  readonly mirror: MirrorId;
  readonly target: TargetId;
  readonly run: RunId;
  readonly batch: BatchId;
  /** Sequence numbers of its operations, inclusive, rejected ones among them; `null` for a finish. */
  readonly first: Sequence | null;
  readonly last: Sequence | null;
  /** How many operations were accepted. */
  readonly effects: number;
  /** Over the sequence numbers of the rejected operations, which are left out. */
  readonly effectsHash: Sha256;
  readonly previousHash: Sha256;
  readonly entryHash: Sha256;
  /** Microseconds since 1970, UTC. */
  readonly recordedAt: bigint;
}

/** One accepted operation. */
export interface Effect {
  readonly sequence: Sequence;
  readonly action: 'upsert' | 'remove';
  readonly identityHash: Sha256;
  /** `null` for a removal. */
  readonly payloadHash: Sha256 | null;
  /** Canonical JSON. */
  readonly identity: string;
  /** The accepted upsert or removal payload, canonical JSON. */
  readonly payload: string;
}

const HEAD = `
  select j.log_id::text as log_id, h.position, encode(h.entry_hash, 'hex') as entry_hash, encode(h.link, 'hex') as link, h.earliest
  from retl.log_head h, retl.journal j`;

/** @throws JournalError */
export async function logHead(db: Queryable): Promise<LogHead> {
  const row = one(await run(db, HEAD));
  return {
    logId: text(row, 'log_id'),
    position: logPosition(big(row, 'position')),
    entryHash: sha256FromHex(text(row, 'entry_hash')),
    link: sha256FromHex(text(row, 'link')),
    earliest: logPosition(big(row, 'earliest')),
  };
}

/** Of retl.log_entry, for {@link decodeEntry}. */
export const ENTRY_COLUMNS = `position, kind, mirror_id, target_id, run_id, encode(batch_id, 'hex') as batch_id, first_sequence,
    last_sequence, effects, encode(effects_hash, 'hex') as effects_hash, encode(previous_hash, 'hex') as previous_hash,
    encode(entry_hash, 'hex') as entry_hash, (extract(epoch from recorded_at) * 1000000)::bigint as recorded_at`;

const ENTRIES = `
  select ${ENTRY_COLUMNS} from retl.log_entry where position > $1 order by position limit $2`;

/** The entries that follow position `after`, in order; `limit` at most. @throws JournalError */
export async function readEntries(
  db: Queryable,
  after: LogPosition,
  limit: number,
): Promise<readonly LogEntry[]> {
  return (await run(db, ENTRIES, [after, limit])).map(decodeEntry);
}

export function decodeEntry(row: Row): LogEntry {
  const first = bigOrNull(row, 'first_sequence');
  const last = bigOrNull(row, 'last_sequence');
  return {
    position: logPosition(big(row, 'position')),
    kind: text(row, 'kind') as EntryKind,
    mirror: mirrorId(big(row, 'mirror_id')),
    target: targetId(big(row, 'target_id')),
    run: runId(big(row, 'run_id')),
    batch: sha256FromHex(text(row, 'batch_id')),
    first: first === null ? null : sequence(first),
    last: last === null ? null : sequence(last),
    effects: number(row, 'effects'),
    effectsHash: sha256FromHex(text(row, 'effects_hash')),
    previousHash: sha256FromHex(text(row, 'previous_hash')),
    entryHash: sha256FromHex(text(row, 'entry_hash')),
    recordedAt: big(row, 'recorded_at'),
  };
}

/**
 * The hash that an entry must carry. Encoding: fixed-width big-endian integers, a length before the one text; the sequence
 * numbers of a finish are 0.
 */
export function entryHash(e: LogEntry): Sha256 {
  const kind = Buffer.from(e.kind, 'utf8');
  const encoded = Buffer.concat([
    hashBytes(e.previousHash),
    int64(e.position),
    int32(kind.length),
    kind,
    int64(e.mirror),
    int64(e.target),
    int64(e.run),
    hashBytes(e.batch),
    int64(e.first ?? 0n),
    int64(e.last ?? 0n),
    int32(e.effects),
    hashBytes(e.effectsHash),
    int64(e.recordedAt),
  ]);
  return sha256FromHex(createHash('sha256').update(encoded).digest('hex'));
}

export function int64(value: bigint): Buffer {
  const buffer = Buffer.alloc(8);
  buffer.writeBigInt64BE(value);
  return buffer;
}

function int32(value: number): Buffer {
  const buffer = Buffer.alloc(4);
  buffer.writeInt32BE(value);
  return buffer;
}

/** Where the rows of a run's operations hold their payloads; the names of tables are made of numbers only. */
export interface OperationRows {
  readonly run: RunId;
  /** Of all of its operations, or after a compaction of those that something still refers to. */
  readonly table: string;
  readonly holdBytes: boolean;
  readonly generation: bigint | null;
}

const OPERATION_ROWS = `
  select r.run_id, r.kept_in, coalesce(r.operations_hold_bytes, true) as hold_bytes, g.generation_id
  from retl.run r left join retl.generation g on g.run_id = r.run_id and g.state <> 'discarded'
  where r.run_id = $1`;

/** @throws JournalError */
export async function operationRows(db: Queryable, id: RunId): Promise<OperationRows> {
  const row = one(await run(db, OPERATION_ROWS, [id]));
  const keptIn = bigOrNull(row, 'kept_in');
  return {
    run: runId(big(row, 'run_id')),
    table: keptIn === null ? `retl.operation_${id}` : `retl.kept_${id}_${keptIn}`,
    holdBytes: flag(row, 'hold_bytes'),
    generation: bigOrNull(row, 'generation_id'),
  };
}

/**
 * A query of a run's upserts or removals that `where` names by the alias `o`: sequence, hashes of identity, payload and removal,
 * identity, payload, removal bytes, rejected; and which hash, if one, the row that holds the texts has otherwise (`other`).
 */
export function operationsOf(rows: OperationRows, action: 'upsert' | 'remove', where: string): string {
  const fromGeneration = action === 'upsert' && !rows.holdBytes;
  const b = fromGeneration ? 'g' : 'o';
  const payload = action === 'upsert' ? 'upsert' : 'remove';
  const join = fromGeneration ? `join retl.generation_${rows.generation} g on g.row_no = o.row_no` : '';
  const other = (column: string) => `g.${column} is distinct from o.${column}`;
  const differs = fromGeneration
    ? `case when ${other('identity_hash')} then 'identity' when ${other('payload_hash')} then 'effects'
        when ${other('removal_hash')} then 'removal' end`
    : 'null';
  return `select o.sequence, o.identity_hash, o.payload_hash, o.removal_hash, ${b}.identity, ${b}.${payload} as payload,
      coalesce(${b}.remove, ${b}.identity) as removal,
      exists (select from retl.rejection x where x.sequence = o.sequence) as rejected, ${differs} as other
    from ${rows.table} o ${join} where ${where}`;
}

/** {@link operationsOf} all operations of an entry, in order of the identity hash. @throws JournalError */
export async function operationRowsOf(db: Queryable, entry: LogEntry): Promise<readonly Row[]> {
  if (entry.first === null) return [];
  const action = actionOf(entry);
  const rows = await operationRows(db, entry.run);
  const bounded = action === 'upsert' && !rows.holdBytes ? ` and ${boundedRows(rows.run)}` : '';
  const range = `o.sequence between $1 and $2${bounded}`;
  const query = `${operationsOf(rows, action, range)} order by o.identity_hash`;
  return run(db, query, [entry.first, entry.last]);
}

export function actionOf({ kind }: LogEntry): 'upsert' | 'remove' {
  return kind === 'removals' ? 'remove' : 'upsert';
}

/**
 * What an entry says was accepted, in order of the identity hash; rejected operations are left out. Empty for a finish.
 * @throws JournalError; Error where rows that the entry refers to are missing.
 */
export async function readEffects(db: Queryable, entry: LogEntry): Promise<readonly Effect[]> {
  const action = actionOf(entry);
  const effects = (await operationRowsOf(db, entry))
    .filter((row) => !flag(row, 'rejected'))
    .map((row) => ({
      sequence: sequence(big(row, 'sequence')),
      action,
      identityHash: named(row, 'identity_hash'),
      payloadHash: action === 'remove' ? null : named(row, 'payload_hash'),
      identity: text(row, 'identity'),
      payload: text(row, 'payload'),
    }));
  if (effects.length !== entry.effects)
    throw new Error(`effects of log position ${entry.position} are missing`);
  return effects;
}

function named(row: Row, column: string): Sha256 {
  return sha256FromHex(bytes(row, column).toString('hex'));
}
