/** Rule 5 in whole runs: what becomes of a run, and of the others, when the destination rejects members. */

import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { retl } from '../cli/support.ts';
import { System } from '../support/system.ts';
import { HttpScene, type HttpSceneOptions } from '../support/system-destinations.ts';
import { JobsScene } from '../support/system-jobs.ts';

let system: System;
beforeAll(async () => {
  system = await System.start();
  await system.startWorker();
});
afterAll(() => system.stop());

const as = (...args: readonly string[]) => retl(args, { cwd: system.project.folder, env: system.env });
const CONTINUE = { on_rejection: 'continue' };
const tolerate = (max: number | string) => ({ on_rejection: { tolerate: { max } } });
/** A refusal that may be for one member, and says that nothing was applied. */
const SPLIT = { split: [400, 409] };

function scened(name: string, mirror: object, options: HttpSceneOptions = {}): Promise<HttpScene> {
  return HttpScene.create(system, name, { ...options, mirror: { ...mirror, ...options.mirror } });
}

async function exceptions(scene: HttpScene): Promise<number> {
  const [row] = await system.rows<{ n: number }>(
    `select count(*)::int as n from retl.exception x join retl.run r using (run_id) join retl.mirror m using (mirror_id)
     where m.name = $1`,
    [scene.mirror],
  );
  return row?.n ?? -1;
}

/** Members in each request of a method, in the order of arrival. */
function sizes(scene: HttpScene, method: string): readonly number[] {
  return scene.writes.filter((w) => w.method === method).map((w) => JSON.parse(w.body).length);
}

describe.concurrent('continue', () => {
  test('partial-as-all: everything else is delivered, then it holds: no removal, no finish, not green', async () => {
    const scene = await scened('goes-on', CONTINUE, { rows: 12 });
    await scene.completed();
    await scene.exec(`update $table set plan = 'gold'; delete from $table where id = 'm012'`);
    scene.audience.poison = { ids: new Set(['m002', 'm004']) };
    expect(await scene.run()).toMatchObject({
      kind: 'failed',
      type: 'rejected',
      message: expect.stringContaining('2 members'),
    });
    expect((await scene.runs()).at(-1)).toMatchObject({ closing: 'rejected', phase: 'additions' });
    expect(await scene.batches('remove')).toEqual([]);
    expect(scene.audience.state.members.get('m011')).toEqual({ id: 'm011', plan: 'gold' });
    // failed-row-deleted: both are held as they were. failed-forgotten: they alone are sent again, once a run.
    expect(scene.audience.state.members.get('m002')).toEqual({ id: 'm002', plan: 'vip' });
    const before = scene.writes.length;
    expect(await scene.run()).toMatchObject({ kind: 'failed', type: 'rejected' });
    expect(scene.writes.slice(before).map((w) => JSON.parse(w.body))).toMatchObject([
      [{ id: 'm002' }, { id: 'm004' }],
    ]);
    scene.audience.poison = { ids: new Set() };
    expect((await scene.completed()).counts).toMatchObject({ changed: 2, removed: 1, rejected: 0 });
    expect(scene.audience.state.members).toEqual(await scene.wanted());
  });

  test('whole-batch-reject: a 400 that names nobody is divided until the offender alone is left, and sent once each', async () => {
    const scene = await scened('divided', CONTINUE, { rows: 10, destination: SPLIT });
    scene.audience.poison = { ids: new Set(['m003']), status: 400 };
    expect(await scene.run()).toMatchObject({
      kind: 'failed',
      type: 'rejected',
      message: expect.stringContaining('1 member'),
    });
    expect(scene.audience.held).toHaveLength(9);
    expect(scene.audience.state.effects).toHaveLength(9);
    // Five are refused and go in halves, three and two; the three go again, as two and the offender.
    expect([...sizes(scene, 'POST')].sort()).toEqual([1, 2, 2, 3, 5, 5]);
    const rejected = await system.rows(
      'select code from retl.rejection join retl.run r using (run_id) join retl.mirror m using (mirror_id) where m.name = $1',
      [scene.mirror],
    );
    expect(rejected).toEqual([{ code: 'http-400' }]);
  });

  test('whole-batch-reject: a refusal that does not say that nothing was applied is never divided', async () => {
    const scene = await scened('undivided', CONTINUE, { rows: 5, destination: { refused: [400] } });
    scene.audience.poison = { ids: new Set(['m003']), status: 400 };
    expect(await scene.run()).toMatchObject({ kind: 'failed', type: 'rejected' });
    expect(scene.writes).toHaveLength(1);
    expect(scene.audience.held).toEqual([]);
  });

  test('cannot-remove: a removal that is refused keeps the member tracked; there is no finish, and it is tried again', async () => {
    const scene = await scened('size-too-low', CONTINUE, {
      rows: 8,
      destination: { ...SPLIT, finish: { method: 'POST', path: '/finish', body: { json: { members: [] } } } },
    });
    await scene.completed();
    await scene.exec(`delete from $table where id in ('m001', 'm002')`);
    scene.audience.poison = { ids: new Set(['m001']), status: 400 };
    expect(await scene.run()).toMatchObject({ kind: 'failed', type: 'rejected' });
    expect(scene.audience.held).not.toContain('m002');
    expect(await scene.batches('finish')).toHaveLength(1);
    scene.audience.poison = { ids: new Set() };
    expect((await scene.completed()).counts).toMatchObject({ removed: 1 });
    expect(scene.audience.state.members).toEqual(await scene.wanted());
  });
});

