/**
 * What each run of a target has about one member, read without values: the look-ups are functions of the owner
 * (migrations/0004), so that a role without the right to values can make them, one identity at a time.
 */

import { type LogPosition, logPosition, type Sha256, sha256FromHex, type TargetId } from '../domain/ids.ts';
import type { Change, MemberBatch, MemberOperation, Rows, RunTrace } from '../domain/member-story.ts';
import type { BatchState, Phase } from '../domain/run.ts';
import { hashBytes } from './batches.ts';
import {
  big,
  bigOrNull,
  date,
  dateOrNull,
  flag,
  number,
  numberOrNull,
  one,
  type Row,
  text,
  textOrNull,
} from './decode.ts';
import { type Queryable, run } from './pool.ts';

/** By which acceptance the member is held. */
export interface Holding {
  readonly payloadHash: Sha256;
  readonly runId: string;
  readonly sequence: string;
  readonly batch: Sha256;
  readonly position: LogPosition;
  readonly since: Date;
}

/** One accepted request has the operation; the exclusion constraint's index finds it. */
const HELD = `
  select h.sequence, encode(h.payload_hash, 'hex') as payload_hash, b.run_id::text as run_id,
    encode(b.batch_id, 'hex') as batch_id, e.position, e.recorded_at
  from retl.held_by($1, $2) h
  left join retl.batch b on b.operations @> h.sequence and b.state not in ('not-applied', 'parted')
  left join retl.log_entry e on e.position = b.position`;

/** `null`: the target does not hold it. @throws JournalError */
export async function holdingOf(
  db: Queryable,
  target: TargetId,
  identityHash: Sha256,
): Promise<Holding | null> {
  const row = one(await run(db, HELD, [target, hashBytes(identityHash)]));
  const sequence = bigOrNull(row, 'sequence');
  if (sequence === null) return null;
  return {
    payloadHash: sha256FromHex(text(row, 'payload_hash')),
    runId: text(row, 'run_id'),
    sequence: sequence.toString(),
    batch: sha256FromHex(text(row, 'batch_id')),
    position: logPosition(big(row, 'position')),
    since: date(row, 'recorded_at'),
  };
}

const TRACES = `
  select t.run_id, t.snapshot, encode(t.desired_hash, 'hex') as desired_hash, t.plan, t.sequence, t.change,
    encode(t.payload_hash, 'hex') as payload_hash, coalesce(r.closing, 'open') as state, r.phase, r.reason, r.released,
    r.opened_at, r.closed_at
  from retl.trace_member($1, $2, $3, $4) t join retl.run r using (run_id) order by t.run_id desc`;

/** Runs of the target before `before` (`null`: all), newest first; at most `limit`. @throws JournalError */
export async function tracesOf(
  db: Queryable,
  target: TargetId,
  identityHash: Sha256,
  before: bigint | null,
  limit: number,
): Promise<readonly RunTrace[]> {
  const rows = await run(db, TRACES, [target, hashBytes(identityHash), before, limit]);
  const sequences = rows.flatMap((row) => bigOrNull(row, 'sequence') ?? []);
  const [batches, rejections] = [await batchesOf(db, sequences), await rejectionsOf(db, sequences)];
  return rows.map((row) => {
    const desired = textOrNull(row, 'desired_hash');
    const sequence = bigOrNull(row, 'sequence')?.toString() ?? null;
    return {
      runId: big(row, 'run_id').toString(),
      state: text(row, 'state'),
      phase: text(row, 'phase') as Phase,
      code: textOrNull(row, 'reason'),
      released: textOrNull(row, 'released'),
      openedAt: date(row, 'opened_at'),
      closedAt: dateOrNull(row, 'closed_at'),
      snapshot: text(row, 'snapshot') as Rows,
      desiredHash: desired === null ? null : sha256FromHex(desired),
      plan: text(row, 'plan') as Rows,
      operation:
        sequence === null
          ? null
          : operationOf(row, sequence, batches.get(sequence) ?? [], rejections.get(sequence) ?? null),
    };
  });
}

const CHANGES: { readonly [letter: string]: Change } = { a: 'add', c: 'change', u: 'resend', r: 'remove' };

function operationOf(
  row: Row,
  sequence: string,
  batches: readonly MemberBatch[],
  rejection: MemberOperation['rejection'],
): MemberOperation {
  const change = CHANGES[text(row, 'change')];
  if (change === undefined) throw new Error('the journal has a change of no known kind');
  const payloadHash = textOrNull(row, 'payload_hash');
  return {
    change,
    sequence,
    payloadHash: payloadHash === null ? null : sha256FromHex(payloadHash),
    batches,
    rejection,
  };
}

/**
 * Of each operation there is one request at most that is not proven unapplied: an index on ranges finds it, and another one
 * those that are.
 */
const BATCHES = `
  select s.sequence, b.* from unnest($1::bigint[]) s(sequence) cross join lateral (
    select encode(b.batch_id, 'hex') as batch_id, b.state, b.sending, b.resends, b.reason,
      upper(b.operations) - lower(b.operations) as members, b.accepted, b.rejected, b.prepared_at, b.sent_at, b.settled_at,
      b.position::text as position,
      exists (select from retl.attempt a where a.epoch = b.settled_epoch and a.step = 'resolve') as resolved
    from retl.batch b
    where b.operations @> s.sequence and b.state not in ('not-applied', 'parted')
    union all
    select encode(b.batch_id, 'hex'), b.state, b.sending, b.resends, b.reason, upper(b.operations) - lower(b.operations),
      b.accepted, b.rejected, b.prepared_at, b.sent_at, b.settled_at, b.position::text, false
    from retl.batch b
    where b.operations @> s.sequence and b.state = 'not-applied') b
  order by s.sequence, b.sending`;

async function batchesOf(
  db: Queryable,
  sequences: readonly bigint[],
): Promise<ReadonlyMap<string, readonly MemberBatch[]>> {
  const found = new Map<string, MemberBatch[]>();
  if (sequences.length === 0) return found;
  for (const row of await run(db, BATCHES, [sequences])) {
    const sequence = big(row, 'sequence').toString();
    found.set(sequence, [...(found.get(sequence) ?? []), decodeBatch(row)]);
  }
  return found;
}

function decodeBatch(row: Row): MemberBatch {
  return {
    id: sha256FromHex(text(row, 'batch_id')),
    state: text(row, 'state') as BatchState,
    sending: number(row, 'sending'),
    resends: number(row, 'resends'),
    code: textOrNull(row, 'reason'),
    members: number(row, 'members'),
    accepted: numberOrNull(row, 'accepted'),
    rejected: numberOrNull(row, 'rejected'),
    preparedAt: date(row, 'prepared_at'),
    sentAt: dateOrNull(row, 'sent_at'),
    settledAt: dateOrNull(row, 'settled_at'),
    position: textOrNull(row, 'position'),
    resolvedByOperator: flag(row, 'resolved'),
  };
}

const REJECTIONS = 'select sequence, code, recorded_at from retl.rejection where sequence = any($1)';

async function rejectionsOf(
  db: Queryable,
  sequences: readonly bigint[],
): Promise<ReadonlyMap<string, NonNullable<MemberOperation['rejection']>>> {
  if (sequences.length === 0) return new Map();
  const rows = await run(db, REJECTIONS, [sequences]);
  return new Map(
    rows.map((row) => [
      big(row, 'sequence').toString(),
      { code: text(row, 'code'), recordedAt: date(row, 'recorded_at') },
    ]),
  );
}
