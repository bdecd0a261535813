/** When a member may go, what is not yet accepted, and what a promotion is (rules 1, 5, 7 and 10). */

import { afterAll, beforeAll, expect, test } from 'vitest';
import { sha256FromHex } from '../../src/domain/ids.ts';
import { markStaged } from '../../src/journal/batches.ts';
import { logHead } from '../../src/journal/log.ts';
import { memberOf } from '../../src/journal/membership.ts';
import { countRun } from '../../src/journal/run-record.ts';
import { promote } from '../../src/journal/runs.ts';
import { createTestJournal, stateOf, type TestJournal } from '../support/journal.ts';
import { identityHash, rowsOf, ScriptedRun, type TestRow } from '../support/journal-run.ts';

let journal: TestJournal;
beforeAll(async () => {
  journal = await createTestJournal();
});
afterAll(() => journal.close());

/** Rows by their keys, each with the members that it gives. */
function rowsGiving(given: Readonly<Record<string, readonly string[]>>): readonly TestRow[] {
  return Object.entries(given).map(([key, ids]) => ({
    key,
    members: ids.map((id) => ({ id, payload: '1' })),
  }));
}

async function removedBy(mirror: string, rows: readonly TestRow[]): Promise<readonly string[]> {
  const run = await ScriptedRun.open(journal.runtime, { mirror });
  await run.upToAdditions(rows);
  await run.deliver('upsert');
  await run.beginRemovals();
  const removals = await run.deliver('remove');
  await run.beginFinish();
  await run.step('finish');
  await run.foldAll();
  await promote(journal.runtime, run.attempt);
  return removals.flatMap((batch) => batch.members).sort();
}

const holds = async (run: ScriptedRun, id: string): Promise<boolean> => {
  const { target } = await run.record();
  const found = await memberOf(journal.runtime, target, sha256FromHex(identityHash(id).toString('hex')));
  return found.kind === 'held';
};

test('rule 1: a member goes only when no row of the snapshot gives it any more', async () => {
  const mirror = 'shared';
  expect(await removedBy(mirror, rowsGiving({ r1: ['x', 'y'], r2: ['x'], r3: ['z'] }))).toEqual([]);
  expect(await removedBy(mirror, rowsGiving({ r1: ['y'], r2: ['x'], r3: [] }))).toEqual(['z']);
  expect(await removedBy(mirror, rowsGiving({ r4: ['y', 'x'] }))).toEqual([]);
  expect(await removedBy(mirror, rowsGiving({ r4: ['y'], r5: [] }))).toEqual(['x']);
});

test('rule 7: where every row is excluded everybody goes, and finish and promotion are as explicit as ever', async () => {
  const mirror = 'all-excluded';
  await ScriptedRun.whole(journal.runtime, { mirror }, rowsOf({ a: '1', b: '1' }));
  const run = await ScriptedRun.open(journal.runtime, { mirror });
  await run.upToAdditions(rowsGiving({ a: [], b: [], c: [] }));
  expect(await run.prepare('upsert', 10)).toEqual([]);
  await run.beginRemovals();
  expect((await run.deliver('remove')).flatMap((batch) => batch.members).sort()).toEqual(['a', 'b']);
  expect(await stateOf(promote(journal.runtime, run.attempt))).toBe('RM003');
  await run.beginFinish();
  expect(await stateOf(promote(journal.runtime, run.attempt))).toBe('RM003');
  await run.step('finish');
  await run.foldAll();
  await promote(journal.runtime, run.attempt);
  expect(await run.record()).toMatchObject({ phase: 'complete', closing: 'completed', held: 0 });
  expect(await countRun(journal.runtime, run.run)).toMatchObject({ sourceRows: 3, members: 0, removed: 2 });
});

test('staged-as-done: additions and removals that are staged change neither membership nor log before they are settled', async () => {
  const mirror = 'pending-effects';
  await ScriptedRun.whole(journal.runtime, { mirror }, rowsOf({ gone: '1' }));
  const run = await ScriptedRun.open(journal.runtime, { mirror });
  await run.upToAdditions(rowsOf({ comes: '1' }));
  for (const [action, id, after] of [
    ['upsert', 'comes', true],
    ['remove', 'gone', false],
  ] as const) {
    const before = await logHead(journal.runtime);
    const [batch] = await run.prepare(action, 10);
    if (batch === undefined) throw new Error(`nothing to ${action}`);
    await run.sending(batch.id);
    await markStaged(journal.runtime, run.attempt, batch.id, ['job'], '{}', 0);
    expect(await logHead(journal.runtime)).toEqual(before);
    expect(await holds(run, id)).toBe(!after);
    expect(await stateOf(action === 'upsert' ? run.beginRemovals() : run.beginFinish())).toBe('RM003');
    await run.settle(batch);
    expect((await logHead(journal.runtime)).position).toBe(before.position + 1n);
    expect(await holds(run, id)).toBe(after);
    if (action === 'upsert') await run.beginRemovals();
  }
});

test('rule 10: the run is complete and its generation promoted in one transaction, or neither is', async () => {
  const mirror = 'together';
  await ScriptedRun.whole(journal.runtime, { mirror }, rowsOf({ a: '1' }));
  const run = await ScriptedRun.open(journal.runtime, { mirror });
  await run.upToAdditions(rowsOf({ a: '2' }));
  await run.deliver('upsert');
  await run.beginRemovals();
  await run.beginFinish();
  await run.step('finish');
  await run.foldAll();
  const seen = async () => {
    const { rows } = await journal.admin.query(
      'select r.phase, r.closing, g.state from retl.run r join retl.generation g using (run_id) where run_id = $1',
      [run.run],
    );
    return rows;
  };
  const before = [{ phase: 'promote', closing: null, state: 'sealed' }];
  const client = await journal.runtime.connect();
  await client.query('begin');
  await client.query('select retl.promote($1, $2)', [run.attempt.run, run.attempt.epoch]);
  expect(await seen()).toEqual(before);
  await client.query('rollback');
  client.release();
  expect(await seen()).toEqual(before);
  await promote(journal.runtime, run.attempt);
  expect(await seen()).toEqual([{ phase: 'complete', closing: 'completed', state: 'promoted' }]);
});
