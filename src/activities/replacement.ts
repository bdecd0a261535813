/**
 * After the finish of a native replacement is accepted (rule 10): the status, then the uploads that become true with it,
 * then the members that it has dropped. Each step is durable by itself; an attempt that dies is followed by one that goes on.
 */

import { type BatchId, sequence } from '../domain/ids.ts';
import { batchId } from '../domain/request.ts';
import { lastPrepared } from '../journal/batch-record.ts';
import { type OperationHashes, readOperationHashes } from '../journal/operations.ts';
import { applyUploads, confirmReplacement, recordReplaced } from '../journal/replacement.ts';
import { sha256Hex } from '../planning/hash.ts';
import { goOn, type RunAttempt } from './attempt.ts';
import { operationIdIn } from './delivery/outgoing.ts';

/** Uploads that become true in one transaction, which holds the log's head. */
const UPLOADS_AT_ONCE = 50;
/** Members recorded as removed in one transaction, and by one entry of the log. */
const REMOVALS_AT_ONCE = 1_000;

/** @throws JournalError; ApplicationFailure, retryable, where it was told to stop between two steps */
export async function completeReplacement(a: RunAttempt): Promise<void> {
  const { journal } = a.deps;
  await confirmReplacement(journal, a.attempt);
  while ((await applyUploads(journal, a.attempt, UPLOADS_AT_ONCE)) > 0) goOn(a);
  const record = await a.reload();
  const { additionsEnd, removalsEnd } = record;
  if (additionsEnd === null || removalsEnd === null) throw new Error('rule 10: no removal is planned yet');
  let from = ((await lastPrepared(journal, a.attempt, 'remove')) ?? additionsEnd) + 1n;
  while (from <= removalsEnd) {
    const end = from + BigInt(REMOVALS_AT_ONCE) - 1n;
    const last = sequence(end < removalsEnd ? end : removalsEnd);
    const removed = await readOperationHashes(journal, record, from, last);
    await recordReplaced(journal, a.attempt, [{ id: idOf(a, removed), last }]);
    from = last + 1n;
    goOn(a);
  }
}

/**
 * The id that a request of these removals would have had: a reader of the log proves its effects by it. It is made of hashes alone: what
 * the destination has dropped already is recorded, even if the journal has lost its texts meanwhile.
 */
function idOf({ record }: RunAttempt, removed: readonly OperationHashes[]): BatchId {
  const operations = removed.map((planned) => operationIdIn(record, 'remove', planned, 1));
  const mirror = `${record.logId}/${record.mirror}`;
  return batchId({ mirror, run: record.run, action: 'remove', operations, ordinal: 1 }, sha256Hex);
}
