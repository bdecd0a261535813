/**
 * Membership, one identity at a time: what a target is known to hold (design.md section 5). It is a meaning, not a table:
 * retl.membership_<target>, in which each row names the operation that was accepted last, under the batches that are
 * accepted but not folded into it yet, whichever run they belong to and however that run ended.
 */

import {
  type LogPosition,
  logPosition,
  type RunId,
  runId,
  type Sequence,
  type Sha256,
  sequence,
  sha256FromHex,
  type TargetId,
} from '../domain/ids.ts';
import { hashBytes } from './batches.ts';
import { big, bigOrNull, bytes, date, one, text } from './decode.ts';
import { type OperationRows, operationRows, operationsOf } from './log.ts';
import { type Queryable, run } from './pool.ts';

export type Membership =
  | { readonly kind: 'absent' }
  | {
      readonly kind: 'held';
      readonly identityHash: Sha256;
      /** Canonical JSON, as accepted. */
      readonly identity: string;
      /** The payload that was accepted last; it may differ from the desired one. */
      readonly payloadHash: Sha256;
      readonly payload: string;
      /** What its removal will send: the bytes stored with that acceptance. */
      readonly removal: string;
      readonly run: RunId;
      readonly sequence: Sequence;
      /** Log position and time of that acceptance; a run that leaves the member as it is changes neither. */
      readonly position: LogPosition;
      readonly acceptedAt: Date;
    };

/** What the target is known to hold under this identity hash. @throws JournalError */
export async function memberOf(db: Queryable, target: TargetId, identityHash: Sha256): Promise<Membership> {
  // The overlay first: a fold that commits in between finds its batches already looked at, and says the same.
  for (const open of await unfoldedRuns(db, target)) {
    const found = await findUnfolded(db, open, identityHash);
    if (found !== null) return found.action === 'remove' ? ABSENT : describe(db, found.run, found.sequence);
  }
  const row = (
    await run(db, `select sequence from retl.membership_${target} where identity_hash = $1`, [
      hashBytes(identityHash),
    ])
  )[0];
  if (row === undefined) return ABSENT;
  const accepted = sequence(big(row, 'sequence'));
  return describe(db, runId(accepted >> SEQUENCE_BITS), accepted);
}

const ABSENT: Membership = { kind: 'absent' };
/** A run numbers its operations from run * 2^32 + 1 (migrations/0001). */
const SEQUENCE_BITS = 32n;

interface UnfoldedRun {
  readonly run: RunId;
  /** Inclusive ranges of the planned operations, each in an order that can be searched. */
  readonly ranges: readonly {
    readonly action: 'upsert' | 'remove';
    readonly first: bigint;
    readonly last: bigint;
  }[];
}

const UNFOLDED = `
  select r.run_id, r.first_sequence, r.additions_end, r.removals_end from retl.run r
  where r.target_id = $1 and exists (
    select from retl.batch b where b.run_id = r.run_id and b.state = 'settled' and not b.folded and b.accepted > 0)
  order by r.run_id desc`;

/** Runs of the target that have accepted, unfolded batches, newest first: a target has one open run at a time. */
async function unfoldedRuns(db: Queryable, target: TargetId): Promise<readonly UnfoldedRun[]> {
  return (await run(db, UNFOLDED, [target])).map((row) => {
    const end = big(row, 'additions_end');
    return {
      run: runId(big(row, 'run_id')),
      ranges: [
        { action: 'upsert', first: big(row, 'first_sequence'), last: end },
        { action: 'remove', first: end + 1n, last: bigOrNull(row, 'removals_end') ?? end },
      ],
    };
  });
}

/**
 * Operations stand in order of the identity hash, or, where the generation holds their bytes, in the order of its rows:
 * halving finds one by some twenty look-ups of the primary key.
 */
function searchQuery(runNumber: RunId, key: 'identity_hash' | 'row_no'): string {
  return `
    with recursive s(lo, hi) as (
      select $2::bigint, $3::bigint + 1
      union all
      select case when o.${key} < $1 then o.sequence + 1 else s.lo end,
        case when o.${key} < $1 then s.hi else o.sequence end
      from s join retl.operation_${runNumber} o on o.sequence = s.lo + (s.hi - s.lo) / 2
      where s.lo < s.hi)
    select o.sequence from s join retl.operation_${runNumber} o on o.sequence = s.lo and o.${key} = $1
    where s.lo = s.hi and s.lo <= $3
      and exists (select from retl.batch b where b.run_id = ${runNumber} and b.operations @> o.sequence
        and b.state = 'settled' and not b.folded)
      and not exists (select from retl.rejection x where x.sequence = o.sequence)`;
}

/** What to search an unfolded run's operations for; `null` where its generation has no such member. */
async function searchKey(
  db: Queryable,
  rows: OperationRows,
  action: 'upsert' | 'remove',
  identityHash: Sha256,
): Promise<{ readonly column: 'identity_hash' | 'row_no'; readonly value: unknown } | null> {
  if (action === 'remove' || rows.holdBytes)
    return { column: 'identity_hash', value: hashBytes(identityHash) };
  const query = `select row_no from retl.generation_${rows.generation} where kind = 1 and identity_hash = $1`;
  const row = (await run(db, query, [hashBytes(identityHash)]))[0];
  return row === undefined ? null : { column: 'row_no', value: big(row, 'row_no') };
}

async function findUnfolded(
  db: Queryable,
  open: UnfoldedRun,
  identityHash: Sha256,
): Promise<{
  readonly action: 'upsert' | 'remove';
  readonly run: RunId;
  readonly sequence: Sequence;
} | null> {
  const rows = await operationRows(db, open.run);
  for (const { action, first, last } of open.ranges) {
    const key = await searchKey(db, rows, action, identityHash);
    if (key === null) continue;
    const row = (await run(db, searchQuery(open.run, key.column), [key.value, first, last]))[0];
    if (row !== undefined) return { action, run: open.run, sequence: sequence(big(row, 'sequence')) };
  }
  return null;
}

const ACCEPTED_IN = `
  select position, recorded_at from retl.log_entry
  where first_sequence <= $1 and last_sequence >= $1 order by first_sequence desc limit 1`;

async function describe(db: Queryable, runNumber: RunId, accepted: Sequence): Promise<Membership> {
  const rows = await operationRows(db, runNumber);
  const operation = one(await run(db, operationsOf(rows, 'upsert', 'o.sequence = $1'), [accepted]));
  const entry = one(await run(db, ACCEPTED_IN, [accepted]));
  return {
    kind: 'held',
    identityHash: sha256FromHex(bytes(operation, 'identity_hash').toString('hex')),
    identity: text(operation, 'identity'),
    payloadHash: sha256FromHex(bytes(operation, 'payload_hash').toString('hex')),
    payload: text(operation, 'payload'),
    removal: text(operation, 'removal'),
    run: runNumber,
    sequence: accepted,
    position: logPosition(big(entry, 'position')),
    acceptedAt: date(entry, 'recorded_at'),
  };
}
