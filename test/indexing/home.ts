/** Where an index lives, for the tests that every such place passes. */

import type { Indexer } from '../../src/indexing/indexer.ts';
import { membershipSearch } from '../../src/indexing/postgres/search.ts';
import { type IndexScene, nextVersion } from '../support/index-scene.ts';

export interface IndexHome {
  /** A place of its own for one journal's indexes. */
  open(scene: IndexScene): Promise<IndexPlace>;
}

/** `next`: the kind at another schema version; `changed`: another definition under the same. */
export type Version = 'now' | 'next' | 'changed';

export interface IndexPlace {
  /** A `membership-search`. */
  indexer(name: string, version?: Version): Promise<Indexer>;
  /** What readers see, in the words of `ReplayedIndex`. */
  shown(name: string): Promise<string>;
  /** How many constructions of indexes take up room there. */
  built(): Promise<number>;
  /** Takes a member's row out behind the indexer's back, and makes another one's time a later one. */
  damage(name: string, gone: string, later: string): Promise<void>;
  close(): Promise<void>;
}

/** Tables of the journal's own database. */
export const POSTGRES: IndexHome = {
  async open(scene) {
    const { admin } = scene.journal;
    return {
      async indexer(name, version = 'now') {
        const next = nextVersion(membershipSearch);
        const changed = { ...next, schemaVersion: membershipSearch.schemaVersion };
        return scene.indexer(name, { now: membershipSearch, next, changed }[version]);
      },
      shown: (name) => scene.shown(name),
      async built() {
        const { rows } = await admin.query(
          "select from pg_tables where schemaname = 'retl_index' and tablename ~ '^rows_[0-9]+$'",
        );
        return rows.length;
      },
      async damage(name, gone, later) {
        const { rows } = await admin.query<{ table: string }>(
          `select 'retl_index.rows_' || table_id as table from retl_index.index_build where index_name = $1 and state = 'live'`,
          [name],
        );
        const table = rows[0]?.table;
        await admin.query(`delete from ${table} where identity = $1`, [gone]);
        await admin.query(`update ${table} set since = since + 1 where identity = $1`, [later]);
      },
      // The scene closes what it has opened.
      close: async () => undefined,
    };
  },
};
