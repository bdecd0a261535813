/**
 * Batches in the journal: the life of a request (domain/run.ts, `BatchState`). Each function calls one function of
 * migrations/0003, where rules 2 to 6 and 10 are enforced.
 */

import { type BatchId, hexOf, type Sequence, type Sha256, sequence, sha256FromHex } from '../domain/ids.ts';
import type { BatchState } from '../domain/run.ts';
import { bigOrNull, dateOrNull, number, text, textOrNull } from './decode.ts';
import { call, type Queryable, run } from './pool.ts';
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

/** What prepares a batch: where it ends, and what its request hashes to. It begins where the one before ended. */
export interface BatchDraft {
  readonly id: BatchId;
  readonly last: Sequence;
  readonly requestHash: Sha256;
  readonly requestBytes: number;
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

export function hashBytes(hash: Sha256): Buffer {
  return Buffer.from(hexOf(hash), 'hex');
}

function draftColumns(drafts: readonly BatchDraft[]): readonly unknown[] {
  return [
    drafts.map((d) => hashBytes(d.id)),
    drafts.map((d) => d.last),
    drafts.map((d) => hashBytes(d.requestHash)),
    drafts.map((d) => d.requestBytes),
  ];
}

/** Makes batches durable before they are sent (rule 2), in order and without a gap (rule 4). @throws JournalError */
export async function prepareBatches(
  db: Queryable,
  a: Attempt,
  action: 'upsert' | 'remove',
  drafts: readonly BatchDraft[],
): Promise<void> {
  await call(db, 'retl.prepare_batches($1,$2,$3,$4,$5,$6,$7)', [
    a.run,
    a.epoch,
    action,
    ...draftColumns(drafts),
  ]);
}

/** Prepares again what was proven not to have been applied, whole or in pieces (rule 4). @throws JournalError */
export async function retryBatch(
  db: Queryable,
  a: Attempt,
  batch: BatchId,
  drafts: readonly BatchDraft[],
): Promise<void> {
  const values = [a.run, a.epoch, hashBytes(batch), ...draftColumns(drafts)];
  await call(db, 'retl.retry_batch($1,$2,$3,$4,$5,$6,$7)', values);
}

export async function prepareStep(
  db: Queryable,
  a: Attempt,
  action: 'init' | 'finish',
  id: BatchId,
  requestHash: Sha256,
  requestBytes: number,
): Promise<void> {
  const values = [a.run, a.epoch, action, hashBytes(id), hashBytes(requestHash), requestBytes];
  await call(db, 'retl.prepare_step($1,$2,$3,$4,$5,$6)', values);
}

/** Rule 3: the epoch-checked commit just before the first byte. @throws JournalError */
export async function markSending(
  db: Queryable,
  a: Attempt,
  batch: BatchId,
  deadlineMs: number,
): Promise<void> {
  await call(db, 'retl.mark_sending($1,$2,$3,$4)', [a.run, a.epoch, hashBytes(batch), deadlineMs]);
}

/** Rule 3: an unknown batch of an idempotent destination goes again: same bytes, same key. @throws JournalError */
export async function markResending(
  db: Queryable,
  a: Attempt,
  batch: BatchId,
  deadlineMs: number,
): Promise<void> {
  await call(db, 'retl.mark_resending($1,$2,$3,$4)', [a.run, a.epoch, hashBytes(batch), deadlineMs]);
}

export async function markUnknown(db: Queryable, a: Attempt, batch: BatchId, code: string): Promise<void> {
  await call(db, 'retl.mark_unknown($1,$2,$3,$4)', [a.run, a.epoch, hashBytes(batch), safeCode(code)]);
}

export async function markNotApplied(
  db: Queryable,
  a: Attempt,
  batch: BatchId,
  code: string,
  retryMs: number,
): Promise<void> {
  await call(db, 'retl.mark_not_applied($1,$2,$3,$4,$5)', [
    a.run,
    a.epoch,
    hashBytes(batch),
    safeCode(code),
    Math.round(retryMs),
  ]);
}

export async function markRefused(
  db: Queryable,
  a: Attempt,
  batch: BatchId,
  code: string,
  words: string,
): Promise<void> {
  await call(db, 'retl.mark_refused($1,$2,$3,$4,$5)', [
    a.run,
    a.epoch,
    hashBytes(batch),
    safeCode(code),
    safeText(words),
  ]);
}

export async function markStaged(
  db: Queryable,
  a: Attempt,
  batch: BatchId,
  jobIds: readonly string[],
  receipt: string,
  nextPollMs: number,
): Promise<void> {
  await call(db, 'retl.mark_staged($1,$2,$3,$4,$5,$6)', [
    a.run,
    a.epoch,
    hashBytes(batch),
    jobIds.map(safeText),
    receipt,
    nextPollMs,
  ]);
}

export async function recordProgress(
  db: Queryable,
  a: Attempt,
  batch: BatchId,
  value: string,
): Promise<void> {
  await call(db, 'retl.record_progress($1,$2,$3,$4)', [a.run, a.epoch, hashBytes(batch), safeText(value)]);
}

/** One operation that the destination refused. */
export interface Rejection {
  readonly sequence: Sequence;
  readonly code: string;
  /** The provider's own words. */
  readonly reason: string;
}

/** Buffered store writes of the adapter; a `null` value deletes. */
export type StoreWrites = ReadonlyMap<string, string | null>;

function storeColumns(writes: StoreWrites): readonly unknown[] {
  return [
    [...writes.keys()].map(safeText),
    [...writes.values()].map((v) => (v === null ? null : safeText(v))),
  ];
}

/** Rule 2: receipt, membership and log entry become true together. @throws JournalError */
export async function settleBatch(
  db: Queryable,
  a: Attempt,
  batch: BatchId,
  receipt: string,
  rejections: readonly Rejection[],
  store: StoreWrites,
): Promise<void> {
  await call(db, 'retl.settle_batch($1,$2,$3,$4,$5,$6,$7,$8,$9)', [
    a.run,
    a.epoch,
    hashBytes(batch),
    receipt,
    rejections.map((r) => r.sequence),
    rejections.map((r) => safeCode(r.code)),
    rejections.map((r) => safeText(r.reason)),
    ...storeColumns(store),
  ]);
}

export async function settleStep(
  db: Queryable,
  a: Attempt,
  batch: BatchId,
  receipt: string,
  store: StoreWrites,
): Promise<void> {
  await call(db, 'retl.settle_step($1,$2,$3,$4,$5,$6)', [
    a.run,
    a.epoch,
    hashBytes(batch),
    receipt,
    ...storeColumns(store),
  ]);
}

const MAX_WORDS = 16_384;
const CODE = /^[a-zA-Z0-9][a-zA-Z0-9._:-]{0,79}$/;

/** A code of an adapter that is none is replaced: an outcome must never fail to be written because of its label. */
export function safeCode(code: string): string {
  return CODE.test(code) ? code : 'adapter-code-invalid';
}

/** Text that PostgreSQL can always store: NUL and lone surrogates become U+FFFD, and the length is bounded. */
export function safeText(words: string): string {
  return words.slice(0, MAX_WORDS).toWellFormed().replaceAll('\0', '\ufffd');
}
