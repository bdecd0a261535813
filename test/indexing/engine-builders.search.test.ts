/** Builders of an index in a search engine that die, race, or meet an engine that is busy, away or started again (design.md section 7). */

import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { follow } from '../../src/indexing/replay.ts';
import { verifyIndex } from '../../src/indexing/verify-index.ts';
import { afterPages, IndexScene, rows } from '../support/index-scene.ts';
import { allBusy, busyItems, type Front, startFront } from '../support/opensearch/front.ts';
import { type OpenSearchServer, startOpenSearch, withoutOpenSearch } from '../support/opensearch/server.ts';
import { EnginePlace } from './engine-home.ts';
import { restoredJournal } from './rebuild.contract.ts';

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
    await place.close();
    await front.close();
  });

  const isBuildState = (path: string) => path.endsWith('/_doc/retl-build');
  const expectDone = async (name = 'vip') => {
    expect(await place.shown(name)).toBe(await scene.expected());
    expect(await verifyIndex(scene.deps(), await place.indexer(name))).toMatchObject(SAME);
  };

  test('sends again what is refused for the moment, alone, and gives up in good order where that does not end', async () => {
    front.knobs = busyItems(3);
    expect(await scene.follow(await place.indexer('vip'))).toMatchObject({ kind: 'caught-up' });
    await expectDone();
    front.knobs = { instead: allBusy };
    const indexer = await place.indexer('never');
    await expect(scene.follow(indexer)).rejects.toMatchObject({
      code: 'index.unavailable',
      details: { code: 'rejected_execution_exception' },
    });
    expect((await indexer.builds())[0]?.mark?.position).toBe(0n);
  });

  test('knows its own write again when the answer to it was lost', async () => {
    let writes = 0;
    front.knobs = {
      answering({ method, path }, answer) {
        if (method !== 'PUT' || !isBuildState(path)) return answer;
        writes += 1;
        return writes % 2 === 0 ? 'cut' : answer;
      },
    };
    expect(await scene.follow(await place.indexer('vip'), 60)).toMatchObject({ kind: 'caught-up' });
    expect(writes).toBeGreaterThan(4);
    await expectDone();
  });

  test('is refused a document for good: which positions and how many is told, no value is, and no checkpoint passes it', async () => {
    const indexer = await place.indexer('narrow', 'narrow');
    const error = await scene.follow(indexer).catch((thrown: unknown) => thrown);
    expect(error).toMatchObject({
      code: 'index.misconfigured',
      details: { rule: 'rows-refused', code: 'strict_dynamic_mapping_exception', rows: 10, position: '1' },
    });
    expect(`${JSON.stringify(error)} ${error}`).not.toContain('k1');
    expect((await indexer.builds())[0]?.mark?.position).toBe(0n);
  });

  test('that is deleted while it is written to is not made by writing, and is begun anew', async () => {
    const indexer = await place.indexer('vip');
    await follow(scene.deps(), indexer, afterPages(2));
    const [first = ''] = await place.engineIndexes();
    front.knobs = {
      async instead({ path }) {
        if (path.endsWith('/_bulk')) await place.json('DELETE', `/${first}?ignore_unavailable=true`);
        return null;
      },
    };
    expect(await scene.follow(indexer)).toMatchObject({ code: 'index.build-raced', remedy: 'stop' });
    front.knobs = {};
    expect(await place.engineIndexes()).toEqual([]);
    expect(await scene.follow(indexer)).toMatchObject({ kind: 'caught-up' });
    await expectDone();
  });

  test('an older builder’s rows are harmless when they come late, and its checkpoint is refused', async () => {
    let release = () => {};
    const held = new Promise<void>((resolve) => {
      release = resolve;
    });
    let isHeld = () => {};
    const reached = new Promise<void>((resolve) => {
      isHeld = resolve;
    });
    const slow = await startFront(server.url);
    const old = new EnginePlace(server.url, 'opensearch', { url: slow.url, prefix: place.prefix });
    await follow(scene.deps(), await old.indexer('vip'), afterPages(2));
    slow.knobs = {
      async instead({ path }) {
        if (!path.endsWith('/_bulk')) return null;
        isHeld();
        await held;
        return null;
      },
    };
    const late = scene.follow(await old.indexer('vip'), 30);
    await reached;
    expect(await scene.follow(await place.indexer('vip'))).toMatchObject({ kind: 'caught-up' });
    release();
    expect(await late).toMatchObject({ code: 'index.build-raced', remedy: 'stop' });
    await place.json('POST', `/${place.prefix}vip/_refresh`);
    await expectDone();
    await slow.close();
  });

  test('rows of a builder that died, from a journal that was then restored to before them, are never taken for the log’s', async () => {
    const indexer = await place.indexer('vip');
    const { artifacts } = scene.deps();
    let puts = 0;
    const put: typeof artifacts.put = (artifact) => {
      puts += 1;
      if (puts > 1) throw new Error('killed');
      return artifacts.put(artifact);
    };
    const dying = { ...scene.deps(20_000), artifacts: { ...artifacts, put } };
    await expect(follow(dying, indexer)).rejects.toThrow('killed');
    const restored = await restoredJournal(scene);
    const deps = { ...restored.deps(), artifacts };
    const details = { rule: 'rows-ahead' };
    expect(await follow(deps, indexer)).toMatchObject({ code: 'index.ahead-of-log', details });
    await restored.history(['a', 'b', 'c']);
    expect(await follow(deps, indexer)).toMatchObject({ code: 'index.log-diverged', details });
    await restored.close();
    // In the journal that they came from they are what is there to be written anyway.
    expect(await scene.follow(indexer)).toMatchObject({ kind: 'caught-up' });
    await expectDone();
  });

  test('goes on after the engine was killed in the middle of it and has started again', async () => {
    let bulks = 0;
    front.knobs = {
      async answering({ path }, answer) {
        if (!path.endsWith('/_bulk')) return answer;
        bulks += 1;
        if (bulks !== 3) return answer;
        await server.kill();
        return 'cut';
      },
    };
    const indexer = await place.indexer('vip');
    await expect(scene.follow(indexer)).rejects.toMatchObject({ code: 'index.unavailable' });
    await server.start();
    expect(await scene.follow(indexer)).toMatchObject({ kind: 'caught-up' });
    await expectDone();
    await scene.run('c', rows(0, 4, '1'));
    await scene.follow(indexer);
    await expectDone();
  });
});
