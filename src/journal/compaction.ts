/**
 * Compaction of the log, and retention (design.md section 5): a log snapshot is built, digested and completed, and what only
 * served older entries goes. Each call is one bounded step of the journal in one transaction (migrations/0007): whoever dies
 * has lost that step, and anybody goes on. Writers and readers go on meanwhile.
 */

import { type LogPosition, logPosition, runId, type Sha256, sha256FromHex } from '../domain/ids.ts';
import { big, bigOrNull, date, flag, number, object, type Row, text } from './decode.ts';
import { call, type Queryable, run } from './pool.ts';

/** Rows of one step: some hundred milliseconds. */
export const STEP_ROWS = 20_000;
/** How long tables are kept that somebody may have begun to read, in ms. */
export const GRACE_MS = 3_600_000;

/** Number of one log snapshot; 1 to 2^63−1, never used again. */
export type SnapshotId = bigint;

export type Begun =
  /** `building`: one had been begun already, perhaps up to another boundary; it is to be finished first. */
  | { readonly kind: 'begun' | 'building'; readonly snapshot: SnapshotId; readonly boundary: LogPosition }
  /** Everything up to there is in a log snapshot already. */
  | { readonly kind: 'nothing'; readonly earliest: LogPosition }
  /** An index needs all that there is. */
  | { readonly kind: 'held'; readonly by: string; readonly position: LogPosition };

/**
 * Begins a log snapshot of everything up to `boundary`, or to the head, or to what an index holds back, whichever is least.
 * @throws JournalError
 */
export async function beginCompaction(db: Queryable, boundary: LogPosition): Promise<Begun> {
  const row = object(await call(db, 'retl.begin_compaction($1)', [boundary]));
  const kind = text(row, 'kind');
  if (kind === 'nothing') return { kind, earliest: logPosition(big(row, 'earliest')) };
  if (kind === 'held') return { kind, by: text(row, 'by'), position: logPosition(big(row, 'position')) };
  return {
    kind: kind === 'building' ? kind : 'begun',
    snapshot: big(row, 'snapshot'),
    boundary: logPosition(big(row, 'boundary')),
  };
}

export type CompactStep =
  | { readonly kind: 'idle' }
  | {
      readonly kind: 'building';
      readonly snapshot: SnapshotId;
      readonly state: 'copying' | 'applying' | 'digesting';
      readonly applied: LogPosition;
      readonly boundary: LogPosition;
    }
  /** An index has come to need what lies before the boundary: the snapshot is completed when it lets go. */
  | {
      readonly kind: 'held';
      readonly by: string;
      readonly position: LogPosition;
      readonly boundary: LogPosition;
    }
  | {
      readonly kind: 'complete';
      readonly snapshot: SnapshotId;
      readonly boundary: LogPosition;
      readonly members: bigint;
      readonly digest: Sha256;
    };

const STATES = ['copying', 'applying', 'digesting'] as const;

/** The next step of the log snapshot that is being built, of about `rows` rows. @throws JournalError */
export async function compactStep(db: Queryable, rows: number): Promise<CompactStep> {
  const row = object(await call(db, 'retl.compact_step($1)', [rows]));
  const kind = text(row, 'kind');
  if (kind === 'idle') return { kind };
  const boundary = logPosition(big(row, 'boundary'));
  if (kind === 'held')
    return { kind, by: text(row, 'by'), position: logPosition(big(row, 'position')), boundary };
  const snapshot = big(row, 'snapshot');
  if (kind === 'complete')
    return {
      kind,
      snapshot,
      boundary,
      members: big(row, 'members'),
      digest: sha256FromHex(text(row, 'digest')),
    };
  const state = STATES.find((one) => one === text(row, 'state')) ?? 'applying';
  return { kind: 'building', snapshot, state, applied: logPosition(big(row, 'applied')), boundary };
}

export type SweepStep =
  /** A run was looked at, or a part of it copied to a table of its own. */
  | { readonly kind: 'swept'; readonly run: bigint }
  | { readonly kind: 'dropped' }
  /** So many tables are dropped later: their time has not come, or somebody reads them. */
  | { readonly kind: 'idle'; readonly waiting: number };

/**
 * The next step of dropping what only served entries before the beginning of the log.
 * @param graceMs how long tables are kept that a reader may have begun to read.
 * @throws JournalError
 */
export async function sweepStep(db: Queryable, rows: number, graceMs: number): Promise<SweepStep> {
  const row = object(await call(db, 'retl.sweep_step($1, $2)', [rows, graceMs]));
  const kind = text(row, 'kind');
  if (kind === 'swept') return { kind, run: runId(big(row, 'run')) };
  return kind === 'dropped' ? { kind } : { kind: 'idle', waiting: number(row, 'waiting') };
}

/**
 * Takes away providers' answers and attempts of runs that were closed more than `ageMs` ago, at most about `rows` rows.
 * @param ageMs a day at least.
 * @returns how many runs are done with, and whether there may be more to do.
 * @throws JournalError
 */
export async function pruneClosed(
  db: Queryable,
  ageMs: number,
  rows: number,
): Promise<{ readonly runs: number; readonly more: boolean }> {
  const row = object(await call(db, 'retl.prune_closed($1, $2)', [ageMs, rows]));
  return { runs: number(row, 'runs'), more: flag(row, 'more') };
}

export type Held = { readonly kind: 'held' } | { readonly kind: 'compacted'; readonly earliest: LogPosition };

/**
 * Says that an index needs the effects after `position`, so that compaction goes no further; a later call moves it.
 * `compacted`: some of them can no longer be read; nothing is held.
 * @throws JournalError
 */
export async function holdCompaction(db: Queryable, index: string, position: LogPosition): Promise<Held> {
  const row = object(await call(db, 'retl.hold_compaction($1, $2)', [index, position]));
  return text(row, 'kind') === 'held'
    ? { kind: 'held' }
    : { kind: 'compacted', earliest: logPosition(big(row, 'earliest')) };
}

/** @throws JournalError */
export async function releaseCompaction(db: Queryable, index: string): Promise<void> {
  await call(db, 'retl.release_compaction($1)', [index]);
}

export interface CompactionHold {
  readonly index: string;
  readonly position: LogPosition;
  readonly heldAt: Date;
}

const HOLDS = 'select index_name, position, held_at from retl.compaction_hold order by position, index_name';

/** Those that hold back most first. @throws JournalError */
export async function compactionHolds(db: Queryable): Promise<readonly CompactionHold[]> {
  return (await run(db, HOLDS)).map((row: Row) => ({
    index: text(row, 'index_name'),
    position: logPosition(big(row, 'position')),
    heldAt: date(row, 'held_at'),
  }));
}

/** Both in one value; 0 where none is old enough. */
const BEFORE = `
  select max(position) as position from (
    select position from retl.log_entry where recorded_at < clock_timestamp() - $1 * interval '1 ms'
    order by position desc limit 1) e`;

/** The last position that was accepted more than `ageMs` ago; 0 where there is none. @throws JournalError */
export async function positionBefore(db: Queryable, ageMs: number): Promise<LogPosition> {
  const [row] = await run(db, BEFORE, [ageMs]);
  return logPosition(row === undefined ? 0n : (bigOrNull(row, 'position') ?? 0n));
}
