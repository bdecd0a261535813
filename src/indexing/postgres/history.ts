/**
 * The kind `membership-history`: each change of each member. A row is a change, and is never changed itself; a member that is
 * sent again unchanged gives none. A build that begins with a log snapshot has a row `held` for each member of it: what was
 * before has been compacted away.
 */

import { timeText } from '../time-text.ts';
import { copyBytes, copyRows, copyText, type IndexConnection } from './database.ts';
import type { RowBatch, RowTable, TableKind, Taken } from './kind.ts';

const NAMES = 'position, target_id, mirror, identity_hash, identity, action, payload_hash, run_id, at';

export const membershipHistory: TableKind = {
  name: 'membership-history',
  schemaVersion: 1,
  columns: `position bigint not null, target_id bigint not null, mirror text not null, identity_hash bytea not null,
    identity text not null, action text not null, payload_hash bytea, run_id bigint not null, at timestamptz not null`,
  shown: 'mirror, identity, action, at, run_id, position, target_id, identity_hash, payload_hash',
  keys: (table) => [
    `alter table ${table} add primary key (identity_hash, position, target_id)`,
    `create index on ${table} (mirror, position)`,
  ],
  comparable: (boundary) => `position > ${boundary}`,
  take,
};

async function take(client: IndexConnection, table: RowTable, batch: RowBatch): Promise<Taken> {
  const rows = batch.kind === 'members' ? heldRows(batch) : changeRows(batch);
  if (rows.length > 0) await copyRows(client, `${table.name} (${NAMES})`, rows);
  return { grown: BigInt(rows.length), keyed: table.keyed };
}

/** At the position since which a member is held, with what it is held with at the boundary, by the last run that sent it. */
function heldRows(batch: Extract<RowBatch, { kind: 'members' }>): readonly string[] {
  return batch.targets.flatMap(({ target, mirror, members }) =>
    members.map(({ since, identityHash, identity, payloadHash, sequence, sinceAt }) => {
      const who = `${mirror}\t${copyBytes(identityHash)}\t${copyText(identity ?? '')}`;
      return `${since}\t${target}\t${who}\theld\t${copyBytes(payloadHash)}\t${sequence >> 32n}\t${timeText(sinceAt)}\n`;
    }),
  );
}

function changeRows(batch: Extract<RowBatch, { kind: 'entries' }>): readonly string[] {
  const rows: string[] = [];
  for (const { entry, mirror, effects } of batch.entries) {
    const at = timeText(entry.recordedAt);
    for (const { action, identityHash, identity, payloadHash } of effects) {
      if (action === 'keep') continue;
      const who = `${mirror}\t${copyBytes(identityHash)}\t${copyText(identity ?? '')}`;
      const payload = payloadHash === null ? '\\N' : copyBytes(payloadHash);
      rows.push(`${entry.position}\t${entry.target}\t${who}\t${action}\t${payload}\t${entry.run}\t${at}\n`);
    }
  }
  return rows;
}
