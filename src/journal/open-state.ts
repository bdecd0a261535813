/**
 * What an open run is doing, as the journal has it: in one place, so that `retl status`, `retl runs`, metrics and the refusal of a
 * second run agree, and none of them needs Temporal. An attempt that cannot go on notes why (`retl.note_wait`). What it noted
 * holds while no newer attempt has begun; that the run is blocked, for as long as the batch is open, whoever asks again.
 */

import { sha256FromHex } from '../domain/ids.ts';
import { type Doing, NOBODY_LOOKS } from '../domain/needed.ts';
import type { OpenState, Phase } from '../domain/run.ts';
import { dateOrNull, number, type Row, text, textOrNull } from './decode.ts';
import { call, type Queryable, run } from './pool.ts';
import type { Attempt } from './runs.ts';
import { safeCode } from './safe-text.ts';

/** Nobody has looked for so long past the time that was set for it: nobody will, before somebody sees to it. */
const LATE = '5 minutes';

/** Longer than an attempt sends, or waits for answers, without a word to the journal of why it cannot go on. */
const ATTEMPT_LOST = '15 minutes';

/** What an attempt notes where it could not go on. `ms`: until it looks again by itself; `null`: it does not. */
export interface WaitNote {
  readonly kind: 'waiting' | 'pending' | 'blocked';
  readonly code: string;
  readonly batch: string | null;
  readonly ms: number | null;
}

/** A week: longer than a run waits without looking again. */
const LONGEST_MS = 604_800_000;

/** Notes why the attempt could not go on; `null`: it could. @throws JournalError */
export async function noteWait(db: Queryable, a: Attempt, note: WaitNote | null): Promise<void> {
  await call(db, `retl.note_wait($1,$2,$3,$4,decode($5, 'hex'),$6)`, [
    a.run,
    a.epoch,
    note?.kind ?? 'none',
    note === null ? null : safeCode(note.code),
    note === null || note.batch === null ? null : note.batch.slice('sha256:'.length),
    note === null || note.ms === null ? null : Math.min(LONGEST_MS, Math.max(0, Math.round(note.ms))),
  ]);
}

/** Begins the reason of a batch of whose jobs the destination can tell nothing: a person decides. */
export const JOBS_LOST = 'jobs-lost:';

/** The oldest of the open run's batches that `holds`: its id, reason and stamp. */
const oldest = (column: string, stamp: string, holds: string) =>
  `(array_agg(${column} order by b.${stamp}) filter (where ${holds}))[1]`;

/**
 * A lateral join of one row: what the run `r` of the query is doing (state, code, batch, since); no row where it is closed. What
 * it reads is what is open of that run.
 */
