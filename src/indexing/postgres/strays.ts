/**
 * Tables of builds that `index_build` knows no more: somebody has emptied it, or put it back from a backup, and its numbers are
 * given again. A new build steps past them; once it is live, nothing leads to them any more, and they go.
 */

import type pg from 'pg';
import { big, flag, text } from '../../journal/decode.ts';
import { type IndexConnection, inTransaction, query } from './database.ts';

const TAKEN = 'select coalesce(to_regclass($1), to_regclass($2)) is not null as taken';

/**
 * Gives a build that was just inserted a number whose table nobody has made yet, whosever the others are.
 * @param schema quoted
 * @returns the number
 * @throws RetlError
 */
export async function freeNumber(client: IndexConnection, schema: string, given: bigint): Promise<bigint> {
  for (let number = given; ; ) {
    const table = `${schema}.rows_${number}`;
    const [row] = await query(client, TAKEN, [table, `${table}_late`]);
    if (row === undefined || !flag(row, 'taken')) return number;
    const next = `update ${schema}.index_build set table_id = default where table_id = $1 returning table_id`;
    for (const moved of await query(client, next, [number])) number = big(moved, 'table_id');
  }
}

/** Somebody's own table may have such a name: one of these has the columns that all kinds have, too, and is ours to drop. */
const STRAYS = (schema: string) => `
  select c.relname from pg_class c
  where c.relnamespace = to_regnamespace($1) and c.relkind = 'r' and c.relname ~ '^rows_[0-9]{1,18}(_late)?$'
    and pg_has_role(c.relowner, 'usage')
    and 7 = (select count(*) from pg_attribute a where a.attrelid = c.oid and not a.attisdropped and a.attname in
      ('target_id', 'mirror', 'identity_hash', 'identity', 'payload_hash', 'run_id', 'position'))
    and not exists (select from ${schema}.index_build b
      where not b.dropped and b.table_id = substring(c.relname from '[0-9]+')::bigint)`;

/**
 * Drops them, as far as nothing depends on them and nobody is at them; the next build tries again.
 * @param schema quoted
 * @throws RetlError where they cannot be listed
 */
export async function dropStrays(pool: pg.Pool, schema: string): Promise<void> {
  for (const stray of await query(pool, STRAYS(schema), [schema])) {
    const name = text(stray, 'relname');
    await inTransaction(pool, async (client) => {
      await query(client, "set local lock_timeout = '2s'");
      // Nobody begins a build of this number meanwhile.
      await query(client, `lock table ${schema}.index_build in share mode`);
      const [still] = await query(client, `${STRAYS(schema)} and c.relname = $2`, [schema, name]);
      if (still !== undefined) await query(client, `drop table ${schema}.${name}`);
    }).catch(() => undefined);
  }
}
