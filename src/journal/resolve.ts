/**
 * An operator's word on a batch whose outcome nobody can verify (design.md section 6). Rule 3: "not applied" is not
 * believed before the send deadline; rule 6: a settled batch is never changed. The journal enforces both
 * (migrations/0003, `retl.resolve_batch`), fences whatever attempt there may be, and keeps the reason.
 */

import { type BatchId, hexOf, sha256FromHex } from '../domain/ids.ts';
import type { BatchState } from '../domain/run.ts';
import type { BatchAction } from './batch-record.ts';
import { date, dateOrNull, number, numberOrNull, type Row, text, textOrNull } from './decode.ts';
import { JournalError } from './errors.ts';
import { call, type Queryable, run } from './pool.ts';

export type Verdict = 'accepted' | 'not-applied';

/** What a person must know of a batch to judge it. No values, no identities. */
export interface BatchView {
  readonly batch: BatchId;
  readonly mirror: string;
  readonly runId: string;
  /** `null` while the run is open, else how it was closed. */
  readonly closing: string | null;
  readonly action: BatchAction;
  readonly state: BatchState;
  /** How many members it names; `null` for the opening of a session and the finish. */
  readonly members: number | null;
  /** Value-free code of what is known of its answer. */
  readonly reason: string | null;
  /** How often the same bytes went again while the outcome was unknown. */
  readonly resends: number;
  /** When it was taken for asynchronous work; `null`: it never was. */
  readonly stagedAt: Date | null;
  /** How often its jobs were asked for since, in vain. */
  readonly polls: number;
  readonly nextPollAt: Date | null;
  readonly preparedAt: Date;
  readonly sentAt: Date | null;
  /** Until then the request may still reach the destination. */
  readonly sendDeadline: Date | null;
  /** Ms until the send deadline by the journal's clock; 0 once it has passed. */
  readonly deadlineLeftMs: number;
  /** Ms until the send deadline of whatever request of the run is on its way; 0 where none is. */
  readonly underWayMs: number;
}

/** Why a verdict cannot be recorded. */
export type Unresolvable =
  | { readonly kind: 'no-such-batch' }
  /** Settled or refused for good, or proven not applied. */
  | { readonly kind: 'settled'; readonly state: BatchState }
  /** Prepared or sending: its outcome is not unknown. */
  | { readonly kind: 'not-unknown'; readonly state: BatchState }
  | { readonly kind: 'run-closed'; readonly closing: string }
  | { readonly kind: 'too-early'; readonly leftMs: number }
  /** Another request of the run is on its way: its answer could no longer be written down. */
  | { readonly kind: 'under-way'; readonly leftMs: number };

export type Resolution = { readonly kind: 'resolved' } | Unresolvable;

const VIEW = `
  select encode(b.batch_id, 'hex') as batch_id, m.name as mirror, b.run_id::text as run_id, r.closing, b.action, b.state,
    (upper(b.operations) - lower(b.operations))::text as members, b.reason, b.resends, b.staged_at, b.polls, b.next_poll_at,
    b.prepared_at, b.sent_at,
    b.send_deadline, ceil(greatest(0, coalesce(extract(epoch from b.send_deadline - clock_timestamp()), 0) * 1000)) as left_ms,
    (select ceil(greatest(0, coalesce(extract(epoch from max(s.send_deadline) - clock_timestamp()), 0) * 1000))
      from retl.batch s where s.run_id = b.run_id and s.state = 'sending' and s.sent_epoch = r.epoch) as under_way_ms
  from retl.batch b join retl.run r using (run_id) join retl.mirror m using (mirror_id)`;

/** @throws JournalError */
export async function findBatch(db: Queryable, batch: BatchId): Promise<BatchView | null> {
  const rows = await run(db, `${VIEW} where b.batch_id = decode($1, 'hex')`, [hexOf(batch)]);
  const [row] = rows;
  return row === undefined ? null : view(row);
}

/** The batches of a run that are neither accepted nor proven absent, in order of their sending. @throws JournalError */
export async function unresolvedBatches(db: Queryable, runId: string): Promise<readonly BatchView[]> {
  const rows = await run(
    db,
    `${VIEW} where b.run_id = $1 and b.state in ('sending', 'unknown', 'staged') order by b.sent_at, b.batch_id`,
    [runId],
  );
  return rows.map(view);
}

const DECIDED: readonly BatchState[] = ['settled', 'refused', 'uploaded', 'not-applied', 'parted'];

/** Why the verdict would be refused as things stand; `null` where it would not. */
export function refusalOf(batch: BatchView | null, verdict: Verdict): Unresolvable | null {
  if (batch === null) return { kind: 'no-such-batch' };
  const { state, closing } = batch;
  if (DECIDED.includes(state)) return { kind: 'settled', state };
  if (closing !== null) return { kind: 'run-closed', closing };
  if (state !== 'unknown' && state !== 'staged') return { kind: 'not-unknown', state };
  if (verdict === 'not-applied' && batch.deadlineLeftMs > 0)
    return { kind: 'too-early', leftMs: batch.deadlineLeftMs };
  if (batch.underWayMs > 0) return { kind: 'under-way', leftMs: batch.underWayMs };
  return null;
}

/**
 * Records the verdict with its reason, which must not be empty and is kept in the journal.
 * @throws JournalError
 */
export async function resolveBatch(
  db: Queryable,
  batch: BatchId,
  verdict: Verdict,
  because: string,
): Promise<Resolution> {
  try {
    await call(db, `retl.resolve_batch(decode($1, 'hex'), $2, $3)`, [hexOf(batch), verdict, because]);
    return { kind: 'resolved' };
  } catch (error) {
    if (!(error instanceof JournalError) || error.kind !== 'rule') throw error;
    const refusal = refusalOf(await findBatch(db, batch), verdict);
    if (refusal === null) throw error;
    return refusal;
  }
}

function view(row: Row): BatchView {
  return {
    batch: sha256FromHex(text(row, 'batch_id')),
    mirror: text(row, 'mirror'),
    runId: text(row, 'run_id'),
    closing: textOrNull(row, 'closing'),
    action: text(row, 'action') as BatchAction,
    state: text(row, 'state') as BatchState,
    members: numberOrNull(row, 'members'),
    reason: textOrNull(row, 'reason'),
    resends: number(row, 'resends'),
    stagedAt: dateOrNull(row, 'staged_at'),
    polls: number(row, 'polls'),
    nextPollAt: dateOrNull(row, 'next_poll_at'),
    preparedAt: date(row, 'prepared_at'),
    sentAt: dateOrNull(row, 'sent_at'),
    sendDeadline: dateOrNull(row, 'send_deadline'),
    deadlineLeftMs: number(row, 'left_ms'),
    underWayMs: number(row, 'under_way_ms'),
  };
}
