/** Batches as the journal has them: what is open, what was refused, where the run's batches end. Reads only. */

import { type BatchId, type Sequence, type Sha256, sequence, sha256FromHex } from '../domain/ids.ts';
import type { BatchState } from '../domain/run.ts';
import { bigOrNull, flag, number, one, text, textOrNull } from './decode.ts';
import { type Queryable, run } from './pool.ts';
import type { Attempt } from './runs.ts';

export type BatchAction = 'init' | 'upsert' | 'remove' | 'finish';

export interface BatchRecord {
  readonly id: BatchId;
  readonly action: BatchAction;
  /** Sequence numbers of its operations, inclusive; `null` for steps. */
  readonly first: Sequence | null;
  readonly last: Sequence | null;
  /** Ordinal of this attempt to send these operations, from 1. */
  readonly sending: number;
  /** How often the same bytes went again while the outcome was unknown. */
  readonly resends: number;
  readonly state: BatchState;
  readonly requestHash: Sha256;
  readonly reason: string | null;
  /** Milliseconds, by the journal's clock, until its request can no longer reach the destination; 0: it has passed. */
  readonly deadlineInMs: number;
  /** Milliseconds, by the journal's clock, until its operations may be sent again; 0: now. */
  readonly retryInMs: number;
  readonly jobIds: readonly string[];
  /** Milliseconds, by the journal's clock, until its jobs are asked for again; 0: now. */
  readonly pollInMs: number;
  /** Milliseconds, by the journal's clock, since it was staged; 0 where it never was. */
  readonly stagedForMs: number;
  /** How often its jobs were asked for since, in vain. */
  readonly polls: number;
  readonly receipt: string | null;
  readonly progress: string | null;
}

/** Stamped and read by one clock: a worker whose own is a day off must neither wait for a day nor believe a day has passed. */
function left(stamp: 'send_deadline' | 'retry_at' | 'next_poll_at'): string {
  return `greatest(0, coalesce(ceil(extract(epoch from b.${stamp} - clock_timestamp()) * 1000), 0))::bigint`;
}

const COLUMNS = `encode(b.batch_id, 'hex') as batch_id, b.action, lower(b.operations) as first,
  upper(b.operations) - 1 as last, b.sending, b.resends, b.state, encode(b.request_hash, 'hex') as request_hash, b.reason,
  ${left('send_deadline')} as deadline_in_ms, ${left('retry_at')} as retry_in_ms, b.job_ids, b.receipt, b.progress,
  ${left('next_poll_at')} as poll_in_ms, b.polls,
  greatest(0, coalesce(floor(extract(epoch from clock_timestamp() - b.staged_at) * 1000), 0))::bigint as staged_for_ms`;

const OPEN = `
  select ${COLUMNS} from retl.batch b
  where b.run_id = $1 and b.state in ('prepared', 'sending', 'unknown', 'staged', 'not-applied')
    and not exists (select from retl.batch s where s.retry_of = b.batch_id)
    and not (b.state = 'not-applied' and b.operations is null)
  order by b.operations, b.action`;

/** What of the run is neither settled nor refused: the work an attempt does before it plans any (rule 5). */
export async function openBatches(db: Queryable, a: Attempt): Promise<readonly BatchRecord[]> {
  return (await run(db, OPEN, [a.run])).map(decodeBatch);
}

const REFUSED = `
  select j.stops, j.tolerated, coalesce(
      (select min(b.reason) from retl.batch b where b.run_id = r.run_id and b.state = 'refused'),
      (select min(x.code) from retl.rejection x where x.run_id = r.run_id)) as code,
    (select count(*) from retl.batch b where b.run_id = r.run_id and b.state = 'not-applied' and b.reason like $2 || ':%')
      as divided
  from retl.run r, retl.rejected_in(r) j where r.run_id = $1`;

/** What the destination refused for good in a run, and what that means for it (rule 5). */
export interface Refusals {
  /** Nothing more is sent. */
  readonly stops: boolean;
  /** Nothing was refused, or no more than the run tolerates. */
  readonly tolerated: boolean;
  readonly code: string | null;
  /** Requests whose reason begins with `divided`: they went again in halves. */
  readonly divided: number;
}

/** @throws JournalError */
export async function refusals(db: Queryable, a: Attempt, divided: string): Promise<Refusals> {
  const row = one(await run(db, REFUSED, [a.run, divided]));
  return {
    stops: flag(row, 'stops'),
    tolerated: flag(row, 'tolerated'),
    code: textOrNull(row, 'code'),
    divided: number(row, 'divided'),
  };
}

const LAST = `select max(upper(operations)) - 1 as last from retl.batch where run_id = $1 and action = $2`;

/** Last operation that is in a batch of this action; `null` before the first. @throws JournalError */
export async function lastPrepared(db: Queryable, a: Attempt, action: BatchAction): Promise<bigint | null> {
  return bigOrNull((await run(db, LAST, [a.run, action]))[0] ?? {}, 'last');
}

const STEP = `select ${COLUMNS} from retl.batch b where b.run_id = $1 and b.action = $2
  order by b.sending desc limit 1`;

/** The newest init or finish of the run; `null` where there is none. @throws JournalError */
export async function stepBatch(
  db: Queryable,
  a: Attempt,
  action: 'init' | 'finish',
): Promise<BatchRecord | null> {
  const row = (await run(db, STEP, [a.run, action]))[0];
  return row === undefined ? null : decodeBatch(row);
}

export interface SettledUpload {
  readonly id: BatchId;
  /** Sequence number of its last operation. */
  readonly last: bigint;
  readonly accepted: number;
  readonly receipt: string;
}

const UPLOADS = `select encode(b.batch_id, 'hex') as batch_id, upper(b.operations) - 1 as last, b.accepted, b.receipt
  from retl.batch b where b.run_id = $1 and b.action = 'upsert' and b.state in ('settled', 'uploaded')
    and lower(b.operations) > $2 and b.accepted > 0
  order by lower(b.operations) limit $3`;

/** The next accepted uploads of the run, in the order of their operations. @throws JournalError */
export async function settledUploads(
  db: Queryable,
  a: Attempt,
  after: bigint,
  limit: number,
): Promise<readonly SettledUpload[]> {
  const rows = await run(db, UPLOADS, [a.run, after, limit]);
  return rows.map((row) => ({
    id: sha256FromHex(text(row, 'batch_id')),
    last: BigInt(text(row, 'last')),
    accepted: number(row, 'accepted'),
    receipt: text(row, 'receipt'),
  }));
}

function decodeBatch(row: Record<string, unknown>): BatchRecord {
  const first = bigOrNull(row, 'first');
  const last = bigOrNull(row, 'last');
  return {
    id: sha256FromHex(text(row, 'batch_id')),
    action: text(row, 'action') as BatchAction,
    first: first === null ? null : sequence(first),
    last: last === null ? null : sequence(last),
    sending: number(row, 'sending'),
    resends: number(row, 'resends'),
    state: text(row, 'state') as BatchState,
    requestHash: sha256FromHex(text(row, 'request_hash')),
    reason: textOrNull(row, 'reason'),
    deadlineInMs: number(row, 'deadline_in_ms'),
    retryInMs: number(row, 'retry_in_ms'),
    jobIds: Array.isArray(row.job_ids) ? row.job_ids.map(String) : [],
    pollInMs: number(row, 'poll_in_ms'),
    stagedForMs: number(row, 'staged_for_ms'),
    polls: number(row, 'polls'),
    receipt: textOrNull(row, 'receipt'),
    progress: textOrNull(row, 'progress'),
  };
}