export const doingOf = (r: string) => `lateral (
  select s.state, s.code::text as code, s.batch::bytea as batch, s.since
  from (
      select count(*) filter (where b.state in ('unknown', 'staged')) as unresolved,
        ${oldest('b.batch_id::bytea', 'staged_at', LOST)} as lost, ${oldest('b.reason::text', 'staged_at', LOST)} as lost_why,
        ${oldest('b.batch_id::bytea', 'sent_at', UNKNOWN)} as unknown, ${oldest('b.reason::text', 'sent_at', UNKNOWN)} as unknown_why,
        min(b.sent_at) filter (where ${UNKNOWN}) as unknown_since,
        ${oldest('b.batch_id::bytea', 'staged_at', STAGED)} as staged, ${oldest('b.reason::text', 'staged_at', STAGED)} as staged_why,
        min(b.staged_at) filter (where ${STAGED}) as staged_since,
        ${oldest('b.batch_id::bytea', 'retry_at', DELAYED)} as delayed, ${oldest('b.reason::text', 'retry_at', DELAYED)} as delayed_why
      from retl.batch b
      where b.run_id = ${r}.run_id and b.state in ('unknown', 'staged', 'not-applied') and ${r}.closing is null) b,
    lateral (
      select coalesce(${r}.wait_epoch = ${r}.epoch or ${r}.wait_kind = 'blocked' and exists (
          select from retl.batch w where w.batch_id = ${r}.wait_batch and w.state in ('unknown', 'staged')), false) as noted) noting,
    lateral (
      select case when noting.noted then ${r}.wait_until < clock_timestamp() - interval '${LATE}'
        else (select a.started_at from retl.attempt a where a.epoch = ${r}.epoch) < clock_timestamp() - interval '${ATTEMPT_LOST}'
        end as late) lateness,
    lateral (values
      (1, ${r}.released is not null, ${r}.released, ${r}.reason::text, null::bytea, null::timestamptz),
      (2, ${r}.parked_code is not null, 'parked', ${r}.parked_code, null, ${r}.parked_at),
      (3, noting.noted and ${r}.wait_kind = 'blocked', 'blocked', ${r}.wait_code::text, ${r}.wait_batch::bytea, ${r}.wait_since),
      (4, b.lost is not null, 'blocked', substr(b.lost_why, ${JOBS_LOST.length + 1}), b.lost, b.staged_since),
      (5, b.unresolved > 0 and lateness.late, 'blocked', '${NOBODY_LOOKS}', null, ${r}.wait_until),
      (6, noting.noted, ${r}.wait_kind, ${r}.wait_code::text, ${r}.wait_batch::bytea, ${r}.wait_since),
      (7, b.unknown is not null, 'waiting', b.unknown_why, b.unknown, b.unknown_since),
      (8, b.staged is not null, 'pending', coalesce(b.staged_why, 'staged'), b.staged, b.staged_since),
      (9, b.delayed is not null, 'waiting', b.delayed_why, b.delayed, null),
      (10, true, 'running', null, null, null)
    ) s(nr, holds, state, code, batch, since)
  where s.holds and ${r}.closing is null order by s.nr limit 1)`;

const UNKNOWN = `b.state = 'unknown'`;
const STAGED = `b.state = 'staged'`;
const LOST = `b.state = 'staged' and b.reason like '${JOBS_LOST}%'`;
/** What became of a batch `b` is unknown also where its destination can tell nothing of its jobs. */
export const NOT_KNOWN = `(${UNKNOWN} or ${LOST})`;
const DELAYED = `b.state = 'not-applied' and b.retry_at > clock_timestamp()
  and not exists (select from retl.batch s where s.retry_of = b.batch_id)`;

/** Columns of {@link doingOf}'s row, named `d`, as {@link decodeDoing} reads them. */
export const DOING_COLUMNS = `d.state as doing, d.code as doing_code, encode(d.batch, 'hex') as doing_batch, d.since as doing_since`;

/** `null`: the run is closed. */
export function decodeDoing(row: Row): Doing | null {
  const state = textOrNull(row, 'doing');
  if (state === null) return null;
  const batch = textOrNull(row, 'doing_batch');
  return {
    state: state as OpenState,
    code: textOrNull(row, 'doing_code'),
    batch: batch === null ? null : sha256FromHex(batch),
    since: dateOrNull(row, 'doing_since'),
  };
}

/** The open run of a mirror, and what it is doing. */
export interface OpenRunDoing extends Doing {
  readonly run: string;
  readonly phase: Phase;
  /** Ms by the journal's clock since it has been so; `null`: not known. */
  readonly forMs: number | null;
}

const OPEN_RUN = `
  select r.run_id::text as run, r.phase, ${DOING_COLUMNS},
    floor(extract(epoch from clock_timestamp() - d.since) * 1000)::bigint as for_ms
  from retl.run r join retl.mirror m using (mirror_id) cross join ${doingOf('r')} d
  where m.name = $1 and r.closing is null`;

/** `null`: none is open. @throws JournalError */
export async function openRunDoing(db: Queryable, mirror: string): Promise<OpenRunDoing | null> {
  const [row] = await run(db, OPEN_RUN, [mirror]);
  const doing = row === undefined ? null : decodeDoing(row);
  if (row === undefined || doing === null) return null;
  const forMs = row.for_ms === null ? null : Math.max(0, number(row, 'for_ms'));
  return { ...doing, run: text(row, 'run'), phase: text(row, 'phase') as Phase, forMs };
}
