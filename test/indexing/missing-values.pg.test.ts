/** A journal that has lost values: no row of an index is made from what is left (design.md section 7). */

import { afterEach, beforeEach, expect, test } from 'vitest';
import type { Indexer } from '../../src/indexing/indexer.ts';
import { membershipHistory } from '../../src/indexing/postgres/history.ts';
import { membershipSearch } from '../../src/indexing/postgres/search.ts';
import { logHead } from '../../src/journal/log.ts';
import { compactTo } from '../support/compact.ts';
import { IndexScene, rows } from '../support/index-scene.ts';

let scene: IndexScene;

beforeEach(async () => {
  scene = await IndexScene.open();
  await scene.run('a', rows(0, 6, '1'), 3);
});
afterEach(() => scene.close());

const KINDS = { 'membership-search': membershipSearch, 'membership-history': membershipHistory };
const LOST = { code: 'index.log-diverged', details: { rule: 'values-missing', position: '2' } };

/** Nothing of the page is there, and the error says no value. */
async function refuses(indexer: Indexer, lost: object): Promise<void> {
  const error = await scene.follow(indexer, 100).then(
    () => null,
    (thrown: unknown) => thrown,
  );
  expect(error).toMatchObject(lost);
  expect(String(error)).not.toMatch(/"id"|k\d/);
  expect((await indexer.builds()).map(({ state, rows: held }) => [state, held])).toEqual([['building', 0n]]);
}

test.each(Object.entries(KINDS))('%s: an entry whose values are gone gives no rows', async (_, kind) => {
  await scene.tamper(`delete from retl.generation_1 where identity = '{"id":"k4"}'`);
  await refuses(scene.indexer('people', kind), LOST);
});

test.each(Object.entries(KINDS))(
  '%s: an entry with a value less gives no rows to others',
  async (_, kind) => {
    await scene.tamper('alter table retl.generation_1 alter column identity drop not null');
    await scene.tamper(`update retl.generation_1 set identity = null where identity = '{"id":"k4"}'`);
    await refuses(scene.indexer('people', kind), LOST);
  },
);

test.each(Object.entries(KINDS))(
  '%s: a member of the log snapshot without values is no row',
  async (_, kind) => {
    const { position } = await logHead(scene.journal.runtime);
    await compactTo(scene.journal.runtime, Number(position));
    await scene.tamper(`delete from retl.generation_1 where identity = '{"id":"k4"}'`);
    const { details } = LOST;
    await refuses(scene.indexer('people', kind, { holdsLog: false }), {
      ...LOST,
      details: { rule: details.rule },
    });
  },
);
