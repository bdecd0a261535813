/** Indexes in a real OpenSearch pass what those in PostgreSQL do. */

import { afterAll, beforeAll, describe } from 'vitest';
import { type OpenSearchServer, startOpenSearch, withoutOpenSearch } from '../support/opensearch/server.ts';
import { engineHome } from './engine-home.ts';
import { followContract } from './follow.contract.ts';
import { missingValuesContract } from './missing-values.contract.ts';
import { rebuildContract } from './rebuild.contract.ts';

const why = await withoutOpenSearch();

describe.skipIf(why !== null)(`in OpenSearch ${why ?? ''}`, () => {
  let server: OpenSearchServer;
  beforeAll(async () => {
    server = await startOpenSearch();
  });
  afterAll(() => server.stop());

  const home = engineHome(() => server.url);
  describe('following', () => followContract(home));
  describe('refusing and rebuilding', () => rebuildContract(home));
  describe('a journal that has lost values', () =>
    missingValuesContract(async (scene) => {
      const place = await home.open(scene);
      return { indexer: await place.indexer('people'), close: () => place.close() };
    }));
});
