/** What an index is refused for, each with its own remedy, and the builds that mend it (design.md section 7). */

import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { logPosition } from '../../src/domain/ids.ts';
import { membershipHistory } from '../../src/indexing/postgres/history.ts';
import { membershipSearch } from '../../src/indexing/postgres/search.ts';
import { rebuild, rollback } from '../../src/indexing/rebuild.ts';
import { follow } from '../../src/indexing/replay.ts';
import { verifyIndex } from '../../src/indexing/verify-index.ts';
import { hashBytes } from '../../src/journal/batches.ts';
import { buildsOf, checkpointsOf } from '../../src/journal/checkpoints.ts';
import { beginCompaction } from '../../src/journal/compaction.ts';
import { logHead } from '../../src/journal/log.ts';
import { compactTo } from '../support/compact.ts';
import { afterPages, IndexScene, nextVersion, rows, SCHEMA } from '../support/index-scene.ts';

let scene: IndexScene;

beforeEach(async () => {
  scene = await IndexScene.open();
  await scene.history();
});
afterEach(() => scene.close());

describe('a schema version that has changed', () => {
  test('has a new build made from the beginning, which readers see once it has caught up, and not before', async () => {
    await scene.follow(scene.indexer('vip'));
    await scene.run('c', rows(0, 5, '1'));
    const next = scene.indexer('vip', nextVersion(membershipSearch));
    const before = await scene.shown('vip');
    expect(await follow(scene.deps(), next, afterPages(3))).toMatchObject({
      kind: 'more',
      state: 'building',
    });
    expect(await scene.shown('vip')).toBe(before);
    expect((await next.builds()).map(({ state }) => state)).toEqual(['live', 'building']);
    expect(await scene.follow(next)).toMatchObject({ kind: 'caught-up', state: 'live' });
    expect(await scene.shown('vip')).toBe(await scene.expected());
    const { fields } = await scene.journal.admin.query(`select * from ${SCHEMA}.vip limit 1`);
    expect(fields.map(({ name }) => name)).toContain('extra');
    const { rows: tables } = await scene.journal.admin.query(
      `select from pg_tables where schemaname = '${SCHEMA}' and tablename like 'rows%'`,
    );
    expect(tables).toHaveLength(1);
  });

  test('another definition under the same version is refused, and the index is as it was', async () => {
    await scene.follow(scene.indexer('vip'));
    const other = { ...nextVersion(membershipSearch), schemaVersion: membershipSearch.schemaVersion };
    expect(await scene.follow(scene.indexer('vip', other))).toMatchObject({
      code: 'index.definition-changed',
    });
    expect(await scene.shown('vip')).toBe(await scene.expected());
  });
});

describe('another log', () => {
  test('an index that is pointed at another journal is refused, whatever that holds, and left as it is', async () => {
    const other = await IndexScene.open();
    await other.history();
    await other.run('c', rows(0, 40, '9'));
    const url = scene.journal.adminUrl;
    await scene.follow(scene.indexer('vip', membershipSearch, { url }));
    const before = await scene.shown('vip');
    const foreign = other.indexer('vip', membershipSearch, { url });
    expect(await other.follow(foreign)).toMatchObject({ code: 'index.other-log', remedy: 'stop' });
    expect(await verifyIndex(other.deps(), foreign)).toMatchObject({ code: 'index.other-log' });
    expect(await scene.shown('vip')).toBe(before);
    expect(await rebuild(other.deps(), foreign)).toMatchObject({ kind: 'chosen' });
    expect(await other.follow(foreign)).toMatchObject({ kind: 'caught-up' });
    expect(await scene.shown('vip')).toBe(await other.expected());
    await other.close();
  });

  test('a journal that was restored to an earlier time is found, and once it has grown, that its log is another', async () => {
    const restored = await IndexScene.open();
    const { logId } = await logHead(scene.journal.runtime);
    await restored.journal.admin.query('update retl.journal set log_id = $1', [logId]);
    const url = scene.journal.adminUrl;
    await scene.follow(scene.indexer('vip', membershipSearch, { url }));
    const indexer = restored.indexer('vip', membershipSearch, { url });
    expect(await restored.follow(indexer)).toMatchObject({ code: 'index.ahead-of-log', remedy: 'stop' });
    await restored.history();
    await restored.history();
    expect(await restored.follow(indexer)).toMatchObject({ code: 'index.log-diverged', remedy: 'stop' });
    await restored.close();
  });
});

describe('an artifact that is damaged or gone', () => {
  test('stops the index and is named; a rebuild is the way on', async () => {
    const indexer = scene.indexer('vip');
    await scene.follow(indexer);
    const reference = await scene.checkpoint(indexer);
    const where = 'where reference = $1';
    await scene.tamper(
      `update retl.artifact set bytes = set_byte(bytes, 30, get_byte(bytes, 30) # 1) ${where}`,
      [hashBytes(reference)],
    );
    expect(await scene.follow(indexer)).toMatchObject({ code: 'artifact.corrupt', details: { reference } });
    await scene.tamper(`delete from retl.artifact ${where}`, [hashBytes(reference)]);
    expect(await scene.follow(indexer)).toMatchObject({ code: 'artifact.missing', details: { reference } });
    expect(await rollback(scene.deps(), indexer, reference)).toMatchObject({ code: 'artifact.missing' });
    await rebuild(scene.deps(), indexer);
    expect(await scene.follow(indexer)).toMatchObject({ kind: 'caught-up' });
    expect(await scene.shown('vip')).toBe(await scene.expected());
  });
});

