/**
 * Batches in the journal: the life of a request (domain/run.ts, `BatchState`). Each function calls one function of
 * migrations/0003, where rules 2 to 6 and 10 are enforced.
 */

import { type BatchId, hexOf, type Sequence, type Sha256 } from '../domain/ids.ts';
import { call, type Queryable, run } from './pool.ts';
import type { Attempt } from './runs.ts';
import { exactText, safeCode, safeText, storeKey } from './safe-text.ts';

/** What prepares a batch: where it ends, and what its request hashes to. It begins where the one before ended. */
export interface BatchDraft {
  readonly id: BatchId;
  readonly last: Sequence;
  readonly requestHash: Sha256;
  readonly requestBytes: number;
}

export function hashBytes(hash: Sha256): Buffer {
  return Buffer.from(hexOf(hash), 'hex');
}

export function draftColumns(drafts: readonly BatchDraft[]): readonly unknown[] {
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

const PREPARE_AND_MARK = `
  with prepared as materialized (select retl.prepare_batches($1, $2, $3, $4, $5, $6, $7))
  select retl.mark_sending($1, $2, s.batch, $8)
  from prepared, (select * from unnest($4::bytea[]) with ordinality s(batch, n) order by n) s`;

/**
 * Prepares batches and marks them as sending in one commit, for those that leave at once: rules 2 and 3 ask for that
 * commit to come before the first byte, and each commit waits for the disk. @throws JournalError
 */
export async function prepareSending(
  db: Queryable,
  a: Attempt,
  action: 'upsert' | 'remove',
  drafts: readonly BatchDraft[],
  deadlineMs: number,
): Promise<void> {
  await run(db, PREPARE_AND_MARK, [a.run, a.epoch, action, ...draftColumns(drafts), deadlineMs]);
}

const SENDING = `
  select count(*) = cardinality($3::bytea[]) as sending from retl.batch
  where run_id = $1 and sent_epoch = $2 and state = 'sending' and batch_id = any($3)`;

/** Whether this very attempt has marked all of these as sending. @throws JournalError */
export async function areSending(db: Queryable, a: Attempt, ids: readonly BatchId[]): Promise<boolean> {
  const [row] = await run(db, SENDING, [a.run, a.epoch, ids.map(hashBytes)]);
  return row?.sending === true;
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

/**
 * Proven not applied, and never to be. `divisible`: one member may be to blame, who was not found; a run that goes on after
 * rejections counts all of them as rejected (rule 5). @throws JournalError
 */
export async function markRefused(
  db: Queryable,
  a: Attempt,
  batch: BatchId,
  code: string,
  words: string,
  divisible = false,
): Promise<void> {
  await call(db, 'retl.mark_refused($1,$2,$3,$4,$5,$6)', [
    a.run,
    a.epoch,
    hashBytes(batch),
    safeCode(code),
    safeText(words),
    divisible,
  ]);
}

/** Rule 5: taken for asynchronous work, or found to be under way still. @throws JournalError */
export async function markStaged(
  db: Queryable,
  a: Attempt,
  batch: BatchId,
  jobIds: readonly string[],
  receipt: string,
  nextPollMs: number,
  store: StoreWrites = new Map(),
): Promise<void> {
  await call(db, 'retl.mark_staged($1,$2,$3,$4,$5,$6,$7,$8)', [
    a.run,
    a.epoch,
    hashBytes(batch),
    jobIds.map(safeText),
    receipt,
    Math.round(nextPollMs),
    ...storeColumns(store),
  ]);
}

/** A poll that says nothing of the jobs: the batch stays staged, and shows why. @throws JournalError */
export async function notePoll(
  db: Queryable,
  a: Attempt,
  batch: BatchId,
  code: string,
  nextPollMs: number,
): Promise<void> {
  const values = [a.run, a.epoch, hashBytes(batch), safeCode(code), Math.round(nextPollMs)];
  await call(db, 'retl.note_poll($1,$2,$3,$4,$5)', values);
}

export async function recordProgress(
  db: Queryable,
  a: Attempt,
  batch: BatchId,
  value: string,
): Promise<void> {
  await call(db, 'retl.record_progress($1,$2,$3,$4)', [a.run, a.epoch, hashBytes(batch), exactText(value)]);
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

export function storeColumns(writes: StoreWrites): readonly unknown[] {
  return [
    [...writes.keys()].map(storeKey),
    [...writes.values()].map((v) => (v === null ? null : exactText(v))),
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
    ...rejectionColumns(rejections),
    ...storeColumns(store),
  ]);
}

export function rejectionColumns(rejections: readonly Rejection[]): readonly unknown[] {
  return [
    rejections.map((r) => r.sequence),
    rejections.map((r) => safeCode(r.code)),
    rejections.map((r) => safeText(r.reason)),
  ];
}

/** A batch of which every operation is accepted. */
export interface Settlement {
  readonly batch: BatchId;
  readonly receipt: string;
}

const SETTLE_ALL = `
  select retl.settle_batch($1, $2, s.batch, s.receipt, null, null, null, null, null)
  from (select * from unnest($3::bytea[], $4::text[]) with ordinality s(batch, receipt, n) order by n) s`;

/** Settles several batches in one transaction. @throws JournalError, and then none of them is settled by it */
export async function settleBatches(
  db: Queryable,
  a: Attempt,
  settlements: readonly Settlement[],
): Promise<void> {
  await run(db, SETTLE_ALL, [
    a.run,
    a.epoch,
    settlements.map((s) => hashBytes(s.batch)),
    settlements.map((s) => s.receipt),
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
