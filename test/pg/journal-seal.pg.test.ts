/** Rules 7 and 8: sealing a candidate, or being told which rule it breaks, before anything is sent. */

import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { loadCandidate } from '../../src/journal/candidate.ts';
import { call, transaction } from '../../src/journal/pool.ts';
import { countRun } from '../../src/journal/run-record.ts';
import { closeRun } from '../../src/journal/runs.ts';
import { createTestJournal, stateOf, type TestJournal } from '../support/journal.ts';
import { identityHash, rowsOf, ScriptedRun, sha, type TestRow } from '../support/journal-run.ts';

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

const keyHash = (key: string) => sha(JSON.stringify([key])).toString('hex');
const numbered = (count: number): readonly TestRow[] =>
  Array.from({ length: count }, (_, i) => ({ key: `${i}`, members: [{ id: `${i}`, payload: 'p' }] }));

/** Seals twice: an answer that was lost is asked for again, and must be the same. */
async function sealed(maxUpsert?: number, maxRemove?: number) {
  const first = await run.seal(maxUpsert, maxRemove);
  if (first.kind === 'invalid') expect(await run.seal(maxUpsert, maxRemove)).toEqual(first);
  return first;
}

describe('keys', () => {
  test('duplicate-key: rows 1 and 9,999 are caught before anything is sent', async () => {
    const rows = [...numbered(10_000)];
    rows[9_999] = { key: '1', members: [{ id: 'other', payload: 'p' }] };
    await run.load(rows);
    expect(await sealed()).toEqual({
      kind: 'invalid',
      code: 'data.duplicate-key',
      count: 1,
      keys: [keyHash('1')],
    });
  });

  test('rule 7: excluded rows’ keys are stored and counted as duplicates, too', async () => {
    await run.load([
      { key: 'a', members: [] },
      { key: 'a', members: [] },
      { key: 'b', members: [{ id: 'b', payload: '1' }] },
      { key: 'b', members: [] },
    ]);
    const keys = [keyHash('a'), keyHash('b')].sort();
    expect(await sealed()).toEqual({ kind: 'invalid', code: 'data.duplicate-key', count: 2, keys });
  });

  test('key-concat: keys that differ only in where their parts end are two keys', async () => {
    await loadCandidate(journal.runtime, run.attempt, '["text","text"]', async (sink) => {
      for (const key of ['["a","bc"]', '["ab","c"]', '["a|b"]', '["NULL"]', '[null]']) sink.addExcluded(key);
    });
    expect(await sealed()).toEqual({ kind: 'sealed' });
  });

  test('the first ten of many duplicates are named', async () => {
    await run.load([...numbered(40), ...numbered(40)]);
    const answer = await sealed();
    expect(answer).toMatchObject({ code: 'data.duplicate-key', count: 40 });
    if (answer.kind === 'invalid') expect(answer.keys).toHaveLength(10);
  });

  test('a key column that changed its type since the last promotion is refused', async () => {
    await run.load(rowsOf({ a: '1' }), '["int8"]');
    await run.seal();
    await run.plan();
    await run.complete();
    const { mirror } = run.request;
    run = await ScriptedRun.open(journal.runtime, { mirror });
    await run.init();
    await run.load(rowsOf({ a: '1' }), '["text"]');
    expect(await sealed()).toMatchObject({ code: 'data.key-type-changed', count: 1 });
    await closeRun(journal.runtime, run.attempt, 'invalid', 'data.key-type-changed');
    run = await ScriptedRun.open(journal.runtime, { mirror });
    await run.init();
    await run.load(rowsOf({ a: '1' }), '["int8"]');
    expect(await sealed()).toEqual({ kind: 'sealed' });
  });
});

