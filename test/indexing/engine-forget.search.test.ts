/** An index in a search engine that is let go: all of it, nothing of anybody else's, whoever dies or builds meanwhile (design.md section 7). */

import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { logPosition } from '../../src/domain/ids.ts';
import { forgetInEngine } from '../../src/indexing/engine/forget.ts';
import { follow } from '../../src/indexing/replay.ts';
import { compactionHolds, holdCompaction } from '../../src/journal/compaction.ts';
import { logHead } from '../../src/journal/log.ts';
import { forgotten } from '../../src/worker-forget.ts';
import { afterPages, IndexScene, rows } from '../support/index-scene.ts';
import { type Front, type FrontKnobs, startFront } from '../support/opensearch/front.ts';
import { type OpenSearchServer, startOpenSearch, withoutOpenSearch } from '../support/opensearch/server.ts';
import { EnginePlace, QUICK } from './engine-home.ts';

const why = await withoutOpenSearch();

describe.skipIf(why !== null)(`an index in OpenSearch that is forgotten ${why ?? ''}`, () => {
  let server: OpenSearchServer;
  let front: Front;
  let scene: IndexScene;
  let place: EnginePlace;

  beforeAll(async () => {
    server = await startOpenSearch();
    scene = await IndexScene.open();
    await scene.history();
  });
  afterAll(async () => {
    await scene.close();
    await server.stop();
  });
  beforeEach(async () => {
    front = await startFront(server.url);
    place = new EnginePlace(server.url, 'opensearch', { url: front.url });
  });
  afterEach(async () => {
    await place.close();
    await front.close();
  });

  const options = () => ({ url: front.url, prefix: place.prefix, replicas: 0 });
  const forget = async (of: IndexScene = scene) => {
    const { logId } = await logHead(of.journal.runtime);
    return forgetInEngine({ name: 'vip', system: 'opensearch', options: options(), logId, patience: QUICK });
  };
  /** As `retl index forget` has it done for an entry of retl.yaml. */
  const forgetRetired = () => {
    const place = {
      url: null,
      schema: 'retl_index',
      engine: { system: 'opensearch', options: options() },
    } as const;
    const retired = [{ name: 'vip', kind: 'membership-search', holdsLog: false, ...place } as const];
    const order = {
      projectDir: '/',
      journalUrl: scene.journal.runtimeUrl,
      name: 'vip',
      schema: 'retl_index',
    };
    return forgotten(scene.journal.runtime, { ...order, retired });
  };
  /** Names of indexes that the directory has a word of. */
  const words = async () => {
    const { hits } = await place.json<{ hits: { hits: readonly { readonly _id: string }[] } }>(
      'POST',
      `/${place.prefix}retl_indexes/_search`,
    );
    return hits.hits.map(({ _id }) => _id);
  };
  const refreshed = () => place.json('POST', `/${place.prefix}retl_indexes/_refresh`);
  /** One that readers see, one that is being built, and one that a comparison has left. */
  const buildThree = async () => {
    await scene.follow(await place.indexer('vip'), 1_000);
    const next = await place.indexer('vip', 'next');
    const [live] = await next.builds();
    await follow(scene.deps(), next, afterPages(2));
    if (live !== undefined) await next.scratch(live, null);
    expect(await place.built()).toBe(3);
  };
  const expectGone = async () => {
    const builds = (await place.engineIndexes()).filter((name) =>
      /-vip-v\d+-b\d+-[0-9a-f]{8}(-scratch)?$/.test(name),
    );
    expect(builds).toEqual([]);
    await refreshed();
    expect(await words()).not.toContain('vip');
    await expect(place.shown('vip')).rejects.toThrow('index_not_found');
  };

  test('goes whole, with its hold on the log, by what retl.yaml says of it; other indexes and foreign aliases stay', async () => {
    await buildThree();
    // The beginning of its name is that of a build.
    await scene.follow(await place.indexer('vip-v1001-b1'));
    const mine = `${place.prefix}vip-v1-b1`;
    await place.json('PUT', `/${mine}`);
    await place.json('POST', '/_aliases', {
      actions: [{ add: { index: mine, alias: `${place.prefix}vip` } }],
    });
    await holdCompaction(scene.journal.runtime, 'vip', logPosition(3));
    expect(await forgetRetired()).toEqual({
      kind: 'forgotten',
      index: 'vip',
      builds: 2,
      foreign: 0,
      held: 3n,
    });
    expect(await compactionHolds(scene.journal.runtime)).toEqual([]);
    expect(Object.keys(await place.json<object>('GET', `/_alias/${place.prefix}vip`))).toEqual([mine]);
    await place.json('DELETE', `/${mine}`);
    await expectGone();
    expect(await words()).toEqual(['vip-v1001-b1']);
    expect(await place.shown('vip-v1001-b1')).toBe(await scene.expected());
    expect(await forget()).toEqual({ builds: 0, foreign: 0 });
  });

  test('is finished by the next call, wherever the one before has died or an answer was lost', async () => {
    const asked = (upTo: number, then: FrontKnobs['instead']): FrontKnobs => {
      let requests = 0;
      return {
        instead(request) {
          requests += 1;
          return requests > upTo ? (then?.(request) ?? null) : null;
        },
      };
    };
    const refused = { status: 403, body: '{}' };
    let died = 0;
    for (let upTo = 0; died === upTo; upTo += 1) {
      await scene.follow(await place.indexer('vip'), 1_000);
      front.knobs = asked(upTo, () => refused);
      await forget().catch(() => {
        died += 1;
      });
      front.knobs = {};
      await forget();
      await expectGone();
    }
    expect(died).toBeGreaterThan(5);
    await buildThree();
    let answers = 0;
    front.knobs = {
      answering(_, answer) {
        answers += 1;
        return answers % 2 === 0 ? 'cut' : answer;
      },
    };
    await forget();
    await expectGone();
  });

  test.each([
    ['writes rows', (path: string) => path.endsWith('/_bulk')],
    ['writes its checkpoint', (path: string) => path.endsWith('/_doc/retl-build')],
    ['has it go live', (path: string) => path.endsWith('/_settings')],
    ['leads readers to it', (path: string) => path === '/_aliases'],
  ])(
    'has a builder that %s at this moment find its build gone, and makes nothing anew',
    async (_, isPlace) => {
      await follow(scene.deps(), await place.indexer('vip'), afterPages(1));
      let isForgotten = false;
      front.knobs = {
        async instead({ path, method }) {
          if (method === 'GET' || !isPlace(path) || isForgotten) return null;
          isForgotten = true;
          await forget();
          return null;
        },
      };
      const followed = await scene.follow(await place.indexer('vip'), 1_000);
      expect(isForgotten).toBe(true);
      expect(followed).toMatchObject({ code: 'index.build-raced', remedy: 'stop' });
      await expectGone();
    },
  );

  test.each([
    ['makes its index', /-vip-v[^/]*$/],
    ['says what is in it', /-vip-v[^/]*\/_doc\/retl-build$/],
  ])('has one that begins a build, and %s at this moment, give it up', async (_, isPlace) => {
    await scene.follow(await place.indexer('other'));
    let isForgotten = false;
    front.knobs = {
      async instead({ path, method }) {
        if (method !== 'PUT' || isForgotten || !isPlace.test(path)) return null;
        isForgotten = true;
        await forget();
        return null;
      },
    };
    expect(await scene.follow(await place.indexer('vip'))).toMatchObject({ code: 'index.build-raced' });
    await expectGone();
    expect(await words()).toEqual(['other']);
  });

  test('stays where it is another journal’s, and is told of', async () => {
    const other = await IndexScene.open();
    await other.run('b', rows(0, 5, '1'));
    await other.follow(await place.indexer('vip'));
    const before = await place.shown('vip');
    expect(await forget()).toEqual({ builds: 0, foreign: 1 });
    await refreshed();
    expect(await words()).toEqual(['vip']);
    expect(await place.shown('vip')).toBe(before);
    expect(await other.follow(await place.indexer('vip'))).toMatchObject({ kind: 'caught-up' });
    expect(await forget(other)).toEqual({ builds: 1, foreign: 0 });
    await expectGone();
    await other.close();
  });

  test('goes on holding the log where the engine refuses', async () => {
    await holdCompaction(scene.journal.runtime, 'vip', logPosition(3));
    front.knobs = { instead: () => ({ status: 403, body: '{}' }) };
    await expect(forgetRetired()).rejects.toMatchObject({
      code: 'index.misconfigured',
      details: { code: 'http-403' },
    });
    expect(await compactionHolds(scene.journal.runtime)).toMatchObject([{ index: 'vip', position: 3n }]);
    front.knobs = {};
    expect(await forgetRetired()).toMatchObject({ builds: 0, held: 3n });
  });
});
