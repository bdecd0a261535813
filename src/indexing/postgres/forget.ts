/** Takes an index away that nobody configures any more: its builds, their rows and the view, in one schema of PostgreSQL. */

import { inTransaction, openIndexDatabase, query } from './database.ts';
import { quoted } from './indexer.ts';
import { dropTables } from './late-changes.ts';

export interface ForgottenPlace {
  /** Without references. */
  readonly url: string;
  readonly schema: string;
}

/** Nothing is left to go on from for a builder that is still at it. @returns how many builds there were. @throws RetlError */
export async function forgetBuilds({ url, schema: named }: ForgottenPlace, index: string): Promise<number> {
  const schema = quoted(named);
  const pool = openIndexDatabase(url);
  try {
    return await inTransaction(pool, async (client) => {
      const [there] = await query(client, 'select to_regclass($1) is not null as there', [
        `${schema}.index_build`,
      ]);
      if (there?.there !== true) return 0;
      await query(client, "set local lock_timeout = '10s'");
      const builds = await query(
        client,
        `update ${schema}.index_build set state = 'retired', dropped = true where index_name = $1 and not dropped
           returning table_id`,
        [index],
      );
      if (builds.length === 0) return 0;
      await query(client, `drop view if exists ${schema}.${quoted(index)}`);
      for (const { table_id: id } of builds) await dropTables(client, `${schema}.rows_${String(id)}`);
      return builds.length;
    });
  } finally {
    await pool.end();
  }
}