describe('members', () => {
  test('two payloads for one identity are a conflict, named by the identity’s hash', async () => {
    await run.load([
      { key: '1', members: [{ id: 'x', payload: '1' }] },
      { key: '2', members: [{ id: 'x', payload: '2' }] },
      { key: '3', members: [{ id: 'y', payload: '1' }] },
    ]);
    expect(await sealed()).toEqual({
      kind: 'invalid',
      code: 'data.conflicting-payloads',
      count: 1,
      keys: [identityHash('x').toString('hex')],
    });
  });

  test('two removals for one identity and payload are a conflict as well', async () => {
    await run.load([
      { key: '1', members: [{ id: 'x', payload: '1', remove: '{"a":1}' }] },
      { key: '2', members: [{ id: 'x', payload: '1', remove: '{"a":2}' }] },
    ]);
    expect(await sealed()).toMatchObject({ code: 'data.conflicting-payloads', count: 1 });
  });

  test('identical members of several rows collapse into one, whoever spells the removal out', async () => {
    await run.load([
      {
        key: '1',
        members: [
          { id: 'x', payload: '1' },
          { id: 'y', payload: '1' },
        ],
      },
      {
        key: '2',
        members: [
          { id: 'y', payload: '1' },
          { id: 'x', payload: '1', remove: JSON.stringify({ id: 'x' }) },
        ],
      },
      { key: '3', members: [{ id: 'x', payload: '1' }] },
    ]);
    expect(await sealed()).toEqual({ kind: 'sealed' });
    const { rows } = await journal.admin.query(
      'select members, excluded, collapsed from retl.generation where run_id = $1',
      [run.run],
    );
    expect(rows).toEqual([{ members: '2', excluded: '0', collapsed: '3' }]);
    await run.plan();
    expect((await run.prepare('upsert', 10)).flatMap((b) => b.members).sort()).toEqual(['x', 'y']);
  });

  test('what a refused seal says after a collapse is what it says when asked again', async () => {
    await run.load([
      { key: '1', members: [{ id: 'x', payload: '1' }] },
      { key: '2', members: [{ id: 'x', payload: '1' }] },
      { key: '3', members: [{ id: 'y', payload: 'long '.repeat(30) }] },
    ]);
    expect(await sealed(100)).toMatchObject({
      code: 'data.operation-too-large',
      count: 1,
      keys: [keyHash('3')],
    });
  });

  test('an upsert or a removal over the byte limit is refused, one at the limit is not; bytes, not characters', async () => {
    const upsert = (payload: string) => Buffer.byteLength(JSON.stringify({ id: 'x', v: payload }));
    const payload = 'ü'.repeat(20);
    await run.load([{ key: '1', members: [{ id: 'x', payload, remove: '{"r":"ü"}' }] }]);
    const removal = Buffer.byteLength('{"r":"ü"}');
    expect(await sealed(upsert(payload) - 1, removal)).toMatchObject({ code: 'data.operation-too-large' });
    expect(await sealed(upsert(payload), removal - 1)).toMatchObject({ code: 'data.operation-too-large' });
    expect(await sealed(upsert(payload), removal)).toEqual({ kind: 'sealed' });
  });

  test('no byte limit at all is refused', async () => {
    await run.load(rowsOf({ a: '1' }));
    for (const limits of ['null, 1', '1, null', 'null, null']) {
      const sealing = journal.runtime.query(`select retl.seal($1, $2, ${limits})`, [
        run.run,
        run.attempt.epoch,
      ]);
      expect(await stateOf(sealing)).toBe(RULE);
    }
  });

  test('no byte limit that the caller names is above that of the run’s requests', async () => {
    run = await ScriptedRun.open(journal.runtime, { mirror: 'limited', maxRequestBytes: 100 });
    await run.init();
    const long = 'x'.repeat(200);
    await run.load([
      { key: '1', members: [{ id: 'a', payload: long }] },
      { key: '2', members: [{ id: 'b', payload: '1', remove: `{"r":"${long}"}` }] },
      { key: '3', members: [{ id: 'c', payload: '1' }] },
    ]);
    expect(await run.seal(10_000, 10_000)).toMatchObject({ code: 'data.operation-too-large', count: 2 });
  });

  test('a held member whose stored removal no longer fits holds the run before anything is sent', async () => {
    const remove = `{"r":"${'x'.repeat(200)}"}`;
    const rows: readonly TestRow[] = [
      { key: '1', members: [{ id: 'long', payload: '1', remove }] },
      { key: '2', members: [{ id: 'short', payload: '1' }] },
    ];
    await run.upToAdditions(rows);
    await run.complete();
    const { mirror } = run.request;
    for (const [left, answer] of [
      [rows.slice(0, 1), { kind: 'passed' }],
      [rows.slice(2), { kind: 'oversized', count: 1 }],
    ] as const) {
      run = await ScriptedRun.open(journal.runtime, { mirror });
      await run.init();
      await run.load(
        left.map((row) => ({ ...row, members: row.members.map((m) => ({ ...m, remove: null })) })),
      );
      await run.seal(10_000, 100);
      expect(await run.plan()).toEqual(answer);
      await closeRun(journal.runtime, run.attempt, 'aborted', null);
    }
  });
});