test('evidence-rolled-back: what was rejected stays known though a later request is lost and the workflow ended', async () => {
  const scene = await scened('evidence', CONTINUE, { rows: 10 });
  scene.audience.fault({ kind: 'rows', reject: [0, 1] });
  scene.audience.fault({ kind: 'reset', applied: true });
  const handle = await scene.start();
  const { waiting } = await scene.untilWaiting(handle, 'blocked');
  await handle.terminate();
  expect((await as('rejections', 'evidence')).stdout.match(/row-rejected/g)).toHaveLength(2);
  const batch = String(waiting?.batch);
  const word = await as('resolve', 'evidence', batch, '--accepted', '--because', 'read it back', '--yes');
  expect(word.code).toBe(0);
  // Taken over, it ends as it would have: everything else is delivered, and two members are not.
  expect(await scene.run()).toMatchObject({ kind: 'failed', message: expect.stringContaining('2 members') });
  expect((await scene.completed()).counts).toMatchObject({ added: 2, unchanged: 8 });
  expect(sizes(scene, 'POST')).toEqual([5, 5, 2]);
  expect(scene.audience.state.members).toEqual(await scene.wanted());
});

describe.concurrent('tolerate', () => {
  test('poison-row: within the limit the run completes and says who was rejected; one try a run', async () => {
    const scene = await scened('tolerant', tolerate(1), { rows: 8 });
    scene.audience.poison = { ids: new Set(['m007']) };
    const first = await scene.completed();
    expect(first.counts).toMatchObject({ added: 7, rejected: 1 });
    await scene.exec(`delete from $table where id = 'm001'`);
    const second = await scene.completed();
    expect(second.counts).toMatchObject({ toAdd: 1, added: 0, removed: 1, rejected: 1 });
    expect(sizes(scene, 'POST')).toEqual([5, 3, 1]);
    expect(await exceptions(scene)).toBe(2);
    const listed = await as('rejections', 'tolerant');
    expect(listed.stdout).toContain(`sent again in run ${second.runId}, and rejected again`);
    expect(listed.stdout.match(/row-rejected, tolerated/g)).toHaveLength(2);
    expect((await as('explain', 'tolerant', 'm007')).stdout).toContain('tolerated, and tried again');
    expect((await as('runs', 'tolerant')).stdout).toContain('1 rejection tolerated');
    expect((await as('status', 'tolerant')).stdout).toContain('1 member not as the source has it');
    scene.audience.poison = { ids: new Set() };
    expect((await scene.completed()).counts).toMatchObject({ added: 1, rejected: 0 });
    expect(scene.audience.state.members).toEqual(await scene.wanted());
    expect((await as('status', 'tolerant')).stdout).not.toContain('rejected');
  });

  test('ambiguous-match: a row that matches several records is rejected, and the rest proceed, removals too', async () => {
    const scene = await scened('ambiguous', tolerate('10%'), { rows: 10, destination: SPLIT });
    await scene.completed();
    await scene.exec(`update $table set plan = 'gold'; delete from $table where id = 'm010'`);
    scene.audience.poison = { ids: new Set(['m003']), status: 409 };
    const { counts } = await scene.completed();
    expect(counts).toMatchObject({ changed: 8, rejected: 1, removed: 1 });
    // failed-row-deleted: it stays as it was.
    expect(scene.audience.state.members.get('m003')).toEqual({ id: 'm003', plan: 'vip' });
    expect(scene.audience.held).toHaveLength(9);
  });

  test('rule 5: rows of a job that are rejected are tolerated like others, once every job has ended', async () => {
    const scene = await JobsScene.create(system, 'tolerant-jobs', { rows: 10, mirror: tolerate(2) });
    scene.api.ends.push({ reject: [1, 3], shuffle: true });
    expect((await scene.completed()).counts).toMatchObject({ added: 8, rejected: 2 });
    expect(scene.holds).toHaveLength(8);
    expect((await scene.completed()).counts).toMatchObject({ toAdd: 2, added: 2, unchanged: 8, rejected: 0 });
    expect(scene.api.jobs).toHaveLength(3);
  });

  test('rule 1: beyond the limit it holds as with `continue`', async () => {
    const scene = await scened('intolerant', tolerate(1), { rows: 8 });
    await scene.completed();
    await scene.exec(`update $table set plan = 'gold'; delete from $table where id = 'm001'`);
    scene.audience.poison = { ids: new Set(['m003', 'm007']) };
    expect(await scene.run()).toMatchObject({ kind: 'failed', type: 'rejected' });
    expect(scene.audience.held).toContain('m001');
    expect(scene.audience.state.members.get('m008')).toEqual({ id: 'm008', plan: 'gold' });
    expect(await exceptions(scene)).toBe(0);
  });
});

