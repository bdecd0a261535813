/** What stands in a search engine: documents, the alias, and what somebody has changed there by hand (design.md section 7). */

import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { writeRows } from '../../src/indexing/engine/bulk.ts';
import { openEngine } from '../../src/indexing/engine/client.ts';
import { engineOptions } from '../../src/indexing/engine/options.ts';
import { rebuild } from '../../src/indexing/rebuild.ts';
import { verifyIndex } from '../../src/indexing/verify-index.ts';
import { describeSearch, foundIn } from '../contract/search-reader.contract.ts';
import { IndexScene, rows } from '../support/index-scene.ts';
import { LOCALHOST_CERTIFICATE } from '../support/localhost-certificate.ts';
import { type Front, type FrontOptions, startFront } from '../support/opensearch/front.ts';
import { type OpenSearchServer, startOpenSearch, withoutOpenSearch } from '../support/opensearch/server.ts';
import { EnginePlace } from './engine-home.ts';

const why = await withoutOpenSearch();
const SAME = { kind: 'compared', missing: 0n, unexpected: 0n };

describe.skipIf(why !== null)(`an index in a search engine ${why ?? ''}`, () => {
  let server: OpenSearchServer;
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
  beforeEach(() => {
    place = new EnginePlace(server.url);
  });
  afterEach(() => place.close());

  const followed = async () => scene.follow(await place.indexer('vip'));
  const alias = () => `${place.prefix}vip`;
  const expectSame = async () => expect(await place.shown('vip')).toBe(await scene.expected());

  interface Hits {
    readonly hits: {
      readonly total: { readonly value: number };
      readonly hits: readonly { readonly _id: string; readonly _source: object }[];
    };
  }
  const search = (index: string, query: object) =>
    place.json<Hits>('POST', `/${index}/_search`, { query, size: 100 });

  describe('its documents', () => {
    test('are found by exact identity and by the words of its values; who is gone is not, and has left no value', async () => {
      await followed();
      const found = async (query: object) => (await search(alias(), query)).hits.total.value;
      expect(await found({ term: { identity: '{"id":"k1"}' } })).toBe(1);
      expect(await found({ match: { text: 'K1' } })).toBe(1);
      expect(await found({ match: { text: 'id' } })).toBe(0);
      expect(await found({ term: { mirror: 'a' } })).toBe(26);
      expect(await found({ term: { identity: '{"id":"k5"}' } })).toBe(0);
      const [live = ''] = await place.engineIndexes();
      const { hits } = await search(live, { term: { gone: true } });
      expect(hits.total.value).toBe(4);
      for (const { _source } of hits.hits) {
        expect(JSON.stringify(_source)).not.toMatch(/"k\d/);
        expect(Object.keys(_source)).not.toContain('text');
      }
    });

    test('are never changed by an older write, nor by the same one twice', async () => {
      await followed();
      const [live = ''] = await place.engineIndexes();
      const gone = (await search(live, { term: { gone: true } })).hits.hits[0];
      const held = (await search(alias(), { match_all: {} })).hits.hits[0];
      const client = await openEngine('opensearch', engineOptions('opensearch', { url: server.url }));
      const engine = { client, patience: { tries: 1, firstMs: 1, longestMs: 1, budgetMs: 1 } };
      const before = await place.shown('vip');
      const document = '{"gone":false,"mirror":"older"}';
      const writes = [gone, held].map((hit) => ({ id: hit?._id ?? '', version: 1n, document }));
      await writeRows(engine, `${live}-w`, writes);
      await place.json('POST', `/${live}/_refresh`);
      expect(await place.shown('vip')).toBe(before);
      await client.close();
    });
  });

  describe('its alias', () => {
    const foreign = () => `${place.prefix}foreign`;
    const change = (...actions: readonly object[]) => place.json('POST', '/_aliases', { actions });

    test('is put back where it was taken away, or shows more than those who are held', async () => {
      await followed();
      const [live = ''] = await place.engineIndexes();
      await change({ remove: { index: live, alias: alias() } });
      await expect(place.shown('vip')).rejects.toThrow('index_not_found');
      const indexer = await place.indexer('vip');
      expect(await verifyIndex(scene.deps(), indexer)).toMatchObject({ ...SAME, astray: 'alias-gone' });
      await followed();
      await expectSame();
      await change({ add: { index: live, alias: alias() } });
      expect((await search(alias(), { match_all: {} })).hits.total.value).toBeGreaterThan(26);
      expect(await indexer.astray()).toBe('alias-changed');
      await followed();
      await expectSame();
    });

    test('that leads to somebody’s own index is left to him, and so is an index of its name', async () => {
      await followed();
      await place.json('PUT', `/${foreign()}`);
      await change({ add: { index: foreign(), alias: alias() } });
      const misconfigured = (rule: string) => ({ code: 'index.misconfigured', details: { rule } });
      await expect(followed()).rejects.toMatchObject(misconfigured('alias-taken'));
      await place.json('DELETE', `/${foreign()}`);
      expect(await followed()).toMatchObject({ kind: 'caught-up' });
      const other = await place.indexer('foreign');
      await place.json('PUT', `/${foreign()}`);
      await expect(scene.follow(other)).rejects.toMatchObject(misconfigured('name-taken'));
      await place.json('DELETE', `/${foreign()}`);
    });
  });

  describe('what is deleted by hand', () => {
    test('is built anew, whether it was the index that readers see or the directory of builds', async () => {
      await followed();
      const [first = ''] = await place.engineIndexes();
      await place.json('DELETE', `/${first}`);
      expect(await followed()).toMatchObject({ kind: 'caught-up' });
      await expectSame();
      await place.json('DELETE', `/${place.prefix}retl_indexes_1`);
      expect(await followed()).toMatchObject({ kind: 'caught-up' });
      await expectSame();
      expect(await place.built()).toBe(1);
    });
  });

  describe('a build that is given up for another', () => {
    test('is not there any more, nor is the one before, once the next has gone live', async () => {
      const indexer = await place.indexer('vip');
      await scene.follow(indexer);
      await rebuild(scene.deps(), indexer);
      await rebuild(scene.deps(), indexer);
      expect(await place.built()).toBe(2);
      expect(await scene.follow(indexer)).toMatchObject({ kind: 'caught-up' });
      expect(await place.built()).toBe(1);
    });
  });

  describeSearch('asked who is in which mirrors', async (log) => {
    const asked = new EnginePlace(server.url);
    const indexer = await asked.indexer('people');
    const reader = asked.reader('people');
    return {
      search: async (search) => foundIn(await reader.search(search)),
      async catchUp() {
        await log.follow(indexer);
      },
      async close() {
        await reader.close();
        await asked.close();
      },
    };
  });

  describe('through Elasticsearch’s own client', () => {
    const at = (front: Front, options = {}) =>
      new EnginePlace(server.url, 'elasticsearch', { url: front.url, ...options });
    const withFront = async (options: FrontOptions, use: (front: Front) => Promise<void>) => {
      const front = await startFront(server.url, { elastic: true, ...options });
      await use(front).finally(() => front.close());
    };

    test('an index is built, followed and verified', async () => {
      await withFront({}, async (front) => {
        const elastic = at(front);
        const indexer = await elastic.indexer('vip');
        expect(await scene.follow(indexer)).toMatchObject({ kind: 'caught-up' });
        await scene.run('b', rows(0, 6, '1'));
        expect(await scene.follow(indexer)).toMatchObject({ kind: 'caught-up' });
        expect(await elastic.shown('vip')).toBe(await scene.expected());
        expect(await verifyIndex(scene.deps(), indexer)).toMatchObject(SAME);
        await elastic.close();
      });
    });

    test('another product is refused', async () => {
      const bare = new EnginePlace(server.url, 'elasticsearch');
      await expect(scene.follow(await bare.indexer('vip'))).rejects.toMatchObject({
        code: 'index.misconfigured',
        details: { system: 'elasticsearch', code: 'other-product' },
      });
      await bare.close();
    });
  });

  describe('looked at before it is built, and after', () => {
    /** All that stands there, and how often each index was written to. */
    const contents = async () => {
      const pattern = `${place.prefix}*`;
      const indexes = await place.json<object>('GET', `/${pattern}?expand_wildcards=all`);
      const stats = await place.json<{ indices: object }>('GET', `/${pattern}/_stats/indexing?level=shards`);
      return [indexes, JSON.stringify(stats.indices).match(/"max_seq_no":\d+/g)];
    };

    test.each(['opensearch', 'elasticsearch'] as const)('%s: changes nothing', async (system) => {
      const front = await startFront(server.url, { elastic: system === 'elasticsearch' });
      const there = new EnginePlace(server.url, system, { url: front.url, prefix: place.prefix });
      const indexer = await there.indexer('vip');
      await indexer.look();
      expect(await contents()).toEqual([{}, null]);
      await scene.follow(indexer);
      const before = await contents();
      expect(before).toEqual([expect.anything(), expect.arrayContaining([expect.stringMatching(/[1-9]/)])]);
      await indexer.look();
      expect(await contents()).toEqual(before);
      await there.close();
      await front.close();
    });

    test.each([
      ['may-not-create', 'PUT', /-v0-b0-[0-9a-f]{8}$/],
      ['may-not-create', 'PUT', /retl_indexes_0$/],
      ['may-not-write', 'PUT', /-v0-b0-[0-9a-f]{8}\/_doc\/retl-build$/],
      ['may-not-write', 'PUT', /retl_indexes\/_doc\/vip$/],
      ['may-not-lead-alias', 'POST', /^\/_aliases$/],
      ['may-not-change-settings', 'PUT', /_settings$/],
      ['may-not-refresh', 'POST', /_refresh$/],
      ['may-not-delete', 'DELETE', /-v0-b0-[0-9a-f]{8}$/],
    ])('tells that its user %s: %s %s', async (rule, method, path) => {
      const front = await startFront(server.url);
      front.knobs = {
        instead: (request) =>
          request.method === method && path.test(request.path) ? { status: 403, body: '{}' } : null,
      };
      const there = new EnginePlace(server.url, 'opensearch', { url: front.url, prefix: place.prefix });
      const error = await (await there.indexer('vip')).look().catch((thrown: unknown) => thrown);
      expect(error).toMatchObject({ code: 'index.misconfigured', details: { rule, code: 'http-403' } });
      await there.close();
      await front.close();
    });

    test('tells that a build was closed to writing', async () => {
      const indexer = await place.indexer('vip');
      await scene.follow(indexer);
      const [live = ''] = await place.engineIndexes();
      const block = (on: boolean | null) =>
        place.json('PUT', `/${live}/_settings`, { 'index.blocks.write': on });
      await block(true);
      await expect(indexer.look()).rejects.toMatchObject({
        code: 'index.unavailable',
        details: { code: 'cluster_block_exception' },
      });
      await block(null);
      await indexer.look();
    });
  });

  describe.each(['opensearch', 'elasticsearch'] as const)('entering %s', (system) => {
    const KEY = 'canary-key';
    const PASSWORD = 'canary-word';
    let front: Front;
    beforeEach(async () => {
      front = await startFront(server.url, { tls: true, elastic: system === 'elasticsearch' });
      const basic = `Basic ${Buffer.from(`ann:${PASSWORD}`).toString('base64')}`;
      front.knobs = {
        instead: (request) =>
          [basic, `ApiKey ${KEY}`].includes(request.header('authorization'))
            ? null
            : {
                status: 401,
                body: `{"error":{"type":"security_exception","reason":"${PASSWORD}"},"status":401}`,
              },
      };
    });
    afterEach(() => front.close());

    test.each([
      ['a user and a password', { username: 'ann', password: PASSWORD, ca: LOCALHOST_CERTIFICATE }, null],
      ['an API key', { api_key: KEY, ca: LOCALHOST_CERTIFICATE }, null],
      ['a wrong password', { username: 'ann', password: 'x', ca: LOCALHOST_CERTIFICATE }, 'http-401'],
      ['a certificate that nobody trusts', { username: 'ann', password: PASSWORD }, 'tls'],
    ])('with %s', async (_, options, refused) => {
      const there = new EnginePlace(server.url, system, { url: front.url, ...options });
      const asked = (await there.indexer('vip')).builds();
      if (refused === null) expect(await asked).toEqual([]);
      else {
        const error = await asked.catch((thrown: unknown) => thrown);
        expect(error).toMatchObject({ code: 'index.misconfigured', details: { system, code: refused } });
        expect(`${error} ${JSON.stringify(error)}`).not.toContain('canary');
      }
      await there.close();
    });
  });

  test('settings that cannot be meant are told at once when their references are resolved, and not their values', async () => {
    const options = { url: 'http://canary.example:9200', ca: 'canary' };
    const error = await new EnginePlace(server.url, 'opensearch', options)
      .indexer('vip')
      .catch((e: unknown) => e);
    expect(error).toMatchObject({ code: 'index.misconfigured' });
    expect(`${error}`).toMatch(
      /url plain http is for loopback only.*ca must be certificates in PEM|ca must.*url plain/,
    );
    expect(`${error}`).not.toContain('canary');
  });
});
