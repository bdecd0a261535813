/**
 * A plan of a native replacement against the run itself, over random histories: the counts, the digests and the guard's
 * verdict are those that the journal computes, whatever earlier runs have uploaded and whoever has vouched for the target.
 */

import fc from 'fast-check';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { guardOf } from '../../src/domain/plan.ts';
import { readHeld } from '../../src/journal/held-members.ts';
import { consistently } from '../../src/journal/pool.ts';
import { closeRun, recordBaseline } from '../../src/journal/runs.ts';
import { standingOf, vouchedElsewhere } from '../../src/journal/standing.ts';
import { MemberTable } from '../../src/planning/member-table.ts';
import { replacedBy } from '../../src/planning/replaced.ts';
import { createTestJournal, type TestJournal } from '../support/journal.ts';
import { identityOf, rowsOf, ScriptedRun, sha, upsertOf } from '../support/journal-run.ts';
import { promoted } from '../support/replaced-run.ts';

let journal: TestJournal;
beforeAll(async () => {
  journal = await createTestJournal();
});
afterAll(() => journal.close());

const IDS = Array.from('abcdefgh');
const DESIRED = fc.dictionary(fc.constantFrom(...IDS), fc.constantFrom('1', '2'), { maxKeys: IDS.length });
const PROOF = fc.constantFrom('verified' as const, 'attested' as const, 'unknown' as const);
/** `ends`: before its session is open, at the guard, after some uploads, or complete. */
const EARLIER = fc.record({
  desired: DESIRED,
  size: fc.integer({ min: 1, max: 4 }),
  uploads: fc.nat({ max: 4 }),
  ends: fc.constantFrom('early', 'refused', 'given up', 'complete'),
});
const HISTORY = fc.record({
  earlier: fc.array(EARLIER, { maxLength: 3 }),
  proof: PROOF,
  /** The mirror's file says so by the time of the last run. */
  vouched: fc.boolean(),
  /** With words that have vouched for another target of it. */
  spent: fc.boolean(),
  atFinish: fc.boolean(),
  desired: DESIRED,
  safety: fc.record({
    maxRemovalShare: fc.option(fc.constantFrom(0, 0.3, 0.5, 1), { nil: null }),
    maxRemovals: fc.option(fc.nat({ max: 4 }), { nil: null }),
    emptySnapshot: fc.constantFrom('hold' as const, 'allow' as const),
  }),
});
type History = typeof HISTORY extends fc.Arbitrary<infer T> ? T : never;
type Earlier = History['earlier'][number];

const WORDS = 'somebody has looked';

const latin1 = (text: string) => sha(text).toString('latin1');

function open(mirror: string, history: History, targetKey = `target of ${mirror}`): Promise<ScriptedRun> {
  const { atFinish, safety } = history;
  const asked = { mirror, targetKey, strategy: 'native-replace', atFinish, ...safety } as const;
  return ScriptedRun.open(journal.runtime, asked);
}

/** Another target of the mirror, for which the words vouch. */
async function vouchElsewhere(mirror: string, history: History): Promise<void> {
  const run = await open(mirror, history, `another of ${mirror}`);
  await recordBaseline(journal.runtime, run.attempt, 'replace', 'attested', WORDS);
  await closeRun(run.db, run.attempt, 'aborted', null);
}

/** Somebody lets the run pass, whatever the guard asks. */
async function approve(run: ScriptedRun): Promise<void> {
  const ask = `select retl.decide($1, retl.shown_digest($1), 'approved', 'somebody', 'looked', 'cli')`;
  if ((await run.plan()).kind === 'passed') return;
  await journal.runtime.query(ask, [run.run]);
  expect((await run.plan()).kind).toBe('passed');
}

async function play(mirror: string, history: History, { desired, size, uploads, ends }: Earlier) {
  const run = await open(mirror, history);
  if (ends !== 'early') {
    await recordBaseline(journal.runtime, run.attempt, 'replace', history.proof, null);
    await run.step('init');
    await run.load(rowsOf(desired));
    await run.seal();
    if (ends === 'refused') await run.plan();
    else {
      await approve(run);
      await run.deliver('upsert', ends === 'complete' ? { size } : { size, count: uploads });
    }
  }
  if (ends !== 'complete') return closeRun(run.db, await run.again(), 'aborted', null);
  await run.beginRemovals();
  await run.beginFinish();
  await run.step('finish');
  await promoted(journal.runtime, run);
}

let serial = 0;

test('counts, digests and verdict of the plan of a replacement are those of the run that follows', async () => {
  await fc.assert(
    fc.asyncProperty(HISTORY, async (history) => {
      serial += 1;
      const mirror = `replaced-${serial}`;
      for (const one of history.earlier) await play(mirror, history, one);
      if (history.vouched && history.spent) await vouchElsewhere(mirror, history);
      const targetKey = `target of ${mirror}`;
      const { target } = await standingOf(journal.runtime, mirror, targetKey);
      const attested = history.vouched ? WORDS : null;
      const word = { kind: 'replace', attested };
      const isVouched =
        history.vouched && !(await vouchedElsewhere(journal.runtime, mirror, targetKey, word));
      expect(isVouched).toBe(history.vouched && !history.spent);
      const replaced = replacedBy('native-replace', target, isVouched);
      const members = new MemberTable();
      if (target !== null) await consistently(journal.runtime, (db) => readHeld(db, target.id, members));
      for (const [name, payload] of Object.entries(history.desired))
        members.want(latin1(identityOf(name)), latin1(upsertOf({ id: name, payload })), '');

      const run = await open(mirror, history);
      // As activities/init.ts: the first run finds out, and a later one hears of whoever has vouched since.
      const proof = history.vouched && history.proof !== 'verified' ? 'attested' : history.proof;
      const isTaken = await recordBaseline(journal.runtime, run.attempt, 'replace', proof, attested);
      expect(isTaken).toBe(proof !== 'attested' || attested === null || isVouched);
      if (!isTaken) await recordBaseline(journal.runtime, run.attempt, 'replace', 'unknown', null);
      await run.step('init');
      await run.load(rowsOf(history.desired));
      await run.seal();
      const verdict = await run.plan();
      const { rows } = await journal.runtime.query(
        `select r.held_before::int as held, r.planned_added::int as added, r.planned_changed::int as changed,
           r.planned_removed::int as removed, r.planned_unchanged::int as unchanged,
           encode(g.digest, 'hex') as generation, encode(r.removal_digest, 'hex') as removals
         from retl.run r join retl.generation g using (run_id) where r.run_id = $1`,
        [run.run],
      );
      const { generation, removals, ...counts } = rows[0];
      expect(members.counts).toMatchObject(counts);
      expect([members.generationDigest(), members.removalDigest()]).toEqual([generation, removals]);
      const guard = guardOf(members.counts, history.safety, replaced);
      const asked = verdict.kind === 'held' ? verdict.code : verdict.kind;
      if (guard.kind === 'holds') expect(asked).toBe(guard.code);
      else expect(['passed', guard.unless]).toContain(asked);
      await closeRun(run.db, run.attempt, 'aborted', null);
    }),
    { numRuns: 30 },
  );
}, 240_000);
