/** `retl baseline verify` on whole systems: a table is taken over as it stands, and later compared; who may see what. */

import { afterAll, beforeAll, expect, test } from 'vitest';
import { retl, startRetl } from '../cli/support.ts';
import { System } from '../support/system.ts';
import { TableScene } from '../support/system-destinations.ts';

let system: System;
beforeAll(async () => {
  system = await System.start();
  await system.startWorker();
});
afterAll(() => system.stop());

async function verify(mirror: string, ...more: readonly string[]) {
  const args = ['baseline', 'verify', mirror, '--json', ...more];
  const { code, stdout } = await retl(args, { cwd: system.project.folder, env: system.env });
  return { code, told: JSON.parse(stdout) };
}

test('a tracked table is taken over as it lists itself; later it lies, and that is told and not acted upon', async () => {
  const scene = await TableScene.create(system, 'listed', { mirror: { baseline: 'tracked' } });
  await scene.target.query(
    `insert into audience select 'm' || lpad(n::text, 3, '0'), 'vip' from generate_series(1, 8) n; insert into audience values ('left', null)`,
  );
  const adopted = await verify('listed', '--adopt', '--because', 'the old job was stopped', '--yes');
  expect(adopted).toEqual({ code: 0, told: { mirror: 'listed', adopted: 9 } });
  expect((await scene.completed()).counts).toMatchObject({ added: 2, changed: 8, removed: 1 });
  expect(await scene.targetRows()).toEqual(await scene.sourceRows());

  await scene.target.query(
    `delete from audience where id = 'm001'; update audience set plan = 'x' where id = 'm002'`,
  );
  const lies = { held: 10, listed: 9, same: 8, missing: 1, different: 1, unexpected: 0 };
  expect(await verify('listed')).toMatchObject({ code: 10, told: lies });
  // The worker's role counts, and shows nobody's values.
  const shown = await verify('listed', '--identities');
  expect(shown).toMatchObject({ code: 2, told: { error: { code: 'values-not-allowed' } } });
  expect((await scene.completed()).counts).toMatchObject({ added: 0, changed: 0, removed: 0, unchanged: 10 });
}, 180_000);

test('cancel-late: Ctrl-C while the target is read ends it, with nothing changed', async () => {
  const scene = await TableScene.create(system, 'interrupted');
  await scene.completed();
  // The listing waits for whoever holds the table.
  const holder = await scene.target.connect();
  await holder.query('begin; lock table audience in access exclusive mode');
  const running = startRetl(['baseline', 'verify', 'interrupted', '--json'], {
    cwd: system.project.folder,
    env: system.env,
  });
  const waiting = `select count(*)::int as n from pg_locks where not granted and relation = 'audience'::regclass`;
  await expect.poll(async () => (await holder.query(waiting)).rows, { timeout: 40_000 }).toEqual([{ n: 1 }]);
  running.signal('SIGINT');
  const { code, stdout } = await running.ended;
  await holder.query('rollback');
  holder.release();
  expect([code, JSON.parse(stdout)]).toMatchObject([130, { error: { code: 'interrupted' } }]);
  expect((await scene.runs()).length).toBe(1);
}, 120_000);
