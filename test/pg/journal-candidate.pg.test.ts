/** Rules 1 and 8: who may add to a candidate and when, and what the guard lets pass. */

import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { loadCandidate } from '../../src/journal/candidate.ts';
import { call, transaction } from '../../src/journal/pool.ts';
import { countRun } from '../../src/journal/run-record.ts';
import { guard, plan, prune } from '../../src/journal/runs.ts';
import { createTestJournal, stateOf, type TestJournal } from '../support/journal.ts';
import { addRow, rowsOf, ScriptedRun, type TestRow } from '../support/journal-run.ts';

const RULE = 'RM003';

let journal: TestJournal;
let run: ScriptedRun;
let n = 0;

beforeAll(async () => {
  journal = await createTestJournal();
});
afterAll(() => journal.close());

async function extracting(): Promise<ScriptedRun> {
  n += 1;
  const next = await ScriptedRun.open(journal.runtime, { mirror: `s${n}` });
  await next.init();
  return next;
}

beforeEach(async () => {
  run = await extracting();
});

const numbered = (count: number): readonly TestRow[] =>
  Array.from({ length: count }, (_, i) => ({ key: `${i}`, members: [{ id: `${i}`, payload: 'p' }] }));

/** Seals twice: an answer that was lost is asked for again, and must be the same. */
async function sealed(maxUpsert?: number, maxRemove?: number) {
  const first = await run.seal(maxUpsert, maxRemove);
  if (first.kind === 'invalid') expect(await run.seal(maxUpsert, maxRemove)).toEqual(first);
  return first;
}

describe('candidates', () => {
  test('rule 8: nobody adds a row after the load, neither by COPY nor by INSERT, not even in the same transaction', async () => {
    const { attempt } = run;
    const insert = (id: unknown) =>
      `insert into retl.generation_${id} (row_no, kind, member_no, source_key) values (1, 0, 0, 'x')`;
    await transaction(journal.runtime, async (client) => {
      const id = await call(client, 'retl.create_candidate($1,$2)', [attempt.run, attempt.epoch]);
      await call(client, 'retl.loaded($1,$2,$3,$4,$5)', [attempt.run, attempt.epoch, id, '[]', 0]);
      await client.query('savepoint before');
      expect(await stateOf(client.query(insert(id)))).toBe('42501');
      await client.query('rollback to before');
    });
    const { generation } = await run.record();
    expect(await stateOf(journal.runtime.query(insert(generation)))).toBe('42501');
    const copy = `copy retl.generation_${generation} from stdin`;
    expect(await stateOf(journal.runtime.query(copy))).toBe('42501');
    await run.seal();
    for (const sql of ['update', 'delete from'].map((verb) =>
      verb === 'update'
        ? `update retl.generation_${generation} set kind = 0`
        : `delete from retl.generation_${generation}`,
    )) {
      expect(await stateOf(journal.runtime.query(sql))).toBe('42501');
    }
  });

  test('rule 8: a candidate of another transaction, or none at all, is not taken for loaded', async () => {
    const { attempt } = run;
    const values = [attempt.run, attempt.epoch];
    const id = await call(journal.runtime, 'retl.create_candidate($1,$2)', values);
    await journal.runtime.query(
      `insert into retl.generation_${id} (row_no, kind, member_no, source_key) values (1, 0, 0, 'x')`,
    );
    const loaded = (generation: unknown) =>
      stateOf(call(journal.runtime, 'retl.loaded($1,$2,$3,$4,$5)', [...values, generation, '[]', 1]));
    for (const generation of [id, null, 999_999, -1]) expect(await loaded(generation)).toBe(RULE);
    // It is nobody's, and goes when the journal is next tidied.
    await run.load(rowsOf({ a: '1' }));
    await run.seal();
    expect(await prune(journal.runtime, run.run, 1_000)).toBe(1);
    expect(await stateOf(journal.runtime.query(`select from retl.generation_${id}`))).toBe('42P01');
  });

  test('tidying up leaves a candidate alone that is still loading', async () => {
    const { attempt } = run;
    await loadCandidate(journal.runtime, attempt, '[]', async (sink) => {
      addRow(sink, { key: 'a', members: [{ id: 'a', payload: '1' }] });
      await sink.drain();
      expect(await prune(journal.runtime, run.run, 1_000)).toBe(0);
    });
    expect(await sealed()).toEqual({ kind: 'sealed' });
  });

  test('read-dies-midway: what fails while loading leaves nothing behind', async () => {
    const failed = loadCandidate(journal.runtime, run.attempt, '[]', async (sink) => {
      for (const row of numbered(5_000)) addRow(sink, row);
      await sink.drain();
      throw new Error('the source is gone');
    });
    await expect(failed).rejects.toThrow('the source is gone');
    expect(await run.record()).toMatchObject({ phase: 'extract', generation: null });
    expect(await stateOf(run.load(numbered(3)))).toBeNull();
  });
});

