/**
 * The kind `membership-history`: each change of each member. A row is a change, and is never changed itself; a member that is
 * sent again unchanged gives none. A build that begins with a log snapshot has a row `held` for each member of it: what was
 * before has been compacted away.
 */

import type { NamedEntry } from '../indexer.ts';
import { knownIdentity } from '../known-identity.ts';
import { timeText } from '../time-text.ts';
import { BinaryRows, fixedFields } from './binary-rows.ts';
import { copyBinary, copyBytes, copyRows, copyText, type IndexConnection } from './database.ts';
import type { RowBatch, RowTable, TableKind, Taken } from './kind.ts';

const NAME_LIST = [
  'position',
  'target_id',
  'mirror',
  'identity_hash',
  'identity',
  'action',
  'payload_hash',
  'run_id',
  'at',
];
const NAMES = NAME_LIST.join(', ');

export const membershipHistory: TableKind = {
  name: 'membership-history',
  // Versions begin at 2001, so that an index may become one of another kind under its name.
  schemaVersion: 2_001,
  columns: `position bigint not null, target_id bigint not null, mirror text not null, identity_hash bytea not null,
    identity text not null, action text not null, payload_hash bytea, run_id bigint not null, at timestamptz not null`,
  names: NAME_LIST,
  shown: 'mirror, identity, action, at, run_id, position, target_id, identity_hash, payload_hash',
  keys: (table) => [
    `alter table ${table} add primary key (identity_hash, position, target_id)`,
    `create index on ${table} (mirror, position)`,
  ],
  earlier: leftHeld,
  take,
  // Nothing of it is ever changed.
  settle: async () => {},
};

/**
 * Whoever the changes up to the boundary leave as held must be held in the snapshot, since the same position, with the same
 * payload, and nobody else. Its run is the one that made the last change, in the same words, or a later one that sent the same again.
 */
function leftHeld(live: string, log: string, boundary: bigint): string {
  const newest = (columns: string, which: string) => `
    select distinct on (identity_hash, target_id) identity_hash, target_id, ${columns} from ${live}
    where position <= ${boundary} ${which} order by identity_hash, target_id, position desc`;
  return `
    with last as (${newest('mirror, identity, action, payload_hash, run_id', '')}),
      begun as (${newest('position, at', "and action in ('add', 'held')")}),
      standing as (
        select l.*, b.position, b.at from last l left join begun b using (identity_hash, target_id) where l.action <> 'remove'),
      held as (select * from ${log} where position <= ${boundary}),
      beside as (
        select s.identity_hash is not null as stands, h.identity_hash is not null as is_held,
          (s.mirror, s.payload_hash, s.position, s.at) = (h.mirror, h.payload_hash, h.position, h.at)
            and (s.run_id < h.run_id or (s.run_id = h.run_id and s.identity = h.identity)) as same
        from standing s full join held h on s.identity_hash = h.identity_hash and s.target_id = h.target_id)
    select count(*) filter (where is_held and same is not true) as missing,
      count(*) filter (where stands and same is not true) as unexpected from beside`;
}

async function take(client: IndexConnection, table: RowTable, batch: RowBatch): Promise<Taken> {
  if (batch.kind === 'members') {
    const rows = heldRows(batch);
    await copyRows(client, `${table.name} (${NAMES})`, rows);
    return { grown: BigInt(rows.length), late: 0n };
  }
  const changes = new Changes();
  await copyBinary(client, `${table.name} (${CHANGE_NAMES})`, changes.rows(batch.entries));
  return { grown: changes.count, late: 0n };
}

/** At the position since which a member is held, with what it is held with at the boundary, by the last run that sent it. */
function heldRows(batch: Extract<RowBatch, { kind: 'members' }>): readonly string[] {
  return batch.targets.flatMap(({ target, mirror, members }) =>
    members.map(({ since, position, identityHash, identity, payloadHash, sequence, sinceAt }) => {
      const who = `${mirror}\t${copyBytes(identityHash)}\t${copyText(knownIdentity(identity, position))}`;
      return `${since}\t${target}\t${who}\theld\t${copyBytes(payloadHash)}\t${sequence >> 32n}\t${timeText(sinceAt)}\n`;
    }),
  );
}

const CHANGE_NAMES = 'position, target_id, mirror, run_id, at, identity_hash, identity, action, payload_hash';

class Changes {
  count = 0n;

  *rows(entries: readonly NamedEntry[]): Generator<Buffer> {
    const rows = new BinaryRows();
    for (const { entry, mirror, columns } of entries) {
      const { position, target, run } = entry;
      const fixed = fixedFields([position, target, mirror, run, { micros: entry.recordedAt }]);
      for (let n = 0; n < columns.count; n += 1) {
        const action = columns.actionAt(n);
        if (action === 'keep') continue;
        this.count += 1n;
        rows.row(9);
        rows.fixed(fixed);
        rows.bytes(columns.identityHashes, 32 * n, 32 * n + 32);
        rows.text(knownIdentity(columns.identities?.[n], position));
        rows.text(action);
        if (action === 'remove') rows.nothing();
        else rows.bytes(columns.payloadHashes, 32 * n, 32 * n + 32);
        const made = rows.full();
        if (made !== null) yield made;
      }
    }
    yield rows.end();
  }
}
