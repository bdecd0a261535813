/** What goes with time and what stays (design.md section 5): receipts and attempts, rows that readers began to read, rows in use. */

import { afterAll, beforeAll, expect, test } from 'vitest';
import { logPosition } from '../../src/domain/ids.ts';
import { beginCompaction, compactStep, pruneClosed, sweepStep } from '../../src/journal/compaction.ts';
import { logHead } from '../../src/journal/log.ts';
import { latestSnapshot, readSnapshotPage } from '../../src/journal/log-snapshot.ts';
import { heldRun, releaseLost } from '../../src/journal/release.ts';
import { closeRun } from '../../src/journal/runs.ts';
import { verifyLog } from '../../src/journal/verify-log.ts';
import { createTestJournal, stateOf, type TestJournal } from '../support/journal.ts';
import { rowsOf, ScriptedRun } from '../support/journal-run.ts';

let journal: TestJournal;

beforeAll(async () => {
  journal = await createTestJournal();
});
afterAll(() => journal.close());

const DAY_MS = 86_400_000;

async function count(sql: string): Promise<number> {
  const { rows } = await journal.admin.query<{ n: string }>(`select count(*) as n ${sql}`);
  return Number(rows[0]?.n);
}

/** As if the run had been closed `days` ago. */
async function age(run: ScriptedRun, days: number): Promise<void> {
  const sql = `update retl.run set closed_at = closed_at - $2 * interval '1 day' where run_id = $1`;
  await journal.admin.query(sql, [run.run, days]);
}

test('receipts and attempts of runs closed long ago go, in bounded steps; an operator’s word stays, as do outcomes', async () => {
  const old = await ScriptedRun.open(journal.runtime, { mirror: 'old' });
  const holder = await heldRun(journal.runtime, 'old');
  if (holder === null) throw new Error('nobody holds it');
  expect(await releaseLost(journal.runtime, holder, 'ann', 'the cluster is gone')).toBe('released');
  const taken = await ScriptedRun.open(journal.runtime, { mirror: 'old' });
  expect(taken.run).toBe(old.run);
  await taken.upToAdditions(rowsOf({ a: '1', b: '1', c: '1', d: '1' }));
  await taken.complete(1);
  const young = await ScriptedRun.whole(journal.runtime, { mirror: 'young' }, rowsOf({ a: '1' }));
  const open = await ScriptedRun.open(journal.runtime, { mirror: 'open' });
  await open.upToAdditions(rowsOf({ a: '1' }));
  await open.deliver('upsert');
  const answers = `from retl.batch where receipt <> '{"pruned":true}' and run_id =`;
  const before = await count(`${answers} ${taken.run}`);
  expect(before).toBe(6);

  expect(await pruneClosed(journal.runtime, DAY_MS, 100)).toEqual({ runs: 0, more: false });
  await age(taken, 2);
  expect(await stateOf(pruneClosed(journal.runtime, DAY_MS - 1, 100))).toBe('RM003');
  // A step of two rows at most.
  expect(await pruneClosed(journal.runtime, DAY_MS, 2)).toEqual({ runs: 0, more: true });
  expect(await count(`${answers} ${taken.run}`)).toBe(before - 2);
  while ((await pruneClosed(journal.runtime, DAY_MS, 2)).more);
  expect(await count(`${answers} ${taken.run}`)).toBe(0);
  expect(await count(`from retl.attempt where run_id = ${taken.run}`)).toBe(1);
  expect(await count(`from retl.release where run_id = ${taken.run}`)).toBe(1);
  expect(await count(`from retl.batch where run_id = ${taken.run} and state = 'settled'`)).toBe(before);
  for (const other of [young, open]) {
    expect(await count(`${answers} ${other.run}`)).toBeGreaterThan(0);
    expect(await count(`from retl.attempt where run_id = ${other.run}`)).toBeGreaterThan(0);
  }
  expect((await verifyLog(journal.runtime, { effects: true })).kind).toBe('intact');
  // Rule 6: nothing else of the outcome can be changed, nor a receipt to anything else.
  const forge = (what: string) =>
    stateOf(
      journal.admin.query(`update retl.batch set ${what} where run_id = ${taken.run} and state = 'settled'`),
    );
  expect(await forge(`receipt = '{"ok":false}'`)).toBe('RM006');
  expect(await forge(`receipt = '{"pruned":true}', accepted = 0`)).toBe('RM006');
  await closeRun(journal.runtime, open.attempt, 'aborted', null);
});

