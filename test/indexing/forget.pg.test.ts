/** An index in PostgreSQL that is let go where several journals keep theirs. */

import { expect, test } from 'vitest';
import { forgetTables } from '../../src/indexing/postgres/forget.ts';
import { postgresIndexer } from '../../src/indexing/postgres/indexer.ts';
import { membershipSearch } from '../../src/indexing/postgres/search.ts';
import { logHead } from '../../src/journal/log.ts';
import { IndexScene, rows } from '../support/index-scene.ts';

test('builds and a view that another journal has made under its name stay, and are told of', async () => {
  const [owner, stranger] = [await IndexScene.open(), await IndexScene.open()];
  await owner.run('a', rows(0, 5, '1'));
  const place = { name: 'people', url: owner.journal.adminUrl, schema: 'shared' };
  const indexer = postgresIndexer({ ...place, kind: membershipSearch, holdsLog: false });
  await owner.follow(indexer);
  const logId = async (scene: IndexScene) => (await logHead(scene.journal.runtime)).logId;
  expect(await forgetTables({ ...place, logId: await logId(stranger) })).toEqual({ builds: 0, foreign: 1 });
  expect((await owner.journal.admin.query('select from shared.people')).rowCount).toBe(5);
  expect(await forgetTables({ ...place, logId: await logId(owner) })).toEqual({ builds: 1, foreign: 0 });
  await expect(owner.journal.admin.query('select from shared.people')).rejects.toMatchObject({
    code: '42P01',
  });
  await indexer.close();
  await Promise.all([owner.close(), stranger.close()]);
});
