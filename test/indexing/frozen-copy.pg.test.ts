/**
 * A builder that is frozen in the middle of a COPY (design.md section 7): no time limit of the server ends that, so whoever it
 * holds up does; and leaves alone whoever is only slow.
 */

import type pg from 'pg';
import { from as copyFrom } from 'pg-copy-streams';
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'vitest';
import { inTransaction, openIndexDatabase, query } from '../../src/indexing/postgres/database.ts';
import { pastFrozen } from '../../src/indexing/postgres/frozen.ts';
import { IndexScene, rows } from '../support/index-scene.ts';

const QUOTED = '"retl_index"';
const LOCK = `select table_id from ${QUOTED}.index_build for update`;

let scene: IndexScene;
let pool: pg.Pool;
let copier: pg.PoolClient;
let copy: ReturnType<typeof copyFrom>;
let failed: Promise<Error>;

beforeAll(async () => {
  scene = await IndexScene.open();
  await scene.run('a', rows(0, 9, '1'));
  await scene.follow(scene.indexer('people'));
});
afterAll(() => scene.close());

/** Somebody holds the build, and has a COPY under way. */
beforeEach(async () => {
  pool = openIndexDatabase(scene.journal.runtimeUrl);
  copier = await pool.connect();
  await copier.query('begin');
  await copier.query(LOCK);
  await copier.query('create temporary table staged (line text) on commit drop');
  copy = copier.query(copyFrom('copy staged from stdin'));
  failed = new Promise((resolve) => copy.on('error', resolve));
  await sends();
});
afterEach(async () => {
  copier.release(true);
  await pool.end();
});

/** Sends something more, and waits until the server has it. */
async function sends(): Promise<void> {
  const { admin } = scene.journal;
  const processed = async () => {
    const { rows: found } = await admin.query('select bytes_processed as n from pg_stat_progress_copy');
    return String(found[0]?.n);
  };
  const before = await processed();
  copy.write('somebody\n');
  while ((await processed()) === before) await new Promise((again) => setTimeout(again, 10));
}

/** What another one has to do with the build; `meanwhile` is done before it waits for the lock. */
function waiter(meanwhile: (tries: number) => Promise<void>): Promise<number> {
  let tries = 0;
  return pastFrozen(pool, QUOTED, () => {
    tries += 1;
    return inTransaction(pool, async (client) => {
      await meanwhile(tries);
      await query(client, "set local lock_timeout = '100ms'");
      return (await query(client, LOCK)).length;
    });
  });
}

test('one that sends nothing between two looks is ended, and who waits for it goes on', async () => {
  const tried: number[] = [];
  expect(await waiter(async (tries) => void tried.push(tries))).toBe(1);
  expect(tried).toEqual([1, 2, 3]);
  expect(await failed).toBeInstanceOf(Error);
  const indexer = scene.indexer('people');
  expect(await scene.follow(indexer)).toMatchObject({ kind: 'caught-up' });
  expect(await scene.shown('people')).toBe(await scene.expected());
});

test('one that is slow, and sends something between two looks, is left to its work', async () => {
  const work = waiter(async (tries) => (tries === 2 ? sends() : undefined));
  await expect(work).rejects.toMatchObject({
    code: 'index.unavailable',
    details: { sql_state: '55P03' },
  });
  await sends();
});

test('a lock that somebody holds who copies nothing is waited for, and nobody is ended', async () => {
  copier.release(true);
  copier = await pool.connect();
  await copier.query('begin');
  await copier.query(LOCK);
  await expect(waiter(async () => undefined)).rejects.toMatchObject({ details: { sql_state: '55P03' } });
  expect((await copier.query('select 1 as there')).rows).toEqual([{ there: 1 }]);
});
