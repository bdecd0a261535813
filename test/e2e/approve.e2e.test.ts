/** `retl approve` and `retl reject`: a person's answer to a parked run, from the question to what the destination holds. */

import { afterAll, beforeAll, expect, test } from 'vitest';
import { retl } from '../cli/support.ts';
import { System } from '../support/system.ts';
import { HttpScene } from '../support/system-destinations.ts';

let system: System;
beforeAll(async () => {
  system = await System.start();
  await system.startWorker();
});
afterAll(() => system.stop());

const run = (...args: readonly string[]) => retl(args, { cwd: system.project.folder, env: system.env });

/** Ten members are held, and the source has lost all but two. */
async function parkedRun(name: string) {
  const scene = await HttpScene.create(system, name, { rows: 10 });
  expect((await run('run', name)).code).toBe(0);
  await scene.exec(`delete from $table where id > 'm002'`);
  const { code, stdout } = await run('run', name, '--json');
  expect(code).toBe(4);
  const last = JSON.parse(stdout.trim().split('\n').at(-1) ?? '') as { readonly shown: string };
  expect(last).toMatchObject({ event: 'parked', mirror: name, removals: 8, held: 10, exitCode: 4 });
  return { scene, shown: last.shown, handle: system.temporal.client.workflow.getHandle(`mirror/${name}`) };
}

test('approve-guard: a parked run is shown, approved with a reason that is kept, and goes on; nothing else is', async () => {
  const { scene, shown, handle } = await parkedRun('meant');
  const status = await run('status', 'meant');
  expect(status.stdout).toContain('parked (guard)');
  expect(status.stdout).toContain('it would remove 8 of 10 members (80%)');
  expect(status.stdout).toContain(shown);
  expect(JSON.parse((await run('status', '--json')).stdout)).toMatchObject({
    mirrors: [{ mirror: 'meant', asks: { removals: 8, held: 10, shown, verdict: null } }],
  });

  const other = `sha256:${'0'.repeat(64)}`;
  expect(await run('approve', 'meant')).toMatchObject({ code: 2 });
  expect(await run('approve', 'mean*', '--yes')).toMatchObject({ code: 2 });
  const stale = await run('approve', 'meant', '--yes', '--shown', other, '--json');
  expect(JSON.parse(stale.stdout)).toMatchObject({ error: { code: 'stale' } });
  expect(stale.code).toBe(3);
  expect(scene.audience.state.members.size).toBe(10);

  const words = ['approve', 'meant', '--yes', '--shown', shown, '--because', 'spring is over', '--json'];
  const done = await run(...words);
  expect(done.code).toBe(0);
  expect(JSON.parse(done.stdout)).toMatchObject({
    verdict: 'approved',
    via: 'journal',
    mirrors: [{ mirror: 'meant', kind: 'recorded', told: 'told', shown, removals: 8 }],
  });
  expect(await handle.result()).toMatchObject({ outcome: 'completed', counts: { removed: 8 } });
  expect(scene.audience.state.members).toEqual(await scene.wanted());
  expect(
    await system.rows(`select verdict, because, via from retl.approval where because is not null`),
  ).toEqual([{ verdict: 'approved', because: 'spring is over', via: 'cli' }]);
  const again = await run('approve', 'meant', '--yes', '--json');
  expect(JSON.parse(again.stdout)).toMatchObject({ error: { code: 'not-parked' } });
  expect(again.code).toBe(3);
});

test('a rejected run ends and removes nobody; an approved one that was cancelled goes on with the next run', async () => {
  const first = await parkedRun('doubted');
  const rejected = await run('reject', 'doubt*', '--yes', '--because', 'the upstream job had failed');
  expect(rejected.stdout).toContain('doubted: recorded as rejected');
  expect(rejected.code).toBe(0);
  await expect(first.handle.result()).rejects.toThrow();
  expect(first.scene.audience.state.members.size).toBe(10);

  const { scene, handle } = await parkedRun('resumed');
  await run('cancel', 'resumed');
  await handle.result();
  const answered = await run('approve', 'resumed', '--yes');
  expect(answered.stdout).toContain('`retl run resumed` goes on with it');
  expect((await run('run', 'resumed')).code).toBe(0);
  expect(scene.audience.state.members).toEqual(await scene.wanted());
});

test('Control: a paused run is answered and stays paused; nothing is launched until it is resumed', async () => {
  const { scene, handle } = await parkedRun('paused');
  expect((await run('pause', 'paused')).code).toBe(0);
  const done = await run('approve', 'paused', '--yes', '--json');
  expect(JSON.parse(done.stdout)).toMatchObject({ mirrors: [{ kind: 'recorded', told: 'paused' }] });
  expect(await handle.query('progress')).toMatchObject({ paused: true, phase: 'guard' });
  expect(scene.audience.state.members.size).toBe(10);
  expect((await run('resume', 'paused')).code).toBe(0);
  expect(await handle.result()).toMatchObject({ outcome: 'completed', counts: { removed: 8 } });
});

test('a machine that reaches Temporal alone answers through it, but for a reason', async () => {
  const { scene, handle } = await parkedRun('remote');
  const env = { ...system.env, RETL_JOURNAL_URL: 'postgres://nobody@127.0.0.1:1/none' };
  const there = (...args: readonly string[]) => retl(args, { cwd: system.project.folder, env });
  const refused = await there('approve', 'remote', '--yes', '--because', 'canary', '--json');
  expect(JSON.parse(refused.stdout)).toMatchObject({ error: { code: 'because-needs-journal' } });
  const done = await there('approve', 'remote', '--yes', '--json');
  expect(done.stderr).toBe('');
  expect(JSON.parse(done.stdout)).toMatchObject({ verdict: 'approved', via: 'temporal' });
  expect(await handle.result()).toMatchObject({ outcome: 'completed', counts: { removed: 8 } });
  expect(scene.audience.state.members).toEqual(await scene.wanted());
  expect(await there('approve', 'remote', '--yes')).toMatchObject({ code: 3 });
});
