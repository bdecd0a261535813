/**
 * A history that began before the newest log snapshot is compared with what the log has still (design.md section 7): row by row
 * after the boundary, and before it with who was held there; and its rows are counted.
 */

import { afterAll, beforeAll, expect, test } from 'vitest';
import type { Indexer } from '../../src/indexing/indexer.ts';
import { membershipHistory } from '../../src/indexing/postgres/history.ts';
import { verifyIndex } from '../../src/indexing/verify-index.ts';
import { logHead } from '../../src/journal/log.ts';
import { confirmReplacement } from '../../src/journal/replacement.ts';
import { promote } from '../../src/journal/runs.ts';
import { compactTo } from '../support/compact.ts';
import { IndexScene, rows, SCHEMA } from '../support/index-scene.ts';
import { ScriptedRun } from '../support/journal-run.ts';

let scene: IndexScene;
let history: Indexer;
let boundary: bigint;
let table: string;
let total: bigint;

beforeAll(async () => {
  scene = await IndexScene.open();
  await scene.history(['a', 'b']);
  // What a replacement sends again unchanged is no change, and has a later run.
  for (let n = 0; n < 2; n += 1) await replaced();
  history = scene.indexer('changes', membershipHistory, { holdsLog: false });
  await scene.follow(history);
  const { position } = await logHead(scene.journal.runtime);
  boundary = position;
  await scene.run('a', [...rows(0, 4, '2'), ...rows(9, 30, '3'), ...rows(30, 33, '1')]);
  await scene.follow(history);
  await compactTo(scene.journal.runtime, Number(position));
  const { rows: found } = await scene.journal.admin.query(
    `select '${SCHEMA}.rows_' || table_id as name, rows from ${SCHEMA}.index_build where index_name = 'changes'`,
  );
  table = String(found[0]?.name);
  total = BigInt(found[0]?.rows);
});
afterAll(() => scene.close());

async function replaced(): Promise<void> {
  const { runtime } = scene.journal;
  const run = await ScriptedRun.open(runtime, { mirror: 'r', strategy: 'native-replace' });
  await run.upToAdditions(rows(0, 3, '1'));
  await run.deliver('upsert');
  await run.beginRemovals();
  await run.beginFinish();
  await run.step('finish');
  await confirmReplacement(runtime, run.attempt);
  await run.foldAll();
  await promote(runtime, run.attempt);
}

const verified = () => verifyIndex(scene.deps(), history);

test('as it is, all is the same, and what was compared how is told', async () => {
  const found = await verified();
  expect(found).toMatchObject({ kind: 'compared', missing: 0n, unexpected: 0n, boundary });
  expect(found).toMatchObject({ rows: total, counted: total, artifactCount: total });
  // One was removed, and three were added, after the boundary.
  expect(found).toMatchObject({ oneByOne: 4n });
});

/** Of mirror a; at or before the boundary. */
const of = (id: string, action: string) =>
  `mirror = 'a' and identity = '{"id":"${id}"}' and action = '${action}' and position <= ${boundary}`;
const OTHER = "sha256('other')";

test.each([
  [
    'the change that a member is held with is deleted',
    () => `delete from ${table} where ${of('k1', 'change')}`,
    1,
    1,
  ],
  [
    'all of a member is deleted',
    () => `delete from ${table} where mirror = 'a' and identity = '{"id":"k2"}'`,
    1,
    0,
  ],
  ['a removal is deleted', () => `delete from ${table} where ${of('k5', 'remove')}`, 0, 1],
  [
    'a payload is another',
    () => `update ${table} set payload_hash = ${OTHER} where ${of('k1', 'change')}`,
    1,
    1,
  ],
  [
    'a time is another',
    () => `update ${table} set at = at - interval '1 day' where ${of('k1', 'add')}`,
    1,
    1,
  ],
  [
    'a run is a later one',
    () => `update ${table} set run_id = run_id + 99 where ${of('k1', 'change')}`,
    1,
    1,
  ],
  [
    'an identity is another',
    () => `update ${table} set identity = upper(identity) where ${of('k1', 'change')}`,
    1,
    1,
  ],
  ['a mirror is another', () => `update ${table} set mirror = 'c' where ${of('k1', 'change')}`, 1, 1],
  [
    'somebody whom nobody sent is added',
    () => `insert into ${table} select position, target_id, mirror, ${OTHER}, identity, action, payload_hash, run_id, at
           from ${table} where ${of('k1', 'add')}`,
    0,
    1,
  ],
])('before the boundary, %s: found', async (_, sql, missing, unexpected) => {
  await undone(sql(), async () => {
    expect(await verified()).toMatchObject({ missing: BigInt(missing), unexpected: BigInt(unexpected) });
  });
});

test('what the log says nothing of any more is missed by its number', async () => {
  // Its removal stays, and was all that the snapshot could tell.
  await undone(`delete from ${table} where ${of('k5', 'add')}`, async () => {
    expect(await verified()).toMatchObject({ missing: 0n, unexpected: 0n, rows: total - 1n, counted: total });
  });
});

test('a build whose number of rows somebody has changed is told from its checkpoint', async () => {
  await undone(`update ${SCHEMA}.index_build set rows = rows + 1`, async () => {
    expect(await verified()).toMatchObject({ rows: total, counted: total + 1n, artifactCount: total });
  });
});

/** Changes something for a while. */
async function undone(sql: string, work: () => Promise<void>): Promise<void> {
  const kept = [table, `${SCHEMA}.index_build`];
  const each = (of: (name: string, n: number) => string) => scene.tamper(kept.map(of).join('; '));
  await each((name, n) => `create table public.kept_${n} as select * from ${name}`);
  await scene.tamper(sql);
  try {
    await work();
  } finally {
    await each(
      (name, n) =>
        `delete from ${name}; insert into ${name} overriding system value select * from public.kept_${n}; drop table public.kept_${n}`,
    );
  }
}
