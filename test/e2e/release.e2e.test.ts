/** `retl release`: a run whose Temporal is gone is let go by a person, and never while Temporal says that it is held. */

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

test('rule 9: refused while the holder is open; without its Temporal it is let go, and the next run takes it over', async () => {
  const scene = await HttpScene.create(system, 'stranded', { rows: 8 });
  scene.audience.fault({ kind: 'reset', applied: true });
  const run = (env: { readonly [name: string]: string }, ...args: readonly string[]) =>
    retl(args, { cwd: system.project.folder, env: { ...system.env, ...env } });
  expect((await run({}, 'run', 'stranded')).code).toBe(6);

  const words = ['release', 'stranded', '--because', 'the cluster was deleted', '--json'];
  const held = await run({}, ...words, '--yes');
  expect(JSON.parse(held.stdout)).toMatchObject({ error: { code: 'holder-open' } });
  expect(held.code).toBe(3);

  const gone = { TEMPORAL_ADDRESS: '127.0.0.1:1' };
  expect(await run(gone, 'release', 'stranded', '--yes')).toMatchObject({ code: 2 });
  expect(await run(gone, ...words)).toMatchObject({ code: 2 });
  const released = await run(gone, ...words, '--yes');
  expect(released.code).toBe(0);
  expect(JSON.parse(released.stdout)).toMatchObject({ mirror: 'stranded', released: true });
  expect((await run({}, 'status', 'stranded')).stdout).toContain('failed, resumable: temporal-lost');
  expect(await run(gone, ...words, '--yes')).toMatchObject({ code: 3 });
  expect(await system.rows('select because from retl.release')).toEqual([
    { because: 'the cluster was deleted' },
  ]);

  await system.temporal.client.workflow.getHandle('mirror/stranded').terminate();
  expect((await run({}, 'run', 'stranded')).code).toBe(6);
  const [holder] = await system.rows(
    'select released, epoch > 0 as held from retl.run where closing is null',
  );
  expect(holder).toEqual({ released: null, held: true });
});
