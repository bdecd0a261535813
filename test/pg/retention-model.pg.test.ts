/**
 * Retention against everything that is asked of the journal (design.md section 5): after random histories of runs, whatever can be
 * taken away is taken away, and the log's replay and verification, the membership with its bytes, explanations and the next diff
 * are what they were before.
 */

import fc from 'fast-check';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { sha256FromHex } from '../../src/domain/ids.ts';
import { pruneClosed, sweepStep } from '../../src/journal/compaction.ts';
import { explainMember } from '../../src/journal/explain.ts';
import { readHeld } from '../../src/journal/held-members.ts';
import { logHead } from '../../src/journal/log.ts';
import { memberOf } from '../../src/journal/membership.ts';
import { consistently } from '../../src/journal/pool.ts';
import { listRejections } from '../../src/journal/rejections.ts';
import { abandonedRuns, adoptAbandoned, pruneGenerations } from '../../src/journal/retention.ts';
import { countRun } from '../../src/journal/run-record.ts';
import { beginAttempt, closeRun, releaseRun } from '../../src/journal/runs.ts';
import { verifyLog } from '../../src/journal/verify-log.ts';
import { compactTo } from '../support/compact.ts';
import { createTestJournal, type TestJournal } from '../support/journal.ts';
import { holderNamed, identityHash, rowsOf, ScriptedRun } from '../support/journal-run.ts';
import { ReplayedIndex } from '../support/log-replay.ts';
import { promoted } from '../support/replaced-run.ts';

const IDS = ['a', 'b', 'c', 'd', 'e', 'f', 'g', 'h'];
const DAY_MS = 86_400_000;

let journal: TestJournal;

beforeAll(async () => {
  journal = await createTestJournal();
});
afterAll(() => journal.close());

const DESIRED = fc.dictionary(fc.constantFrom(...IDS), fc.constantFrom('1', '2'), { maxKeys: IDS.length });
const STEP = fc.oneof(
  { weight: 5, arbitrary: fc.record({ kind: fc.constant('whole' as const), desired: DESIRED }) },
  {
    weight: 3,
    arbitrary: fc.record({
      // Given up after so many batches, or let go for ever.
      kind: fc.constantFrom('aborted' as const, 'abandoned' as const),
      desired: DESIRED,
      batches: fc.nat({ max: 3 }),
      rejected: fc.subarray(IDS, { maxLength: 2 }),
    }),
  },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant('replaced' as const), desired: DESIRED }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('compacted' as const), but: fc.nat({ max: 4 }) }) },
);
type Step = typeof STEP extends fc.Arbitrary<infer T> ? T : never;

/** Most are compacted before they are pruned. */
const HISTORY = fc
  .tuple(
    fc.array(STEP, { minLength: 3, maxLength: 7 }),
    fc.option(fc.nat({ max: 4 }), { nil: null, freq: 4 }),
  )
  .map(([steps, but]): readonly Step[] => (but === null ? steps : [...steps, { kind: 'compacted', but }]));

interface Names {
  readonly diffed: string;
  readonly replaced: string;
}

async function play(step: Step, { diffed, replaced }: Names): Promise<void> {
  if (step.kind === 'compacted') {
    const { position, earliest } = await logHead(journal.runtime);
    const boundary = position - BigInt(step.but);
    if (boundary >= earliest) await compactTo(journal.runtime, Number(boundary));
    return;
  }
  if (step.kind === 'replaced') {
    const more = { mirror: replaced, strategy: 'native-replace', atFinish: true } as const;
    const run = await ScriptedRun.open(journal.runtime, more);
    await run.upToAdditions(rowsOf(step.desired));
    await run.deliver('upsert', { size: 3 });
    await run.beginRemovals();
    await run.beginFinish();
    await run.step('finish');
    return promoted(journal.runtime, run);
  }
  await closeAbandoned(0n);
  const run = await ScriptedRun.open(journal.runtime, { mirror: diffed });
  await run.upToAdditions(rowsOf(step.desired));
  if (step.kind === 'whole') return run.complete(3);
  const reject = new Set(step.rejected);
  await run.deliver('upsert', { size: 2, count: step.batches, reject });
  if (step.kind === 'aborted') await closeRun(journal.runtime, run.attempt, 'aborted', null);
  else await releaseRun(journal.runtime, run.attempt, 'failed', null);
}

