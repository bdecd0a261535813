/** The journal, asked who is in which mirrors, as an index is (src/journal/find-members.ts). */

import { afterAll, beforeAll, expect, test } from 'vitest';
import { sha256FromHex } from '../../src/domain/ids.ts';
import { findMembers } from '../../src/journal/find-members.ts';
import { describeSearch } from '../contract/search-reader.contract.ts';
import { IndexScene, rows } from '../support/index-scene.ts';
import { identityHash } from '../support/journal-run.ts';

describeSearch('the journal', async ({ journal: { runtime } }) => ({
  catchUp: async () => undefined,
  close: async () => undefined,
  search: async (search) => {
    const answer = await findMembers(runtime, search);
    if (answer.kind !== 'found') throw new Error(answer.kind);
    return answer;
  },
}));

let scene: IndexScene;
beforeAll(async () => {
  scene = await IndexScene.open();
});
afterAll(() => scene.close());

test('an identity that the journal has lost, or whose value was taken away, is told as lost and not as an empty one', async () => {
  await scene.run('a', rows(0, 6, '1'), 3);
  await scene.tamper(`delete from retl.generation_1 where identity = '{"id":"k3"}'`);
  await scene.tamper('alter table retl.generation_1 alter column identity drop not null');
  await scene.tamper(`update retl.generation_1 set identity = null where identity = '{"id":"k4"}'`);
  const hashes = ['k3', 'k4', 'k5'].map((id) =>
    sha256FromHex(identityHash(JSON.stringify({ id })).toString('hex')),
  );
  const answer = await findMembers(scene.journal.runtime, { hashes, text: null, mirrors: null, limit: 10 });
  if (answer.kind !== 'found') throw new Error(answer.kind);
  const told = new Map(answer.found.map((member) => [member.identityHash, member.identity]));
  expect(hashes.map((hash) => told.get(hash))).toEqual([null, null, '{"id":"k5"}']);
});
