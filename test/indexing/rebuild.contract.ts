/** What an index is refused for, each with its own remedy, and the builds that mend it, wherever it lives (design.md section 7). */

import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { indexStatus } from '../../src/indexing/index-status.ts';
import { rebuild, rollback } from '../../src/indexing/rebuild.ts';
import { follow } from '../../src/indexing/replay.ts';
import { verifyIndex } from '../../src/indexing/verify-index.ts';
import { hashBytes } from '../../src/journal/batches.ts';
import { buildsOf, checkpointsOf } from '../../src/journal/checkpoints.ts';
import { logHead } from '../../src/journal/log.ts';
import { compactTo } from '../support/compact.ts';
import { afterPages, IndexScene, rows } from '../support/index-scene.ts';
import type { IndexHome, IndexPlace } from './home.ts';

const SAME = { kind: 'compared', missing: 0n, unexpected: 0n };

export function rebuildContract(home: IndexHome): void {
  let scene: IndexScene;
  let place: IndexPlace;

  beforeEach(async () => {
    scene = await IndexScene.open();
    place = await home.open(scene);
    await scene.history();
  });
  afterEach(async () => {
    await place.close();
    await scene.close();
  });

  describe('a schema version that has changed', () => {
    test('has a new build made from the beginning, which readers see once it has caught up, and not before', async () => {
      await scene.follow(await place.indexer('vip'));
      await scene.run('c', rows(0, 5, '1'));
      const next = await place.indexer('vip', 'next');
      const before = await place.shown('vip');
      const followed = await follow(scene.deps(), next, afterPages(3));
      expect(followed).toMatchObject({ kind: 'more', state: 'building' });
      expect(await place.shown('vip')).toBe(before);
      expect((await next.builds()).map(({ state }) => state)).toEqual(['live', 'building']);
      expect(await place.built()).toBe(2);
      expect(await scene.follow(next)).toMatchObject({ kind: 'caught-up', state: 'live' });
      expect(await place.shown('vip')).toBe(await scene.expected());
      expect(await place.built()).toBe(1);
    });

    test('what a newer release has built or is building is left to its worker, until somebody asks for a rebuild', async () => {
      const [now, next] = [await place.indexer('vip'), await place.indexer('vip', 'next')];
      await scene.follow(now);
      await follow(scene.deps(), next, afterPages(3));
      expect(await scene.follow(now)).toMatchObject({ code: 'index.newer-release', remedy: 'stop' });
      expect(await scene.follow(next)).toMatchObject({ kind: 'caught-up', state: 'live' });
      const builds = await next.builds();
      expect(await scene.follow(now)).toMatchObject({ code: 'index.newer-release', remedy: 'stop' });
      expect(await verifyIndex(scene.deps(), now)).toMatchObject({ code: 'index.newer-release' });
      expect(await next.builds()).toEqual(builds);
      const looked = await Promise.all([now, next].map((one) => indexStatus(scene.journal.runtime, one)));
      expect(looked.map(({ builds: [live] }) => live?.refused?.code)).toEqual([
        'index.newer-release',
        undefined,
      ]);
      await rebuild(scene.deps(), now);
      expect(await scene.follow(now)).toMatchObject({ kind: 'caught-up', state: 'live' });
      expect(await place.shown('vip')).toBe(await scene.expected());
    });

    test('another definition under the same version is refused, and the index is as it was', async () => {
      await scene.follow(await place.indexer('vip'));
      const changed = await place.indexer('vip', 'changed');
      expect(await scene.follow(changed)).toMatchObject({ code: 'index.definition-changed' });
      expect(await place.shown('vip')).toBe(await scene.expected());
    });
  });

  describe('an index that was restored from a backup', () => {
    test('is behind its registry: it is refused before it writes anything, until a rebuild makes it the log’s again', async () => {
      const indexer = await place.indexer('vip');
      await scene.follow(indexer);
      const reference = hashBytes(await scene.checkpoint(indexer));
      await scene.run('c', rows(0, 5, '1'));
      const { position } = await logHead(scene.journal.runtime);
      // What it had registered before it was set back.
      await scene.tamper(
        `insert into retl.checkpoint (build_id, position, reference, previous, entry_hash)
         select build_id, $2, sha256(reference), reference, entry_hash from retl.checkpoint where reference = $1`,
        [reference, position],
      );
      const [shown, builds] = [await place.shown('vip'), await indexer.builds()];
      const refusal = {
        code: 'index.registry-mismatch',
        details: { rule: 'index-behind', newest: `${position}` },
      };
      expect(await scene.follow(indexer)).toMatchObject(refusal);
      expect(await verifyIndex(scene.deps(), indexer)).toMatchObject(refusal);
      expect((await indexStatus(scene.journal.runtime, indexer)).builds).toMatchObject([
        { refused: refusal },
      ]);
      expect([await place.shown('vip'), await indexer.builds()]).toEqual([shown, builds]);
      expect(await rebuild(scene.deps(), indexer)).toMatchObject({ kind: 'chosen' });
      expect(await scene.follow(indexer)).toMatchObject({ kind: 'caught-up', state: 'live' });
      expect(await place.shown('vip')).toBe(await scene.expected());
    });
  });

  describe('another log', () => {
    test('an index that is pointed at another journal is refused, whatever that holds, and left as it is', async () => {
      const other = await IndexScene.open();
      await other.history();
      await other.run('c', rows(0, 40, '9'));
      await scene.follow(await place.indexer('vip'));
      const before = await place.shown('vip');
      const foreign = await place.indexer('vip');
      expect(await other.follow(foreign)).toMatchObject({ code: 'index.other-log', remedy: 'stop' });
      expect(await verifyIndex(other.deps(), foreign)).toMatchObject({ code: 'index.other-log' });
      expect(await place.shown('vip')).toBe(before);
      expect(await rebuild(other.deps(), foreign)).toMatchObject({ kind: 'chosen' });
      expect(await other.follow(foreign)).toMatchObject({ kind: 'caught-up' });
      expect(await place.shown('vip')).toBe(await other.expected());
      await other.close();
    });

    test('a journal that was restored to an earlier time is found, and once it has grown, that its log is another', async () => {
      const restored = await restoredJournal(scene);
      await scene.follow(await place.indexer('vip'));
      const indexer = await place.indexer('vip');
      const refused = async (code: string) => {
        expect(await restored.follow(indexer)).toMatchObject({ code, remedy: 'stop' });
        // Whoever looks sees it without the checkpoint's bytes, and is told no lag, which would be none, or less.
        expect((await indexStatus(restored.journal.runtime, indexer)).builds).toMatchObject([
          { state: 'live', lag: null, refused: { code } },
        ]);
      };
      await refused('index.ahead-of-log');
      await restored.history();
      await restored.history();
      await refused('index.log-diverged');
      // Its builds have the numbers of those that were lost with what the journal has forgotten.
      expect(await rebuild(restored.deps(), indexer)).toMatchObject({ kind: 'chosen' });
      expect(await restored.follow(indexer)).toMatchObject({ kind: 'caught-up' });
      expect(await place.shown('vip')).toBe(await restored.expected());
      await restored.close();
    });
  });

  describe('an artifact that is damaged or gone', () => {
    test('stops the index and is named; a rebuild is the way on', async () => {
      const indexer = await place.indexer('vip');
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
      expect(await place.shown('vip')).toBe(await scene.expected());
    });
  });

  describe('a rollback', () => {
    test('leads to what the index said at a retained checkpoint, stays there, and a rebuild follows the log again', async () => {
      const indexer = await place.indexer('vip');
      await scene.follow(indexer);
      const reference = await scene.checkpoint(indexer);
      const then = await place.shown('vip');
      await scene.run('c', rows(0, 9, '1'));
      await scene.run('a', [...rows(0, 4, '7'), ...rows(8, 28, '3')]);
      await scene.follow(indexer);
      expect(await place.shown('vip')).not.toBe(then);
      expect(await rollback(scene.deps(), indexer, reference)).toMatchObject({ kind: 'chosen' });
      for (let i = 0; i < 2; i += 1) expect(await scene.follow(indexer)).toMatchObject({ kind: 'frozen' });
      expect(await place.shown('vip')).toBe(then);
      expect(await verifyIndex(scene.deps(), indexer)).toMatchObject(SAME);
      await rebuild(scene.deps(), indexer);
      expect(await scene.follow(indexer)).toMatchObject({ kind: 'caught-up' });
      expect(await place.shown('vip')).toBe(await scene.expected());
      const builds = await buildsOf(scene.journal.runtime, 'vip', null, 10);
      expect(builds).toHaveLength(3);
      for (const { build } of builds)
        expect((await checkpointsOf(scene.journal.runtime, build, null, 100)).length).toBeGreaterThan(1);
    });

    test('past compaction is refused with the reason, and so is a checkpoint of another index', async () => {
      const [indexer, other] = [await place.indexer('vip'), await place.indexer('other')];
      await scene.follow(indexer);
      const reference = await scene.checkpoint(indexer);
      const elsewhere = await rollback(scene.deps(), other, reference);
      expect(elsewhere).toMatchObject({ code: 'index.unknown-checkpoint' });
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
      expect(await place.shown('vip')).toBe(await scene.expected());
    });
  });

  describe('verify', () => {
    test('counts what is missing and what ought not to be there, and leaves nothing behind', async () => {
      const indexer = await place.indexer('vip');
      await scene.follow(indexer);
      const [live] = await indexer.builds();
      expect(live?.rows).toBe(26n);
      await place.damage('vip', '{"id":"k1"}', '{"id":"k2"}');
      expect(await verifyIndex(scene.deps(), indexer)).toMatchObject({
        ...{ kind: 'compared', rows: 25n },
        ...{ missing: 2n, unexpected: 1n },
      });
      expect(await place.built()).toBe(1);
    });
  });
}

/** A journal with the same log id and nothing in it: what a backup from before the first run restores. */
export async function restoredJournal(scene: IndexScene): Promise<IndexScene> {
  const restored = await IndexScene.open();
  const { logId } = await logHead(scene.journal.runtime);
  await restored.journal.admin.query('update retl.journal set log_id = $1', [logId]);
  return restored;
}
