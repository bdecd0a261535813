/**
 * The kind `membership-search`: who is in which mirror, since when, by which run. A row is a member as it is held, with the
 * values of its identity, folded, by which it is found. As long as
 * a fresh build meets nothing but additions they are loaded straight, without keys; from then on pages are folded to one
 * change for each member, staged by COPY, and merged as sets.
 */

import type { NamedEntry } from '../indexer.ts';
import { timeText } from '../time-text.ts';
import { copyBytes, copyRows, copyText, type IndexConnection, query } from './database.ts';
import type { RowBatch, RowTable, TableKind, Taken } from './kind.ts';
import { copyWords, WORD_COLUMNS, WORD_NAMES, wordKeys } from './words.ts';

const COLUMNS = `target_id bigint not null, mirror text not null, identity_hash bytea not null, identity text not null,
  payload_hash bytea not null, run_id bigint not null, since bigint not null, since_at timestamptz not null,
  position bigint not null, accepted_at timestamptz not null, ${WORD_COLUMNS}`;

const NAMES = `target_id, mirror, identity_hash, identity, payload_hash, run_id, since, since_at, position, accepted_at,
  ${WORD_NAMES}`;

export const membershipSearch: TableKind = {
  name: 'membership-search',
  schemaVersion: 2,
  columns: COLUMNS,
  shown: `mirror, identity, since_at, accepted_at, run_id, since, position, target_id, identity_hash, payload_hash`,
  keys: (table) => [
    `alter table ${table} add primary key (identity_hash, target_id)`,
    `create index on ${table} (mirror, since)`,
    ...wordKeys(table),
  ],
  comparable: () => 'true',
  take,
};

async function take(client: IndexConnection, table: RowTable, batch: RowBatch): Promise<Taken> {
  const fresh = batch.kind === 'members' ? heldRows(batch) : table.keyed ? null : addedRows(batch.entries);
  if (fresh !== null) {
    await copyRows(client, `${table.name} (${NAMES})`, fresh);
    return { grown: BigInt(fresh.length), keyed: table.keyed };
  }
  if (!table.keyed) for (const statement of membershipSearch.keys(table.name)) await query(client, statement);
  const entries = batch.kind === 'entries' ? batch.entries : [];
  return { grown: await merge(client, table.name, folded(entries)), keyed: true };
}

function heldRows(batch: Extract<RowBatch, { kind: 'members' }>): readonly string[] {
  return batch.targets.flatMap(({ target, mirror, members }) =>
    members.map((m) =>
      line(target, mirror, m.identityHash, m.identity, m.payloadHash, {
        run: m.sequence >> 32n,
        since: m.since,
        sinceAt: timeText(m.sinceAt),
        position: m.position,
        acceptedAt: timeText(m.acceptedAt),
      }),
    ),
  );
}

/** `null` where there is anything else: whoever is added is held by nobody before. */
function addedRows(entries: readonly NamedEntry[]): readonly string[] | null {
  const rows: string[] = [];
  for (const { entry, mirror, effects } of entries) {
    const at = timeText(entry.recordedAt);
    const { position, run, target } = entry;
    const times = { run, since: position, sinceAt: at, position, acceptedAt: at };
    for (const e of effects) {
      if (e.action !== 'add' || e.payloadHash === null) return null;
      rows.push(line(target, mirror, e.identityHash, e.identity, e.payloadHash, times));
    }
  }
  return rows;
}

interface Times {
  readonly run: bigint;
  readonly since: bigint;
  readonly sinceAt: string;
  readonly position: bigint;
  readonly acceptedAt: string;
}

function line(
  target: bigint,
  mirror: string,
  identityHash: Buffer,
  identity: string | null,
  payloadHash: Buffer,
  t: Times,
): string {
  const hashes = `${copyBytes(identityHash)}\t${copyText(identity ?? '')}\t${copyBytes(payloadHash)}`;
  return `${target}\t${mirror}\t${hashes}\t${t.run}\t${t.since}\t${t.sinceAt}\t${t.position}\t${t.acceptedAt}\t${copyWords(identity ?? '')}\n`;
}

/** `u`: held, or held from now on; `x`: gone and held again, so that its time begins anew; `r`: gone. */
type Change = 'u' | 'x' | 'r';

interface Folded {
  change: Change;
  /** Of the row, up to the two columns of its beginning, and what follows them; empty for one that is gone. */
  readonly target: bigint;
  readonly identityHash: Buffer;
  row: string;
}

/** What a page comes to for each member. */
function folded(entries: readonly NamedEntry[]): readonly Folded[] {
  const found = new Map<string, Folded & { since: bigint; sinceAt: string }>();
  for (const { entry, mirror, effects } of entries) {
    const at = timeText(entry.recordedAt);
    const { position, run, target } = entry;
    for (const e of effects) {
      const { identityHash, payloadHash } = e;
      const key = `${target}:${identityHash.toString('latin1')}`;
      const before = found.get(key);
      const own = { target, identityHash };
      if (payloadHash === null) {
        found.set(key, { ...own, change: 'r', row: '', since: position, sinceAt: at });
        continue;
      }
      const goesOn = before !== undefined && before.change !== 'r';
      const { since, sinceAt } = goesOn ? before : { since: position, sinceAt: at };
      const row = line(target, mirror, identityHash, e.identity, payloadHash, {
        ...{ run, since, sinceAt },
        ...{ position, acceptedAt: at },
      });
      const change: Change = before === undefined ? 'u' : before.change === 'u' ? 'u' : 'x';
      found.set(key, { ...own, change, row, since, sinceAt });
    }
  }
  return [...found.values()];
}

const STAGE = `create temporary table if not exists retl_stage
  (change "char" not null, ${COLUMNS.replaceAll(' not null', '')}) on commit delete rows`;

async function merge(client: IndexConnection, table: string, changes: readonly Folded[]): Promise<bigint> {
  if (changes.length === 0) return 0n;
  await query(client, STAGE);
  await copyRows(client, `pg_temp.retl_stage (change, ${NAMES})`, stagedRows(changes));
  const [removed] = await query(client, deleteSql(table));
  const [added] = await query(client, upsertSql(table));
  return BigInt(String(added?.n ?? 0)) - BigInt(String(removed?.n ?? 0));
}

function* stagedRows(changes: readonly Folded[]): Generator<string> {
  const nulls = '\t\\N'.repeat(8);
  for (const { change, target, identityHash, row } of changes)
    yield row === '' ? `r\t${target}\t\\N\t${copyBytes(identityHash)}\t\\N${nulls}\n` : `${change}\t${row}`;
}

const deleteSql = (table: string) => `
  with gone as (
    delete from ${table} t using pg_temp.retl_stage s
    where s.change <> 'u' and t.identity_hash = s.identity_hash and t.target_id = s.target_id returning 1)
  select count(*) as n from gone`;

/** What is held already keeps its beginning. */
const upsertSql = (table: string) => `
  with changed as (
    insert into ${table} as t (${NAMES}) select ${NAMES} from pg_temp.retl_stage where change <> 'r'
    on conflict (identity_hash, target_id) do update set mirror = excluded.mirror, identity = excluded.identity,
      payload_hash = excluded.payload_hash, run_id = excluded.run_id, position = excluded.position,
      accepted_at = excluded.accepted_at, word = excluded.word, more = excluded.more
    returning (xmax = 0) as fresh)
  select count(*) filter (where fresh) as n from changed`;
