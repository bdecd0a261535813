/** Mirrors into APIs that answer with jobs, on the whole system: each destination ends up as its query says (rules 1, 3, 5). */

import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { System } from '../support/system.ts';
import { JobsScene } from '../support/system-jobs.ts';
import { SALESFORCE_ENV, SalesforceScene } from '../support/system-salesforce.ts';
import { completedBy, eventually } from '../support/system-scene.ts';
import type { WorkerProcess } from '../support/worker-process.ts';

vi.setConfig({ testTimeout: 180_000 });

let system: System;
let worker: WorkerProcess;

beforeAll(async () => {
  system = await System.start({ env: SALESFORCE_ENV });
  worker = await system.startWorker();
}, 120_000);
afterAll(() => system.stop());

/** How often each member was sent by jobs of this action. */
function sent(scene: JobsScene, action: 'upsert' | 'remove'): readonly number[] {
  const counts = new Map<string, number>();
  for (const job of scene.api.jobs.filter((one) => one.action === action))
    for (const { email_sha256: id } of job.rows) counts.set(String(id), (counts.get(String(id)) ?? 0) + 1);
  return [...counts.values()];
}

/** What the query returns, as the API holds it. */
async function wanted(scene: JobsScene): Promise<ReadonlyMap<string, unknown>> {
  const { rows } = await system.source.query<{ id: string; plan: string }>(
    `select id, plan from ${scene.table}`,
  );
  return new Map(rows.map(({ id, plan }) => [id, { email_sha256: id, plan }]));
}

test('rule 5: jobs of http are polled to their end, a lost one is found, and a killed worker begins none twice', async () => {
  const scene = await JobsScene.create(system, 'jobs', {
    rows: 12,
    destination: { lookup: { by_key: { path: '/keys/{key}' } } },
  });
  scene.api.polls = 2;
  scene.api.writes.push({ answer: 'lost', applied: true });
  const handle = await scene.start();
  await eventually(() => scene.api.jobs.length === 3);
  await worker.kill();
  worker = await system.startWorker();
  await completedBy(handle);
  expect(scene.api.members).toEqual(await wanted(scene));
  expect(scene.api.jobs.length).toBe(3);
  expect(sent(scene, 'upsert')).toEqual(Array.from({ length: 12 }, () => 1));

  await scene.exec(
    `delete from $table where id in ('m001', 'm002'); update $table set plan = 'x' where id = 'm003'`,
  );
  await scene.completed();
  expect(scene.api.members).toEqual(await wanted(scene));
  expect(scene.api.jobs.map(({ action }) => action)).toEqual([
    'upsert',
    'upsert',
    'upsert',
    'upsert',
    'remove',
  ]);
  expect(await scene.held()).toBe(10);
});

test('salesforce ends up with the records of the query, whatever got lost; records of others are left alone', async () => {
  const scene = await SalesforceScene.create(system, 'org');
  const { fake } = scene;
  fake.org.add({ Name: 'somebody else’s' });
  fake.fault('close', 'lost', true);
  fake.fault('failedResults', { status: 500 });
  fake.fault('successfulResults', 'lost');
  fake.ends.push({ polls: 1 });
  await scene.completed();
  expect(scene.members).toEqual(await scene.wanted());
  expect([...fake.org.effects].sort()).toEqual([...scene.members.keys()].map((id) => `upsert ${id}`).sort());

  await scene.exec(
    `delete from $table where id in ('m001', 'm002'); update $table set plan = null where id = 'm003'`,
  );
  fake.fault('close', 'lost', false);
  await scene.completed();
  expect(scene.members).toEqual(await scene.wanted());
  const [first, ...then] = fake.org.effects.slice(12);
  expect([first, ...then.sort()]).toEqual(['upsert m003', 'delete m001', 'delete m002']);
  expect(fake.org.live.length).toBe(11);

  // A job that the org gives up half-way: what it has not looked at goes again in the same run, and nothing else does.
  await scene.exec(`insert into $table select 'n00' || n, 'vip' from generate_series(1, 5) n`);
  const before = fake.org.effects.length;
  fake.ends.push({ state: 'Failed', processed: 2 });
  expect((await scene.completed()).counts).toMatchObject({ added: 5, rejected: 0 });
  expect(scene.members).toEqual(await scene.wanted());
  expect(fake.org.effects.slice(before).sort()).toEqual([1, 2, 3, 4, 5].map((n) => `upsert n00${n}`));
  expect((await scene.batches('upsert')).filter(({ state }) => state === 'parted')).toHaveLength(1);
});
