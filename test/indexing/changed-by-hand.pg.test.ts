/** What somebody has changed by hand of an index in PostgreSQL (design.md section 7), and what the next call makes of it. */

import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { membershipHistory } from '../../src/indexing/postgres/history.ts';
import { membershipSearch } from '../../src/indexing/postgres/search.ts';
import { rebuild } from '../../src/indexing/rebuild.ts';
import { verifyIndex } from '../../src/indexing/verify-index.ts';
import { logHead } from '../../src/journal/log.ts';
import { IndexScene, rows, SCHEMA } from '../support/index-scene.ts';

const SAME = { kind: 'compared', missing: 0n, unexpected: 0n };

let scene: IndexScene;
beforeEach(async () => {
  scene = await IndexScene.open();
  await scene.history();
});
afterEach(() => scene.close());

const ask = (sql: string, values: readonly unknown[] = []) => scene.journal.admin.query(sql, [...values]);

async function liveTable(name: string): Promise<string> {
  const { rows: found } = await ask(
    `select '${SCHEMA}.rows_' || table_id as name from ${SCHEMA}.index_build where index_name = $1 and state = 'live'`,
    [name],
  );
  return String(found[0]?.name);
}

async function tables(): Promise<readonly string[]> {
  const { rows: found } = await ask(
    `select tablename as name from pg_tables where schemaname = '${SCHEMA}' order by 1`,
  );
  return found.map(({ name }) => String(name));
}

describe('its rows and tables', () => {
  test('a row that stands where the log’s next one comes stops it as changed, and a rebuild mends it', async () => {
    const indexer = scene.indexer('changes', membershipHistory);
    await scene.follow(indexer);
    const { position } = await logHead(scene.journal.runtime);
    await scene.run('a', rows(0, 9, '7'));
    const table = await liveTable('changes');
    const forged = `select $1::bigint + n, target_id, mirror, identity_hash, identity, action, payload_hash, run_id, at
      from ${table}, generate_series(1, 9) n where position = 1`;
    await ask(`insert into ${table} ${forged}`, [position]);
    await expect(scene.follow(indexer)).rejects.toMatchObject({
      code: 'index.misconfigured',
      details: { sql_state: '23505', rule: 'table-changed' },
    });
    await rebuild(scene.deps(), indexer);
    expect(await scene.follow(indexer)).toMatchObject({ kind: 'caught-up' });
    expect(await verifyIndex(scene.deps(), indexer)).toMatchObject(SAME);
  });

  test('a column that somebody has added is no difference, and hides none', async () => {
    const indexer = scene.indexer('vip');
    await scene.follow(indexer);
    const table = await liveTable('vip');
    await ask(`alter table ${table} add column note text default 'mine'`);
    expect(await verifyIndex(scene.deps(), indexer)).toMatchObject(SAME);
    await ask(`update ${table} set run_id = run_id + 1 where identity = $1`, ['{"id":"k1"}']);
    expect(await verifyIndex(scene.deps(), indexer)).toMatchObject({ missing: 1n, unexpected: 1n });
  });

  test('builds whose numbers are given again step past the tables of before, which go, and nobody else’s', async () => {
    const indexer = scene.indexer('vip');
    for (let n = 0; n < 2; n += 1) {
      await scene.follow(indexer);
      await rebuild(scene.deps(), indexer);
    }
    await scene.follow(indexer);
    await ask(
      `create table ${SCHEMA}.rows_1_late (mine text); grant all on ${SCHEMA}.rows_1_late to retl_runtime`,
    );
    const before = await liveTable('vip');
    await ask(`truncate ${SCHEMA}.index_build restart identity`);
    expect(await indexer.builds()).toEqual([]);
    await rebuild(scene.deps(), indexer);
    // Readers see what they saw until the new one has caught up.
    expect((await ask(`select from ${SCHEMA}.vip`)).rowCount).toBe(
      (await ask(`select from ${before}`)).rowCount,
    );
    expect(await scene.follow(indexer)).toMatchObject({ kind: 'caught-up', state: 'live' });
    expect(await scene.shown('vip')).toBe(await scene.expected());
    const live = await liveTable('vip');
    expect(await tables()).toEqual(['index_build', live.replace(`${SCHEMA}.`, ''), 'rows_1_late'].sort());
    expect([before, `${SCHEMA}.rows_1`]).not.toContain(live);
  });
});