async function age(): Promise<void> {
  await journal.admin.query(`begin; set local session_replication_role = replica;
    update retl.run set opened_at = opened_at - interval '2 days', sealed_at = sealed_at - interval '2 days',
      closed_at = closed_at - interval '2 days';
    update retl.attempt set started_at = started_at - interval '2 days'; commit`);
}

async function closeAbandoned(after: bigint): Promise<void> {
  await age();
  const me = holderNamed('maintenance');
  for (const { run } of await abandonedRuns(journal.runtime, DAY_MS, after, 100)) {
    expect(await adoptAbandoned(journal.runtime, run, DAY_MS, null, me)).toBe(true);
    await closeRun(
      journal.runtime,
      await beginAttempt(journal.runtime, run, me, 'close'),
      'expired',
      'abandoned',
    );
  }
}

/** All that may go, in the smallest of steps. */
async function pruneEverything(): Promise<void> {
  await closeAbandoned(0n);
  while ((await pruneGenerations(journal.runtime, 1)) > 0);
  while ((await pruneClosed(journal.runtime, DAY_MS, 2)).more);
  while ((await sweepStep(journal.runtime, 3, 0)).kind !== 'idle');
  expect(await pruneGenerations(journal.runtime, 100)).toBe(0);
}

/** Everything that is asked of a journal and that no retention may change. */
async function facts(mirrors: readonly string[]) {
  const targets = await journal.admin.query<{ target_id: bigint; name: string }>(
    'select target_id, name from retl.target join retl.mirror using (mirror_id) where name = any($1) order by 1',
    [mirrors],
  );
  const told = [];
  for (const { target_id, name } of targets.rows) {
    const target = BigInt(target_id) as Parameters<typeof memberOf>[1];
    const held = new Map<string, string>();
    await consistently(journal.runtime, (db) =>
      readHeld(db, target, {
        hold: (identity, payload) => held.set(identity, payload),
        release: (identity) => held.delete(identity),
      }),
    );
    for (const id of IDS) {
      const hash = sha256FromHex(identityHash(id).toString('hex'));
      const explained = await explainMember(journal.runtime, target, hash, {
        limit: 50,
        after: null,
        values: false,
      });
      told.push({ id, member: await memberOf(journal.runtime, target, hash), held: explained.held });
    }
    const asked = { mirror: name, run: null, before: null, limit: 100, values: true };
    told.push(
      [...held].sort(),
      (await listRejections(journal.runtime, asked)).rejections.map(({ since: _, ...r }) => r),
    );
  }
  const replayed = (await ReplayedIndex.replay(journal.runtime, 50)).dump();
  return {
    told,
    replayed,
    head: await logHead(journal.runtime),
    verdict: await verifyLog(journal.runtime, { effects: true }),
  };
}

test('whatever a history has left, pruning changes no membership, log, explanation or next diff', {
  timeout: 240_000,
}, async () => {
  let n = 0;
  await fc.assert(
    fc.asyncProperty(HISTORY, DESIRED, async (steps, desired) => {
      n += 1;
      const names: Names = { diffed: `diffed-${n}`, replaced: `replaced-${n}` };
      for (const step of steps) await play(step, names);
      const before = await facts(Object.values(names));
      expect(before.verdict.kind).toBe('intact');
      await pruneEverything();
      expect(await facts(Object.values(names))).toEqual(before);

      const next = await ScriptedRun.open(journal.runtime, { mirror: names.diffed });
      const held = new Map<string, string>();
      const { target } = await next.record();
      for (const id of IDS) {
        const is = await memberOf(journal.runtime, target, sha256FromHex(identityHash(id).toString('hex')));
        if (is.kind === 'held') held.set(id, is.payload);
      }
      await next.upToAdditions(rowsOf(desired));
      const wanted = Object.entries(desired);
      const unchanged = wanted.filter(([id, v]) => held.get(id) === `{"id":"${id}","v":"${v}"}`).length;
      expect(await countRun(journal.runtime, next.run)).toMatchObject({
        toAdd: wanted.filter(([id]) => !held.has(id)).length,
        unchanged,
        toRemove: [...held.keys()].filter((id) => desired[id] === undefined).length,
      });
      await next.complete(3);
      expect((await verifyLog(journal.runtime, { effects: true })).kind).toBe('intact');
    }),
    { numRuns: 7 },
  );
  expect((await logHead(journal.runtime)).earliest).toBeGreaterThan(1n);
});
