/** Rule 1, and members that the destination lets lapse: what was accepted too long ago is sent again, before any removal. */

import { afterAll, beforeAll, expect, test } from 'vitest';
import { readOperations } from '../../src/journal/operations.ts';
import { countRun } from '../../src/journal/run-record.ts';
import { closeRun } from '../../src/journal/runs.ts';
import { backdate, createTestJournal, stateOf, type TestJournal } from '../support/journal.ts';
import { rowsOf, ScriptedRun } from '../support/journal-run.ts';

const AN_HOUR_MS = 3_600_000;

let journal: TestJournal;
beforeAll(async () => {
  journal = await createTestJournal();
});
afterAll(() => journal.close());

/** A run in `additions`. */
async function opened(
  mirror: string,
  members: Readonly<Record<string, string>>,
  ms: number | null = AN_HOUR_MS,
) {
  const run = await ScriptedRun.open(journal.runtime, {
    mirror,
    refreshAfterMs: ms,
    onRejection: { kind: 'tolerate', max: 1, maxShare: null },
  });
  await run.upToAdditions(rowsOf(members));
  return run;
}

async function namesOf(run: ScriptedRun): Promise<readonly string[]> {
  const record = await run.record();
  const { firstSequence, additionsEnd } = record;
  if (firstSequence === null || additionsEnd === null || additionsEnd < firstSequence) return [];
  const operations = await readOperations(run.db, record, 'upsert', firstSequence, additionsEnd);
  return operations.map((op) => String(JSON.parse(op.identity).id)).sort();
}

test('members-expire: an unchanged member accepted too long ago is an addition, before removals, and then is fresh', async () => {
  const old = await ScriptedRun.whole(
    journal.runtime,
    { mirror: 'lapse' },
    rowsOf({ a: '1', b: '1', z: '1' }),
  );
  await backdate(journal, old.run);
  await ScriptedRun.whole(journal.runtime, { mirror: 'lapse' }, rowsOf({ a: '1', b: '2', c: '1', z: '1' }));
  const run = await opened('lapse', { a: '1', b: '2', c: '1' });
  expect(await namesOf(run)).toEqual(['a']);
  expect(await countRun(run.db, run.run)).toMatchObject({
    unchanged: 3,
    toRefresh: 1,
    refreshed: 0,
    toChange: 0,
    toRemove: 1,
  });
  expect(await stateOf(run.beginRemovals())).toBe('RM003');
  await run.complete();
  expect(await countRun(run.db, run.run)).toMatchObject({ refreshed: 1, added: 0, changed: 0, removed: 1 });
  const next = await opened('lapse', { a: '1', b: '2', c: '1' });
  expect(await namesOf(next)).toEqual([]);
  expect(await countRun(next.db, next.run)).toMatchObject({ unchanged: 3, toRefresh: 0 });
});

test('members-expire: a refresh that is rejected removes nobody, and is tried in the next run again', async () => {
  const old = await ScriptedRun.whole(journal.runtime, { mirror: 'refused' }, rowsOf({ a: '1', b: '1' }));
  await backdate(journal, old.run);
  const run = await opened('refused', { a: '1', b: '1' });
  await run.deliver('upsert', { reject: new Set(['a']) });
  await run.beginRemovals();
  await run.beginFinish();
  expect(await countRun(run.db, run.run)).toMatchObject({
    toRefresh: 2,
    refreshed: 1,
    rejected: 1,
    toRemove: 0,
  });
  await closeRun(run.db, run.attempt, 'aborted', null);
  const next = await opened('refused', { a: '1', b: '1' });
  expect(await namesOf(next)).toEqual(['a']);
  expect(await countRun(next.db, next.run)).toMatchObject({ unchanged: 2, toRemove: 0 });
});

test('members-expire: a mirror that refreshes nobody plans nothing for members however old', async () => {
  const old = await ScriptedRun.whole(journal.runtime, { mirror: 'forever' }, rowsOf({ a: '1' }));
  await backdate(journal, old.run);
  const run = await opened('forever', { a: '1' }, null);
  expect(await namesOf(run)).toEqual([]);
  expect(await countRun(run.db, run.run)).not.toHaveProperty('toRefresh');
});
