/** What an index in PostgreSQL is refused for, and the builds that mend it (design.md section 7). */

import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { logPosition } from '../../src/domain/ids.ts';
import { membershipHistory } from '../../src/indexing/postgres/history.ts';
import { membershipSearch } from '../../src/indexing/postgres/search.ts';
import { rebuild } from '../../src/indexing/rebuild.ts';
import { follow } from '../../src/indexing/replay.ts';
import { verifyIndex } from '../../src/indexing/verify-index.ts';
import { beginCompaction } from '../../src/journal/compaction.ts';
import { logHead } from '../../src/journal/log.ts';
import { compactTo } from '../support/compact.ts';
import { afterPages, IndexScene, nextVersion, rows, SCHEMA } from '../support/index-scene.ts';
import { POSTGRES } from './home.ts';
import { rebuildContract } from './rebuild.contract.ts';

describe('in PostgreSQL', () => rebuildContract(POSTGRES));

describe('in PostgreSQL alone', () => {
  let scene: IndexScene;

  beforeEach(async () => {
    scene = await IndexScene.open();
    await scene.history();
  });
  afterEach(() => scene.close());

  describe('the view of an index in PostgreSQL', () => {
    test('has the columns of the build that it leads to', async () => {
      await scene.follow(scene.indexer('vip'));
      await scene.follow(scene.indexer('vip', nextVersion(membershipSearch)));
      const { fields } = await scene.journal.admin.query(`select * from ${SCHEMA}.vip limit 1`);
      expect(fields.map(({ name }) => name)).toContain('extra');
    });
  });

  describe('an index that was restored from a backup of its own', () => {
    test('is behind what the journal has registered of its build: it is refused before it writes a page', async () => {
      const indexer = scene.indexer('vip');
      await follow(scene.deps(), indexer, afterPages(4));
      const { rows: saved } = await scene.journal.admin.query(`select * from ${SCHEMA}.index_build`);
      await scene.follow(indexer);
      const { table_id, position, reference, previous, entry_hash } = saved[0];
      await scene.journal.admin.query(
        `update ${SCHEMA}.index_build set position = $2, reference = $3, previous = $4, entry_hash = $5 where table_id = $1`,
        [table_id, position, reference, previous, entry_hash],
      );
      const [shown, builds] = [await scene.shown('vip'), await indexer.builds()];
      const refusal = { code: 'index.registry-mismatch', remedy: 'stop', details: { rule: 'index-behind' } };
      for (let n = 0; n < 2; n += 1) expect(await scene.follow(indexer)).toMatchObject(refusal);
      expect(await indexer.builds()).toEqual(builds);
      expect(await scene.shown('vip')).toBe(shown);
    });

    test('to before its first checkpoint: it is refused as well, and does not load it again', async () => {
      const indexer = scene.indexer('vip');
      await rebuild(scene.deps(), indexer);
      const { rows: saved } = await scene.journal.admin.query(`select * from ${SCHEMA}.index_build`);
      const { table_id } = saved[0];
      await follow(scene.deps(), indexer, afterPages(2));
      await scene.journal.admin.query(
        `update ${SCHEMA}.index_build set position = null, reference = null, previous = null, entry_hash = null, rows = 0
         where table_id = $1`,
        [table_id],
      );
      await scene.journal.admin.query(`truncate ${SCHEMA}.rows_${table_id}`);
      expect(await scene.follow(indexer)).toMatchObject({
        code: 'index.registry-mismatch',
        details: { rule: 'index-behind', position: 'none' },
      });
      await rebuild(scene.deps(), indexer);
      expect(await scene.follow(indexer)).toMatchObject({ kind: 'caught-up', state: 'live' });
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
});
