/** How the log stands, for people: where it begins and ends, its snapshots, who holds compaction back, and what it takes. */

import type { LogPosition } from '../domain/ids.ts';
import { type CompactionHold, compactionHolds } from './compaction.ts';
import { dateOrNull, number, type Row } from './decode.ts';
import { logHead } from './log.ts';
import { type LogSnapshot, logSnapshots } from './log-snapshot.ts';
import { type Queryable, run } from './pool.ts';

/** Bytes on disk, with indexes. */
export interface LogSizes {
  /** Entries of the log. */
  readonly entries: number;
  /** Operations of runs, whole or what is left of them. */
  readonly operations: number;
  /** Sealed rows of generations. */
  readonly generations: number;
  readonly membership: number;
  readonly snapshots: number;
  /** Batches with their receipts. */
  readonly batches: number;
}

export interface LogStatus {
  readonly logId: string;
  readonly earliest: LogPosition;
  /** 0 where nothing was ever accepted. */
  readonly head: LogPosition;
  readonly headAt: Date | null;
  readonly entryHash: string;
  /** Oldest first. */
  readonly snapshots: readonly LogSnapshot[];
  readonly holds: readonly CompactionHold[];
  readonly bytes: LogSizes;
}

const HEAD_AT = 'select max(recorded_at) as head_at from retl.log_entry where position = $1';

const sizeOf = (pattern: string, name: string) =>
  `coalesce(sum(pg_total_relation_size(c.oid)) filter (where c.relname ~ '^(${pattern})$'), 0) as ${name}`;

const SIZES = `
  select ${sizeOf('log_entry', 'entries')}, ${sizeOf('(operation|kept)_[0-9_]+', 'operations')},
    ${sizeOf('generation_[0-9]+', 'generations')}, ${sizeOf('membership_[0-9]+', 'membership')},
    ${sizeOf('snapshot_[0-9]+', 'snapshots')}, ${sizeOf('batch', 'batches')}
  from pg_class c where c.relnamespace = 'retl'::regnamespace and c.relkind = 'r'`;

/** @throws JournalError */
export async function logStatus(db: Queryable): Promise<LogStatus> {
  const { logId, earliest, position, entryHash } = await logHead(db);
  const [at] = await run(db, HEAD_AT, [position]);
  const [sizes] = await run(db, SIZES);
  return {
    logId,
    earliest,
    head: position,
    headAt: at === undefined ? null : dateOrNull(at, 'head_at'),
    entryHash,
    snapshots: await logSnapshots(db),
    holds: await compactionHolds(db),
    bytes: sizesOf(sizes ?? {}),
  };
}

function sizesOf(row: Row): LogSizes {
  return {
    entries: number(row, 'entries'),
    operations: number(row, 'operations'),
    generations: number(row, 'generations'),
    membership: number(row, 'membership'),
    snapshots: number(row, 'snapshots'),
    batches: number(row, 'batches'),
  };
}