test('what is unresolved, open or promoted keeps its rows, and tables go only after whoever may read them', async () => {
  for (const payload of ['1', '2'])
    await ScriptedRun.whole(journal.runtime, { mirror: 'kept' }, rowsOf({ a: payload, b: payload }));
  const open = await ScriptedRun.open(journal.runtime, { mirror: 'kept' });
  await open.upToAdditions(rowsOf({ a: '3', b: '3' }));
  const { position } = await logHead(journal.runtime);
  await open.deliver('upsert', { size: 1, count: 1 });
  const [sent] = await open.prepare('upsert', 1, 1);
  if (sent === undefined) throw new Error('nothing to send');
  await open.sending(sent.id);
  await beginCompaction(journal.runtime, logPosition(position));
  let step = await compactStep(journal.runtime, 100);
  while (step.kind === 'building') step = await compactStep(journal.runtime, 100);
  expect(step.kind).toBe('complete');

  const present = (run: bigint) =>
    count(`from pg_tables where schemaname = 'retl' and tablename = 'operation_${run}'`);
  const [first, second] = [open.run - 2n, open.run - 1n];
  let swept = await sweepStep(journal.runtime, 100, 60_000);
  while (swept.kind === 'swept') swept = await sweepStep(journal.runtime, 100, 60_000);
  // The first run of the mirror is replaced as a whole; its tables wait.
  expect(swept).toMatchObject({ kind: 'idle', waiting: expect.any(Number) });
  expect([await present(first), await present(second), await present(open.run)]).toEqual([1, 1, 1]);
  // A reader holds them up; nothing else.
  const reader = await journal.runtime.connect();
  await reader.query(`begin; select * from retl.operation_${first}`);
  try {
    let dropped = await sweepStep(journal.runtime, 100, 0);
    while (dropped.kind !== 'idle') dropped = await sweepStep(journal.runtime, 100, 0);
    expect(dropped.waiting).toBe(1);
    expect(await present(first)).toBe(1);
  } finally {
    await reader.query('commit');
    reader.release();
  }
  while ((await sweepStep(journal.runtime, 100, 0)).kind !== 'idle');
  expect([await present(first), await present(second), await present(open.run)]).toEqual([0, 1, 1]);

  await open.settle(sent);
  await open.complete();
  expect((await verifyLog(journal.runtime, { effects: true })).kind).toBe('intact');
});

test('a reader of a snapshot that is superseded meanwhile is told so, before a member has lost its values', async () => {
  const mirror = 'superseded';
  await ScriptedRun.whole(journal.runtime, { mirror }, rowsOf({ a: '1', b: '1', c: '1', d: '1' }));
  await ScriptedRun.whole(journal.runtime, { mirror }, rowsOf({ a: '1', b: '2', c: '2', d: '2' }));
  const compact = async () => {
    await beginCompaction(journal.runtime, (await logHead(journal.runtime)).position);
    while ((await compactStep(journal.runtime, 100)).kind !== 'complete');
    while ((await sweepStep(journal.runtime, 100, 600_000)).kind !== 'idle');
    const snapshot = await latestSnapshot(journal.runtime);
    if (snapshot === null) throw new Error('no snapshot');
    return snapshot.id;
  };
  const read = async (id: bigint) => {
    const page = await readSnapshotPage(journal.runtime, id, null, { values: true });
    return page.kind === 'members' ? page.targets.flatMap(({ members }) => members) : page.kind;
  };
  const former = await compact();
  const members = await read(former);
  expect(Array.isArray(members) && members.every(({ identity }) => identity !== null)).toBe(true);
  await ScriptedRun.whole(journal.runtime, { mirror }, rowsOf({ a: '3', b: '3', c: '3', d: '3' }));
  await ScriptedRun.whole(journal.runtime, { mirror }, rowsOf({ a: '4', b: '4', c: '4', d: '4' }));
  const newer = await compact();
  expect(await read(former)).toBe('compacted');
  expect(Array.isArray(await read(newer))).toBe(true);
});
