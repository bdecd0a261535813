/** A run beyond its limits on real servers (design.md section 4, Guard): it waits through whatever happens meanwhile. */

import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { Parked, PlanRef } from '../../src/domain/messages.ts';
import { decide, type ParkedRun, parkedRun } from '../../src/journal/approvals.ts';
import { listRuns } from '../../src/journal/inspect.ts';
import { System } from '../support/system.ts';
import { HttpScene } from '../support/system-destinations.ts';
import { completedBy, ending } from '../support/system-scene.ts';
import type { WorkerProcess } from '../support/worker-process.ts';

let system: System;
let worker: WorkerProcess;
beforeAll(async () => {
  system = await System.start();
  worker = await system.startWorker();
});
afterAll(() => system.stop());

/** Twelve members are held, and the source has kept `kept` of them. */
async function shrunk(name: string, kept: number, safety: object = {}): Promise<HttpScene> {
  const scene = await HttpScene.create(system, name, {
    rows: 12,
    mirror: { safety: { max_removals: '50%', empty_snapshot: 'hold', ...safety } },
  });
  await scene.completed();
  await keepOnly(scene, kept);
  return scene;
}

async function keepOnly(scene: HttpScene, kept: number): Promise<void> {
  await scene.exec(`delete from $table where id > 'm${String(kept).padStart(3, '0')}'`);
}

/** What the journal says of the mirror's parked run. */
async function question(scene: HttpScene): Promise<ParkedRun> {
  const found = await parkedRun(system.journal, scene.mirror);
  if (found === null) throw new Error('no run is parked');
  return found;
}

/** As the command line answers: a row first, then a signal that makes the run look. */
async function answer(asked: ParkedRun, verdict: 'approved' | 'rejected'): Promise<void> {
  const { run, shown } = asked;
  const decided = await decide(system.journal, {
    run,
    shown,
    verdict,
    by: 'ann',
    because: 'it is meant',
    via: 'cli',
  });
  expect(decided).toEqual({ kind: 'recorded' });
}

async function planOf(scene: HttpScene): Promise<PlanRef> {
  const [row] = await system.rows<{ generation: string; removals: number; digest: string }>(
    `select 'sha256:' || encode(g.digest, 'hex') as generation, r.planned_removed::int as removals,
       'sha256:' || encode(r.removal_digest, 'hex') as digest
     from retl.run r join retl.generation g using (run_id) join retl.mirror m using (mirror_id)
     where m.name = $1 order by r.run_id desc limit 1`,
    [scene.mirror],
  );
  if (row === undefined) throw new Error('nothing is planned');
  return { generation: row.generation, removals: row.removals, removalDigest: row.digest };
}

