/** Days on which the surroundings fail: a crowded journal, rights that are gone, a backup that was restored. */

import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { System } from '../support/system.ts';
import { HttpScene, TableScene } from '../support/system-destinations.ts';
import { completedBy, ending } from '../support/system-scene.ts';

let system: System;
beforeAll(async () => {
  system = await System.start();
  await system.startWorker();
});
afterAll(() => system.stop());

function known<T>(list: readonly T[], at: number): T {
  const item = list[at];
  if (item === undefined) throw new Error('there is no such handle');
  return item;
}

test('fifteen slow reads at once hold up nobody else', async () => {
  const slow = await Promise.all(
    Array.from({ length: 15 }, (_, n) =>
      HttpScene.create(system, `slow-${n}`, {
        query:
          'select id, plan from $table, lateral (select pg_sleep(case when id is null then 0 else 1.5 end)) w',
      }),
    ),
  );
  const handles = await Promise.all(slow.map((scene) => scene.start()));
  await Promise.all(
    slow.map((scene, n) => scene.until(known(handles, n), ({ phase }) => phase === 'extract')),
  );
  const quick = await HttpScene.create(system, 'quick');
  await quick.completed();
  expect(slow.flatMap(({ writes }) => writes)).toEqual([]);
  for (const handle of handles) expect((await completedBy(handle)).counts).toMatchObject({ added: 10 });
}, 180_000);

test('a journal without a free connection is waited for', async () => {
  const scene = await HttpScene.create(system, 'no-connections', { rows: 20 });
  await system.journal.query('alter role system_worker connection limit 1');
  await system.journal.query(
    `select pg_terminate_backend(pid) from pg_stat_activity where usename = 'system_worker'`,
  );
  const handle = await scene.start();
  await sleep(6_000);
  expect(scene.writes.length).toBeLessThan(5);
  await system.journal.query('alter role system_worker connection limit -1');
  await completedBy(handle);
  expect(scene.audience.state.effects).toHaveLength(20);
});

test('a worker whose rights in the journal are gone says so, and goes on when they are back', async () => {
  const scene = await HttpScene.create(system, 'no-rights', { rows: 10 });
  await scene.completed();
  await scene.exec(`update $table set plan = 'x'`);
  await system.journal.query('revoke usage on schema retl from retl_runtime');
  const end = await scene.run();
  await system.journal.query('grant usage on schema retl to retl_runtime');
  expect(end).toMatchObject({ kind: 'failed' });
  expect(JSON.stringify(end)).toMatch(/42501/);
  await scene.completed();
});

test('a fence that is ahead of a restored journal: the run says so at once and does not spin', async () => {
  const scene = await TableScene.create(system, 'restored', { rows: 5 });
  await scene.completed();
  await scene.target.query('update retl_fence set epoch = epoch + 1000');
  await scene.exec(`update $table set plan = 'new'`);
  const handle = await scene.start();
  const end = await Promise.race([ending(handle), sleep(20_000, null)]);
  expect(end).toMatchObject({
    kind: 'failed',
    message: expect.stringContaining('destination.misconfigured (fenced)'),
  });
  expect(await scene.targetRows('select distinct plan from audience')).toEqual([{ plan: 'vip' }]);
});
