/** While a new build catches up, what readers see follows the log, and each build tells its own lag (design.md section 7). */

import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { decodeCheckpoint } from '../../src/domain/checkpoint-codec.ts';
import type { ArtifactReference } from '../../src/domain/ids.ts';
import { indexStatus } from '../../src/indexing/index-status.ts';
import { rebuild, rollback } from '../../src/indexing/rebuild.ts';
import { follow } from '../../src/indexing/replay.ts';
import { journalArtifacts } from '../../src/journal/artifacts.ts';
import { checkpointsOf } from '../../src/journal/checkpoints.ts';
import { logHead } from '../../src/journal/log.ts';
import { compactTo } from '../support/compact.ts';
import { afterPages, IndexScene, rows } from '../support/index-scene.ts';

let scene: IndexScene;

beforeEach(async () => {
  scene = await IndexScene.open();
  await scene.history();
});
afterEach(() => scene.close());

/** Milliseconds. */
async function lagIn(reference: ArtifactReference | undefined): Promise<bigint | null> {
  if (reference === undefined) throw new Error('no checkpoint');
  const got = await journalArtifacts(scene.journal.runtime).get(reference);
  const decoded = decodeCheckpoint(got.kind === 'found' ? got.artifact.bytes : new Uint8Array());
  if (decoded.kind !== 'decoded') throw new Error(decoded.fault.reason);
  return decoded.checkpoint.lagMillis;
}

test('a long rebuild freezes nothing: the live build follows, lag 0, beside the new one with a lag of its own', async () => {
  const indexer = scene.indexer('people');
  await scene.follow(indexer);
  await rebuild(scene.deps(), indexer);
  await scene.run('c', rows(0, 5, '1'));
  expect(await follow(scene.deps(), indexer, afterPages(4))).toMatchObject({
    kind: 'more',
    state: 'building',
  });
  expect(await scene.shown('people')).toBe(await scene.expected());

  const { head, builds } = await indexStatus(scene.journal.runtime, indexer);
  expect(builds.map(({ state, lag }) => [state, lag?.positions])).toEqual([
    ['live', 0n],
    ['building', head - (builds[1]?.position ?? 0n)],
  ]);
  expect(builds[0]?.lag?.ms).toBe(0);
  expect(builds[1]?.lag?.positions).toBeGreaterThan(0n);
  expect(builds[1]?.lag?.ms).toBeGreaterThan(0);
  // The registry has the chain of each, and each checkpoint says the lag at its time.
  for (const { build, state, mark } of await indexer.builds()) {
    expect((await checkpointsOf(scene.journal.runtime, build, null, 1))[0]?.reference).toBe(mark?.reference);
    expect((await lagIn(mark?.reference)) === 0n, state).toBe(state === 'live');
  }

  expect(await scene.follow(indexer)).toMatchObject({
    kind: 'caught-up',
    state: 'live',
    build: builds[1]?.build,
  });
  expect(await scene.shown('people')).toBe(await scene.expected());
});

test('a build that was rolled back is not moved on while the next is built', async () => {
  const indexer = scene.indexer('people');
  await scene.follow(indexer);
  const then = await scene.checkpoint(indexer);
  const frozen = await scene.shown('people');
  await rollback(scene.deps(), indexer, then);
  expect(await scene.follow(indexer)).toMatchObject({ kind: 'frozen' });
  await scene.run('c', rows(0, 5, '1'));
  await rebuild(scene.deps(), indexer);
  expect(await follow(scene.deps(), indexer, afterPages(4))).toMatchObject({
    kind: 'more',
    state: 'building',
  });
  expect(await scene.shown('people')).toBe(frozen);
  const { position } = await logHead(scene.journal.runtime);
  expect(await scene.follow(indexer)).toMatchObject({ kind: 'caught-up', position });
  expect(await scene.shown('people')).toBe(await scene.expected());
});

