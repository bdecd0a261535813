/** The rows of the recovery matrix whose destination is an adapter that is shipped: each with its own kind of recovery. */

import { fated, type Options, type Row, unanswered, unseen } from './row.ts';

const absent = { onItsWay: 'absent' } as const;
const applied = { onItsWay: 'applied' } as const;
const asked = { kinds: ['lookup'] } as const satisfies Options;
const repeated = { kinds: ['idempotent'] } as const satisfies Options;
const http = { scene: 'http', ...asked } as const;
const jobs = { scene: 'jobs', ...asked } as const;
const org = { scene: 'org', ...asked } as const;
const table = { scene: 'table', ...repeated } as const;
const swap = { scene: 'swap', ...repeated } as const;
const rename = { scene: 'rename', ...repeated } as const;
const store = { scene: 'store', ...repeated } as const;
/** The change goes out first, then the removals; so does the opening before the finish. */
const SECOND = { nth: 2 };

export const REAL_ROWS: readonly Row[] = [
  unanswered('http: a change is marked as sending', 'retl.prepare_batches(', { ...http, ...absent }),
  unseen('http: the receipt of a change', 'retl.settle_batch(', { ...http, ...applied }),
  unseen('http: the receipt of a removal', 'retl.settle_batch(', { ...http, ...applied, ...SECOND }),
  unanswered('http: the receipt of a removal', 'retl.settle_batch(', { ...http, ...SECOND }),
  fated('cut', unseen('http: the receipt of a change', 'retl.settle_batch(', { ...http, ...applied })),
  unseen('http: the job is recorded', 'retl.mark_staged(', { ...jobs, ...applied }),
  unanswered('http: the job is recorded', 'retl.mark_staged(', jobs),
  unseen('http: the receipt of a job', 'retl.settle_batch(', jobs),
  unseen('http: the job of a removal is recorded', 'retl.mark_staged(', { ...jobs, ...applied, ...SECOND }),
  unseen('http: the receipt of the job of a removal', 'retl.settle_batch(', { ...jobs, ...SECOND }),
  unseen('salesforce: the id of the job is saved', 'retl.record_progress(', { ...org, ...absent }),
  unanswered('salesforce: the id of the job is saved', 'retl.record_progress(', { ...org, ...absent }),
  unseen('salesforce: the job is recorded', 'retl.mark_staged(', { ...org, ...applied }),
  unseen('salesforce: the receipt of the job of a removal', 'retl.settle_batch(', { ...org, ...SECOND }),
  unanswered('a table: a change is marked as sending', 'retl.prepare_batches(', { ...table, ...absent }),
  unseen('a table: the receipt of a removal', 'retl.settle_batch(', { ...table, ...applied, ...SECOND }),
  unseen('a table: the promotion', 'retl.promote(', table),
  unseen('a swap: the receipt of an upload', 'retl.settle_batch(', { ...swap, ...applied }),
  unseen('a swap: its receipt', 'retl.settle_step(', { ...swap, ...applied, ...SECOND }),
  unanswered('a swap: its receipt', 'retl.settle_step(', { ...swap, ...SECOND }),
  unseen('a swap is confirmed', 'retl.confirm_replacement(', swap),
  unanswered('a swap is confirmed', 'retl.confirm_replacement(', swap),
  unanswered('a swap: its uploads become true', 'retl.apply_uploads(', swap),
  unanswered('a swap: whom it no longer has is recorded', 'retl.record_replaced(', swap),
  unseen('a swap is promoted', 'retl.promote(', swap),
  unseen('a rename: the receipt of an upload', 'retl.settle_batch(', { ...rename, ...applied }),
  unseen('a rename: its receipt', 'retl.settle_step(', { ...rename, ...applied, ...SECOND }),
  unanswered('a rename: its receipt', 'retl.settle_step(', { ...rename, ...SECOND }),
  unanswered('a store: a part is marked as sending', 'retl.prepare_batches(', { ...store, ...absent }),
  unseen('a store: the receipt of a part', 'retl.settle_batch(', { ...store, ...applied }),
  unanswered('a store: the receipt of a part', 'retl.settle_batch(', store),
  unseen('a store: the receipt of the manifest', 'retl.settle_step(', { ...store, ...applied, ...SECOND }),
  unanswered('a store: the receipt of the manifest', 'retl.settle_step(', { ...store, ...SECOND }),
  unanswered('a store: its uploads become true', 'retl.apply_uploads(', store),
];
