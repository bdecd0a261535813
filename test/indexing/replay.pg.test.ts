/** An index follows the log, is killed anywhere, and says the same as the log (design.md section 7). */

import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { indexStatus } from '../../src/indexing/index-status.ts';
import type { Indexer } from '../../src/indexing/indexer.ts';
import { membershipHistory } from '../../src/indexing/postgres/history.ts';
import { follow, type ReplayDeps } from '../../src/indexing/replay.ts';
import { verifyIndex } from '../../src/indexing/verify-index.ts';
import { newestCheckpoint } from '../../src/journal/checkpoints.ts';
import { logHead } from '../../src/journal/log.ts';
import { compactTo } from '../support/compact.ts';
import { afterPages, IndexScene, rows } from '../support/index-scene.ts';

let scene: IndexScene;

beforeAll(async () => {
  scene = await IndexScene.open();
  await scene.history(['a', 'b']);
});
afterAll(() => scene.close());

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

describe('an index that follows the log', () => {
  test('says what the log says, and nothing else, whatever the length of its pages', async () => {
    for (const effects of [1, 7, 40, 20_000]) {
      const indexer = scene.indexer(`pages-${effects}`);
      const { position } = await logHead(scene.journal.runtime);
      expect(await scene.follow(indexer, effects)).toMatchObject({
        kind: 'caught-up',
        state: 'live',
        position,
      });
      expect(await scene.shown(`pages-${effects}`)).toBe(await scene.expected());
      expect((await indexer.builds())[0]?.rows).toBe(52n);
    }
  });

  test('goes on from its checkpoint with the next position, and shows new runs once it has', async () => {
    const indexer = scene.indexer('goes-on');
    await scene.follow(indexer);
    const before = await scene.shown('goes-on');
    await scene.run('c', rows(0, 12, '1'));
    expect(await scene.shown('goes-on')).toBe(before);
    await scene.follow(indexer);
    await scene.run('c', [...rows(0, 3, '2'), ...rows(5, 15, '1')]);
    await scene.follow(indexer);
    expect(await scene.shown('goes-on')).toBe(await scene.expected());
    expect(await verifyIndex(scene.deps(), indexer)).toMatchObject({
      kind: 'compared',
      missing: 0n,
      unexpected: 0n,
    });
  });

  test('an index of nothing is one: it has a checkpoint at 0 and a view without rows', async () => {
    const empty = await IndexScene.open();
    const indexer = empty.indexer('empty');
    expect(await empty.follow(indexer)).toMatchObject({ kind: 'caught-up', position: 0n, rows: 0n });
    expect(await empty.shown('empty')).toBe('');
    await empty.run('a', rows(0, 3, '1'));
    await empty.follow(indexer);
    expect(await empty.shown('empty')).toBe(await empty.expected());
    await empty.close();
  });
});

describe('a builder that dies', () => {
  test('before or after any artifact, commit or registration, another one completes the work, to the same rows', async () => {
    for (let n = 1; ; n += 1) {
      const name = `dies-${n}`;
      const indexer = scene.indexer(name);
      const { deps, left } = dying(scene.deps(60), n);
      await follow(deps, indexer).catch((error: unknown) => {
        if (left() > 0) throw error;
      });
      if (left() > 0) break;
      expect(await scene.follow(indexer, 60)).toMatchObject({ kind: 'caught-up' });
      expect(await scene.shown(name), name).toBe(await scene.expected());
      const [live] = await indexer.builds();
      const newest = live === undefined ? null : await newestCheckpoint(scene.journal.runtime, live.build);
      expect(newest?.reference, name).toBe(live?.mark?.reference);
      await scene.release(indexer);
    }
  });

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

describe('two builders at once', () => {
  test('one of them is refused, the other completes, and the rows are the log’s', async () => {
    const indexers: readonly Indexer[] = [scene.indexer('raced'), scene.indexer('raced')];
    const ended = await Promise.all(indexers.map((indexer) => scene.follow(indexer, 3)));
    const kinds = ended.map((one) => (one.kind === 'refused' ? one.code : one.kind)).sort();
    expect(kinds).toEqual(['caught-up', 'index.build-raced']);
    expect(await scene.shown('raced')).toBe(await scene.expected());
    for (const indexer of indexers) expect(await scene.follow(indexer)).toMatchObject({ kind: 'caught-up' });
  });
});

describe('lag', () => {
  test('is zero where nothing is left, and the head’s position less its own while a build is on its way', async () => {
    const { runtime } = scene.journal;
    const indexer = scene.indexer('lag');
    await scene.follow(indexer);
    const [caughtUp] = (await indexStatus(runtime, indexer)).builds;
    expect(caughtUp).toMatchObject({ state: 'live', lag: { positions: 0n, ms: 0 } });
    const slow = scene.indexer('lag-slow');
    expect(await follow(scene.deps(), slow, afterPages(2))).toMatchObject({
      kind: 'more',
      state: 'building',
    });
    const { head, builds } = await indexStatus(runtime, slow);
    const [behind] = builds;
    expect(behind?.lag?.positions).toBe(head - (behind?.position ?? 0n));
    expect(behind?.lag?.positions).toBeGreaterThan(0n);
    expect(behind?.lag?.ms).toBeGreaterThan(0);
  });
});

describe('after a compaction', () => {
  test('a build begins with the log snapshot, killed between its pages, and says what the whole log says', async () => {
    const old = scene.indexer('before');
    const history = scene.indexer('changes', membershipHistory, { holdsLog: false });
    for (const indexer of [old, history]) await scene.follow(indexer);
    const { position } = await logHead(scene.journal.runtime);
    await scene.run('d', rows(0, 9, '1'));
    const { boundary } = await compactTo(scene.journal.runtime, Number(position));
    const indexer = scene.indexer('after');
    for (let ended = 'more'; ended === 'more'; ) {
      const followed = await follow(scene.deps(9), indexer, afterPages(1));
      ended = followed.kind === 'refused' ? followed.code : followed.kind;
    }
    expect((await indexer.builds())[0]?.snapshot?.boundary).toBe(boundary);
    await scene.follow(old);
    for (const name of ['before', 'after']) expect(await scene.shown(name)).toBe(await scene.expected());
    expect(await verifyIndex(scene.deps(), old)).toMatchObject({ missing: 0n, unexpected: 0n });
    await scene.follow(history);
    expect(await verifyIndex(scene.deps(), history)).toMatchObject({
      kind: 'compared',
      missing: 0n,
      unexpected: 0n,
    });
  });
});
