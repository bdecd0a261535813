/**
 * The rights that an index in PostgreSQL gets by with (design.md section 7): PUBLIC has none, as `retl dev` sets it up. And what
 * is told of a database that refuses the index, with the remedy of docs/indexes.md.
 */

import { afterEach, beforeEach, expect, test } from 'vitest';
import { membershipSearch } from '../../src/indexing/postgres/search.ts';
import { rebuild } from '../../src/indexing/rebuild.ts';
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

/** An index that has caught up meets a change after `breaks`; the next one is followed after `mends`. */
interface Refused {
  readonly breaks: () => Promise<unknown>;
  readonly mends: () => Promise<unknown>;
  /** What its URL has become. */
  readonly url?: (url: URL) => void;
}

const ask = (sql: string) => scene.journal.admin.query(sql);
const onTable = (sql: string) =>
  ask(`do $$ begin execute (select format('${sql}', 'retl_index.rows_' || table_id)
    from retl_index.index_build where state = 'live'); end $$`);
const rebuilt = () => rebuild(scene.deps(), scene.indexer('people'));
const nothing = async (): Promise<void> => undefined;

const REFUSED: { readonly [what: string]: Refused } = {
  '42501: rights: granted': {
    breaks: () => ask(`revoke temporary on database ${database} from retl_runtime`),
    mends: () => ask(`grant temporary on database ${database} to retl_runtime`),
  },
  '42P01: table-gone: built anew': { breaks: () => onTable('drop table %s cascade'), mends: rebuilt },
  '42703: table-changed: built anew': {
    breaks: () => onTable('alter table %s rename column word to words'),
    mends: rebuilt,
  },
  '23514: table-changed: built anew': {
    breaks: () => onTable('alter table %s add check (run_id = 1) not valid'),
    mends: rebuilt,
  },
  '28000: sign-in: the URL is mended': {
    breaks: nothing,
    mends: nothing,
    url: (url) => {
      url.username = 'nobody_of_this_name';
    },
  },
  '3D000: no-database: the URL is mended': {
    breaks: nothing,
    mends: nothing,
    url: (url) => {
      url.pathname = '/no_database_of_this_name';
    },
  },
};

test.each(Object.entries(REFUSED))('%s', async (what, { breaks, mends, url }) => {
  await scene.run('a', rows(0, 9, '1'));
  await scene.follow(scene.indexer('people'));
  await breaks();
  await scene.run('a', [...rows(0, 4, '2'), ...rows(6, 12, '1')]);
  const at = new URL(scene.journal.runtimeUrl);
  url?.(at);
  const [sqlState, rule] = what.split(': ');
  await expect(
    scene.follow(scene.indexer('people', membershipSearch, { url: at.href })),
  ).rejects.toMatchObject({
    code: 'index.misconfigured',
    details: { system: 'postgres', sql_state: sqlState, rule },
  });
  await mends();
  expect(await scene.follow(scene.indexer('people'))).toMatchObject({ kind: 'caught-up', state: 'live' });
  expect(await scene.shown('people')).toBe(await scene.expected());
});
