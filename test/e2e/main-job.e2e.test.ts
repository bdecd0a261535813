import { afterAll, beforeAll, expect, test } from 'vitest';
import { System } from '../support/system.ts';
import { HttpScene } from '../support/system-destinations.ts';

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
