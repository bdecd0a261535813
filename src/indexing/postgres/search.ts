/**
 * The kind `membership-search`: who is in which mirror, since when, by which run. A row is a member as it is held, with the
 * values of its identity, folded, by which it is found. A fresh build has no keys: additions are loaded straight, and what
 * changes or takes members waits beside them (late-changes.ts). With keys, pages are folded to one change for each member,
 * staged by COPY, and merged as sets.
 */

import type { EffectAction } from '../../journal/log-effects.ts';
import type { NamedEntry } from '../indexer.ts';
import { knownIdentity } from '../known-identity.ts';
import { timeText } from '../time-text.ts';
import { BinaryRows, fixedFields } from './binary-rows.ts';
import { copyBinary, copyBytes, copyRows, copyText, type IndexConnection, query } from './database.ts';
import type { RowBatch, RowTable, TableKind, Taken } from './kind.ts';
import { isMuch, lateTable, settle } from './late-changes.ts';
import { copyWords, keptWords, WORD_COLUMNS, WORD_NAMES, wordKeys } from './words.ts';

const COLUMNS = `target_id bigint not null, mirror text not null, identity_hash bytea not null, identity text not null,
  payload_hash bytea not null, run_id bigint not null, since bigint not null, since_at timestamptz not null,
  position bigint not null, accepted_at timestamptz not null, ${WORD_COLUMNS}`;

const NAME_LIST = [
  ...[
    'target_id',
    'mirror',
    'identity_hash',
    'identity',
    'payload_hash',
    'run_id',
    'since',
    'since_at',
    'position',
  ],
  ...['accepted_at', ...WORD_NAMES],
];
const NAMES = NAME_LIST.join(', ');

export const membershipSearch: TableKind = {
  name: 'membership-search',
  schemaVersion: 2,
  columns: COLUMNS,
  names: NAME_LIST,
  shown: `mirror, identity, since_at, accepted_at, run_id, since, position, target_id, identity_hash, payload_hash`,
  keys: (table) => [
    `alter table ${table} add primary key (identity_hash, target_id)`,
    `create index on ${table} (mirror, since)`,
    ...wordKeys(table),
  ],
  earlier: null,
  take,
  settle: (client, table) => settle(client, table, NAME_LIST),
};

async function take(client: IndexConnection, table: RowTable, batch: RowBatch): Promise<Taken> {
  if (batch.kind === 'members') {
    const held = heldRows(batch);
    await copyRows(client, `${table.name} (${NAMES})`, held);
    return { grown: BigInt(held.length), late: table.late };
  }
  const { entries } = batch;
  return table.keyed
    ? { grown: await merge(client, table.name, folded(entries)), late: 0n }
    : load(client, table, entries);
}

/** Whoever is added is held by nobody before. */
async function load(
  client: IndexConnection,
  table: RowTable,
  entries: readonly NamedEntry[],
): Promise<Taken> {
  const added = countOf(entries, 'add');
  const changes = entries.reduce((n, { columns }) => n + columns.count, -added);
  const grown = BigInt(added - countOf(entries, 'remove'));
  if (added > 0) await copyBinary(client, `${table.name} (${LOADED_NAMES})`, loadedRows(entries, isAddition));
  if (changes === 0) return { grown, late: table.late };
  const late = await lateTable(client, table, COLUMNS);
  await copyBinary(client, `${late} (${LOADED_NAMES})`, loadedRows(entries, isLate));
  const next = { ...table, late: table.late + BigInt(changes), rows: table.rows + grown };
  if (!isMuch(next)) return { grown, late: next.late };
  await settle(client, next, NAME_LIST);
  return { grown, late: 0n };
}

const isAddition = (action: EffectAction): boolean => action === 'add';
const isLate = (action: EffectAction): boolean => action !== 'add';

function countOf(entries: readonly NamedEntry[], action: EffectAction): number {
  return entries.reduce((n, { columns }) => n + columns.countOf(action), 0);
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

const LOADED_NAMES = `target_id, mirror, run_id, since, since_at, position, accepted_at, identity_hash, payload_hash,
  identity, ${WORD_NAMES.join(', ')}`;

/** Of the effects that are `wanted`; one that removes its member has no payload. */
function* loadedRows(
  entries: readonly NamedEntry[],
  wanted: (action: EffectAction) => boolean,
): Generator<Buffer> {
  const rows = new BinaryRows();
  for (const { entry, mirror, columns } of entries) {
    const { position, run, target } = entry;
    const at = { micros: entry.recordedAt };
    const fixed = fixedFields([target, mirror, run, position, at, position, at]);
    for (let n = 0; n < columns.count; n += 1) {
      const action = columns.actionAt(n);
      if (!wanted(action)) continue;
      const identity = knownIdentity(columns.identities?.[n], position);
      const [word = '', ...more] = keptWords(identity);
      rows.row(12);
      rows.fixed(fixed);
      rows.bytes(columns.identityHashes, 32 * n, 32 * n + 32);
      if (action === 'remove') rows.nothing();
      else rows.bytes(columns.payloadHashes, 32 * n, 32 * n + 32);
      rows.text(identity);
      rows.text(word);
      if (more.length === 0) rows.nothing();
      else rows.texts(more);
      const made = rows.full();
      if (made !== null) yield made;
    }
  }
  yield rows.end();
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
  const known = knownIdentity(identity, t.position);
  const hashes = `${copyBytes(identityHash)}\t${copyText(known)}\t${copyBytes(payloadHash)}`;
  return `${target}\t${mirror}\t${hashes}\t${t.run}\t${t.since}\t${t.sinceAt}\t${t.position}\t${t.acceptedAt}\t${copyWords(known)}\n`;
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
