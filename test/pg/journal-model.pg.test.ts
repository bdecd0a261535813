/**
 * Membership against a model: random histories of runs, with rejections, aborts between batches, and folds and compactions at
 * random times.
 * The model is a map of what was accepted; whatever the journal keeps where, it must say the same (design.md section 5).
 */

import fc from 'fast-check';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { logPosition, sha256FromHex } from '../../src/domain/ids.ts';
import { beginCompaction, compactStep, sweepStep } from '../../src/journal/compaction.ts';
import { logHead, readEffects, readEntries } from '../../src/journal/log.ts';
import { memberOf } from '../../src/journal/membership.ts';
import { countRun } from '../../src/journal/run-record.ts';
import { closeRun, fold, promote, prune } from '../../src/journal/runs.ts';
import { verifyLog } from '../../src/journal/verify-log.ts';
import { createTestJournal, type TestJournal } from '../support/journal.ts';
import {
  type Action,
  identityHash,
  identityOf,
  type Prepared,
  rowsOf,
  ScriptedRun,
  upsertOf,
} from '../support/journal-run.ts';
import { ReplayedIndex } from '../support/log-replay.ts';

let journal: TestJournal;

beforeAll(async () => {
  journal = await createTestJournal();
});
afterAll(() => journal.close());

const IDS = ['a', 'b', 'c', 'd', 'e', 'f', 'g', 'h'];

/** What one run wants, how it is cut, what is refused, where it is given up, and how far it is folded meanwhile. */
const RUN = fc.record({
  desired: fc.dictionary(fc.constantFrom(...IDS), fc.constantFrom('1', '2', '3'), { maxKeys: IDS.length }),
  /** Of the batches that are in flight together; they are answered in order, or the last one first. */
  sizes: fc.array(fc.integer({ min: 1, max: 3 }), { minLength: 1, maxLength: 4 }),
  lastFirst: fc.boolean(),
  rejected: fc.oneof(
    { weight: 3, arbitrary: fc.constant<string[]>([]) },
    { weight: 1, arbitrary: fc.subarray(IDS) },
  ),
  abortAfter: fc.option(fc.nat({ max: 6 }), { nil: null, freq: 2 }),
  foldAfter: fc.option(fc.nat({ max: 6 }), { nil: null, freq: 2 }),
  foldBatches: fc.integer({ min: 1, max: 4 }),
  /** Compacts the log afterwards, but for so many entries. */
  compactBut: fc.option(fc.nat({ max: 4 }), { nil: null, freq: 2 }),
});
type RunPlan = typeof RUN extends fc.Arbitrary<infer T> ? T : never;

interface Held {
  readonly payload: string;
  readonly run: bigint;
  readonly position: bigint;
}

/** What replaying the log gives, never begun anew. */
const follower = new ReplayedIndex();

async function compact(but: number, rows: number): Promise<void> {
  const { position } = await logHead(journal.runtime);
  const boundary = position - BigInt(but);
  if (boundary > 0n) await beginCompaction(journal.runtime, logPosition(boundary));
  while ((await compactStep(journal.runtime, rows * 20)).kind !== 'idle');
  for (;;) {
    const step = await sweepStep(journal.runtime, rows * 3, 0);
    if (step.kind === 'idle') return;
  }
}

class History {
  readonly held = new Map<string, Held>();
  batches = 0;
  constructor(readonly mirror: string) {}

  async play(plan: RunPlan): Promise<void> {
    const run = await ScriptedRun.open(journal.runtime, { mirror: this.mirror });
    await run.upToAdditions(rowsOf(plan.desired));
    await this.#checkPlan(run, plan);
    this.batches = 0;
    const whole =
      (await this.#deliver(run, plan, 'upsert')) &&
      (await run.beginRemovals().then(() => this.#checkRemovals(run, plan))) &&
      (await this.#deliver(run, plan, 'remove'));
    if (whole) {
      await run.beginFinish();
      await run.step('finish');
      await run.foldAll(plan.foldBatches);
      await promote(journal.runtime, run.attempt);
      await prune(journal.runtime, run.run, 10);
    } else {
      await closeRun(journal.runtime, run.attempt, 'aborted', null);
    }
    await this.check(run);
    await follower.follow(journal.runtime, 100);
    if (plan.compactBut === null) return;
    await compact(plan.compactBut, plan.foldBatches);
    await this.check(run);
  }

  /** Plays the batches of one action; false where the run ends here. */
  async #deliver(run: ScriptedRun, plan: RunPlan, action: Action): Promise<boolean> {
    for (;;) {
      if (plan.abortAfter !== null && this.batches >= plan.abortAfter) return false;
      const batches = await this.#prepare(run, action, plan.sizes);
      if (batches.length === 0) return true;
      if (plan.lastFirst) batches.reverse();
      const rejected = new Set(plan.rejected);
      for (const batch of batches) await this.#settle(run, action, plan, batch, rejected);
      if (batches.some(({ members }) => members.some((id) => rejected.has(id)))) return false;
    }
  }

  async #prepare(run: ScriptedRun, action: Action, sizes: readonly number[]): Promise<Prepared[]> {
    const batches: Prepared[] = [];
    for (const size of sizes) batches.push(...(await run.prepare(action, size, 1)));
    for (const { id } of batches) await run.sending(id);
    return batches;
  }

  async #settle(
    run: ScriptedRun,
    action: Action,
    plan: RunPlan,
    batch: Prepared,
    rejected: ReadonlySet<string>,
  ): Promise<void> {
    await run.settle(batch, rejected);
    this.batches += 1;
    await this.#accept(
      run,
      action,
      plan,
      batch.members.filter((id) => !rejected.has(id)),
    );
    if (plan.foldAfter === this.batches) await fold(journal.runtime, run.attempt, plan.foldBatches);
  }

