/**
 * What follows the accepted finish of a native replacement, in bounded steps that recovery repeats: status, uploads that
 * become true, removals that the finish has made (design.md section 4, Strategies; migrations/0003).
 */

import type { BatchId, Sequence } from '../domain/ids.ts';
import { hashBytes } from './batches.ts';
import { call, type Queryable } from './pool.ts';
import type { Attempt } from './runs.ts';

/** Confirms the replacement and plans what is recorded as removed; an exact repeat changes nothing. @throws JournalError */
export async function confirmReplacement(db: Queryable, a: Attempt): Promise<void> {
  await call(db, 'retl.confirm_replacement($1,$2)', [a.run, a.epoch]);
}

/** Makes at most `batches` accepted uploads true; resolves to how many are left. @throws JournalError */
export async function applyUploads(db: Queryable, a: Attempt, batches: number): Promise<number> {
  return Number(await call(db, 'retl.apply_uploads($1,$2,$3)', [a.run, a.epoch, batches]));
}

/** Removals that a finish has made: where they end among the planned ones, and the id that names them in the log. */
export interface ReplacedBatch {
  readonly id: BatchId;
  readonly last: Sequence;
}

/** Records the next planned removals as made; each begins where the one before ended. @throws JournalError */
export async function recordReplaced(
  db: Queryable,
  a: Attempt,
  batches: readonly ReplacedBatch[],
): Promise<void> {
  await call(db, 'retl.record_replaced($1,$2,$3,$4)', [
    a.run,
    a.epoch,
    batches.map((b) => hashBytes(b.id)),
    batches.map((b) => b.last),
  ]);
}
