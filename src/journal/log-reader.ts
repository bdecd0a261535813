/**
 * The log as indexers read it (design.md sections 5 and 7): from a position on, in pages of whole entries, each with its
 * effects. A page costs a few statements, however many effects are in it: neighbouring entries of one run are read as ranges of
 * its numbered operations.
 */

import type { LogPosition } from '../domain/ids.ts';
import { big, number, numberOrNull, one } from './decode.ts';
import { JournalError } from './errors.ts';
import { decodeEntry, ENTRY_COLUMNS, type LogEntry, logHead, operationRows } from './log.ts';
import {
  type AskedValues,
  decodeColumns,
  type EffectColumns,
  EntryEffects,
  effectsQuery,
} from './log-effects.ts';
import { type Queryable, run } from './pool.ts';

export type LogPage =
  /** Whole entries that follow one another without a gap; at least one. */
  | { readonly kind: 'entries'; readonly entries: readonly EntryEffects[] }
  /** Nothing follows yet. */
  | { readonly kind: 'end' }
  /** What follows is only in the log snapshot: the reader begins anew from there. */
  | { readonly kind: 'compacted'; readonly earliest: LogPosition };

export interface ReadOptions {
  /** A page ends with the entry that reaches so many effects. */
  readonly effects?: number;
  /** Identities, or payloads too, for those who may see them. */
  readonly values?: AskedValues;
  /** With values, a page also ends with the entry whose requests reach so many bytes. */
  readonly bytes?: number;
}

const PAGE_EFFECTS = 20_000;
const PAGE_BYTES = 16_777_216;
const PAGE_ENTRIES = 1_000;

/**
 * What was accepted after position `after`. What is read is never changed, so that a page needs no transaction.
 * @throws JournalError; MissingEffects where rows that an entry refers to are missing.
 */
export async function readLogPage(
  db: Queryable,
  after: LogPosition,
  options: ReadOptions = {},
): Promise<LogPage> {
  const compacted = await compactedAfter(db, after);
  if (compacted !== null) return compacted;
  const entries = await readBounded(db, after, options);
  if (entries.length === 0) return { kind: 'end' };
  try {
    return { kind: 'entries', entries: await withEffects(db, entries, options.values ?? 'none') };
  } catch (error) {
    // A compaction may have been completed since, and have taken the rows.
    const since = isMissing(error) ? await compactedAfter(db, after) : null;
    if (since !== null) return since;
    throw error;
  }
}

async function compactedAfter(db: Queryable, after: LogPosition): Promise<LogPage | null> {
  const { earliest } = await logHead(db);
  return after + 1n < earliest ? { kind: 'compacted', earliest } : null;
}

/** 42P01: the table has gone between two statements. */
function isMissing(error: unknown): boolean {
  return error instanceof MissingEffects || (error instanceof JournalError && error.sqlState === '42P01');
}

export class MissingEffects extends Error {
  override readonly name = 'MissingEffects';
  constructor(readonly position: LogPosition) {
    super(`effects of log position ${position} are missing`);
  }
}

/** Whole entries up to the bounds: the server looks at no more than PAGE_ENTRIES, and gives back those of the page only. */
const ENTRIES = `
  select ${ENTRY_COLUMNS} from (
    select e.*, sum(effects) over w - effects as effects_before, sum(size) over w - size as size_before
    from (select e.*, case when $4 then coalesce((
          select b.request_bytes from retl.batch b where b.batch_id = e.batch_id), 0) else 0 end as size
        from retl.log_entry e where position > $1 order by position limit ${PAGE_ENTRIES}) e
    window w as (order by position)) p
  where effects_before < $2 and size_before < $3 order by position`;

async function readBounded(
  db: Queryable,
  after: LogPosition,
  options: ReadOptions,
): Promise<readonly LogEntry[]> {
  const { effects = PAGE_EFFECTS, bytes: size = PAGE_BYTES, values = 'none' } = options;
  return (await run(db, ENTRIES, [after, effects, size, values !== 'none'])).map(decodeEntry);
}

async function withEffects(
  db: Queryable,
  entries: readonly LogEntry[],
  values: AskedValues,
): Promise<readonly EntryEffects[]> {
  const found = new Map<LogPosition, EffectColumns>();
  for (const group of groupsOf(entries)) {
    const rows = await operationRows(db, group.run);
    const own = group.entries.filter((entry) => entry.first !== null);
    const query = effectsQuery(rows, group.kind === 'removals' ? 'remove' : 'upsert', {
      values,
      leaveOut: own.some(({ first, last, effects }) => BigInt(effects) !== (last ?? 0n) - (first ?? 0n) + 1n),
    });
    const ranges = [own.map(({ first }) => first), own.map(({ last }) => last)];
    for (const row of await run(db, query, ranges)) {
      const entry = own[number(row, 'n') - 1];
      if (entry !== undefined) found.set(entry.position, decodeColumns(row));
    }
  }
  return entries.map((entry) => {
    const read = new EntryEffects(entry, found.get(entry.position));
    if (read.columns.count !== entry.effects) throw new MissingEffects(entry.position);
    return read;
  });
}

interface Group {
  readonly run: LogEntry['run'];
  readonly kind: LogEntry['kind'];
  readonly entries: readonly LogEntry[];
}

/** By run and kind: what one statement reads. */
function groupsOf(entries: readonly LogEntry[]): readonly Group[] {
  const groups = new Map<string, { run: Group['run']; kind: Group['kind']; entries: LogEntry[] }>();
  for (const entry of entries) {
    if (entry.first === null) continue;
    const key = `${entry.run} ${entry.kind}`;
    const group = groups.get(key);
    if (group === undefined) groups.set(key, { run: entry.run, kind: entry.kind, entries: [entry] });
    else group.entries.push(entry);
  }
  return [...groups.values()];
}

const ENTRY_AT = `select ${ENTRY_COLUMNS} from retl.log_entry where position = $1`;

/** Entries are kept for good, compacted or not: what a checkpoint's entry hash is held against. @throws JournalError */
export async function entryAt(db: Queryable, position: LogPosition): Promise<LogEntry | null> {
  const [row] = await run(db, ENTRY_AT, [position]);
  return row === undefined ? null : decodeEntry(row);
}

/** How far somebody who has processed the log up to a position is behind its head. */
export interface LogLag {
  /** Negative: he is ahead, so that this is not the log he has read. */
  readonly positions: bigint;
  /** Since the oldest entry that he has not processed was accepted, by the journal's clock; 0 where there is none. */
  readonly ms: number;
}

const LAG = `
  select h.position - $1 as positions, (
    select greatest(0, floor(extract(epoch from clock_timestamp() - e.recorded_at) * 1000)) from retl.log_entry e
    where e.position = $1 + 1) as ms
  from retl.log_head h`;

/** @throws JournalError */
export async function logLag(db: Queryable, processed: LogPosition): Promise<LogLag> {
  const row = one(await run(db, LAG, [processed]));
  return { positions: big(row, 'positions'), ms: numberOrNull(row, 'ms') ?? 0 };
}
