/**
 * The side table of a run: where its uploads go before the finish. It is a durable table beside the target, for what has been
 * accepted must outlive a crash of the server. It has the target's column types, checks and defaults, so that a row
 * that the target would refuse is refused by the request that brings it.
 *
 * Its name follows from the target and the run. Whoever holds the target's fence may drop those of other runs.
 */

import { createHash } from 'node:crypto';
import type { PoolClient } from 'pg';
import { z } from 'zod';
import { type QualifiedName, quoteName, quoteQualified } from './identifier.ts';
import type { Table } from './table.ts';

/** What a swap needs to know of its target. */
export interface SwapTarget {
  readonly name: QualifiedName;
  readonly table: Table;
  /** Names of the identity columns, and of all columns that are written; the identity's come first. */
  readonly keys: readonly string[];
  readonly columns: readonly string[];
}

function prefixOf(target: QualifiedName): string {
  const digest = createHash('sha256')
    .update(JSON.stringify([target.schema, target.name]))
    .digest('hex');
  return `retl_side_${digest.slice(0, 12)}_`;
}

export function sideTable(target: QualifiedName, run: string): QualifiedName {
  return { schema: target.schema, name: `${prefixOf(target)}${run}` };
}

/** Makes the run's side table unless it is there, and drops those of other runs. */
export async function createSideTable(
  client: PoolClient,
  target: SwapTarget,
  run: string,
  swap: 'replace' | 'rename',
): Promise<void> {
  const side = sideTable(target.name, run);
  for (const old of await sideTables(client, target.name)) {
    if (old !== side.name) await dropTable(client, { schema: side.schema, name: old });
  }
  if (await tableExists(client, side)) return;
  const [from, to] = [quoteQualified(target.name), quoteQualified(side)];
  if (swap === 'rename') {
    await client.query(`CREATE TABLE ${to} (LIKE ${from} INCLUDING ALL)`);
    return;
  }
  await client.query(
    `CREATE TABLE ${to} (LIKE ${from} INCLUDING DEFAULTS INCLUDING CONSTRAINTS INCLUDING STORAGE)`,
  );
  const spare = target.table.columns.filter(({ name }) => !target.columns.includes(name));
  if (spare.length > 0) {
    // Their checks go with them; only the target can hold rows to those, at the swap.
    const drops = spare.map(({ name }) => `DROP COLUMN ${quoteName(name)} CASCADE`);
    await client.query(`ALTER TABLE ${to} ${drops.join(', ')}`);
  }
  await client.query(`CREATE UNIQUE INDEX ON ${to} (${target.keys.map(quoteName).join(', ')})`);
}

const TABLES = `
  SELECT c.relname AS name FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
   WHERE n.nspname = $1 AND c.relkind = 'r' AND pg_catalog.starts_with(c.relname::text, $2) ORDER BY 1`;

/** Names of the side tables that there are of this target, of whatever run. */
async function sideTables(client: PoolClient, target: QualifiedName): Promise<readonly string[]> {
  const { rows } = await client.query(TABLES, [target.schema, prefixOf(target)]);
  return z
    .array(z.object({ name: z.string() }))
    .parse(rows)
    .map(({ name }) => name);
}

async function tableExists(client: PoolClient, { schema, name }: QualifiedName): Promise<boolean> {
  const { rows } = await client.query(
    `SELECT FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
      WHERE n.nspname = $1 AND c.relname = $2`,
    [schema, name],
  );
  return rows.length > 0;
}

export async function dropTable(client: PoolClient, name: QualifiedName): Promise<void> {
  await client.query(`DROP TABLE IF EXISTS ${quoteQualified(name)}`);
}