describe('the view by which readers ask', () => {
  const CHANGED: {
    readonly [how: string]: { readonly sql: (table: string) => string; readonly fault: string };
  } = {
    dropped: { sql: () => `drop view ${SCHEMA}.vip`, fault: 'view-gone' },
    'dropped, and made to show nobody': {
      sql: (table) =>
        `drop view ${SCHEMA}.vip; create view ${SCHEMA}.vip as select * from ${table} where false`,
      fault: 'view-changed',
    },
    'made to leave somebody out': {
      sql: (table) =>
        `create or replace view ${SCHEMA}.vip as select ${membershipSearch.shown} from ${table} where run_id > 1`,
      fault: 'view-changed',
    },
    'led to a copy': {
      sql: (table) =>
        `create table ${SCHEMA}.copy as select * from ${table};
         create or replace view ${SCHEMA}.vip as select ${membershipSearch.shown} from ${SCHEMA}.copy`,
      fault: 'view-changed',
    },
    'of another name for a column': {
      sql: () => `alter view ${SCHEMA}.vip rename column mirror to mirrors`,
      fault: 'view-changed',
    },
  };

  test.each(Object.entries(CHANGED))(
    '%s: a comparison says so, and the next call puts it back',
    async (_, { sql, fault }) => {
      const indexer = scene.indexer('vip');
      await scene.follow(indexer);
      expect(await indexer.astray()).toBeNull();
      const definition = await viewOf('vip');
      await asRuntime(sql(await liveTable('vip')));
      const changed = await viewOf('vip');
      expect(await verifyIndex(scene.deps(), indexer)).toMatchObject({ ...SAME, astray: fault });
      expect(await viewOf('vip')).toBe(changed);
      // There is nothing new in the log.
      expect(await scene.follow(indexer)).toMatchObject({ kind: 'caught-up' });
      expect(await viewOf('vip')).toBe(definition);
      expect(await verifyIndex(scene.deps(), indexer)).toMatchObject({ ...SAME, astray: null });
      expect(await scene.shown('vip')).toBe(await scene.expected());
    },
  );

  test.each([
    ['name-taken', 'a table', `create table ${SCHEMA}.vip (mine text)`],
    ['other-owner', 'somebody else’s view', `create view ${SCHEMA}.vip as select 'mine' as whose`],
  ])('%s: %s of its name is left alone, whether there is a build or not', async (rule, _, sql) => {
    const indexer = scene.indexer('vip');
    await ask(sql);
    const refused = { code: 'index.misconfigured', details: { rule } };
    await expect(scene.follow(indexer)).rejects.toMatchObject(refused);
    await ask(sql.replace('create', 'drop').replace(/vip .*/, 'vip'));
    await scene.follow(indexer);
    await asRuntime(`drop view ${SCHEMA}.vip`);
    await ask(sql);
    expect(await verifyIndex(scene.deps(), indexer)).toMatchObject({ ...SAME, astray: rule });
    await expect(scene.follow(indexer)).rejects.toMatchObject(refused);
    const { fields } = await ask(`select * from ${SCHEMA}.vip`);
    expect(fields).toHaveLength(1);
  });

  test('with the rows it leads to gone, it is refused at once; beside a new build, that one takes its place', async () => {
    const indexer = scene.indexer('vip');
    await scene.follow(indexer);
    await asRuntime(`drop table ${await liveTable('vip')} cascade`);
    expect(await indexer.astray()).toBe('table-gone');
    await expect(scene.follow(indexer)).rejects.toMatchObject({ details: { rule: 'table-gone' } });
    await rebuild(scene.deps(), indexer);
    expect(await scene.follow(indexer)).toMatchObject({ kind: 'caught-up' });
    expect(await scene.shown('vip')).toBe(await scene.expected());
    expect(await indexer.astray()).toBeNull();
  });

  test.each([
    ['dropped', (table: string) => `alter table ${table} drop column run_id cascade`],
    ['renamed', (table: string) => `alter table ${table} rename column run_id to zz`],
  ])(
    'a column of the rows that somebody has %s is refused; a new build takes their place',
    async (_, sql) => {
      const indexer = scene.indexer('vip');
      await scene.follow(indexer);
      await asRuntime(sql(await liveTable('vip')));
      await expect(scene.follow(indexer)).rejects.toMatchObject({ details: { rule: 'table-changed' } });
      await rebuild(scene.deps(), indexer);
      expect(await scene.follow(indexer)).toMatchObject({ kind: 'caught-up' });
      expect(await scene.shown('vip')).toBe(await scene.expected());
      expect(await indexer.astray()).toBeNull();
    },
  );
});

async function viewOf(name: string): Promise<string | null> {
  const { rows: found } = await ask(`select pg_get_viewdef(to_regclass('${SCHEMA}.${name}')) as said`);
  return found[0]?.said ?? null;
}

/** As the role that owns what it changes. */
async function asRuntime(sql: string): Promise<void> {
  await scene.journal.admin.query(`set role ${scene.journal.runtimeRole}; ${sql}; reset role`);
}
