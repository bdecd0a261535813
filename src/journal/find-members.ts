/**
 * Who is in which mirrors, by hash or by a text of the identity, from the membership itself: what an index of the kind
 * `membership-search` that has caught up would say. For those who may read values. A hash is looked up; a text is looked for in
 * everything that is held, which takes the longer the more that is, and no more memory; the time for it is bounded.
 */

import type pg from 'pg';
import type { FoundMember, Search } from '../domain/found.ts';
import { coarseSign, identityHas, type SearchedText } from '../domain/identity-text.ts';
import {
  type LogPosition,
  runId,
  type Sha256,
  sha256FromHex,
  type TargetId,
  targetId,
} from '../domain/ids.ts';
import { big, flag, type Row, text, textOrNull } from './decode.ts';
import { JournalError } from './errors.ts';
import { logHead, operationRows, operationsOf } from './log.ts';
import { heldSince } from './member-changes.ts';
import { type Holding, holdingOf } from './member-trace.ts';
import { consistently, type Queryable, run } from './pool.ts';
import { hasText } from './text-filter.ts';

export interface FoundInJournal {
  readonly kind: 'found';
  /** The head of the log, as of which this is. */
  readonly position: LogPosition;
  /** In order of identity hash and target. */
  readonly found: readonly FoundMember[];
  readonly more: boolean;
}

/** More is held than could be looked through in the time, in ms. */
export interface FoundNothingInTime {
  readonly kind: 'too-long';
  readonly ms: number;
}

/** Somebody waits for it at a terminal, and what it sees is kept from vacuum as long. */
const WITHIN_MS = 60_000;
/** `query_canceled`: by the time limit of its statement. */
const OUT_OF_TIME = '57014';

/** @throws JournalError */
export async function findMembers(
  pool: pg.Pool,
  search: Search,
  withinMs: number = WITHIN_MS,
): Promise<FoundInJournal | FoundNothingInTime> {
  try {
    return await searching(pool, search, performance.now() + withinMs);
  } catch (error) {
    if (error instanceof JournalError && error.sqlState === OUT_OF_TIME)
      return { kind: 'too-long', ms: withinMs };
    throw error;
  }
}

/** Has the next statement end with the time that is left. @throws JournalError where none is */
async function limit(db: Queryable, until: number): Promise<void> {
  const left = Math.floor(until - performance.now());
  if (left < 1) throw new JournalError('unavailable', OUT_OF_TIME, 'the time for the search is over');
  await run(db, `set local statement_timeout = ${left}`);
}

function searching(pool: pg.Pool, search: Search, until: number): Promise<FoundInJournal> {
  return consistently(pool, async (db) => {
    const { position } = await logHead(db);
    const first = new First(search.limit + 1);
    for (const target of await targetsOf(db, search.mirrors)) {
      for (const hash of search.hashes) await look(db, first, target, hash);
      if (search.text !== null) await lookThrough(db, first, target, search.text, until);
    }
    await limit(db, until);
    const members: FoundMember[] = [];
    for (const candidate of first.taken.slice(0, search.limit)) members.push(await told(db, candidate));
    return { kind: 'found', position, found: members, more: first.taken.length > search.limit };
  });
}

interface Target {
  readonly target: TargetId;
  readonly mirror: string;
}

interface Candidate extends Target {
  readonly identityHash: Sha256;
  readonly holding: Holding;
}

/** The first so many of those that are offered, in order of identity hash and target. */
class First {
  readonly taken: Candidate[] = [];

  constructor(private readonly size: number) {}

  /** Whether one of this hash, or a later one, would still be taken. */
  wants(target: TargetId, identityHash: Sha256): boolean {
    const last = this.taken.at(-1);
    return this.taken.length < this.size || last === undefined || isBefore({ target, identityHash }, last);
  }

  has(target: TargetId, identityHash: Sha256): boolean {
    return this.taken.some((one) => one.target === target && one.identityHash === identityHash);
  }

  take(candidate: Candidate): void {
    const at = this.taken.findIndex((one) => isBefore(candidate, one));
    this.taken.splice(at === -1 ? this.taken.length : at, 0, candidate);
    if (this.taken.length > this.size) this.taken.pop();
  }
}

type Place = Pick<Candidate, 'target' | 'identityHash'>;

function isBefore(a: Place, b: Place): boolean {
  return a.identityHash === b.identityHash ? a.target < b.target : a.identityHash < b.identityHash;
}

