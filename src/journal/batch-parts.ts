/** A batch of which some operations were applied and some provably were not (rule 4): migrations/0003, `retl.settle_parts`. */

import {
  type BatchDraft,
  draftColumns,
  hashBytes,
  type Rejection,
  rejectionColumns,
  type Settlement,
  type StoreWrites,
  storeColumns,
} from './batches.ts';
import { call, type Queryable } from './pool.ts';
import type { Attempt } from './runs.ts';
import { safeCode } from './safe-text.ts';

/** A batch of which some operations were proven not applied; those may go again after `retryMs`. */
export interface Parting extends Settlement {
  readonly code: string;
  readonly retryMs: number;
}

/** Rule 4: parts the batch into `pieces`, settles those that were applied, and leaves the others to be prepared again. @throws JournalError */
export async function settleParts(
  db: Queryable,
  a: Attempt,
  { batch, receipt, code, retryMs }: Parting,
  pieces: readonly { readonly draft: BatchDraft; readonly applied: boolean }[],
  rejections: readonly Rejection[],
  store: StoreWrites,
): Promise<void> {
  await call(db, 'retl.settle_parts($1,$2,$3,$4,$5,$6,$7,$8,$9,$10,$11,$12,$13,$14,$15,$16)', [
    a.run,
    a.epoch,
    hashBytes(batch),
    receipt,
    safeCode(code),
    Math.round(retryMs),
    ...draftColumns(pieces.map(({ draft }) => draft)),
    pieces.map(({ applied }) => applied),
    ...rejectionColumns(rejections),
    ...storeColumns(store),
  ]);
}
