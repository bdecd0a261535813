/** Servers that stop and start while runs are under way, one by one and all at once (design.md section 10). */

import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { Connection, Client as TemporalSdkClient } from '@temporalio/client';
import pg from 'pg';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type EmbeddedPostgres, startEmbeddedPostgres } from '../../src/dev/embedded-postgres.ts';
import { startTemporalServer, type TemporalServer } from '../../src/dev/temporal-server.ts';
import { System } from '../support/system.ts';
import { HttpScene } from '../support/system-destinations.ts';
import { completedBy } from '../support/system-scene.ts';
import type { WorkerProcess } from '../support/worker-process.ts';

let folder: string;
let journal: EmbeddedPostgres;
let temporal: TemporalServer;
let connection: Connection;
let system: System;
let worker: WorkerProcess;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'retl-servers-'));
  journal = await startJournal(54_700);
  temporal = await startTemporal(7_700);
  connection = await Connection.connect({ address: temporal.address });
  const admin = new pg.Client({ connectionString: journal.adminUrl });
  await admin.connect();
  await admin.query('create database journal');
  await admin.end();
  const url = new URL(journal.adminUrl);
  url.pathname = '/journal';
  system = await System.start({
    temporal: { client: new TemporalSdkClient({ connection }), address: temporal.address },
    journal: { url: url.href, adminUrl: journal.adminUrl, drop: async () => undefined },
  });
  worker = await system.startWorker();
});
afterAll(async () => {
  await system.stop();
  await connection.close();
  await Promise.all([journal.stop(), temporal.stop()]);
  await rm(folder, { recursive: true, force: true });
});

function startJournal(port: number): Promise<EmbeddedPostgres> {
  return startEmbeddedPostgres({ kind: 'kept', folder: join(folder, 'journal'), port });
}

function startTemporal(grpc: number): Promise<TemporalServer> {
  return startTemporalServer({
    projectFolder: resolve(import.meta.dirname, '..', '..'),
    folder: join(folder, 'temporal'),
    state: 'file',
    ports: { grpc, ui: grpc + 1_000 },
    notice: () => undefined,
  });
}

async function restartJournal(): Promise<void> {
  await journal.stop();
  await sleep(2_000);
  const again = await startJournal(journal.port);
  expect(again.port).toBe(journal.port);
  journal = again;
}

async function restartTemporal(): Promise<void> {
  const grpc = Number(temporal.address.split(':')[1]);
  await temporal.stop();
  await sleep(2_000);
  const again = await startTemporal(grpc);
  expect(again.address).toBe(temporal.address);
  temporal = again;
}

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
  await restartJournal();
  await scene.untilSeen(7);
  await restartJournal();
  await completedBy(handle);
  await expectExact(scene);
  expect(scene.writes).toHaveLength(12);
});

test('the Temporal server restarts in mid-run with the state that it kept: the run goes on', async () => {
  const scene = await slowScene('temporal-restarts', false);
  const handle = await scene.start();
  await scene.untilSeen(3);
  await restartTemporal();
  await completedBy(handle);
  await expectExact(scene);
});

test('a power cut: worker, journal and Temporal die together, and what comes back finishes the run', async () => {
  const scene = await slowScene('power-cut', true);
  const handle = await scene.start();
  await scene.untilSeen(4);
  await worker.kill();
  await Promise.all([restartJournal(), restartTemporal()]);
  worker = await system.startWorker();
  await completedBy(handle);
  await expectExact(scene);
  expect(scene.writes.length).toBeLessThanOrEqual(13);
});