test('members-expire: an unchanged member last accepted 31 days ago is sent again before removals, as its plan says', async () => {
  const scene = await scened('expires', { refresh_after: '30d' }, { rows: 8 });
  await scene.completed();
  // The first of its two requests; no trigger stops a superuser that says so.
  await system.rows(`begin; set local session_replication_role = replica;
    update retl.log_entry set recorded_at = recorded_at - interval '31 days' where first_sequence % 4294967296 = 1
      and mirror_id = (select mirror_id from retl.mirror where name = 'expires'); commit`);
  await scene.exec(`delete from $table where id = 'm001'`);
  const plan = await as('plan', 'expires', '--json');
  expect(JSON.parse(plan.stdout).plans[0].snapshot.counts).toMatchObject({
    unchanged: 7,
    refreshed: 4,
    removed: 1,
  });
  const before = scene.writes.length;
  expect((await scene.completed()).counts).toMatchObject({
    toRefresh: 4,
    refreshed: 4,
    changed: 0,
    unchanged: 7,
    removed: 1,
  });
  expect(scene.writes.slice(before).map(({ method, body }) => [method, JSON.parse(body).length])).toEqual([
    ['POST', 4],
    ['DELETE', 1],
  ]);
  const explained = await retl(['explain', 'expires', 'm002'], {
    cwd: system.project.folder,
    env: system.env,
  });
  expect(explained.stdout).toContain('sent again, unchanged');
  expect((await scene.completed()).counts).toMatchObject({ toRefresh: 0, unchanged: 7 });
  expect(scene.audience.state.members).toEqual(await scene.wanted());
});
