/**
 * Changes of a fresh build, which has no keys by which to find what they change. They wait in a table beside the rows, each as
 * the row that its member has from there on, one without a payload as a member that is gone; and become rows all at once, by a
 * join of both tables, which costs a fraction of what it costs to look for each. That is done when the build is finished, and
 * before they are much more than the rows, so that it is done seldom however long the log is.
 */

import { type IndexConnection, query } from './database.ts';
import type { RowTable } from './kind.ts';

const nameOf = (table: string): string => `${table}_late`;

/** The table is there as long as changes wait in it. @returns its name. @throws RetlError */
export async function lateTable(client: IndexConnection, table: RowTable, columns: string): Promise<string> {
  const late = nameOf(table.name);
  if (table.late === 0n) await query(client, `create table ${late} (${columns.replaceAll(' not null', '')})`);
  return late;
}

/** Those of a build. @throws RetlError */
export async function dropTables(client: IndexConnection, table: string): Promise<void> {
  await query(client, `drop table if exists ${table}, ${nameOf(table)}`);
}

/** Fewer than so many are no burden, however few rows there are. */
const FEW = 100_000n;

/** Whether it is time to settle them. */
export function isMuch({ late, rows }: RowTable): boolean {
  return late > FEW && 2n * late > rows;
}

/** For the rest of the transaction. The planner knows nothing of a fresh table, and would sort it whole for the join. */
const NO_SORT = "select set_config('enable_mergejoin', 'off', true)";

/**
 * Rows of one member, the newest last, are told apart by their positions. One that was removed and added again has several
 * among those that were loaded; its time begins with the last of them.
 * @param names of all columns
 * @throws RetlError
 */
export async function settle(
  client: IndexConnection,
  table: RowTable,
  names: readonly string[],
): Promise<void> {
  if (table.late === 0n) return;
  const { name } = table;
  const late = nameOf(name);
  await query(client, `analyze ${late}`);
  await query(client, NO_SORT);
  await query(client, settleSql(name, late, names));
  await query(client, `drop table ${late}`);
}

function settleSql(rows: string, late: string, names: readonly string[]): string {
  const all = names.join(', ');
  const newest = (from: string, columns: string) => `
    select distinct on (identity_hash, target_id) ${columns} from ${from}
    order by identity_hash, target_id, position desc`;
  const begins = (name: string) => (/^since/.test(name) ? `coalesce(b.${name}, l.${name})` : `l.${name}`);
  return `
    with touched as materialized (select distinct identity_hash, target_id from ${late}),
      taken as (
        delete from ${rows} r using touched t
        where r.identity_hash = t.identity_hash and r.target_id = t.target_id returning r.*),
      begun as (${newest('taken', 'identity_hash, target_id, since, since_at')}),
      last as (${newest(`(select ${all} from taken union all select ${all} from ${late}) v`, all)})
    insert into ${rows} (${all}) select ${names.map(begins).join(', ')}
    from last l left join begun b on b.identity_hash = l.identity_hash and b.target_id = l.target_id
    where l.payload_hash is not null`;
}