describe('the guard', () => {
  const held = rowsOf({ a: '1', b: '1', c: '1', d: '1', e: '1', f: '1', g: '1', h: '1', i: '1', j: '1' });
  async function guarded(
    limits: { maxRemovalShare?: number; maxRemovals?: number; emptySnapshot?: 'hold' | 'allow' },
    rows: readonly TestRow[],
    before: readonly TestRow[] = held,
  ) {
    n += 1;
    await ScriptedRun.whole(journal.runtime, { mirror: `s${n}` }, before);
    run = await ScriptedRun.open(journal.runtime, { mirror: `s${n}`, ...limits });
    await run.init();
    await run.load(rows);
    await run.seal();
    expect(await stateOf(guard(journal.runtime, run.attempt))).toBe(RULE); // nothing is planned yet
    return run.plan();
  }

  test('empty-ok: an empty snapshot, and a drop over either limit, hold the run with nothing sent', async () => {
    expect(await guarded({ emptySnapshot: 'hold' }, [])).toMatchObject({
      kind: 'held',
      code: 'empty-snapshot',
    });
    expect(await guarded({ emptySnapshot: 'allow', maxRemovals: 9 }, [])).toMatchObject({
      kind: 'held',
      code: 'max-removals',
    });
    expect(await guarded({ maxRemovalShare: 0.3 }, held.slice(4))).toMatchObject({
      kind: 'held',
      code: 'max-removal-share',
    });
    expect(await stateOf(run.prepare('upsert', 1))).not.toBe(undefined);
    expect((await run.record()).phase).toBe('guard');
  });

  test('a share is a decimal: 29 % of 100 lets 29 go, and no thirtieth', async () => {
    const hundred = numbered(100);
    expect(await guarded({ maxRemovalShare: 0.29 }, hundred.slice(29), hundred)).toEqual({ kind: 'passed' });
    expect(await guarded({ maxRemovalShare: 0.29 }, hundred.slice(30), hundred)).toMatchObject({
      code: 'max-removal-share',
    });
  });

  test('a drop within the limits, and the first filling of an empty target, pass', async () => {
    expect(await guarded({ maxRemovalShare: 0.4, maxRemovals: 4 }, held.slice(4))).toEqual({
      kind: 'passed',
    });
    n += 1;
    run = await ScriptedRun.open(journal.runtime, { mirror: `s${n}`, maxRemovals: 0, emptySnapshot: 'hold' });
    await run.init();
    await run.load([]);
    await run.seal();
    expect(await run.plan()).toEqual({ kind: 'passed' });
  });

  test('a plan asked for again is the same plan', async () => {
    await guarded({ maxRemovals: 0 }, held.slice(4));
    const before = await countRun(journal.runtime, run.run);
    await plan(journal.runtime, run.attempt);
    expect(await countRun(journal.runtime, run.run)).toEqual(before);
    expect(before).toMatchObject({ toRemove: 4, unchanged: 6 });
  });
});
