/** Indexes in PostgreSQL take no rows from a journal that has lost values. */

import { describe } from 'vitest';
import { membershipHistory } from '../../src/indexing/postgres/history.ts';
import { membershipSearch } from '../../src/indexing/postgres/search.ts';
import { missingValuesContract } from './missing-values.contract.ts';

describe.each([
  ['membership-search', membershipSearch],
  ['membership-history', membershipHistory],
])('%s', (_, kind) => {
  missingValuesContract(async (scene) => ({
    indexer: scene.indexer('people', kind, { holdsLog: false }),
    // The scene does it.
    close: async () => undefined,
  }));
});
