/** Takes an index away that nobody follows any more: its builds, their rows and the view, in one schema of PostgreSQL. */

import type pg from 'pg';
import { big, flag, text } from '../../journal/decode.ts';
import type { Forgotten } from '../indexer.ts';
import { inTransaction, openIndexDatabase, query } from './database.ts';
import { pastFrozen } from './frozen.ts';
import { quoted } from './indexer.ts';
import { dropTables } from './late-changes.ts';

export interface TableRemains {
  readonly name: string;
  /** Without references. */
  readonly url: string;
  readonly schema: string;
  /** Whose builds go; `null`: everybody's, since the database is the journal's own. */
  readonly logId: string | null;
}

const BUILDS = (schema: string) => `
  select table_id, state, $2::uuid is null or log_id = $2 as own from ${schema}.index_build
  where index_name = $1 and not dropped order by table_id for update`;

/** Nothing is left to go on from for a builder that is still at it. @throws RetlError */
export async function forgetTables(remains: TableRemains): Promise<Forgotten> {
  const schema = quoted(remains.schema);
  const pool = openIndexDatabase(remains.url);
  try {
    return await pastFrozen(pool, schema, () => forgotten(pool, remains, schema));
  } finally {
    await pool.end();
  }
}

function forgotten(pool: pg.Pool, { name, logId }: TableRemains, schema: string): Promise<Forgotten> {
  return inTransaction(pool, async (client) => {
    const [there] = await query(client, 'select to_regclass($1) is not null as there', [
      `${schema}.index_build`,
    ]);
    if (there?.there !== true) return { builds: 0, foreign: 0 };
    await query(client, "set local lock_timeout = '10s'");
    const found = await query(client, BUILDS(schema), [name, logId]);
    const own = found.filter((build) => flag(build, 'own'));
    const foreign = found.length - own.length;
    // A view that shows another journal's build is that one's.
    if (own.some((build) => text(build, 'state') === 'live') || (own.length > 0 && foreign === 0))
      await query(client, `drop view if exists ${schema}.${quoted(name)}`);
    for (const build of own) {
      const table = big(build, 'table_id');
      await dropTables(client, `${schema}.rows_${table}`);
      await query(
        client,
        `update ${schema}.index_build set state = 'retired', dropped = true where table_id = $1`,
        [table],
      );
    }
    return { builds: own.length, foreign };
  });
}