  async #accept(run: ScriptedRun, action: Action, plan: RunPlan, accepted: readonly string[]): Promise<void> {
    const [entry] = (await readEntries(journal.runtime, logPosition(0), 100_000)).slice(-1);
    for (const id of accepted) {
      if (action === 'remove') this.held.delete(id);
      else
        this.held.set(id, { payload: plan.desired[id] ?? '', run: run.run, position: entry?.position ?? 0n });
    }
    if (accepted.length > 0 && entry !== undefined) {
      const effects = await readEffects(journal.runtime, entry);
      expect(effects.map((e) => e.identity).sort()).toEqual(accepted.map(identityOf).sort());
    }
  }

  async #checkPlan(run: ScriptedRun, plan: RunPlan): Promise<void> {
    const desired = Object.entries(plan.desired);
    const toAdd = desired.filter(([id]) => !this.held.has(id)).length;
    const unchanged = desired.filter(([id, payload]) => this.held.get(id)?.payload === payload).length;
    const toRemove = [...this.held.keys()].filter((id) => plan.desired[id] === undefined).length;
    expect(await countRun(journal.runtime, run.run)).toMatchObject({
      toAdd,
      toChange: desired.length - toAdd - unchanged,
      unchanged,
      toRemove,
    });
  }

  async #checkRemovals(run: ScriptedRun, plan: RunPlan): Promise<boolean> {
    const { rows } = await journal.runtime.query<{ identity: string; remove: string }>(
      `select identity, remove from retl.operation_${run.run} where change = 'r'`,
    );
    const gone = [...this.held.keys()].filter((id) => plan.desired[id] === undefined);
    expect(rows.map((row) => row.identity).sort()).toEqual(gone.map(identityOf).sort());
    expect(rows.every((row) => row.remove === row.identity)).toBe(true);
    return true;
  }

  async check(run: ScriptedRun): Promise<void> {
    const { target } = await run.record();
    for (const id of IDS) {
      const is = await memberOf(journal.runtime, target, sha256FromHex(identityHash(id).toString('hex')));
      const want = this.held.get(id);
      if (want === undefined) expect(is).toEqual({ kind: 'absent' });
      else {
        const { run: by, position } = want;
        const payload = upsertOf({ id, payload: want.payload });
        expect(is).toMatchObject({ kind: 'held', payload, run: by, position, removal: identityOf(id) });
      }
    }
    const { rows } = await journal.admin.query(
      `select t.held = (select count(*) from retl.membership_${target}) as counted from retl.target t
       where target_id = $1`,
      [target],
    );
    expect(rows).toEqual([{ counted: true }]);
  }
}

test('rule 6: whatever is rejected, aborted or folded, membership is what was accepted, and the next diff starts there', {
  timeout: 240_000,
}, async () => {
  let n = 0;
  await fc.assert(
    fc.asyncProperty(fc.array(RUN, { minLength: 2, maxLength: 6 }), async (plans) => {
      n += 1;
      const history = new History(`model-${n}`);
      for (const plan of plans) await history.play(plan);
      const replayed = await ReplayedIndex.replay(journal.runtime, 100);
      expect(replayed.dump()).toBe(follower.dump());
    }),
    { numRuns: 25 },
  );
  expect((await verifyLog(journal.runtime, { effects: true })).kind).toBe('intact');
  expect((await logHead(journal.runtime)).earliest).toBeGreaterThan(1n);
});