describe.concurrent('a parked run', () => {
  test('is answered through the journal, and looks when it is told to', async () => {
    const scene = await shrunk('journal-answer', 4);
    const handle = await scene.start();
    const shown = await scene.untilParked(handle);
    const asked = await question(scene);
    expect(asked).toMatchObject({ removals: 8, held: 12, code: 'max-removal-share', verdict: null });
    expect(asked.shown).toBe(shown.shown);
    expect(Math.abs(asked.deadline.getTime() - shown.deadlineMs)).toBeLessThan(10_000);
    const [run] = await listRuns(system.journal, { mirror: scene.mirror, limit: 1 });
    expect(run).toMatchObject({ state: 'open', parked: 'max-removal-share', closedAt: null });
    await answer(asked, 'approved');
    await scene.signal('resume');
    expect((await completedBy(handle)).counts).toMatchObject({ removed: 8, unchanged: 4 });
    expect(scene.audience.held).toHaveLength(4);
  });

  test('is cancelled, parks again under the same deadline, and passes once it was approved meanwhile', async () => {
    const scene = await shrunk('cancelled-parked', 4);
    const first = await scene.start();
    await scene.untilParked(first);
    const before = await question(scene);
    await scene.signal('cancel');
    expect(await ending(first)).toMatchObject({ kind: 'result', result: { outcome: 'cancelled' } });
    const second = await scene.start();
    expect((await scene.untilParked(second)).shown).toBe(before.shown);
    const after = await question(scene);
    expect(after).toMatchObject({ run: before.run, parkedAt: before.parkedAt, deadline: before.deadline });
    await second.cancel();
    expect(await ending(second)).toEqual({ kind: 'cancelled' });
    await answer(after, 'approved');
    await scene.completed();
    expect(scene.audience.held).toHaveLength(4);
  });

  test('is aborted: closed, with nobody removed, and the next reads the source anew', async () => {
    const scene = await shrunk('aborted-parked', 4);
    const handle = await scene.start();
    const asked = await scene.untilParked(handle);
    await scene.signal('abort');
    expect(await ending(handle)).toMatchObject({ kind: 'result', result: { outcome: 'aborted' } });
    expect(await question(scene).catch(() => null)).toBeNull();
    await keepOnly(scene, 3);
    const next = await scene.start();
    const anew = await scene.untilParked(next);
    expect(anew).toMatchObject({ removals: 9 });
    expect(anew.shown).not.toBe(asked.shown);
    await scene.answer(next, 'approve', anew);
    await completedBy(next);
  });

  test('ends at its deadline with nobody removed, and its snapshot is not taken up', async () => {
    const scene = await shrunk('expired', 4, { approval_deadline: '2s' });
    expect(await scene.run()).toMatchObject({
      kind: 'failed',
      type: 'guard-held',
      message: expect.stringContaining('run.guard-expired'),
    });
    expect(scene.audience.held).toHaveLength(12);
    expect((await scene.runs()).at(-1)).toMatchObject({ closing: 'guard-expired' });
    await scene.exec(
      `insert into $table select 'm' || lpad(n::text, 3, '0'), 'vip' from generate_series(5, 12) n`,
    );
    expect((await scene.completed()).counts).toMatchObject({ unchanged: 12, removed: 0 });
  });

  test('rejected while nobody had it: the next run closes it so, and reads anew', async () => {
    const scene = await shrunk('rejected-unheld', 4);
    const handle = await scene.start();
    await scene.untilParked(handle);
    await scene.signal('cancel');
    await ending(handle);
    await answer(await question(scene), 'rejected');
    await scene.exec(
      `insert into $table select 'm' || lpad(n::text, 3, '0'), 'vip' from generate_series(5, 12) n`,
    );
    expect((await scene.completed()).counts).toMatchObject({ unchanged: 12, removed: 0 });
    expect((await scene.runs()).map((run) => run.closing)).toEqual([
      'completed',
      'guard-rejected',
      'completed',
    ]);
  });
});

describe.concurrent('what is said beforehand', () => {
  test('so many removals are approved, over both runs of an execution that resumes one', async () => {
    const scene = await shrunk('approve-up-to', 4);
    const first = await scene.start();
    await scene.untilParked(first);
    await scene.signal('cancel');
    await ending(first);
    // The fresh run, too, would remove more than half: 3 of 4.
    await keepOnly(scene, 1);
    const handle = await scene.start(undefined, { approveUpTo: 10 });
    const asked = await scene.untilParked(handle);
    expect(asked).toMatchObject({ removals: 3, held: 4 });
    expect(scene.audience.held).toHaveLength(4);
    await scene.answer(handle, 'reject', asked);
    await ending(handle);
  });

  test('a saved plan is carried out as it was shown, or not at all', async () => {
    const scene = await shrunk('saved-plan', 4);
    const looked = await scene.start();
    await scene.untilParked(looked);
    const plan = await planOf(scene);
    await scene.signal('cancel');
    await ending(looked);
    const sent = scene.writes.length;
    await scene.exec(`insert into $table values ('new', 'vip')`);
    expect(await ending(await scene.start(undefined, { plan }))).toMatchObject({
      kind: 'failed',
      type: 'refused',
      message: expect.stringContaining('run.plan-stale'),
    });
    expect(scene.writes).toHaveLength(sent);
    expect((await scene.runs()).map((run) => run.closing)).toEqual(['completed', 'discarded', 'discarded']);
    await scene.exec(`delete from $table where id = 'new'`);
    const done = await completedBy(await scene.start(undefined, { plan }));
    expect(done.counts).toMatchObject({ added: 0, removed: 8 });
    expect(await system.rows(`select via from retl.approval where run_id = $1`, [done.runId])).toEqual([
      { via: 'plan' },
    ]);
  });
});

test('a worker that is killed meanwhile changes nothing: the next one hears the answer', async () => {
  const scene = await shrunk('killed-parked', 4);
  const handle = await scene.start();
  const asked: Parked = await scene.untilParked(handle);
  await worker.kill();
  worker = await system.startWorker();
  expect(await scene.untilParked(handle)).toEqual(asked);
  await scene.answer(handle, 'approve', asked);
  expect((await completedBy(handle)).counts).toMatchObject({ removed: 8 });
});
