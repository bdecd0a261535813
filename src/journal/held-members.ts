/**
 * The whole membership of a target, by hashes: the folded table, and over it the batches that are accepted and not folded
 * yet, in the order of the log (design.md section 5). Read in one read-only transaction that waits for nobody and for which
 * nobody waits.
 */

import { type RunId, runId, type TargetId } from '../domain/ids.ts';
import { big, bytes, one, text, textOrNull } from './decode.ts';
import { operationRows, operationsOf } from './log.ts';
import { type Queryable, run } from './pool.ts';

/** Takes members by hashes of 32 bytes as latin-1 text, in the order in which they were accepted. */
export interface HeldSink {
  hold(identity: string, payload: string, sequence: bigint): void;
  release(identity: string): void;
}

/** Members in one answer. */
const PAGE = 20_000;
/** Identity hash, payload hash, sequence number. */
const MEMBER_BYTES = 72;
const PACKED = `identity_hash || coalesce(payload_hash, decode(repeat('00', 32), 'hex')) || int8send(sequence)`;

/** Within a transaction. @throws JournalError */
export async function readHeld(db: Queryable, target: TargetId, sink: HeldSink): Promise<void> {
  // Rolled back, it gives up its lock on the table, whose first fold takes an exclusive one.
  await run(db, 'savepoint folded');
  await readFolded(db, target, sink);
  await run(db, 'rollback to savepoint folded');
  for (const batch of await run(db, UNFOLDED, [target])) {
    const isUpsert = text(batch, 'action') === 'upsert';
    const from = operationsIn(big(batch, 'run_id'));
    const page = bytes(one(await run(db, from, [big(batch, 'first'), big(batch, 'last')])), 'packed');
    unpack(page, (identity, payload, sequence) =>
      isUpsert ? sink.hold(identity, payload, sequence) : sink.release(identity),
    );
  }
}

async function readFolded(db: Queryable, target: TargetId, sink: HeldSink): Promise<void> {
  let after: Buffer = Buffer.alloc(0);
  for (;;) {
    const page = bytes(one(await run(db, folded(target), [after, PAGE])), 'packed');
    unpack(page, (identity, payload, sequence) => sink.hold(identity, payload, sequence));
    if (page.length < PAGE * MEMBER_BYTES) return;
    after = page.subarray(page.length - MEMBER_BYTES, page.length - MEMBER_BYTES + 32);
  }
}

/** One value a page: a row a member would cost more than the members. */
function folded(target: TargetId): string {
  return `select coalesce(string_agg(p.packed, ''::bytea order by p.identity_hash), '') as packed from (
    select identity_hash, ${PACKED} as packed from retl.membership_${target}
    where identity_hash > $1 order by identity_hash limit $2) p`;
}

const UNFOLDED = `
  select b.run_id, b.action, lower(b.operations) as first, upper(b.operations) - 1 as last
  from retl.batch b join retl.run r using (run_id)
  where r.target_id = $1 and b.state = 'settled' and not b.folded and b.action in ('upsert', 'remove')
    and b.position is not null
  order by b.position`;

function operationsIn(runNumber: bigint): string {
  return `select coalesce(string_agg(${PACKED}, ''::bytea order by sequence), '') as packed
    from retl.operation_${runNumber} o where sequence between $1 and $2
      and not exists (select from retl.rejection x where x.sequence = o.sequence)`;
}

function unpack(page: Buffer, each: (identity: string, payload: string, sequence: bigint) => void): void {
  for (let at = 0; at < page.length; at += MEMBER_BYTES) {
    each(
      page.toString('latin1', at, at + 32),
      page.toString('latin1', at + 32, at + 64),
      page.readBigInt64BE(at + 64),
    );
  }
}

const STALE = `
  select lower(s) as first, upper(s) as next from unnest((
    select range_agg(int8range(e.first_sequence, e.last_sequence, '[]')) from retl.log_entry e
    where e.target_id = $1 and e.kind = 'additions' and e.recorded_at < clock_timestamp() - $2 * interval '1 ms')) s
  order by 1`;

/** Which operations were accepted longer than `ms` ago, by the journal's clock, as retl.accepted_before says. @throws JournalError */
export async function acceptedBefore(
  db: Queryable,
  target: TargetId,
  ms: number,
): Promise<(sequence: bigint) => boolean> {
  const ranges = (await run(db, STALE, [target, ms])).map(
    (row) => [big(row, 'first'), big(row, 'next')] as const,
  );
  return (sequence) => {
    let [low, high] = [0, ranges.length];
    while (low < high) {
      const middle = (low + high) >>> 1;
      if ((ranges[middle]?.[0] ?? 0n) <= sequence) low = middle + 1;
      else high = middle;
    }
    return sequence < (ranges[low - 1]?.[1] ?? 0n);
  };
}