const TARGETS = `
  select t.target_id, m.name from retl.target t join retl.mirror m using (mirror_id)
  where $1::text[] is null or m.name = any($1) order by t.target_id`;

async function targetsOf(db: Queryable, mirrors: readonly string[] | null): Promise<readonly Target[]> {
  const rows = await run(db, TARGETS, [mirrors]);
  return rows.map((row) => ({ target: targetId(big(row, 'target_id')), mirror: text(row, 'name') }));
}

async function look(db: Queryable, first: First, of: Target, identityHash: Sha256): Promise<void> {
  if (!first.wants(of.target, identityHash) || first.has(of.target, identityHash)) return;
  const holding = await holdingOf(db, of.target, identityHash);
  if (holding !== null) first.take({ ...of, identityHash, holding });
}

/** Each run that something is held by, in turn: what its operations give that have the text, if they still are what is held. */
async function lookThrough(
  db: Queryable,
  first: First,
  of: Target,
  searched: SearchedText,
  until: number,
): Promise<void> {
  const folded = await isFolded(db, of.target);
  for (const row of await run(db, runsHolding(of.target, folded), [of.target])) {
    const query = await candidatesQuery(db, big(row, 'run_id'), of.target, folded);
    await run(db, `declare candidates no scroll cursor for ${query}`, [coarseSign(searched)]);
    const next = async () => {
      await limit(db, until);
      return run(db, NEXT);
    };
    let page = await next();
    while (page.length > 0) {
      for (const found of page)
        if (identityHas(text(found, 'identity'), searched)) await look(db, first, of, hashIn(found));
      const last = page.at(-1);
      // What follows in this run comes later still.
      page = last !== undefined && first.wants(of.target, hashIn(last)) ? await next() : [];
    }
    await run(db, 'close candidates');
  }
}

const NEXT = 'fetch 500 from candidates';

function hashIn(row: Row): Sha256 {
  return sha256FromHex(text(row, 'identity_hash'));
}

async function isFolded(db: Queryable, target: TargetId): Promise<boolean> {
  const [row] = await run(db, 'select to_regclass($1) is not null as there', [`retl.membership_${target}`]);
  return row !== undefined && flag(row, 'there');
}

function runsHolding(target: TargetId, folded: boolean): string {
  const unfolded = `select b.run_id from retl.batch b join retl.run r using (run_id)
    where r.target_id = $1 and b.state = 'settled' and not b.folded and b.action = 'upsert' and b.accepted > 0`;
  return folded
    ? `select distinct sequence >> 32 as run_id from retl.membership_${target} union ${unfolded}`
    : `select distinct run_id from (${unfolded}) b`;
}

/** What is held by an operation of the run, or may be, and may have the text; in order of the hash. */
async function candidatesQuery(
  db: Queryable,
  of: bigint,
  target: TargetId,
  folded: boolean,
): Promise<string> {
  const { table, holdBytes, generation } = await operationRows(db, runId(of));
  const values = holdBytes ? 'o' : 'g';
  const join = holdBytes ? '' : `join retl.generation_${generation} g on g.row_no = o.row_no`;
  const isHeld = folded
    ? `exists (select from retl.membership_${target} m
         where m.identity_hash = o.identity_hash and m.sequence = o.sequence) or`
    : '';
  return `select encode(o.identity_hash, 'hex') as identity_hash, ${values}.identity from ${table} o ${join}
    where o.change <> 'r' and (${hasText(`${values}.identity`, '$1')}) and (${isHeld} exists (
      select from retl.batch b where b.run_id = ${of} and b.operations @> o.sequence and b.state = 'settled' and not b.folded))
    order by o.identity_hash`;
}

async function told(db: Queryable, candidate: Candidate): Promise<FoundMember> {
  const { mirror, target, identityHash, holding } = candidate;
  const since = await heldSince(db, target, identityHash);
  return {
    mirror,
    target,
    identityHash,
    identity: await identityOf(db, BigInt(holding.sequence)),
    payloadHash: holding.payloadHash,
    run: BigInt(holding.runId),
    position: holding.position,
    acceptedAt: holding.since,
    since: since?.position ?? holding.position,
    sinceAt: since?.at ?? holding.since,
  };
}

/** `null`: no row that is left has it, which a journal that was not damaged always does. */
async function identityOf(db: Queryable, sequence: bigint): Promise<string | null> {
  const rows = await operationRows(db, runId(sequence >> 32n));
  const [row] = await run(db, operationsOf(rows, 'upsert', 'o.sequence = $1'), [sequence]);
  return row === undefined ? null : textOrNull(row, 'identity');
}