test('a log whose pages take longer to read than a turn lasts is followed all the same', async () => {
  const indexer = scene.indexer('people');
  await scene.follow(indexer, 60);
  await rebuild(scene.deps(), indexer);
  const deps = scene.deps(60);
  const query = async (...args: readonly unknown[]) => {
    if (String(args[0]).includes('retl.log_entry')) await sleep(1_100);
    return Reflect.apply(deps.journal.query, deps.journal, args);
  };
  const slow = new Proxy(deps.journal, { get: (_, key) => (key === 'query' ? query : undefined) });
  expect(await follow({ ...deps, journal: slow }, indexer, afterPages(6))).toMatchObject({
    kind: 'caught-up',
    state: 'live',
  });
  expect(await scene.shown('people')).toBe(await scene.expected());
}, 60_000);

test('a live build that is broken does not keep the rebuild that mends it from going on, and its code is told', async () => {
  const indexer = scene.indexer('people');
  await scene.follow(indexer);
  await scene.run('c', rows(0, 5, '1'));
  await scene.journal.admin.query(
    `do $$ begin execute (select 'drop table retl_index.rows_' || table_id || ' cascade'
      from retl_index.index_build where state = 'live'); end $$`,
  );
  await expect(scene.follow(indexer)).rejects.toMatchObject({ code: 'index.misconfigured' });
  expect(await rebuild(scene.deps(), indexer)).toMatchObject({ kind: 'chosen' });
  expect(await scene.follow(indexer)).toMatchObject({ kind: 'caught-up', state: 'live' });
  expect(scene.warnings).toMatchObject([{ index: 'people', code: 'index.misconfigured' }]);
  expect(await scene.shown('people')).toBe(await scene.expected());
});

test('a build whose log snapshot is replaced while it is being loaded begins anew with the newer one', async () => {
  const compact = async () => {
    await scene.run('c', rows(0, 5, '1'));
    return compactTo(scene.journal.runtime, Number((await logHead(scene.journal.runtime)).position));
  };
  const { id } = await compact();
  const indexer = scene.indexer('people');
  expect(await follow(scene.deps(), indexer, afterPages(1))).toMatchObject({ kind: 'more', position: null });
  await scene.run('c', rows(2, 7, '2'));
  const { boundary } = await compact();
  await scene.journal.admin.query(`drop table if exists retl.snapshot_${id}`);
  expect(await follow(scene.deps(), indexer)).toMatchObject({ kind: 'caught-up', state: 'live' });
  expect((await indexer.builds()).map(({ snapshot }) => snapshot?.boundary)).toEqual([boundary]);
  expect(await scene.shown('people')).toBe(await scene.expected());
});

test('while a log snapshot is read the lag is counted from its boundary, for whoever asks and for whoever follows', async () => {
  const { position: boundary } = await logHead(scene.journal.runtime);
  await compactTo(scene.journal.runtime, Number(boundary));
  await scene.run('c', rows(0, 5, '1'));
  const indexer = scene.indexer('people');
  const loading = { kind: 'more', position: null, lagsFrom: boundary };
  expect(await follow(scene.deps(), indexer, afterPages(1))).toMatchObject(loading);
  const { head, builds } = await indexStatus(scene.journal.runtime, indexer);
  expect(builds.map(({ position, lag }) => [position, lag?.positions])).toEqual([[null, head - boundary]]);
});

test('a live build that may not go on is told of as well, while the rebuild that its refusal asked for goes on', async () => {
  const indexer = scene.indexer('people');
  await scene.follow(indexer);
  await scene.tamper(`update retl_index.index_build set entry_hash = 'sha256:' || repeat('ab', 32)`);
  expect(await scene.follow(indexer)).toMatchObject({ kind: 'refused', code: 'index.log-diverged' });
  expect(await rebuild(scene.deps(), indexer)).toMatchObject({ kind: 'chosen' });
  expect(scene.warnings).toEqual([]);
  expect(await scene.follow(indexer)).toMatchObject({ kind: 'caught-up', state: 'live' });
  expect(scene.warnings).toMatchObject([{ index: 'people', code: 'index.log-diverged' }]);
  expect(await scene.shown('people')).toBe(await scene.expected());
});
