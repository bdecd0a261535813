/** The guard (design.md section 4): what parks a run, what lets it go on, and what is looked at again before it does. */

import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { approvedByInput, decide, parkedRun } from '../../src/journal/approvals.ts';
import { type Beforehand, guard, type Question } from '../../src/journal/runs.ts';
import { GuardScene, HELD, members, question } from '../support/guard-scene.ts';
import { stateOf } from '../support/journal.ts';
import type { ScriptedRun } from '../support/journal-run.ts';

const RULE = 'RM003';

const scene = new GuardScene();
beforeAll(() => scene.open());
afterAll(() => scene.close());

const approve = (run: ScriptedRun, { shown }: Question) =>
  decide(scene.journal.runtime, {
    run: run.run,
    shown,
    verdict: 'approved',
    by: 'ann',
    because: null,
    via: 'cli',
  });
const again = (run: ScriptedRun, said: Beforehand = {}) => guard(scene.journal.runtime, run.attempt, said);
const phaseOf = async (run: ScriptedRun) => (await run.record()).phase;
const answersTo = (run: ScriptedRun) =>
  scene.journal.admin
    .query('select verdict, via, decided_by, removals::int from retl.approval where run_id = $1', [run.run])
    .then(({ rows }) => rows);

describe('a run beyond its limits', () => {
  test('parks, and says the same however often it is asked', async () => {
    const { run, asked } = await scene.parked('abcdef');
    expect(asked).toMatchObject({ code: 'max-removals', removals: 4, held: 10 });
    const before = await parkedRun(scene.journal.runtime, run.request.mirror);
    await run.again();
    const { shown, leftMs } = question(await again(run));
    expect(shown).toBe(asked.shown);
    expect(leftMs).toBeLessThanOrEqual(asked.leftMs);
    const after = await parkedRun(scene.journal.runtime, run.request.mirror);
    expect(after?.parkedAt).toEqual(before?.parkedAt);
    expect(after).toMatchObject({ run: run.run, shown, removals: 4, held: 10, toAdd: 0, verdict: null });
    expect(Number(after?.deadline) - Number(after?.parkedAt)).toBe(86_400_000);
    expect(await phaseOf(run)).toBe('guard');
  });

  test('goes on once it is approved, and is then parked no more', async () => {
    const { run, asked } = await scene.parked('abcdefX');
    expect(await approve(run, asked)).toEqual({ kind: 'recorded' });
    expect(await again(run)).toEqual({ kind: 'passed' });
    expect(await parkedRun(scene.journal.runtime, run.request.mirror)).toBeNull();
    await run.complete(3);
    expect(await phaseOf(run)).toBe('complete');
    expect(await answersTo(run)).toEqual([
      { verdict: 'approved', via: 'cli', decided_by: 'ann', removals: 4 },
    ]);
  });

  test('an approval of one run is none of the next, though it removes the very same', async () => {
    const { run, asked } = await scene.parked('abcdef');
    await approve(run, asked);
    await scene.journal.runtime.query(`select retl.close_run($1, $2, 'aborted', null)`, [
      run.run,
      run.attempt.epoch,
    ]);
    const next = await scene.planned('abcdef', { mirror: run.request.mirror }).catch(() => null);
    expect(next).not.toBeNull();
    if (next !== null) expect(question(await next.plan()).shown).toBe(asked.shown);
  });
});

