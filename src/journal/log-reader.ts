/**
 * The log as indexers read it (design.md sections 5 and 7): from a position on, in pages of whole entries, each with its
 * effects in order of the identity hash. A page costs a few statements, however many effects are in it: neighbouring entries
 * of one run are read as ranges of its numbered operations, and their hashes come packed in one value an entry.
 */

import type { LogPosition } from '../domain/ids.ts';
import { big, bytes, number, numberOrNull, one, type Row, textOrNull } from './decode.ts';
import { JournalError } from './errors.ts';
import {
  decodeEntry,
  ENTRY_COLUMNS,
  type LogEntry,
  logHead,
  type OperationRows,
  operationRows,
} from './log.ts';
import { type Queryable, run } from './pool.ts';

/** `keep`: an unchanged member was sent once more. It moves the time of its last acceptance, nothing else. */
export type EffectAction = 'add' | 'change' | 'keep' | 'remove';

/** One accepted operation. The hashes are 32 bytes, and views of a larger buffer: copy what is to be kept. */
export interface LogEffect {
  readonly sequence: bigint;
  readonly action: EffectAction;
  readonly identityHash: Buffer;
  /** `null` for a removal. */
  readonly payloadHash: Buffer | null;
  /** Canonical JSON; `null` where values were not asked for. */
  readonly identity: string | null;
  /** The accepted upsert or removal payload, likewise. */
  readonly payload: string | null;
}

export interface EntryEffects {
  readonly entry: LogEntry;
  readonly effects: readonly LogEffect[];
}

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
  /** Identities and payloads too, for those who may see them. */
  readonly values?: boolean;
  /** With values, a page also ends with the entry whose requests reach so many bytes. */
  readonly bytes?: number;
}

const PAGE_EFFECTS = 20_000;
const PAGE_BYTES = 16_777_216;
const PAGE_ENTRIES = 1_000;

/**
 * What was accepted after position `after`. What is read is never changed, so that a page needs no transaction.
 * @throws JournalError; Error where rows that an entry refers to are missing.
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
    return { kind: 'entries', entries: await withEffects(db, entries, options.values === true) };
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
  const { effects = PAGE_EFFECTS, bytes: size = PAGE_BYTES, values = false } = options;
  return (await run(db, ENTRIES, [after, effects, size, values])).map(decodeEntry);
}

async function withEffects(
  db: Queryable,
  entries: readonly LogEntry[],
  values: boolean,
): Promise<readonly EntryEffects[]> {
  const found = new Map<LogPosition, readonly LogEffect[]>();
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
      if (entry !== undefined) found.set(entry.position, unpack(row));
    }
  }
  return entries.map((entry) => {
    const effects = found.get(entry.position) ?? [];
    if (effects.length !== entry.effects)
      throw new MissingEffects(`effects of log position ${entry.position} are missing`);
    return { entry, effects };
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

const ZEROS = `'\\x${'00'.repeat(32)}'::bytea`;
/** Identity hash, payload hash, sequence number, change. */
const EFFECT_BYTES = 73;

/**
 * The effects of ranges of one run's operations, packed; the names of tables are made of numbers only. Canonical JSON has
 * no line feed in it, so that one separates the values. They come in whatever order, alike in each column: sorting them here
 * would take longer than reading them.
 */
function effectsQuery(
  rows: OperationRows,
  action: 'upsert' | 'remove',
  { values, leaveOut }: { readonly values: boolean; readonly leaveOut: boolean },
): string {
  const fromGeneration = values && action === 'upsert' && !rows.holdBytes;
  const rowOf = (of: string) => `(select f.row_no from ${rows.table} f where f.sequence = e.${of})`;
  // Both sides of the join are bounded, else each range would read the whole generation.
  const join = fromGeneration
    ? `join retl.generation_${rows.generation} g on g.row_no = o.row_no
         and g.row_no between ${rowOf('first')} and ${rowOf('last')}`
    : '';
  const b = fromGeneration ? 'g' : 'o';
  const joined = (column: string) => `string_agg(${column}, E'\\n')`;
  const texts = values
    ? `, ${joined(`${b}.identity`)} as identities, ${joined(`${b}.${action}`)} as payloads`
    : '';
  const rejected = leaveOut
    ? 'and not exists (select from retl.rejection r where r.sequence = o.sequence)'
    : '';
  const packed = `o.identity_hash || coalesce(o.payload_hash, ${ZEROS}) || int8send(o.sequence)
      || convert_to(o.change::text, 'UTF8')`;
  return `
    select e.n, x.* from unnest($1::bigint[], $2::bigint[]) with ordinality e(first, last, n) cross join lateral (
      select string_agg(${packed}, ''::bytea) as packed ${texts}
      from ${rows.table} o ${join}
      where o.sequence between e.first and e.last ${rejected}) x
    where x.packed is not null`;
}

function unpack(row: Row): readonly LogEffect[] {
  const packed = bytes(row, 'packed');
  const identities = textOrNull(row, 'identities')?.split('\n');
  const payloads = textOrNull(row, 'payloads')?.split('\n');
  const effects: LogEffect[] = [];
  for (let at = 0, n = 0; at < packed.length; at += EFFECT_BYTES, n += 1) {
    const action = actionOf(packed[at + EFFECT_BYTES - 1]);
    effects.push({
      sequence: packed.readBigInt64BE(at + 64),
      action,
      identityHash: packed.subarray(at, at + 32),
      payloadHash: action === 'remove' ? null : packed.subarray(at + 32, at + 64),
      identity: identities?.[n] ?? null,
      payload: payloads?.[n] ?? null,
    });
  }
  return effects.sort((a, b) => a.identityHash.compare(b.identityHash));
}

function actionOf(change: number | undefined): EffectAction {
  switch (change) {
    case 0x61:
      return 'add';
    case 0x63:
      return 'change';
    case 0x72:
      return 'remove';
    default:
      return 'keep';
  }
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
