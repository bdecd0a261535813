/** What indexes answer of members is what the journal answers, over random histories; one that is behind says so, or is passed over. */

import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { searchedText } from '../../src/domain/identity-text.ts';
import { sha256FromHex } from '../../src/domain/ids.ts';
import { membershipHistory } from '../../src/indexing/postgres/history.ts';
import { definitionOf } from '../../src/indexing/postgres/indexer.ts';
import { postgresHistoryReader, postgresSearchReader } from '../../src/indexing/postgres/reader.ts';
import { membershipSearch } from '../../src/indexing/postgres/search.ts';
import { rebuild, rollback } from '../../src/indexing/rebuild.ts';
import { asked } from '../../src/indexing/usable.ts';
import { verifyIndex } from '../../src/indexing/verify-index.ts';
import { pastOf, targetOf } from '../../src/journal/explain.ts';
import { findMembers } from '../../src/journal/find-members.ts';
import { logHead } from '../../src/journal/log.ts';
import { compactTo } from '../support/compact.ts';
import { IndexScene, rows, SCHEMA } from '../support/index-scene.ts';
import { identityHash, type TestRow } from '../support/journal-run.ts';

const MIRRORS = ['a', 'b'];
const IDS = Array.from({ length: 8 }, (_, n) => `k${n}`);

let scene: IndexScene;
let people: ReturnType<typeof postgresSearchReader>;
let changes: ReturnType<typeof postgresHistoryReader>;

beforeEach(async () => {
  scene = await IndexScene.open();
  const place = { url: scene.journal.runtimeUrl, schema: SCHEMA };
  people = postgresSearchReader({ ...place, definition: definitionOf('people', membershipSearch) });
  changes = postgresHistoryReader({ ...place, definition: definitionOf('changes', membershipHistory) });
});
afterEach(async () => {
  await Promise.all([people.close(), changes.close()]);
  await scene.close();
});

const indexers = () =>
  [scene.indexer('people'), scene.indexer('changes', membershipHistory, { holdsLog: false })] as const;
const catchUp = async () => {
  for (const indexer of indexers()) await scene.follow(indexer);
};
const hashOf = (id: string) => sha256FromHex(identityHash(id).toString('hex'));
const search = (id: string) => ({
  hashes: [],
  text: searchedText(id, 'value'),
  mirrors: null,
  limit: 10,
});

/** Of a fixed seed, so that what fails once fails again. */
function randomOf(seed: number): (below: number) => number {
  let state = seed;
  return (below) => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return Math.floor((state / 2 ** 32) * below);
  };
}

async function randomRun(random: (below: number) => number): Promise<void> {
  const mirror = MIRRORS[random(MIRRORS.length)] ?? 'a';
  const wanted: TestRow[] = IDS.filter(() => random(3) > 0).map((id) => ({
    key: id,
    members: [{ id, payload: `${random(2)}` }],
  }));
  await scene.run(mirror, wanted, 1 + random(4));
}

async function compareAll(): Promise<void> {
  const { runtime } = scene.journal;
  for (const id of IDS) {
    const fromIndex = await asked(runtime, 0, () => people.search(search(id)));
    const fromJournal = await findMembers(runtime, search(id));
    if (fromJournal.kind !== 'found') throw new Error(fromJournal.kind);
    const { position, found, more } = fromJournal;
    expect(fromIndex, id).toEqual({ kind: 'answered', position, lag: { positions: 0n, ms: 0 }, found, more });
    for (const mirror of MIRRORS) {
      const target = await targetOf(runtime, mirror);
      if (target === null) continue;
      for (const limit of [1, 100]) {
        const past = await pastOf(runtime, target, hashOf(id), limit);
        expect(await asked(runtime, 0, () => changes.changes(target, hashOf(id), limit))).toMatchObject({
          kind: 'answered',
          position: past.position,
          found: past.changes,
          more: past.more,
        });
        const held = found.find((member) => member.target === target);
        expect(past.since).toEqual(
          held === undefined ? null : expect.objectContaining({ position: held.since, at: held.sinceAt }),
        );
      }
    }
  }
}

async function verifyAll(): Promise<void> {
  for (const indexer of indexers()) {
    const found = await verifyIndex(scene.deps(), indexer);
    expect(found).toMatchObject({ kind: 'compared', missing: 0n, unexpected: 0n, astray: null });
    if (found.kind === 'compared')
      expect([found.counted, found.artifactCount]).toEqual([found.rows, found.rows]);
  }
}

describe('random histories', () => {
  test.each([1, 2])(
    'seed %i: the same members, changes and beginnings, and after a compaction too',
    async (seed) => {
      const random = randomOf(seed);
      for (let n = 0; n < 5; n += 1) await randomRun(random);
      await catchUp();
      await compareAll();
      const { position } = await logHead(scene.journal.runtime);
      await compactTo(scene.journal.runtime, Number(position) - random(4));
      for (let n = 0; n < 2; n += 1) await randomRun(random);
      await catchUp();
      await verifyAll();
      for (const indexer of indexers()) await rebuild(scene.deps(), indexer);
      await catchUp();
      await verifyAll();
      await compareAll();
    },
  );
});

describe('an index that will not do', () => {
  const ask = (maxLag: number) => asked(scene.journal.runtime, maxLag, () => people.search(search('k1')));

  test('is passed over, with the reason: not built, of another version, behind, stopped, rolled back, of another log', async () => {
    await scene.run('a', rows(0, 3, '1'));
    expect(await ask(0)).toEqual({ kind: 'passed-over', code: 'index.not-built' });
    await catchUp();
    const at = await logHead(scene.journal.runtime);
    const reference = await scene.checkpoint(scene.indexer('people'));
    await scene.run('b', rows(0, 3, '1'));
    const lag = (await logHead(scene.journal.runtime)).position - at.position;
    expect(await ask(Number(lag) - 1)).toEqual({ kind: 'passed-over', code: 'index.behind' });
    // What it says is as of its own position.
    const answer = await ask(Number(lag));
    expect(answer).toMatchObject({ kind: 'answered', position: at.position, lag: { positions: lag } });
    expect(answer).toMatchObject({ found: [{ mirror: 'a' }] });
    await scene.tamper("update retl.log_entry set recorded_at = recorded_at - interval '1 hour'");
    expect(await ask(Number(lag))).toEqual({ kind: 'passed-over', code: 'index.behind' });

    await rollback(scene.deps(), scene.indexer('people'), reference);
    await scene.follow(scene.indexer('people'));
    expect(await ask(1_000)).toEqual({ kind: 'passed-over', code: 'index.frozen' });
    await scene.tamper('update retl.log_entry set entry_hash = sha256(entry_hash)');
    expect(await ask(1_000)).toEqual({ kind: 'passed-over', code: 'index.log-diverged' });
    await scene.tamper('update retl.journal set log_id = gen_random_uuid()');
    expect(await ask(1_000)).toEqual({ kind: 'passed-over', code: 'index.other-log' });
    await scene.tamper(`update ${SCHEMA}.index_build set schema_version = schema_version + 1`);
    expect(await ask(1_000)).toEqual({ kind: 'passed-over', code: 'index.schema-changed' });
  });

  test('whose database is away is passed over', async () => {
    const definition = definitionOf('people', membershipSearch);
    const reader = postgresSearchReader({ definition, url: 'postgres://127.0.0.1:1/none', schema: SCHEMA });
    const answer = await asked(scene.journal.runtime, 0, () => reader.search(search('k1')));
    expect(answer).toEqual({ kind: 'passed-over', code: 'index.unavailable' });
    await reader.close();
  });
});
