/** Metrics of indexes: the lag of each build, as the index itself says (docs/metrics.md). */

import { afterAll, beforeAll, expect, test } from 'vitest';
import type { Logger } from '../../src/destinations/port.ts';
import { RetlError } from '../../src/domain/errors.ts';
import type { Indexer } from '../../src/indexing/indexer.ts';
import { postgresIndexer } from '../../src/indexing/postgres/indexer.ts';
import { membershipSearch } from '../../src/indexing/postgres/search.ts';
import { rebuild } from '../../src/indexing/rebuild.ts';
import { follow } from '../../src/indexing/replay.ts';
import { logHead } from '../../src/journal/log.ts';
import { IndexWatch } from '../../src/worker-index-metrics.ts';
import { afterPages, IndexScene, rows, SCHEMA } from '../support/index-scene.ts';
import { RecordingMeter } from '../support/recording-meter.ts';
import { restoredJournal } from './rebuild.contract.ts';

let scene: IndexScene;

beforeAll(async () => {
  scene = await IndexScene.open();
  await scene.history();
});
afterAll(() => scene.close());

/** For a watch, which closes it. */
async function open(name: string): Promise<Indexer> {
  const { runtimeUrl: url } = scene.journal;
  return postgresIndexer({ name, kind: membershipSearch, url, schema: SCHEMA, holdsLog: false });
}

type LogFields = Parameters<Logger['warn']>[1];

test('a journal that was restored to an earlier time takes an index down, and keeps it down once it has grown again, until it is rebuilt', async () => {
  await scene.follow(scene.indexer('vip'));
  const restored = await restoredJournal(scene);
  const meter = new RecordingMeter();
  const whys: unknown[] = [];
  const logger = {
    info: () => undefined,
    warn: (_: string, fields: LogFields = {}) => void whys.push(fields.why),
  };
  const watched = (of: IndexScene) =>
    new IndexWatch({ replay: of.deps(), names: async () => ['vip'], open }, meter, logger);
  const up = () => meter.series['retl_index_up{index="vip"}'];
  await watched(scene).look();
  expect(up()).toBe(1);
  const watch = watched(restored);
  for (let n = 0; n < 2; n += 1) await watch.look();
  expect([up(), whys]).toEqual([0, ['index.ahead-of-log']]);
  for (let n = 0; n < 2; n += 1) await restored.history();
  await watch.look();
  expect([up(), whys]).toEqual([0, ['index.ahead-of-log', 'index.log-diverged']]);
  await rebuild(restored.deps(), scene.indexer('vip'));
  await restored.follow(scene.indexer('vip'));
  await watch.look();
  expect(up()).toBe(1);
  await restored.close();
});

test('lag in positions and seconds is zero when caught up, right while a rebuild runs, and stands while an index is away', async () => {
  const meter = new RecordingMeter();
  const warnings: string[] = [];
  const logger = { info: () => undefined, warn: (message: string) => void warnings.push(message) };
  let isAway = false;
  const indexer = () => scene.indexer('people');
  const watch = new IndexWatch(
    {
      replay: scene.deps(),
      names: async () => ['people'],
      async open(name) {
        if (isAway) throw new RetlError('index.unavailable', {});
        return open(name);
      },
    },
    meter,
    logger,
  );
  const seen = async () => {
    await watch.look();
    const { series } = meter;
    const lag = (build: string, unit: string) =>
      series[`retl_index_lag_${unit}{build="${build}",index="people"}`];
    return {
      up: series['retl_index_up{index="people"}'],
      live: lag('live', 'positions'),
      building: lag('building', 'positions'),
      seconds: lag('live', 'seconds'),
    };
  };
  const head = async () => Number((await logHead(scene.journal.runtime)).position);

  expect(await seen()).toMatchObject({ up: 1, live: await head(), building: 0 });
  await scene.follow(indexer());
  expect(await seen()).toEqual({ up: 1, live: 0, building: 0, seconds: 0 });

  const caughtUp = await head();
  await scene.run('b', rows(0, 12, '1'));
  expect(await seen()).toMatchObject({ up: 1, live: (await head()) - caughtUp, building: 0 });
  await scene.journal.admin.query(
    `alter table retl.log_entry disable trigger user; update retl.log_entry set recorded_at = recorded_at - interval '1 hour'
       where position = ${caughtUp + 1}`,
  );
  expect((await seen()).seconds).toBeGreaterThanOrEqual(3_600);
  await rebuild(scene.deps(), indexer());
  await follow(scene.deps(), indexer(), afterPages(6));
  const during = await seen();
  expect(during).toMatchObject({ up: 1, live: 0, seconds: 0 });
  expect(during.building).toBeGreaterThan(0);
  expect(during.building).toBeLessThan(await head());

  isAway = true;
  expect(await seen()).toEqual({ ...during, up: 0 });
  await seen();
  expect(warnings).toHaveLength(1);
  isAway = false;
  await scene.follow(indexer());
  expect(await seen()).toEqual({ up: 1, live: 0, building: 0, seconds: 0 });
});