describe('what was said beforehand', () => {
  test('so many removals are approved as the starter allows, and no more', async () => {
    const few = await scene.planned('abcdef');
    expect(await few.plan({ approveUpTo: 3 })).toMatchObject({ kind: 'held' });
    expect(await again(few, { approveUpTo: 4 })).toEqual({ kind: 'passed' });
    expect(await answersTo(few)).toMatchObject([{ via: 'input', decided_by: 'temporal', removals: 4 }]);
    expect(await approvedByInput(scene.journal.runtime, few.run)).toBe(4);
    const within = await scene.planned('abcdef', { maxRemovals: 4 });
    expect(await within.plan({ approveUpTo: 4 })).toEqual({ kind: 'passed' });
    expect(await answersTo(within)).toEqual([]);
    expect(await approvedByInput(scene.journal.runtime, within.run)).toBe(0);
  });

  test('a saved plan that is the run’s approves it; where none is needed nothing is recorded', async () => {
    const beyond = await scene.parked('abcdef');
    const plan = await scene.planOf(beyond.run);
    expect(await again(beyond.run, { plan })).toEqual({ kind: 'passed' });
    expect(await answersTo(beyond.run)).toMatchObject([{ via: 'plan', removals: 4 }]);
    const within = await scene.planned('abcdef', { maxRemovals: 4 });
    expect(await within.plan({ plan })).toEqual({ kind: 'passed' });
    expect(await answersTo(within)).toEqual([]);
  });

  test('a saved plan that differs in any part is refused, also within the limits, and nothing changes', async () => {
    const { run } = await scene.parked('abcdef');
    const plan = await scene.planOf(run);
    const other = `sha256:${'0'.repeat(64)}`;
    for (const wrong of [{ generation: other }, { removals: 3 }, { removalDigest: other }])
      expect(await again(run, { plan: { ...plan, ...wrong } })).toEqual({ kind: 'stale' });
    expect(await answersTo(run)).toEqual([]);
    expect(await phaseOf(run)).toBe('guard');
    const within = await scene.planned('abcdefghijX', { maxRemovals: 4 });
    expect(await within.plan({ plan })).toEqual({ kind: 'stale' });
    for (const gap of ['null, 4, $3', '$3, null, $3', '$3, 4, null']) {
      const values = [run.run, run.attempt.epoch, Buffer.alloc(32)];
      const call = scene.journal.runtime.query(`select retl.guard($1, $2, null, ${gap})`, values);
      expect(await stateOf(call), gap).toBe(RULE);
    }
  });

  test('neither overturns a rejection', async () => {
    const { run, asked } = await scene.parked('abcdef');
    const plan = await scene.planOf(run);
    await decide(scene.journal.runtime, {
      run: run.run,
      shown: asked.shown,
      verdict: 'rejected',
      by: 'ann',
      because: 'no',
      via: 'cli',
    });
    expect(await again(run, { plan, approveUpTo: 10 })).toEqual({ kind: 'rejected', code: 'max-removals' });
  });
});

