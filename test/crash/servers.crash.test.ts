/** Servers that stop and start while runs are under way, one by one and all at once (design.md section 10). */

import { afterAll, beforeAll, expect, test } from 'vitest';
import { Servers } from '../support/servers.ts';
import { System } from '../support/system.ts';
import { HttpScene } from '../support/system-destinations.ts';
import { completedBy } from '../support/system-scene.ts';
import type { WorkerProcess } from '../support/worker-process.ts';

let servers: Servers;
let system: System;
let worker: WorkerProcess;

beforeAll(async () => {
  servers = await Servers.start();
  system = await System.start(servers.options);
  worker = await system.startWorker();
});
afterAll(async () => {
  await system.stop();
  await servers.stop();
});

/** A mirror whose requests take their time, so that something is always in flight. */
async function slowScene(name: string, idempotent: boolean): Promise<HttpScene> {
  const scene = await HttpScene.create(system, name, { rows: 60, idempotent });
  scene.audience.always({ kind: 'delay', ms: 300 });
  return scene;
}

async function expectExact(scene: HttpScene): Promise<void> {
  expect(scene.audience.state.members).toEqual(await scene.wanted());
  expect(scene.audience.state.effects).toHaveLength(60);
}

test('the journal’s server restarts in mid-run, twice: the run goes on, also where nothing can be sent twice', async () => {
  const scene = await slowScene('journal-restarts', false);
  const handle = await scene.start();
  await scene.untilSeen(3);
  await servers.restartJournal();
  await scene.untilSeen(7);
  await servers.restartJournal();
  await completedBy(handle);
  await expectExact(scene);
  expect(scene.writes).toHaveLength(12);
});

test('the Temporal server restarts in mid-run with the state that it kept: the run goes on', async () => {
  const scene = await slowScene('temporal-restarts', false);
  const handle = await scene.start();
  await scene.untilSeen(3);
  await servers.restartTemporal();
  await completedBy(handle);
  await expectExact(scene);
});

test('a power cut: worker, journal and Temporal die together, and what comes back finishes the run', async () => {
  const scene = await slowScene('power-cut', true);
  const handle = await scene.start();
  await scene.untilSeen(4);
  await worker.kill();
  await Promise.all([servers.restartJournal(), servers.restartTemporal()]);
  worker = await system.startWorker();
  await completedBy(handle);
  await expectExact(scene);
  expect(scene.writes.length).toBeLessThanOrEqual(13);
});
