/** The index `membership-search` in PostgreSQL, asked (design.md section 7). */

import { definitionOf } from '../../src/indexing/postgres/indexer.ts';
import { postgresSearchReader } from '../../src/indexing/postgres/reader.ts';
import { membershipSearch } from '../../src/indexing/postgres/search.ts';
import { describeSearch, foundIn } from '../contract/search-reader.contract.ts';
import { SCHEMA } from '../support/index-scene.ts';

describeSearch('an index of members in PostgreSQL', async (scene) => {
  const indexer = scene.indexer('people');
  const { runtimeUrl: url } = scene.journal;
  const reader = postgresSearchReader({
    definition: definitionOf('people', membershipSearch),
    url,
    schema: SCHEMA,
  });
  return {
    search: async (search) => foundIn(await reader.search(search)),
    close: () => reader.close(),
    async catchUp() {
      await scene.follow(indexer);
    },
  };
});
