/**
 * A plan against the run itself, over random histories: the counts, both digests and the guard's verdict are those that the
 * journal computes, whatever was accepted and not folded yet, refused, or sent by a run that was given up.
 */

import fc from 'fast-check';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { targetId } from '../../src/domain/ids.ts';
import { guardOf } from '../../src/domain/plan.ts';
import { acceptedBefore, heldValues, longRemovals, readHeld } from '../../src/journal/held-members.ts';
import { consistently } from '../../src/journal/pool.ts';
import { closeRun } from '../../src/journal/runs.ts';
import { shownDigest } from '../../src/planning/hash.ts';
import { MemberTable } from '../../src/planning/member-table.ts';
import { backdate, createTestJournal, type TestJournal } from '../support/journal.ts';
import { identityOf, rowsOf, ScriptedRun, sha, upsertOf } from '../support/journal-run.ts';

let journal: TestJournal;

beforeAll(async () => {
  journal = await createTestJournal();
});
afterAll(() => journal.close());

const AN_HOUR_MS = 3_600_000;
const IDS = Array.from('abcdefghij');
const DESIRED = fc.dictionary(fc.constantFrom(...IDS), fc.constantFrom('1', '2', '3'), {
  maxKeys: IDS.length,
});
/** A run that is given up somewhere, so that what it had accepted stays unfolded. */
const EARLIER = fc.record({
  desired: DESIRED,
  size: fc.integer({ min: 1, max: 4 }),
  additions: fc.nat({ max: 4 }),
  removals: fc.nat({ max: 4 }),
  rejected: fc.subarray(IDS, { maxLength: 2 }),
  isOld: fc.boolean(),
});
const SAFETY = fc.record({
  maxRemovalShare: fc.option(fc.constantFrom(0, 0.1, 0.29, 0.3, 0.5, 0.57, 1, 1e-7), { nil: null }),
  maxRemovals: fc.option(fc.nat({ max: 5 }), { nil: null }),
  emptySnapshot: fc.constantFrom('hold' as const, 'allow' as const),
});
const HISTORY = fc.record({
  earlier: fc.array(EARLIER, { maxLength: 3 }),
  desired: DESIRED,
  safety: SAFETY,
  refreshAfterMs: fc.constantFrom(null, AN_HOUR_MS),
});
type Earlier = typeof EARLIER extends fc.Arbitrary<infer T> ? T : never;

async function giveUp(mirror: string, plan: Earlier): Promise<void> {
  const run = await ScriptedRun.open(journal.runtime, { mirror });
  await run.upToAdditions(rowsOf(plan.desired));
  const { size } = plan;
  const reject = new Set(plan.rejected);
  await run.deliver('upsert', { size, count: plan.additions, reject });
  const rest = await run.drafts('upsert', size);
  if (rest.length === 0 && reject.size === 0) {
    await run.beginRemovals();
    await run.deliver('remove', { size, count: plan.removals });
  }
  await closeRun(run.db, await run.again(), 'aborted', null);
  if (plan.isOld) await backdate(journal, run.run);
}

async function planned(
  target: string,
  desired: Readonly<Record<string, string>>,
  refreshAfterMs: number | null = null,
): Promise<MemberTable> {
  const members = new MemberTable();
  const known = await journal.runtime.query<{ id: string }>(
    'select target_id as id from retl.target where target_key = $1',
    [target],
  );
  const id = known.rows[0]?.id;
  if (id !== undefined) {
    await consistently(journal.runtime, (db) => readHeld(db, targetId(id), members));
  }
  if (refreshAfterMs !== null && id !== undefined)
    members.refreshWhere(await acceptedBefore(journal.runtime, targetId(id), refreshAfterMs));
  for (const [name, payload] of Object.entries(desired))
    members.want(latin1(identityOf(name)), latin1(upsertOf({ id: name, payload })), '');
  return members;
}

function latin1(text: string): string {
  return sha(text).toString('latin1');
}

let serial = 0;

