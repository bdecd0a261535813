/** Batches as the journal has them: what is open, what was refused, where the run's batches end. Reads only. */

import { type BatchId, type Sequence, type Sha256, sequence, sha256FromHex } from '../domain/ids.ts';
import type { BatchState } from '../domain/run.ts';
import { bigOrNull, dateOrNull, number, text, textOrNull } from './decode.ts';
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
  readonly sendDeadline: Date | null;
  readonly retryAt: Date | null;
  readonly jobIds: readonly string[];
  readonly receipt: string | null;
  readonly progress: string | null;
}

const COLUMNS = `encode(b.batch_id, 'hex') as batch_id, b.action, lower(b.operations) as first,
  upper(b.operations) - 1 as last, b.sending, b.resends, b.state, encode(b.request_hash, 'hex') as request_hash, b.reason,
  b.send_deadline, b.retry_at, b.job_ids, b.receipt, b.progress`;

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
  select count(*) filter (where b.state = 'refused') as refused, coalesce(sum(b.rejected), 0) as rejected,
    min(b.reason) filter (where b.state = 'refused') as reason
  from retl.batch b where b.run_id = $1`;

/** What the destination refused for good in this run: whole requests, and single operations. @throws JournalError */
export async function refusals(
  db: Queryable,
  a: Attempt,
): Promise<{ readonly requests: number; readonly operations: number; readonly code: string | null }> {
  const row = (await run(db, REFUSED, [a.run]))[0] ?? {};
  return {
    requests: number(row, 'refused'),
    operations: number(row, 'rejected'),
    code: textOrNull(row, 'reason'),
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
    sendDeadline: dateOrNull(row, 'send_deadline'),
    retryAt: dateOrNull(row, 'retry_at'),
    jobIds: Array.isArray(row.job_ids) ? row.job_ids.map(String) : [],
    receipt: textOrNull(row, 'receipt'),
    progress: textOrNull(row, 'progress'),
  };
}
