/**
 * What an open run that has planned would still do, member by member: from its sealed generation, its planned operations, the
 * membership and the removal bytes stored with it (design.md sections 3 and 5). The source is not read for it (rule 8). Values:
 * only for those who may see them.
 */

import { type RunId, type TargetId, targetId } from '../domain/ids.ts';
import { big, bigOrNull, flag, one, text } from './decode.ts';
import { type HeldValues, heldValues } from './held-members.ts';
import { type OperationRows, operationRows, operationsOf } from './log.ts';
import { type Queryable, run } from './pool.ts';

/** Canonical JSON texts, in order of the identity hash. */
export interface PlannedMembers {
  readonly added: readonly HeldValues[];
  /** `before`: the payload that is held; `null`: its rows are not there any more. */
  readonly changed: readonly (HeldValues & { readonly before: string | null })[];
  readonly removed: readonly Pick<HeldValues, 'identity'>[];
}

const STANDING = `
  select target_id, first_sequence is not null as is_planned, removals_end is not null as has_removals
  from retl.run where run_id = $1`;

/** Operations that have come to an end: accepted, uploaded, or refused. Of one, the answer is in their receipt. */
const DONE = `(select coalesce(range_agg(b.operations), '{}'::int8multirange) from retl.batch b
  where b.run_id = $1 and b.operations is not null and b.state in ('settled', 'uploaded', 'refused'))`;

/**
 * At most `limit` of each kind; `null` where the run has not compared its snapshot with the membership yet.
 * @throws JournalError
 */
export async function plannedMembers(
  db: Queryable,
  id: RunId,
  limit: number,
): Promise<PlannedMembers | null> {
  const standing = one(await run(db, STANDING, [id]));
  if (!flag(standing, 'is_planned')) return null;
  const target = targetId(big(standing, 'target_id'));
  const rows = await operationRows(db, id);
  const [added, changed] = [
    await upserts(db, rows, target, 'a', limit),
    await upserts(db, rows, target, 'c', limit),
  ];
  const removals = flag(standing, 'has_removals')
    ? await plannedRemovals(db, rows, limit)
    : await comingRemovals(db, rows, target, limit);
  const sequences = changed.flatMap(({ before }) => (before === null ? [] : [before]));
  const held = await heldValues(db, sequences);
  return {
    added: added.map(({ identity, payload }) => ({ identity, payload })),
    changed: changed.map(({ identity, payload, before }) => ({
      identity,
      payload,
      before: (before === null ? undefined : held.get(before))?.payload ?? null,
    })),
    removed: removals.map((identity) => ({ identity })),
  };
}

interface Upsert extends HeldValues {
  /** The operation by which the member is held. */
  readonly before: bigint | null;
}

async function upserts(
  db: Queryable,
  rows: OperationRows,
  target: TargetId,
  change: 'a' | 'c',
  limit: number,
): Promise<readonly Upsert[]> {
  const where = `o.change = '${change}' and not o.sequence <@ ${DONE}`;
  const query = `select p.identity, p.payload, m.sequence as before from (
      select * from (${operationsOf(rows, 'upsert', where)}) u order by u.identity_hash limit $2) p
    left join retl.membership_${target} m on m.identity_hash = p.identity_hash order by p.identity_hash`;
  return (await run(db, query, [rows.run, limit])).map((row) => ({
    identity: text(row, 'identity'),
    payload: text(row, 'payload'),
    before: bigOrNull(row, 'before'),
  }));
}

/** Rule 1: removals are planned only after all additions. What they will be is held, and not in the sealed generation. */
async function comingRemovals(
  db: Queryable,
  { generation }: OperationRows,
  target: TargetId,
  limit: number,
): Promise<readonly string[]> {
  const query = `select m.sequence from retl.membership_${target} m
    where not exists (select from retl.generation_${generation} g where g.kind = 1 and g.identity_hash = m.identity_hash)
    order by m.identity_hash limit $1`;
  const sequences = (await run(db, query, [limit])).map((row) => big(row, 'sequence'));
  const held = await heldValues(db, sequences);
  return sequences.flatMap((one) => held.get(one)?.identity ?? []);
}

async function plannedRemovals(
  db: Queryable,
  rows: OperationRows,
  limit: number,
): Promise<readonly string[]> {
  const query = `select o.identity from ${rows.table} o where o.change = 'r' and not o.sequence <@ ${DONE}
    order by o.sequence limit $2`;
  return (await run(db, query, [rows.run, limit])).map((row) => text(row, 'identity'));
}
