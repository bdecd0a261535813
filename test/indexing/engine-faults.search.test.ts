/** What goes wrong between a builder and a search engine: answers that are lost or torn, indexes that are red, names that are taken away (design.md section 7). */

import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import type { Indexer } from '../../src/indexing/indexer.ts';
import { rebuild } from '../../src/indexing/rebuild.ts';
import { follow } from '../../src/indexing/replay.ts';
import { verifyIndex } from '../../src/indexing/verify-index.ts';
import { afterPages, IndexScene, rows } from '../support/index-scene.ts';
import { type Front, type FrontKnobs, type Passing, startFront } from '../support/opensearch/front.ts';
import { type OpenSearchServer, startOpenSearch, withoutOpenSearch } from '../support/opensearch/server.ts';
import { EnginePlace } from './engine-home.ts';

const why = await withoutOpenSearch();
const SAME = { kind: 'compared', missing: 0n, unexpected: 0n };

describe.skipIf(why !== null)(`an index in OpenSearch ${why ?? ''}`, () => {
  let server: OpenSearchServer;
  let front: Front;
  let scene: IndexScene;
  let place: EnginePlace;

  beforeAll(async () => {
    server = await startOpenSearch();
    scene = await IndexScene.open();
    await scene.history(['a', 'b']);
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
    front.knobs = {};
    await place.close();
    await front.close();
  });

  const isBulk = ({ path }: Passing) => path.endsWith('/_bulk');
  const expectDone = async () => {
    expect(await place.shown('vip')).toBe(await scene.expected());
    expect(await verifyIndex(scene.deps(), await place.indexer('vip'))).toMatchObject(SAME);
  };
  /** Each second request that matches has its answer replaced. */
  const everySecond = (matches: (request: Passing) => boolean, by: 'torn' | 'cut' | 'half'): FrontKnobs => {
    let seen = 0;
    return {
      answering(request, answer) {
        if (!matches(request)) return answer;
        seen += 1;
        if (seen % 2 === 0) return answer;
        if (by !== 'half') return by;
        return { ...answer, body: answer.body.slice(0, answer.body.length / 2) };
      },
    };
  };

  const LOST = (['torn', 'cut', 'half'] as const).flatMap((by) =>
    (['opensearch', 'elasticsearch'] as const).map((system) => ({ system, by })),
  );
  test.each(LOST)('$system: sends rows again whose answer was $by', async ({ system, by }) => {
    const between = await startFront(server.url, { elastic: system === 'elasticsearch' });
    const there = new EnginePlace(server.url, system, { url: between.url, prefix: place.prefix });
    between.knobs = everySecond(isBulk, by);
    expect(await scene.follow(await there.indexer('vip'), 40)).toMatchObject({ kind: 'caught-up' });
    await expectDone();
    await there.close();
    await between.close();
  });

  test('has led readers on where the answer to that was lost, and leaves nothing of the build before', async () => {
    const indexer = await place.indexer('vip');
    await scene.follow(indexer, 1_000);
    await rebuild(scene.deps(), indexer);
    front.knobs = everySecond(({ path }) => path === '/_aliases', 'cut');
    expect(await scene.follow(indexer, 1_000)).toMatchObject({ kind: 'caught-up', state: 'live' });
    expect(await place.built()).toBe(1);
    await expectDone();
  });

  test('waits while the engine as a whole has no time', async () => {
    const statuses = [429, 503, 502];
    front.knobs = {
      instead(request) {
        const status = isBulk(request) ? statuses.pop() : undefined;
        return status === undefined ? null : { status, body: '<html>canary</html>' };
      },
    };
    expect(await scene.follow(await place.indexer('vip'), 30)).toMatchObject({ kind: 'caught-up' });
    expect(statuses).toEqual([]);
    await expectDone();
  });

  test('one document that is refused among others stops it, is told without its values, and is written once that is mended', async () => {
    const REFUSED = { type: 'mapper_parsing_exception', reason: 'canary {"id":"k1"}' };
    front.knobs = {
      answering(request, answer) {
        if (!isBulk(request)) return answer;
        const items: readonly object[] = JSON.parse(answer.body).items;
        const refused = items.map((item, n) => (n === 2 ? { index: { status: 400, error: REFUSED } } : item));
        return { status: 200, body: JSON.stringify({ errors: true, items: refused }) };
      },
    };
    const indexer = await place.indexer('vip');
    const error = await scene.follow(indexer, 30).catch((thrown: unknown) => thrown);
    expect(error).toMatchObject({
      code: 'index.misconfigured',
      details: { rule: 'rows-refused', code: 'mapper_parsing_exception', rows: 1 },
    });
    expect(`${JSON.stringify(error)} ${error}`).not.toMatch(/canary|k1/);
    expect((await indexer.builds())[0]?.mark?.position).toBe(0n);
    front.knobs = {};
    expect(await scene.follow(indexer)).toMatchObject({ kind: 'caught-up' });
    await expectDone();
  });

  test.each([
    ['its rows', isBulk, 1],
    ['what it takes over', ({ path }: Passing) => path.endsWith('/_doc/retl-build'), 1],
    ['its checkpoint', ({ path }: Passing) => path.endsWith('/_doc/retl-build'), 2],
  ])(
    'a builder that sends %s while another one goes on is refused, and changes nothing',
    async (_, isHeld, nth) => {
      await follow(scene.deps(), await place.indexer('vip'), afterPages(2));
      const direct = new EnginePlace(server.url, 'opensearch', { prefix: place.prefix });
      let seen = 0;
      front.knobs = {
        async instead(request) {
          if (request.method === 'GET' || !isHeld(request)) return null;
          seen += 1;
          if (seen === nth)
            expect(await scene.follow(await direct.indexer('vip'))).toMatchObject({ kind: 'caught-up' });
          return null;
        },
      };
      expect(await scene.follow(await place.indexer('vip'), 30)).toMatchObject({ code: 'index.build-raced' });
      await place.json('POST', `/${place.prefix}vip/_refresh`);
      await expectDone();
      expect(await place.built()).toBe(1);
    },
  );

  test('two that begin a build at once: one is refused, and leaves nothing', async () => {
    const direct = new EnginePlace(server.url, 'opensearch', { prefix: place.prefix });
    await scene.follow(await direct.indexer('other'));
    let isOver = false;
    front.knobs = {
      async instead({ method, path }) {
        if (isOver || method !== 'PUT' || !path.startsWith(`/${place.prefix}vip-v`)) return null;
        isOver = true;
        expect(await scene.follow(await direct.indexer('vip'))).toMatchObject({ kind: 'caught-up' });
        return null;
      },
    };
    expect(await scene.follow(await place.indexer('vip'))).toMatchObject({ code: 'index.build-raced' });
    await expectDone();
    expect(await place.built()).toBe(2);
  });

  test.each(['before', 'after'])(
    'a builder that dies %s any change that it makes there leaves what the next one completes',
    async (when) => {
      const isChange = ({ method, path }: Passing) => method !== 'GET' && !/_(mget|search|scroll)/.test(path);
      const direct = new EnginePlace(server.url, 'opensearch', { prefix: place.prefix });
      await scene.follow(await direct.indexer('vip'), 1_000);
      for (let [last, dies] = [0, true]; dies; last += 1) {
        dies = false;
        let changes = 0;
        const isDead = (request: Passing) => {
          if (isChange(request)) changes += 1;
          dies ||= changes > last;
          return dies;
        };
        front.knobs = {
          instead: (request) => (when === 'before' && isDead(request) ? Promise.reject(new Error()) : null),
          answering: (request, answer) => (when === 'after' && isDead(request) ? 'cut' : answer),
        };
        const dying = await place.indexer('vip');
        await rebuild(scene.deps(), dying)
          .then(() => scene.follow(dying, 1_000))
          .catch(() => null);
        const next = await direct.indexer('vip');
        expect(await scene.follow(next, 1_000)).toMatchObject({ kind: 'caught-up', state: 'live' });
        expect(await place.shown('vip')).toBe(await scene.expected());
        if (!dies) expect(changes).toBeGreaterThan(8);
      }
      front.knobs = {};
      await rebuild(scene.deps(), await direct.indexer('vip'));
      expect(await scene.follow(await direct.indexer('vip'))).toMatchObject({ kind: 'caught-up' });
      expect(await place.built()).toBe(1);
      await expectDone();
      await direct.close();
    },
  );

  test('a builder that dies in the middle of a page leaves nothing that pages of another length do not come to', async () => {
    const direct = new EnginePlace(server.url, 'opensearch', { prefix: place.prefix });
    for (const [whole, effects, parity] of [
      [2, 60, 0],
      [1, 40, 1],
      [3, 25, 0],
    ] as const) {
      await rebuild(scene.deps(), await direct.indexer('vip'));
      let bulks = 0;
      const isLast = (request: Passing) => isBulk(request) && bulks > whole;
      front.knobs = {
        instead(request) {
          if (bulks > whole) return Promise.reject(new Error());
          if (isBulk(request)) bulks += 1;
          return null;
        },
        // Every second document of it arrives.
        reaching(request) {
          if (!isLast(request)) return request.body;
          const lines = request.body.trimEnd().split('\n');
          return `${lines.filter((_, n) => Math.floor(n / 2) % 2 === parity).join('\n')}\n`;
        },
        answering: (request, answer) => (isLast(request) ? 'cut' : answer),
      };
      await expect(scene.follow(await place.indexer('vip'), effects)).rejects.toMatchObject({
        code: 'index.unavailable',
      });
      front.knobs = {};
      expect(bulks).toBe(whole + 1);
      expect(await scene.follow(await direct.indexer('vip'), 7)).toMatchObject({ kind: 'caught-up' });
      await expectDone();
    }
    await direct.close();
  });

  test('one that is red is waited for, and not taken for one that is gone; nor is the directory', async () => {
    const allocation = (enable: string | null) =>
      place.json('PUT', '/_cluster/settings', { transient: { 'cluster.routing.allocation.enable': enable } });
    const expectAway = async (indexer: Indexer) => {
      for (const asked of [() => indexer.builds(), () => scene.follow(indexer)])
        await expect(asked()).rejects.toMatchObject({
          code: 'index.unavailable',
          details: { code: 'no_shard_available_action_exception' },
        });
    };
    const indexer = await place.indexer('vip');
    await scene.follow(indexer);
    const word = `/${place.prefix}retl_indexes_1/_doc/vip`;
    const { _source: said } = await place.json<{ _source: object }>('GET', word);
    const red = `${place.prefix}vip-v1-b1-red`;
    const fresh = new EnginePlace(server.url);
    const directory = `${fresh.prefix}retl_indexes`;
    await allocation('none');
    // What is made now finds no place.
    const retl = { index: 'vip', log_id: 'any', scratch: false };
    await place.json('PUT', `/${red}?wait_for_active_shards=0`, { mappings: { _meta: { retl } } });
    await place.json('PUT', `/${directory}_1?wait_for_active_shards=0`, { aliases: { [directory]: {} } });
    await place.json('PUT', word, { ...said, state: { live: red, building: null } });
    await expectAway(indexer)
      .then(async () => expectAway(await fresh.indexer('vip')))
      .finally(() => allocation(null));
    await place.json('PUT', word, said);
    await place.json('DELETE', `/${red}`);
    expect(await fresh.engineIndexes()).toEqual([]);
    expect(await scene.follow(await fresh.indexer('vip'))).toMatchObject({ kind: 'caught-up' });
    expect(await scene.follow(indexer)).toMatchObject({ kind: 'caught-up' });
    expect(await place.built()).toBe(1);
    await expectDone();
    await fresh.close();
  });

  test('goes on where somebody has taken the names away by which it is written, and the directory’s', async () => {
    const indexer = await place.indexer('vip');
    await scene.follow(indexer);
    const [live = ''] = await place.engineIndexes();
    const directory = `${place.prefix}retl_indexes`;
    const names = [
      { index: live, alias: `${live}-w` },
      { index: `${directory}_1`, alias: directory },
    ];
    await place.json('POST', '/_aliases', { actions: names.map((remove) => ({ remove })) });
    await scene.run('c', rows(0, 4, '1'));
    await scene.follow(indexer).catch(() => null);
    expect(await scene.follow(indexer)).toMatchObject({ kind: 'caught-up' });
    expect(await place.engineIndexes()).toEqual([live]);
    await expectDone();
  });

  test('whose state was set back, as by a snapshot of the engine, is refused, and built anew when somebody says so', async () => {
    const indexer = await place.indexer('vip');
    await scene.follow(indexer);
    const [live = ''] = await place.engineIndexes();
    const state = `/${live}/_doc/retl-build`;
    const { _source: older } = await place.json<{ _source: object }>('GET', state);
    await scene.run('c', rows(0, 5, '2'));
    await scene.follow(indexer);
    await scene.run('c', rows(0, 5, '3'));
    await scene.follow(indexer);
    await place.json('PUT', state, older);
    expect(await scene.follow(indexer)).toMatchObject({ code: 'index.registry-mismatch', remedy: 'stop' });
    await rebuild(scene.deps(), indexer);
    expect(await scene.follow(indexer)).toMatchObject({ kind: 'caught-up' });
    await expectDone();
  });
});