/** The same of a journal that may be damaged: `null` is missing. */
export interface AcceptedValues {
  readonly identity: string | null;
  readonly payload: string | null;
  /** The bytes of its removal, where they were asked for. */
  readonly removal: string | null;
}

/** What an accepted operation holds: canonical JSON texts. Values: only for those who may see them. */
export interface HeldValues {
  readonly identity: string;
  readonly payload: string;
}

/** By sequence number, for members that are held. @throws JournalError */
export async function heldValues(
  db: Queryable,
  sequences: readonly bigint[],
): Promise<ReadonlyMap<bigint, HeldValues>> {
  const found = new Map<bigint, HeldValues>();
  for (const [runNumber, own] of byRun(sequences)) {
    const rows = await operationRows(db, runNumber);
    const query = operationsOf(rows, 'upsert', 'o.sequence = any($1::bigint[])');
    for (const row of await run(db, query, [own])) {
      found.set(big(row, 'sequence'), { identity: text(row, 'identity'), payload: text(row, 'payload') });
    }
  }
  return found;
}

/**
 * The same for many at a time, packed: one statement and one row for each run. Canonical JSON has no line feed in it, so that
 * one separates the values, and is never empty: that stands for what is missing. @throws JournalError
 */
export async function acceptedValues(
  db: Queryable,
  sequences: readonly bigint[],
  withRemovals = false,
): Promise<ReadonlyMap<bigint, AcceptedValues>> {
  const found = new Map<bigint, AcceptedValues>();
  for (const [runNumber, own] of byRun(sequences)) {
    const { table, holdBytes, generation } = await operationRows(db, runNumber);
    const b = holdBytes ? 'o' : 'g';
    // `offset 0` keeps it a look-up for each member: a join would read the whole generation for every page of members.
    const join = holdBytes
      ? ''
      : `cross join lateral (
          select g.identity, g.upsert, g.remove from retl.generation_${generation} g where g.row_no = o.row_no offset 0) g`;
    const joined = (value: string) => `string_agg(coalesce(${value}, ''), E'\\n')`;
    const removals = withRemovals ? `, ${joined(`${b}.remove, ${b}.identity`)} as removals` : '';
    const query = `select coalesce(string_agg(int8send(o.sequence), ''::bytea), '') as sequences,
        ${joined(`${b}.identity`)} as identities, ${joined(`${b}.upsert`)} as payloads${removals}
      from ${table} o ${join} where o.sequence = any($1::bigint[])`;
    const row = one(await run(db, query, [own]));
    const valuesIn = (column: string) => textOrNull(row, column)?.split('\n') ?? [];
    const [identities, payloads, removed] = [
      valuesIn('identities'),
      valuesIn('payloads'),
      valuesIn('removals'),
    ];
    const packed = bytes(row, 'sequences');
    for (let n = 0; n * 8 < packed.length; n += 1)
      found.set(packed.readBigInt64BE(n * 8), {
        identity: identities[n] || null,
        payload: payloads[n] || null,
        removal: removed[n] || null,
      });
  }
  return found;
}

/**
 * Held members whose stored removal is longer than `limit` bytes, by sequence number and identity hash (latin-1): what the
 * seals of earlier runs measured against a larger limit. @throws JournalError
 */
export async function longRemovals(
  db: Queryable,
  target: TargetId,
  limit: number,
): Promise<readonly { readonly identity: string; readonly sequence: bigint }[]> {
  const found: { identity: string; sequence: bigint }[] = [];
  for (const row of await run(db, runsHeld(target), [target])) {
    const rows = await operationRows(db, runId(big(row, 'run_id')));
    const isLong = `octet_length(coalesce(b.remove, b.identity)) > $1`;
    const query = rows.holdBytes
      ? `select b.sequence, b.identity_hash from ${rows.table} b where b.change <> 'r' and ${isLong}`
      : `select o.sequence, b.identity_hash from ${rows.table} o
         join retl.generation_${rows.generation} b on b.kind = 1 and b.identity_hash = o.identity_hash
         where o.change <> 'r' and ${isLong}`;
    for (const long of await run(db, query, [limit])) {
      found.push({
        identity: bytes(long, 'identity_hash').toString('latin1'),
        sequence: big(long, 'sequence'),
      });
    }
  }
  return found;
}

function runsHeld(target: TargetId): string {
  return `select sequence >> 32 as run_id from retl.membership_${target}
    union select run_id from retl.batch join retl.run using (run_id)
      where target_id = $1 and action = 'upsert' and state = 'settled' and not folded and accepted > 0`;
}

/** A sequence number names its run (migrations/0001). */
function byRun(sequences: readonly bigint[]): ReadonlyMap<RunId, readonly bigint[]> {
  const runs = new Map<RunId, bigint[]>();
  for (const sequence of sequences) {
    const id = runId(sequence >> 32n);
    const own = runs.get(id);
    if (own === undefined) runs.set(id, [sequence]);
    else own.push(sequence);
  }
  return runs;
}
