import { afterAll, beforeAll, expect, test } from 'vitest';
import { System } from '../support/system.ts';
import { HttpScene } from '../support/system-destinations.ts';
import { completedBy, ending } from '../support/system-scene.ts';

let system: System;
beforeAll(async () => {
  system = await System.start();
  await system.startWorker();
});
afterAll(() => system.stop());

test('three runs: what is new, changed and gone, and nothing else', async () => {
  const scene = await HttpScene.create(system, 'three-runs', { rows: 23 });
  expect((await scene.completed()).counts).toMatchObject({ added: 23, changed: 0, removed: 0 });
  expect(scene.audience.state.members).toEqual(await scene.wanted());
  await scene.exec(`delete from $table where id in ('m001', 'm009');
    update $table set plan = 'gold' where id = 'm010'; insert into $table values ('new', null)`);
  const before = scene.writes.length;
  const { counts } = await scene.completed();
  expect(counts).toMatchObject({ added: 1, changed: 1, removed: 2, unchanged: 20, rejected: 0 });
  expect(scene.audience.state.members).toEqual(await scene.wanted());
  expect(scene.writes.length - before).toBe(2);
});

test('a mistake in the file of another mirror stops that mirror alone', async () => {
  const scene = await HttpScene.create(system, 'sound', { rows: 3 });
  await HttpScene.create(system, 'broken', { mirror: { batch: { rows: -1 } } });
  await scene.completed();
  const broken = await system.temporal.client.workflow.start('mirror', {
    workflowId: 'mirror/broken',
    taskQueue: system.temporal.taskQueue,
    args: [{ mirror: 'broken' }],
  });
  expect(await ending(broken)).toMatchObject({
    kind: 'failed',
    type: 'invalid',
    message: expect.stringMatching(/config\.invalid.*mirrors\/broken\.yaml.*batch\.rows/),
  });
});

test('a changed configuration: an open run keeps its own to the end, and the next one begins with the new', async () => {
  const scene = await HttpScene.create(system, 'reconfigured', { rows: 10 });
  scene.audience.fault({ kind: 'status', status: 429, headers: { 'retry-after': '2' } });
  const handle = await scene.start();
  await scene.untilWaiting(handle, 'retry');
  await scene.configure({ mirror: { batch: { rows: 10 } }, query: `select id, 'new' as plan from $table` });
  await completedBy(handle);
  expect(scene.writes.map((write) => JSON.parse(write.body).length)).toEqual([5, 5, 5]);
  expect((await scene.completed()).counts).toMatchObject({ changed: 10 });
  expect(scene.writes).toHaveLength(4);
});
