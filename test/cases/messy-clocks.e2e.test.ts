/** A worker whose clock is a day off waits for what it is asked to wait, and no longer: one clock stamps, and reads what it stamped. */

import { afterAll, beforeAll, expect, test } from 'vitest';
import { System } from '../support/system.ts';
import { HttpScene } from '../support/system-destinations.ts';

/** What a process takes for the time of day, moved by some hours. */
const offBy = (hours: number) => ({
  NODE_OPTIONS: `--import=data:text/javascript,${encodeURIComponent(`const now = Date.now; Date.now = () => now() + ${hours} * 3600000;`)}`,
});

let system: System;
beforeAll(async () => {
  system = await System.start();
});
afterAll(() => system.stop());

test.for([-24, 24])('429 on a worker whose clock is off by %i hours', async (hours) => {
  const worker = await system.startWorker(offBy(hours));
  const scene = await HttpScene.create(system, `clock-${hours > 0 ? 'ahead' : 'behind'}`, { rows: 15 });
  scene.audience.fault({ kind: 'status', status: 429, headers: { 'retry-after': '3' } });
  const began = Date.now();
  await scene.completed();
  expect(Date.now() - began).toBeGreaterThan(2_900);
  expect(scene.writes).toHaveLength(4);
  expect(scene.audience.state.effects).toHaveLength(15);
  await worker.stop();
});