describe('what is looked at again', () => {
  /** Additions done, with the approval that it took. */
  async function approved(letters: string, limit = 0): Promise<{ run: ScriptedRun; asked: Question }> {
    const { run, asked } = await scene.parked(letters, { maxRemovals: limit });
    await approve(run, asked);
    expect(await again(run)).toEqual({ kind: 'passed' });
    await run.deliver('upsert');
    return { run, asked };
  }

  test('before the removals: a larger set than was approved parks again, and nobody is removed', async () => {
    const { run, asked } = await approved('abcdef');
    await scene.tamper(run, 'f');
    const anew = question(await run.beginRemovals());
    expect(anew).toMatchObject({ code: 'max-removals', removals: 5 });
    expect(anew.shown).not.toBe(asked.shown);
    expect(anew.leftMs).toBeGreaterThan(86_400_000 - 60_000);
    expect(await phaseOf(run)).toBe('additions');
    expect((await run.record()).removalsEnd).toBeNull();
    // The former answer is to the former question.
    expect(await approve(run, asked)).toEqual({ kind: 'repeated' });
    expect(question(await run.beginRemovals()).shown).toBe(anew.shown);
    expect(await approve(run, anew)).toEqual({ kind: 'recorded' });
    expect(await run.beginRemovals()).toBeNull();
    expect((await run.deliver('remove')).flatMap((b) => b.members).sort()).toEqual([...'fghij']);
    expect(await run.beginFinish()).toBeNull();
  });

  test('before the removals: a set within the limits that grows beyond them parks, too', async () => {
    const run = await scene.planned('abcdef', { maxRemovals: 4 });
    expect(await run.plan()).toEqual({ kind: 'passed' });
    await scene.tamper(run, 'f');
    expect(question(await run.beginRemovals())).toMatchObject({ code: 'max-removals', removals: 5 });
  });

  test('before the removals: a set that is still beyond the limits is no part of what was approved', async () => {
    const { run, asked } = await approved('abcdef', 2);
    const { target } = await run.record();
    await scene.journal.admin.query(
      `delete from retl.membership_${target} where identity_hash = sha256('{"id":"j"}')`,
    );
    expect(question(await run.beginRemovals())).toMatchObject({ removals: 3, held: asked.held });
  });

  test('before the removals: one that is other and within the limits stops the run, with nobody removed', async () => {
    const { run } = await approved('abcdef', 3);
    const { target } = await run.record();
    await scene.journal.admin.query(
      `delete from retl.membership_${target} where identity_hash = sha256('{"id":"j"}')`,
    );
    expect(await stateOf(run.beginRemovals())).toBe(RULE);
    expect(await phaseOf(run)).toBe('additions');
  });

  test('before the finish: an approval that is not there any more is asked for again', async () => {
    const { run, asked } = await approved('abcdef');
    await run.beginRemovals();
    await run.deliver('remove');
    await scene.journal.admin.query('alter table retl.approval disable trigger append_only');
    await scene.journal.admin.query('delete from retl.approval where run_id = $1', [run.run]);
    await scene.journal.admin.query('alter table retl.approval enable trigger append_only');
    const anew = question(await run.beginFinish());
    expect(anew.shown).toBe(asked.shown);
    expect(await phaseOf(run)).toBe('removals');
    expect(await stateOf(run.prepareStep('finish'))).toBe(RULE);
    await approve(run, anew);
    expect(await run.beginFinish()).toBeNull();
    expect(await phaseOf(run)).toBe('finish');
  });

  test('before the finish: removals other than the planned ones are past approving', async () => {
    const { run } = await approved('abcdef');
    await run.beginRemovals();
    await run.deliver('remove');
    await scene.journal.admin.query('update retl.run set planned_removed = 3 where run_id = $1', [run.run]);
    expect(await stateOf(run.beginFinish())).toBe(RULE);
  });
});

describe('a native replacement', () => {
  test('is asked about what its finish would drop: held minus desired, an empty snapshot included', async () => {
    expect(question(await (await scene.replacing('abcdef')).plan())).toMatchObject({ removals: 4, held: 10 });
    const empty = await scene.replacing('', { maxRemovals: null, emptySnapshot: 'hold' });
    expect(question(await empty.plan())).toMatchObject({ code: 'empty-snapshot', removals: 10 });
    expect(await (await scene.replacing(HELD)).plan()).toEqual({ kind: 'passed' });
  });

  test('a larger set parks again before its finish', async () => {
    const run = await scene.replacing('abcdef');
    await approve(run, question(await run.plan()));
    await again(run);
    await run.deliver('upsert');
    expect(await run.beginRemovals()).toBeNull();
    await scene.tamper(run, 'f');
    const anew = question(await run.beginFinish());
    expect(anew.removals).toBe(5);
    expect(await phaseOf(run)).toBe('removals');
    expect(await approve(run, anew)).toEqual({ kind: 'recorded' });
    expect(await run.beginFinish()).toBeNull();
  });

  test('one that planned no removal is held to that, too', async () => {
    const run = await scene.replacing(HELD);
    await run.plan();
    await run.deliver('upsert');
    await scene.tamper(run, 'f');
    expect(question(await run.beginRemovals()).removals).toBe(1);
  });
});

test('the first filling of an empty target asks nothing, whatever the limits', async () => {
  const { ScriptedRun } = await import('../support/journal-run.ts');
  const run = await ScriptedRun.open(scene.journal.runtime, {
    mirror: scene.name(),
    maxRemovals: 0,
    maxRemovalShare: 0,
    emptySnapshot: 'hold',
  });
  await run.init();
  await run.load(members('abc'));
  await run.seal();
  expect(await run.plan()).toEqual({ kind: 'passed' });
});