describe('whole snapshots', () => {
  test('0 rows, and all rows excluded, are valid and empty', async () => {
    await run.load([]);
    expect(await sealed()).toEqual({ kind: 'sealed' });
    run = await extracting();
    await run.load([
      { key: '1', members: [] },
      { key: '2', members: [] },
    ]);
    expect(await sealed()).toEqual({ kind: 'sealed' });
    expect(await countRun(journal.runtime, run.run)).toMatchObject({
      sourceRows: 2,
      excluded: 2,
      members: 0,
    });
  });

  test('the digest is that of the set, not of the order in which its rows came', async () => {
    const digests = [];
    for (const rows of [numbered(300), [...numbered(300)].reverse()]) {
      run = await extracting();
      await run.load(rows);
      await run.seal();
      digests.push((await run.record()).generationDigest);
    }
    expect(digests[0]).toBe(digests[1]);
    run = await extracting();
    await run.load(numbered(299));
    await run.seal();
    expect((await run.record()).generationDigest).not.toBe(digests[0]);
  });

  test('rule 8: as many rows are sealed as were read, or none', async () => {
    const { attempt } = run;
    await transaction(journal.runtime, async (client) => {
      const id = await call(client, 'retl.create_candidate($1,$2)', [attempt.run, attempt.epoch]);
      await client.query(
        `insert into retl.generation_${id} (row_no, kind, member_no, source_key) values (1, 0, 0, 'a')`,
      );
      await call(client, 'retl.loaded($1,$2,$3,$4,$5)', [attempt.run, attempt.epoch, id, '[]', 2]);
    });
    expect(await stateOf(run.seal())).toBe(RULE);
  });

  test('rule 8: nothing is sealed before it is loaded, or twice', async () => {
    expect(await stateOf(run.seal())).toBe(RULE);
    await run.load(rowsOf({ a: '1' }));
    await run.seal();
    expect(await stateOf(run.seal())).toBe(RULE);
    expect(await stateOf(run.load(rowsOf({ a: '1' })))).toBe('RM001');
  });

  test('rows that only a wrong loader can have written are refused', async () => {
    const h = "sha256('h')";
    const cases = [
      `(1, 2, 0, 'a', ${h}, ${h}, '{}', '{}', null)`,
      `(2, 3, 0, 'a', ${h}, ${h}, '{}', '{}', null)`,
      `(3, 1, 0, 'a', 'short', ${h}, '{}', '{}', null)`,
      `(4, 1, 0, 'a', ${h}, null, '{}', '{}', null)`,
      `(5, 1, 0, 'a', ${h}, ${h}, null, '{}', null)`,
      `(6, 1, 0, 'a', ${h}, ${h}, '{}', null, null)`,
      `(7, 1, -1, 'a', ${h}, ${h}, '{}', '{}', null)`,
      `(8, 0, 1, 'a', null, null, null, null, null)`,
      `(9, 0, 0, 'a', ${h}, null, null, null, null)`,
      // A key that would escape the look for duplicates, and members that a collapse could not tell apart.
      `(10, 1, 1, 'a', ${h}, ${h}, '{}', '{}', null)`,
      `(11, 1, 0, 'a', ${h}, ${h}, '{}', '{}', null), (12, 1, 2, 'a', sha256('2'), ${h}, '{}', '{}', null)`,
      `(13, 1, 0, 'a', ${h}, ${h}, '{}', '{}', null), (14, 1, 1, 'a', sha256('2'), ${h}, '{}', '{}', null),
       (15, 1, 1, 'a', sha256('2'), ${h}, '{}', '{}', null)`,
      `(16, 0, 0, 'a', null, null, null, null, null), (17, 1, 1, 'a', ${h}, ${h}, '{}', '{}', null)`,
    ];
    for (const values of cases) {
      run = await extracting();
      const { attempt } = run;
      await transaction(journal.runtime, async (client) => {
        const id = await call(client, 'retl.create_candidate($1,$2)', [attempt.run, attempt.epoch]);
        await client.query(`insert into retl.generation_${id} values ${values}`);
        await call(client, 'retl.loaded($1,$2,$3,$4,$5)', [attempt.run, attempt.epoch, id, '[]', 1]);
      });
      expect(await sealed(), values).toMatchObject({ kind: 'invalid', code: 'data.invalid-row' });
    }
  });
});
