/** The journal's happy path: whole runs, and what they leave. The attacks are in the journal-*.pg.test.ts files beside it. */

import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { settleStep } from '../../src/journal/batches.ts';
import { countRun } from '../../src/journal/run-record.ts';
import { closeRun, promote, prune } from '../../src/journal/runs.ts';
import { createTestJournal, stateOf, type TestJournal } from '../support/journal.ts';
import { identityHash, type Prepared, rowsOf, ScriptedRun } from '../support/journal-run.ts';

let journal: TestJournal;

beforeAll(async () => {
  journal = await createTestJournal();
});
afterAll(() => journal.close());

describe('whole runs', () => {
  test('delta-as-whole: additions, changes and removals are exactly the difference', async () => {
    const mirror = 'whole';
    await ScriptedRun.whole(
      journal.runtime,
      { mirror },
      rowsOf({ a: '1', b: '1', c: '1', d: '1', e: '1' }),
      2,
    );
    const second = await ScriptedRun.whole(
      journal.runtime,
      { mirror },
      rowsOf({ a: '1', b: '2', c: '1', e: '1', f: '1' }),
    );
    expect(await countRun(journal.runtime, second.run)).toMatchObject({
      added: 1,
      changed: 1,
      removed: 1,
      unchanged: 3,
      members: 5,
    });
    const { rows } = await journal.admin.query('select held from retl.target where target_key = $1', [
      `target of ${mirror}`,
    ]);
    expect(rows).toEqual([{ held: '5' }]);
  });

  test('a first mirror of many batches is folded in one go, and means the same', async () => {
    const mirror = 'first-fold';
    const members = Object.fromEntries(Array.from({ length: 60 }, (_, i) => [`m${i}`, '1']));
    const first = await ScriptedRun.whole(journal.runtime, { mirror }, rowsOf(members), 4);
    const { target, held } = await first.record();
    expect(held).toBe(60);
    const table = `retl.membership_${target}`;
    const { rows } = await journal.runtime.query(
      `select count(distinct identity_hash)::int as n from ${table}`,
    );
    expect(rows).toEqual([{ n: 60 }]);
    const key = await journal.admin.query(
      "select conname, contype from pg_constraint where conrelid = $1::regclass and contype = 'p'",
      [table],
    );
    expect(key.rows).toEqual([{ conname: `membership_${target}_pkey`, contype: 'p' }]);
    const { m0: _, ...less } = members;
    const second = await ScriptedRun.whole(journal.runtime, { mirror }, rowsOf({ ...less, m1: '2' }), 4);
    expect(await countRun(journal.runtime, second.run)).toMatchObject({
      added: 0,
      changed: 1,
      removed: 1,
      unchanged: 58,
    });
  });

  test('rule 6: batches of unlike sizes are folded without what was rejected, or is still open, between them', async () => {
    const members = Object.fromEntries(Array.from({ length: 11 }, (_, i) => [`m${i}`, '1']));
    const run = await ScriptedRun.open(journal.runtime, { mirror: 'unlike' });
    await run.upToAdditions(rowsOf(members));
    const batches: Prepared[] = [];
    for (const size of [2, 3, 2, 3, 1]) batches.push(...(await run.prepare('upsert', size, 1)));
    const [first, second, third, open, last] = batches;
    const refused = second?.members[1] ?? '';
    for (const batch of [first, second, third, last]) {
      if (batch === undefined) throw new Error('five batches were to be prepared');
      await run.sending(batch.id);
      await run.settle(batch, new Set([refused]));
    }
    await run.foldAll();
    const { target, held } = await run.record();
    const { rows } = await journal.runtime.query<{ hash: string }>(
      `select encode(identity_hash, 'hex') as hash from retl.membership_${target} order by 1`,
    );
    const missing = new Set([refused, ...(open?.members ?? [])]);
    const accepted = Object.keys(members).filter((id) => !missing.has(id));
    expect(rows.map(({ hash }) => hash)).toEqual(
      accepted.map((id) => identityHash(id).toString('hex')).sort(),
    );
    expect(held).toBe(accepted.length);
  });

  test('resync-forgets: a member that has left the source is tracked until its removal is accepted, run after run', async () => {
    const mirror = 'resync';
    const before = Object.fromEntries(Array.from({ length: 10 }, (_, i) => [`gone${i}`, '1']));
    await ScriptedRun.whole(journal.runtime, { mirror }, rowsOf({ stays: '1', ...before }));
    // Whole snapshots without them, one after another; none of these runs comes to their removal.
    for (const [i, payload] of ['1', '2', '3'].entries()) {
      const run = await ScriptedRun.open(journal.runtime, { mirror });
      await run.upToAdditions(rowsOf({ stays: payload, [`new${i}`]: '1' }));
      await run.deliver('upsert');
      await run.beginRemovals();
      // The last one gets half of them removed, and is refused the others.
      if (i === 2) {
        await run.deliver('remove', {
          reject: new Set(Object.keys(before).slice(5).concat('new0', 'new1')),
        });
      }
      await closeRun(journal.runtime, run.attempt, i === 2 ? 'rejected' : 'aborted', null);
    }
    const last = await ScriptedRun.whole(journal.runtime, { mirror }, rowsOf({ stays: '3', new2: '1' }));
    expect(await countRun(journal.runtime, last.run)).toMatchObject({ added: 0, changed: 0, removed: 7 });
    expect(await last.record()).toMatchObject({ held: 2 });
  });

  test('a run whose plan has no operation still finishes explicitly and is promoted', async () => {
    const mirror = 'nothing';
    await ScriptedRun.whole(journal.runtime, { mirror }, rowsOf({ a: '1' }));
    const again = await ScriptedRun.open(journal.runtime, { mirror });
    await again.upToAdditions(rowsOf({ a: '1' }));
    await again.beginRemovals();
    // Rule 1: nothing was left to do, and still only an accepted finish promotes.
    expect(await stateOf(promote(journal.runtime, again.attempt))).toBe('RM003');
    await again.beginFinish();
    expect(await stateOf(promote(journal.runtime, again.attempt))).toBe('RM003');
    const finish = await again.prepareStep('finish');
    await again.sending(finish);
    expect(await stateOf(promote(journal.runtime, again.attempt))).toBe('RM003');
    expect(await again.record()).toMatchObject({ phase: 'finish', closing: null });
    await settleStep(journal.runtime, again.attempt, finish, '{}', new Map());
    await promote(journal.runtime, again.attempt);
    expect(await again.record()).toMatchObject({ phase: 'complete', closing: 'completed' });
    expect(await countRun(journal.runtime, again.run)).toMatchObject({
      added: 0,
      changed: 0,
      removed: 0,
      unchanged: 1,
    });
  });

  test('empty-skipped: rows 0 is a valid snapshot that removes everyone and is promoted', async () => {
    const mirror = 'emptied';
    await ScriptedRun.whole(journal.runtime, { mirror }, rowsOf({ a: '1', b: '1' }));
    const emptied = await ScriptedRun.whole(journal.runtime, { mirror }, []);
    expect(await countRun(journal.runtime, emptied.run)).toMatchObject({ removed: 2, sourceRows: 0 });
    const refilled = await ScriptedRun.whole(journal.runtime, { mirror }, rowsOf({ a: '1', b: '1' }));
    expect(await countRun(journal.runtime, refilled.run)).toMatchObject({ added: 2 });
    expect(await prune(journal.runtime, refilled.run, 10)).toBeGreaterThan(0);
  });
});
