/** The journal, asked who is in which mirrors, as an index is (src/journal/find-members.ts). */

import { findMembers } from '../../src/journal/find-members.ts';
import { describeSearch } from '../contract/search-reader.contract.ts';

describeSearch('the journal', async ({ journal: { runtime } }) => ({
  catchUp: async () => undefined,
  close: async () => undefined,
  search: async (search) => {
    const answer = await findMembers(runtime, search);
    if (answer.kind !== 'found') throw new Error(answer.kind);
    return answer;
  },
}));
