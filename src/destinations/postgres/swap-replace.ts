/**
 * `swap: replace`: the target gets the contents of the side table in one transaction, by identity: rows that are no members go,
 * the others are inserted or, where they differ, updated. The table itself stays, with its views, keys, grants and triggers;
 * columns that are not mapped keep their values in the rows that stay. Readers go on reading, and see the former set or
 * the new one; other writers wait.
 */

import type { PoolClient } from 'pg';
import { z } from 'zod';
import { type QualifiedName, quoteName, quoteQualified } from './identifier.ts';
import type { SwapTarget } from './side-table.ts';

/** Puts the side table's rows into the target. The caller commits or rolls back. */
export async function replaceContents(
  client: PoolClient,
  target: SwapTarget,
  side: QualifiedName,
  folds: boolean,
): Promise<void> {
  const { lock, remove, insert } = statementsOf(target, side, folds);
  await client.query(lock);
  // Rows that came in over minutes may not have been counted yet.
  await client.query(`ANALYZE ${quoteQualified(side)}`);
  await client.query(remove);
  await client.query(insert);
}

export function statementsOf(
  { name, table, keys, columns }: SwapTarget,
  side: QualifiedName,
  folds: boolean,
): { readonly lock: string; readonly remove: string; readonly insert: string } {
  const [to, from] = [quoteQualified(name), quoteQualified(side)];
  const all = columns.map(quoteName);
  const payload = columns.filter((column) => !keys.includes(column)).map(quoteName);
  // Where the identity folds, the spelling that is sent last is the one that is kept.
  const updated = folds || payload.length === 0 ? all : payload;
  const row = (of: string): string =>
    `ROW(${updated.map((column) => `${of}.${column}`).join(', ')})::pg_catalog.record`;
  // Rows of inheritance children are not the table's own; the rows of partitions are.
  const only = table.kind === 'p' ? '' : 'ONLY ';
  return {
    lock: `LOCK TABLE ${only}${to} IN SHARE ROW EXCLUSIVE MODE`,
    remove: `DELETE FROM ${only}${to} AS t WHERE NOT EXISTS (SELECT FROM ${from} AS s WHERE ${joined(keys)})`,
    insert: `
      INSERT INTO ${to} AS t (${all.join(', ')}) SELECT ${all.join(', ')} FROM ${from}
      ON CONFLICT (${keys.map(quoteName).join(', ')}) DO UPDATE
        SET ${updated.map((column) => `${column} = EXCLUDED.${column}`).join(', ')}
      -- By image, which every type has: json has no equality.
      WHERE ${row('t')} OPERATOR(pg_catalog.*<>) ${row('EXCLUDED')}`,
  };
}

function joined(keys: readonly string[]): string {
  return keys.map((key) => `s.${quoteName(key)} = t.${quoteName(key)}`).join(' AND ');
}

/** Whether the target holds the side table's members and nothing else: a trigger may have discarded some. */
export async function holdsSide(
  client: PoolClient,
  { name, table, keys }: SwapTarget,
  side: QualifiedName,
  members: number,
): Promise<boolean> {
  const from = `${table.kind === 'p' ? '' : 'ONLY '}${quoteQualified(name)} AS t`;
  const { rows } = await client.query(`
    SELECT (SELECT pg_catalog.count(*) FROM ${from})::text AS held,
           (SELECT pg_catalog.count(*) FROM ${from} JOIN ${quoteQualified(side)} AS s ON ${joined(keys)})::text AS wanted`);
  const { held, wanted } = z.object({ held: z.string(), wanted: z.string() }).parse(rows[0]);
  return held === String(members) && wanted === String(members);
}

export async function countRows(client: PoolClient, table: QualifiedName): Promise<number> {
  const { rows } = await client.query(
    `SELECT pg_catalog.count(*)::text AS rows FROM ${quoteQualified(table)}`,
  );
  return Number(z.object({ rows: z.string() }).parse(rows[0]).rows);
}
