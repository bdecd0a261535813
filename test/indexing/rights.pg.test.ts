/** The rights that an index in PostgreSQL gets by with (design.md section 7): PUBLIC has none, as `retl dev` sets it up. */

import { afterEach, beforeEach, expect, test } from 'vitest';
import { verifyIndex } from '../../src/indexing/verify-index.ts';
import { IndexScene, rows } from '../support/index-scene.ts';

let scene: IndexScene;
let database: string;

beforeEach(async () => {
  scene = await IndexScene.open();
  const { admin, runtimeUrl, runtimeRole } = scene.journal;
  database = new URL(runtimeUrl).pathname.slice(1);
  await admin.query(`revoke all on database ${database} from public;
    grant connect on database ${database} to ${runtimeRole}`);
});
afterEach(() => scene.close());

test('where PUBLIC has no right at all, an index is built, follows changes and is verified', async () => {
  const indexer = scene.indexer('people');
  await indexer.look();
  await scene.run('a', rows(0, 9, '1'));
  await scene.follow(indexer);
  await scene.run('a', [...rows(0, 4, '2'), ...rows(6, 12, '1')]);
  expect(await scene.follow(indexer)).toMatchObject({ kind: 'caught-up', state: 'live' });
  expect(await scene.shown('people')).toBe(await scene.expected());
  expect(await verifyIndex(scene.deps(), indexer)).toMatchObject({
    kind: 'compared',
    missing: 0n,
    unexpected: 0n,
  });
});

test('a role that may not make temporary tables is told so before anything is built', async () => {
  await scene.journal.admin.query(`revoke temporary on database ${database} from retl_runtime`);
  await expect(scene.indexer('people').look()).rejects.toMatchObject({
    code: 'index.misconfigured',
    details: { rule: 'may-not-make-temporary' },
  });
});
