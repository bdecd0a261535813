/**
 * A journal that has lost values: no row of an index is made from what is left, wherever the index lives (design.md section 7).
 * Altered ones are found by who looks for them.
 */

import { afterEach, beforeEach, expect, test } from 'vitest';
import type { Indexer } from '../../src/indexing/indexer.ts';
import { verifyIndex } from '../../src/indexing/verify-index.ts';
import { logHead } from '../../src/journal/log.ts';
import { compactTo } from '../support/compact.ts';
import { IndexScene, rows } from '../support/index-scene.ts';

const LOST = { code: 'index.log-diverged', details: { rule: 'values-missing', position: '2' } };

export interface OpenIndex {
  readonly indexer: Indexer;
  close(): Promise<void>;
}

/** @param open an index that does not hold the log back */
export function missingValuesContract(open: (scene: IndexScene) => Promise<OpenIndex>): void {
  let scene: IndexScene;
  let index: OpenIndex;

  beforeEach(async () => {
    scene = await IndexScene.open();
    await scene.run('a', rows(0, 6, '1'), 3);
    index = await open(scene);
  });
  afterEach(async () => {
    await index.close();
    await scene.close();
  });

  /** Of the page nothing is there, and the error says no value. */
  const refuses = async (lost: object, state: string, held: bigint) => {
    const error = await scene.follow(index.indexer, 100).then(
      () => null,
      (thrown: unknown) => thrown,
    );
    expect(error).toMatchObject(lost);
    expect(String(error)).not.toMatch(/"id"|k\d/);
    const builds = await index.indexer.builds();
    expect(builds.map((build) => [build.state, build.rows, build.ahead])).toEqual([[state, held, null]]);
  };
  const lose = (identity: string) =>
    scene.tamper(`delete from retl.generation_1 where identity = '${identity}'`);

  test('an entry whose values are gone gives no rows', async () => {
    await lose('{"id":"k4"}');
    await refuses(LOST, 'building', 0n);
  });

  test('an entry with a value less gives no rows to others', async () => {
    await scene.tamper('alter table retl.generation_1 alter column identity drop not null');
    await scene.tamper(`update retl.generation_1 set identity = null where identity = '{"id":"k4"}'`);
    await refuses(LOST, 'building', 0n);
  });

  test('a member of the log snapshot without values is no row', async () => {
    const { position } = await logHead(scene.journal.runtime);
    await compactTo(scene.journal.runtime, Number(position));
    await lose('{"id":"k4"}');
    await refuses({ ...LOST, details: { rule: LOST.details.rule } }, 'building', 0n);
  });

  test('an identity that was altered is found by verification, though index and log agree on it, and so is one of a log snapshot', async () => {
    await scene.tamper(
      `update retl.generation_1 set identity = '{"id":"mallory"}' where identity = '{"id":"k4"}'`,
    );
    await scene.follow(index.indexer, 100);
    const altered = { code: 'index.log-diverged', details: { rule: 'identity-changed', position: '2' } };
    const verified = () =>
      verifyIndex(scene.deps(), index.indexer).then(
        (verdict) => verdict,
        (thrown: unknown) => thrown,
      );
    expect(await verified()).toMatchObject(altered);
    expect(String(await verified())).not.toMatch(/mallory|k4/);
    const { position } = await logHead(scene.journal.runtime);
    await compactTo(scene.journal.runtime, Number(position));
    expect(await verified()).toMatchObject({ ...altered, details: { rule: 'identity-changed' } });
  });

  test('an index that readers see stays as it was before the entry', async () => {
    await scene.follow(index.indexer, 100);
    const before = await index.indexer.builds();
    await scene.run('b', rows(0, 6, '1'), 3);
    await scene.tamper(`delete from retl.generation_2 where identity = '{"id":"k1"}'`);
    await refuses({ ...LOST, details: { rule: LOST.details.rule } }, 'live', before[0]?.rows ?? 0n);
    expect(await index.indexer.builds()).toEqual(before);
  });
}