describe('an index that was restored from a backup of its own', () => {
  test('is behind what the journal has registered of its build: it is refused, and not made to fork', async () => {
    const indexer = scene.indexer('vip');
    await follow(scene.deps(), indexer, afterPages(4));
    const { rows: saved } = await scene.journal.admin.query(`select * from ${SCHEMA}.index_build`);
    await scene.follow(indexer);
    const { table_id, position, reference, previous, entry_hash } = saved[0];
    await scene.journal.admin.query(
      `update ${SCHEMA}.index_build set position = $2, reference = $3, previous = $4, entry_hash = $5 where table_id = $1`,
      [table_id, position, reference, previous, entry_hash],
    );
    expect(await scene.follow(indexer)).toMatchObject({ code: 'index.build-raced', remedy: 'stop' });
  });
});

describe('a rollback', () => {
  test('leads to what the index said at a retained checkpoint, stays there, and a rebuild follows the log again', async () => {
    const indexer = scene.indexer('vip');
    await scene.follow(indexer);
    const reference = await scene.checkpoint(indexer);
    const then = await scene.shown('vip');
    await scene.run('c', rows(0, 9, '1'));
    await scene.run('a', [...rows(0, 4, '7'), ...rows(8, 28, '3')]);
    await scene.follow(indexer);
    expect(await scene.shown('vip')).not.toBe(then);
    expect(await rollback(scene.deps(), indexer, reference)).toMatchObject({ kind: 'chosen' });
    for (let i = 0; i < 2; i += 1) expect(await scene.follow(indexer)).toMatchObject({ kind: 'frozen' });
    expect(await scene.shown('vip')).toBe(then);
    expect(await verifyIndex(scene.deps(), indexer)).toMatchObject({
      kind: 'compared',
      missing: 0n,
      unexpected: 0n,
    });
    await rebuild(scene.deps(), indexer);
    expect(await scene.follow(indexer)).toMatchObject({ kind: 'caught-up' });
    expect(await scene.shown('vip')).toBe(await scene.expected());
    const builds = await buildsOf(scene.journal.runtime, 'vip', null, 10);
    expect(builds).toHaveLength(3);
    for (const { build } of builds)
      expect((await checkpointsOf(scene.journal.runtime, build, null, 100)).length).toBeGreaterThan(1);
  });

  test('past compaction is refused with the reason, and so is a checkpoint of another index', async () => {
    const [indexer, other] = [scene.indexer('vip'), scene.indexer('other')];
    await scene.follow(indexer);
    const reference = await scene.checkpoint(indexer);
    expect(await rollback(scene.deps(), other, reference)).toMatchObject({
      code: 'index.unknown-checkpoint',
    });
    await scene.run('c', rows(0, 9, '1'));
    const { position } = await logHead(scene.journal.runtime);
    await compactTo(scene.journal.runtime, Number(position));
    const refused = await rollback(scene.deps(), indexer, reference);
    expect(refused).toMatchObject({
      code: 'index.past-compaction',
      details: { earliest: `${position + 1n}` },
    });
    // What the index has not read is in the log snapshot alone.
    expect(await scene.follow(indexer)).toMatchObject({ kind: 'caught-up', position });
    expect(await scene.shown('vip')).toBe(await scene.expected());
  });
});

describe('the history of members', () => {
  const changesOf = async (id: string) => {
    const { rows: found } = await scene.journal.admin.query<{ line: string }>(
      `select action as line from ${SCHEMA}.changes where identity = $1 order by position`,
      [JSON.stringify({ id })],
    );
    return found.map(({ line }) => line);
  };

  test('has each change of each member in order, and holds compaction back', async () => {
    const indexer = scene.indexer('changes', membershipHistory);
    expect(await scene.follow(indexer)).toMatchObject({ kind: 'caught-up' });
    expect(await changesOf('k1')).toEqual(['add', 'change']);
    expect(await changesOf('k5')).toEqual(['add', 'remove']);
    expect(await changesOf('k28')).toEqual(['add', 'remove', 'add']);
    expect(await verifyIndex(scene.deps(), indexer)).toMatchObject({ missing: 0n, unexpected: 0n });
    expect(await beginCompaction(scene.journal.runtime, logPosition(5))).toMatchObject({
      kind: 'held',
      by: 'changes',
    });
  });

  test('may do without: after a compaction it begins with who is held, marked so', async () => {
    const { position } = await logHead(scene.journal.runtime);
    await compactTo(scene.journal.runtime, Number(position));
    await scene.run('a', [...rows(0, 4, '2'), ...rows(8, 29, '3')]);
    const indexer = scene.indexer('changes', membershipHistory, { holdsLog: false });
    expect(await scene.follow(indexer)).toMatchObject({ kind: 'caught-up' });
    expect(await changesOf('k1')).toEqual(['held']);
    expect(await changesOf('k29')).toEqual(['held', 'remove']);
  });
});

describe('verify', () => {
  test('counts what is missing and what ought not to be there', async () => {
    const indexer = scene.indexer('vip');
    await scene.follow(indexer);
    const [live] = await indexer.builds();
    expect(live?.rows).toBe(26n);
    const table = `${SCHEMA}.rows_1`;
    await scene.journal.admin.query(`delete from ${table} where identity = '{"id":"k1"}' and mirror = 'a'`);
    await scene.journal.admin.query(`update ${table} set since = since + 1 where identity = '{"id":"k2"}'`);
    expect(await verifyIndex(scene.deps(), indexer)).toMatchObject({
      kind: 'compared',
      missing: 2n,
      unexpected: 1n,
    });
    const { rows: left } = await scene.journal.admin.query(
      "select from pg_class where relname = 'retl_scratch'",
    );
    expect(left).toHaveLength(0);
  });
});
