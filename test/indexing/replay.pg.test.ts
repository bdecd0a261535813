/** An index in PostgreSQL follows the log, and survives the loss of its connection (design.md section 7). */

import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { membershipHistory } from '../../src/indexing/postgres/history.ts';
import { follow } from '../../src/indexing/replay.ts';
import { verifyIndex } from '../../src/indexing/verify-index.ts';
import { compactionHolds, releaseCompaction } from '../../src/journal/compaction.ts';
import { logHead } from '../../src/journal/log.ts';
import { compactTo } from '../support/compact.ts';
import { IndexScene, rows } from '../support/index-scene.ts';
import { followContract } from './follow.contract.ts';
import { POSTGRES } from './home.ts';

describe('in PostgreSQL', () => followContract(POSTGRES));

describe('in PostgreSQL alone', () => {
  let scene: IndexScene;

  beforeAll(async () => {
    scene = await IndexScene.open();
    await scene.history(['a', 'b']);
  });
  afterAll(() => scene.close());

  describe('a builder in PostgreSQL that dies', () => {
    test('with its connection to the index’s database lost in the middle of a batch, nothing of that batch is there', async () => {
      const indexer = scene.indexer('lost');
      let cut = true;
      const deps = scene.deps(25);
      const artifacts = {
        ...deps.artifacts,
        put: async (artifact: Parameters<typeof deps.artifacts.put>[0]) => {
          const put = await deps.artifacts.put(artifact);
          if (cut && (await indexer.builds()).some(({ mark }) => mark !== null)) {
            cut = false;
            await scene.journal.admin.query(
              `select pg_terminate_backend(pid, 5000) from pg_stat_activity where application_name = 'retl-mirror index'
               and state = 'idle in transaction' and datname = current_database()`,
            );
          }
          return put;
        },
      };
      await expect(follow({ ...deps, artifacts }, indexer)).rejects.toMatchObject({
        code: 'index.unavailable',
      });
      expect((await indexer.builds())[0]?.mark?.position).toBe(0n);
      await scene.follow(indexer, 25);
      expect(await scene.shown('lost')).toBe(await scene.expected());
    });
  });

  describe('`hold_log` that is changed while a build stands', () => {
    test('is followed by the next call: the hold goes, and comes back where the log begins by then', async () => {
      const { runtime } = scene.journal;
      const holds = async () =>
        (await compactionHolds(runtime)).flatMap(({ index, position }) =>
          index === 'held' ? [position] : [],
        );
      const index = (holdsLog: boolean) => scene.indexer('held', membershipHistory, { holdsLog });
      await scene.follow(index(true));
      expect(await holds()).toEqual([0n]);
      await scene.follow(index(false));
      expect(await holds()).toEqual([]);
      // A hold that begins late keeps all that there is yet.
      await scene.follow(index(true));
      expect(await holds()).toEqual([0n]);
      await scene.follow(index(false));
      await scene.run('held', rows(0, 9, '1'));
      const { boundary } = await compactTo(runtime, 2);
      await scene.follow(index(true));
      expect(await holds()).toEqual([boundary]);
      await scene.run('held', rows(0, 5, '1'));
      await scene.follow(index(true));
      expect(await holds()).toEqual([boundary]);
      await releaseCompaction(runtime, 'held');
    });
  });

  describe('a history that is compacted past its beginning', () => {
    test('goes on, and says what the log and its snapshot say', async () => {
      const history = scene.indexer('changes', membershipHistory, { holdsLog: false });
      await scene.follow(history);
      const { position } = await logHead(scene.journal.runtime);
      await scene.run('d', rows(0, 9, '1'));
      await compactTo(scene.journal.runtime, Number(position));
      await scene.follow(history);
      expect(await verifyIndex(scene.deps(), history)).toMatchObject({
        kind: 'compared',
        missing: 0n,
        unexpected: 0n,
      });
    });
  });
});
