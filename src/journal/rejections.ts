/**
 * What destinations refused, for `retl rejections`: single operations, and whole requests. Without values, unless they are
 * asked for and the role may read them (migrations/0004).
 */

import type pg from 'pg';
import { runId, type Sha256, sha256FromHex } from '../domain/ids.ts';
import { hashBytes } from './batches.ts';
import { big, bigOrNull, date, flag, numberOrNull, type Row, text, textOrNull } from './decode.ts';
import { operationRows, operationsOf } from './log.ts';
import { type Queryable, run } from './pool.ts';

export interface Refused {
  readonly kind: 'operation' | 'request';
  /** Its place in the list; `before` of the next page. */
  readonly at: string;
  readonly mirror: string;
  readonly runId: string;
  readonly batch: Sha256;
  readonly action: string;
  /** Of the operation; `null` for a request. */
  readonly sequence: string | null;
  /** Hash of the member's identity, which `retl explain` takes; `null` for a request, and where the row is gone. */
  readonly identityHash: Sha256 | null;
  /** Members of the whole request; `null` for the opening of a session, a finish, and a single operation. */
  readonly members: number | null;
  readonly code: string;
  readonly recordedAt: Date;
  /** The run went on to its end in spite of it, within what its mirror tolerates. */
  readonly tolerated: boolean;
  /** What came of it since, of a single operation; `null`: no later run says anything of the member. */
  readonly since: Since | null;
  /** Only where values were asked for: canonical JSON of the identity, and the provider's own words. */
  readonly values: { readonly identity: string | null; readonly words: string | null } | null;
}

/** `settled`: that run completed and had nothing to send for the member; what is held is what the source gives. */
export interface Since {
  readonly runId: string;
  readonly became: 'accepted' | 'rejected' | 'pending' | 'settled';
}

export interface RejectionsOptions {
  readonly mirror: string | null;
  readonly run: bigint | null;
  /** `at` of the last one of the page before. */
  readonly before: bigint | null;
  readonly limit: number;
  readonly values: boolean;
}

export interface RejectionsPage {
  /** Newest first. */
  readonly rejections: readonly Refused[];
  readonly next: string | null;
}

/**
 * Sequence numbers name their run, and a refused request stands where its first operation does; the opening of a session before
 * all of them, the finish after. No two can be in one place: an operation is in one request at most (rule 4).
 */
const LIST = `
  with listed as (
    (select x.sequence as at, x.sequence, x.run_id, x.batch_id, x.code, x.recorded_at
     from retl.rejection x join retl.run r using (run_id)
     where ($1::bigint is null or r.mirror_id = $1) and ($2::bigint is null or x.run_id = $2)
       and ($3::bigint is null or x.sequence < $3)
     order by x.sequence desc limit $4)
    union all
    (select p.at, null, b.run_id, b.batch_id, coalesce(b.reason, 'refused'), coalesce(s.started_at, b.prepared_at)
     from retl.batch b join retl.run r using (run_id)
     left join retl.attempt s on s.epoch = b.settled_epoch
     cross join lateral (select case b.action when 'init' then b.run_id << 32 when 'finish' then (b.run_id << 32) + 4294967295
       else lower(b.operations) end as at) p
     where b.state = 'refused' and ($1::bigint is null or r.mirror_id = $1) and ($2::bigint is null or b.run_id = $2)
       and ($3::bigint is null or p.at < $3)
     order by p.at desc limit $4))
  select l.at, l.sequence, m.name as mirror, l.run_id, encode(l.batch_id, 'hex') as batch_id, b.action, l.code, l.recorded_at,
    case when l.sequence is null then upper(b.operations) - lower(b.operations) end as members,
    encode(i.identity_hash, 'hex') as identity_hash, f.later_run, f.became,
    exists (select from retl.exception e where e.sequence = coalesce(l.sequence, lower(b.operations))) as tolerated
  from (select * from listed order by at desc limit $4) l
  join retl.batch b using (batch_id) join retl.run r on r.run_id = l.run_id join retl.mirror m using (mirror_id)
  left join retl.rejected_identities(array(select sequence from listed where sequence is not null)) i
    on i.sequence = l.sequence
  left join retl.rejections_since(array(select sequence from listed where sequence is not null)) f on f.sequence = l.sequence
  order by l.at desc`;

