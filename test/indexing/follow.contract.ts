/** An index follows the log, is killed anywhere, and says the same as the log, wherever it lives (design.md section 7). */

import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { indexStatus } from '../../src/indexing/index-status.ts';
import { follow, type ReplayDeps } from '../../src/indexing/replay.ts';
import { verifyIndex } from '../../src/indexing/verify-index.ts';
import { newestCheckpoint } from '../../src/journal/checkpoints.ts';
import { logHead } from '../../src/journal/log.ts';
import { compactTo } from '../support/compact.ts';
import { afterPages, IndexScene, rows } from '../support/index-scene.ts';
import type { IndexHome, IndexPlace } from './home.ts';

/** Every step of a builder is a build of its own. */
const PATIENT_MS = 240_000;

const SAME = { kind: 'compared', missing: 0n, unexpected: 0n };

export function followContract(home: IndexHome): void {
  let scene: IndexScene;
  let place: IndexPlace;

  beforeAll(async () => {
    scene = await IndexScene.open();
    place = await home.open(scene);
    await scene.history(['a', 'b']);
  });
  afterAll(async () => {
    await place.close();
    await scene.close();
  });

  describe('an index that follows the log', () => {
    test('says what the log says, and nothing else, whatever the length of its pages', async () => {
      for (const effects of [1, 7, 40, 20_000]) {
        const indexer = await place.indexer(`pages-${effects}`);
        const { position } = await logHead(scene.journal.runtime);
        const followed = await scene.follow(indexer, effects);
        expect(followed).toMatchObject({ kind: 'caught-up', state: 'live', position });
        expect(await place.shown(`pages-${effects}`)).toBe(await scene.expected());
        expect((await indexer.builds())[0]?.rows).toBe(52n);
      }
    });

    test('goes on from its checkpoint with the next position, and shows new runs once it has', async () => {
      const indexer = await place.indexer('goes-on');
      await scene.follow(indexer);
      const before = await place.shown('goes-on');
      await scene.run('c', rows(0, 12, '1'));
      expect(await place.shown('goes-on')).toBe(before);
      await scene.follow(indexer);
      await scene.run('c', [...rows(0, 3, '2'), ...rows(5, 15, '1')]);
      await scene.follow(indexer);
      expect(await place.shown('goes-on')).toBe(await scene.expected());
      expect(await verifyIndex(scene.deps(), indexer)).toMatchObject(SAME);
    });

    test('an index of nothing is one: it has a checkpoint at 0 and shows nobody', async () => {
      const empty = await IndexScene.open();
      const there = await home.open(empty);
      const indexer = await there.indexer('empty');
      expect(await empty.follow(indexer)).toMatchObject({ kind: 'caught-up', position: 0n, rows: 0n });
      expect(await there.shown('empty')).toBe('');
      await empty.run('a', rows(0, 3, '1'));
      await empty.follow(indexer);
      expect(await there.shown('empty')).toBe(await empty.expected());
      await there.close();
      await empty.close();
    });
  });

  describe('a builder that dies', () => {
    test('before or after any artifact, commit or registration, another one completes the work, to the same rows', {
      timeout: PATIENT_MS,
    }, async () => {
      for (let n = 1; ; n += 1) {
        const name = `dies-${n}`;
        const { deps, left } = dying(scene.deps(60), n);
        await follow(deps, await place.indexer(name)).catch((error: unknown) => {
          if (left() > 0) throw error;
        });
        if (left() > 0) break;
        const indexer = await place.indexer(name);
        expect(await scene.follow(indexer, 60)).toMatchObject({ kind: 'caught-up' });
        expect(await place.shown(name), name).toBe(await scene.expected());
        const [live] = await indexer.builds();
        const newest = live === undefined ? null : await newestCheckpoint(scene.journal.runtime, live.build);
        expect(newest?.reference, name).toBe(live?.mark?.reference);
      }
    });
  });

  describe('two builders at once', () => {
    test('one of them is refused, the other completes, and the rows are the log’s', async () => {
      const indexers = [await place.indexer('raced'), await place.indexer('raced')];
      const ended = await Promise.all(indexers.map((indexer) => scene.follow(indexer, 3)));
      const kinds = ended.map((one) => (one.kind === 'refused' ? one.code : one.kind)).sort();
      expect(kinds).toEqual(['caught-up', 'index.build-raced']);
      expect(await place.shown('raced')).toBe(await scene.expected());
      for (const indexer of indexers)
        expect(await scene.follow(indexer)).toMatchObject({ kind: 'caught-up' });
    });
  });

  describe('lag', () => {
    test('is zero where nothing is left, and the head’s position less its own while a build is on its way', async () => {
      const { runtime } = scene.journal;
      const indexer = await place.indexer('lag');
      await scene.follow(indexer);
      const [caughtUp] = (await indexStatus(runtime, indexer)).builds;
      expect(caughtUp).toMatchObject({ state: 'live', lag: { positions: 0n, ms: 0 } });
      const slow = await place.indexer('lag-slow');
      const followed = await follow(scene.deps(), slow, afterPages(2));
      expect(followed).toMatchObject({ kind: 'more', state: 'building' });
      const { head, builds } = await indexStatus(runtime, slow);
      const [behind] = builds;
      expect(behind?.lag?.positions).toBe(head - (behind?.position ?? 0n));
      expect(behind?.lag?.positions).toBeGreaterThan(0n);
      expect(behind?.lag?.ms).toBeGreaterThan(0);
    });
  });

  describe('after a compaction', () => {
    test('a build begins with the log snapshot, killed between its pages, and says what the whole log says', async () => {
      const old = await place.indexer('before');
      await scene.follow(old);
      const { position } = await logHead(scene.journal.runtime);
      await scene.run('d', rows(0, 9, '1'));
      const { boundary } = await compactTo(scene.journal.runtime, Number(position));
      const indexer = await place.indexer('after');
      for (let ended = 'more'; ended === 'more'; ) {
        const followed = await follow(scene.deps(9), await place.indexer('after'), afterPages(1));
        ended = followed.kind === 'refused' ? followed.code : followed.kind;
      }
      expect((await indexer.builds())[0]?.snapshot?.boundary).toBe(boundary);
      await scene.follow(old);
      for (const name of ['before', 'after']) expect(await place.shown(name)).toBe(await scene.expected());
      expect(await verifyIndex(scene.deps(), old)).toMatchObject(SAME);
    });
  });
}

/** Dies at the `n`th of the steps that a builder makes: before an artifact, after it, before a registration, after it. */
function dying(deps: ReplayDeps, n: number): { readonly deps: ReplayDeps; readonly left: () => number } {
  let left = n;
  const step = () => {
    left -= 1;
    if (left === 0) throw new Error('killed');
  };
  const { artifacts, journal } = deps;
  const query = async (...args: readonly unknown[]) => {
    const isRegistry = String(args[0]).includes('put_checkpoint');
    if (isRegistry) step();
    const result = await Reflect.apply(journal.query, journal, args);
    if (isRegistry) step();
    return result;
  };
  const put: typeof artifacts.put = async (artifact) => {
    step();
    const stored = await artifacts.put(artifact);
    step();
    return stored;
  };
  const dead = new Proxy(journal, { get: (_, key) => (key === 'query' ? query : undefined) });
  return { deps: { ...deps, journal: dead, artifacts: { ...artifacts, put } }, left: () => left };
}