test('counts, digests and verdict of a plan are those of the run that follows', async () => {
  await fc.assert(
    fc.asyncProperty(HISTORY, async ({ earlier, desired, safety, refreshAfterMs }) => {
      serial += 1;
      const mirror = `planned-${serial}`;
      for (const one of earlier) await giveUp(mirror, one);
      const members = await planned(`target of ${mirror}`, desired, refreshAfterMs);
      const again = await planned(`target of ${mirror}`, desired, refreshAfterMs);
      expect(again.counts).toEqual(members.counts);
      const run = await ScriptedRun.open(journal.runtime, { mirror, refreshAfterMs, ...safety });
      await run.init();
      await run.load(rowsOf(desired));
      await run.seal();
      const verdict = await run.plan();
      const { rows } = await journal.runtime.query(
        `select r.held_before::int as held, r.planned_added::int as added, r.planned_changed::int as changed,
           r.planned_removed::int as removed, r.planned_unchanged::int as unchanged,
           r.planned_refreshed::int as refreshed,
           encode(g.digest, 'hex') as generation, encode(r.removal_digest, 'hex') as removals, encode(retl.shown_digest(r.run_id), 'hex') as shown
         from retl.run r join retl.generation g using (run_id) where r.run_id = $1`,
        [run.run],
      );
      const { generation, removals, shown, ...counts } = rows[0];
      const { collapsed, ...own } = members.counts;
      expect(collapsed).toBe(0);
      expect({ refreshed: 0, ...own }).toEqual(counts);
      expect(members.generationDigest()).toBe(generation);
      expect(members.removalDigest()).toBe(removals);
      expect(shownDigest(generation, counts.removed, removals)).toBe(shown);
      const guard = guardOf(members.counts, safety, 'known');
      expect(guard.kind === 'holds' ? guard.code : 'passed').toBe(
        verdict.kind === 'held' ? verdict.code : verdict.kind,
      );
      await closeRun(run.db, run.attempt, 'aborted', null);
    }),
    { numRuns: 25 },
  );
}, 240_000);

test('members to be removed are named by what the destination had accepted, in the order of their hashes', async () => {
  const mirror = 'names';
  await ScriptedRun.whole(journal.runtime, { mirror }, rowsOf({ a: '1', b: '1', c: '1' }));
  await giveUp(mirror, {
    desired: { a: '1', b: '2', c: '1', d: '1' },
    size: 9,
    additions: 9,
    removals: 0,
    rejected: ['d'],
    isOld: false,
  });
  const members = await planned(`target of ${mirror}`, { c: '1' });
  const removals = members.removals(10);
  expect(removals.map(({ identity }) => identity)).toEqual(
    ['a', 'b'].map((id) => sha(identityOf(id)).toString('hex')).sort(),
  );
  const values = await heldValues(
    journal.runtime,
    removals.map(({ sequence }) => sequence),
  );
  expect(new Set([...values.values()].map(({ payload }) => payload))).toEqual(
    new Set([upsertOf({ id: 'a', payload: '1' }), upsertOf({ id: 'b', payload: '2' })]),
  );
  expect(members.removals(1)).toEqual(removals.slice(0, 1));
});

test('removals over a limit that was lowered are found where their bytes are: in the snapshot, or with the operation', async () => {
  const mirror = 'long';
  const row = (id: string, payload: string, bytes: number) => ({
    key: id,
    members: [{ id, payload, remove: JSON.stringify({ id, pad: 'x'.repeat(bytes) }) }],
  });
  const first = Array.from('abcdefgh').map((id) => row(id, '1', id === 'a' ? 500 : 5));
  await ScriptedRun.whole(journal.runtime, { mirror }, first);
  await ScriptedRun.whole(journal.runtime, { mirror }, [...first.slice(0, 7), row('h', '2', 600)]);
  const { rows } = await journal.runtime.query<{ id: string }>(
    'select target_id as id from retl.target where target_key = $1',
    [`target of ${mirror}`],
  );
  const target = targetId(rows[0]?.id ?? '');
  const members = await planned(`target of ${mirror}`, {});
  const found = await longRemovals(journal.runtime, target, 400);
  const expected = ['a', 'h'].map((id) => latin1(identityOf(id)));
  expect(new Set(found.map(({ identity }) => identity))).toEqual(new Set(expected));
  expect(found.every(({ identity, sequence }) => members.heldBy(identity) === sequence)).toBe(true);
  expect(await longRemovals(journal.runtime, target, 1_000)).toEqual([]);
});