const MIRROR = 'select mirror_id from retl.mirror where name = $1';

/** @throws JournalError */
export async function listRejections(pool: pg.Pool, options: RejectionsOptions): Promise<RejectionsPage> {
  const mirror = options.mirror === null ? null : await mirrorNumber(pool, options.mirror);
  if (options.mirror !== null && mirror === null) return { rejections: [], next: null };
  const { run: ofRun, before, limit } = options;
  const rows = await run(pool, LIST, [mirror, ofRun, before, limit + 1]);
  const listed = rows.slice(0, limit).map(decode);
  const rejections = options.values
    ? await Promise.all(listed.map(async (one) => ({ ...one, values: await valuesOf(pool, one) })))
    : listed;
  return { rejections, next: rows.length > limit ? (rejections.at(-1)?.at ?? null) : null };
}

const RUN =
  'select m.name as mirror from retl.run r join retl.mirror m using (mirror_id) where r.run_id = $1';

/** Whose run this is; `null`: there is none. @throws JournalError */
export async function mirrorOfRun(pool: pg.Pool, id: bigint): Promise<string | null> {
  const [row] = await run(pool, RUN, [id]);
  return row === undefined ? null : text(row, 'mirror');
}

async function mirrorNumber(db: Queryable, mirror: string): Promise<bigint | null> {
  const [row] = await run(db, MIRROR, [mirror]);
  return row === undefined ? null : big(row, 'mirror_id');
}

function decode(row: Row): Refused {
  const sequence = bigOrNull(row, 'sequence');
  const hash = textOrNull(row, 'identity_hash');
  return {
    kind: sequence === null ? 'request' : 'operation',
    at: big(row, 'at').toString(),
    mirror: text(row, 'mirror'),
    runId: big(row, 'run_id').toString(),
    batch: sha256FromHex(text(row, 'batch_id')),
    action: text(row, 'action'),
    sequence: sequence?.toString() ?? null,
    identityHash: hash === null ? null : sha256FromHex(hash),
    members: numberOrNull(row, 'members'),
    code: text(row, 'code'),
    recordedAt: date(row, 'recorded_at'),
    tolerated: flag(row, 'tolerated'),
    since: sinceOf(row),
    values: null,
  };
}

function sinceOf(row: Row): Since | null {
  const later = bigOrNull(row, 'later_run');
  return later === null ? null : { runId: later.toString(), became: text(row, 'became') as Since['became'] };
}

async function valuesOf(db: Queryable, refused: Refused): Promise<NonNullable<Refused['values']>> {
  if (refused.sequence === null) {
    const [row] = await run(db, 'select refusal from retl.batch where batch_id = $1', [
      hashBytes(refused.batch),
    ]);
    return { identity: null, words: row === undefined ? null : textOrNull(row, 'refusal') };
  }
  const words = await run(db, 'select reason from retl.rejection where sequence = $1', [refused.sequence]);
  return {
    identity: refused.identityHash === null ? null : await identityOf(db, refused),
    words: words[0] === undefined ? null : text(words[0], 'reason'),
  };
}

async function identityOf(
  db: Queryable,
  { runId: number, action, sequence }: Refused,
): Promise<string | null> {
  const rows = await operationRows(db, runId(number));
  const kind = action === 'remove' ? 'remove' : 'upsert';
  const [row] = await run(db, operationsOf(rows, kind, 'o.sequence = $1'), [sequence]);
  return row === undefined ? null : text(row, 'identity');
}
