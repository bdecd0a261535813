/**
 * Maintenance by real workers (design.md sections 5 and 8): what runs have left behind goes while mirrors run, whoever is killed at
 * it, and destinations hold what they held.
 */

import { afterAll, beforeAll, expect, test } from 'vitest';
import {
  MAINTENANCE_WORKFLOW,
  type MaintenanceInput,
  type MaintenanceResult,
  maintenanceWorkflowId,
} from '../../src/domain/maintenance.ts';
import { TASK_QUEUE } from '../../src/domain/messages.ts';
import { verifyLog } from '../../src/journal/verify-log.ts';
import { retl } from '../cli/support.ts';
import { System } from '../support/system.ts';
import { HttpScene } from '../support/system-destinations.ts';
import { completedBy, eventually } from '../support/system-scene.ts';
import type { WorkerProcess } from '../support/worker-process.ts';

let system: System;
let worker: WorkerProcess;
beforeAll(async () => {
  system = await System.start();
  worker = await system.startWorker();
});
afterAll(() => system.stop());

const start = (input: MaintenanceInput = {}) =>
  system.temporal.client.workflow.start<(given: MaintenanceInput) => Promise<MaintenanceResult>>(
    MAINTENANCE_WORKFLOW,
    { workflowId: maintenanceWorkflowId(TASK_QUEUE), taskQueue: TASK_QUEUE, args: [input] },
  );

/** As if all that is closed or let go had been so for a year. */
async function aYearLater(mirror: string): Promise<void> {
  const days = "interval '365 days'";
  await system.journal.query(`begin; set local session_replication_role = replica;
    update retl.run set opened_at = opened_at - ${days}, sealed_at = sealed_at - ${days}, closed_at = closed_at - ${days}
      where mirror_id = (select mirror_id from retl.mirror where name = '${mirror}');
    update retl.attempt a set started_at = started_at - ${days} from retl.run r join retl.mirror m using (mirror_id)
      where a.run_id = r.run_id and m.name = '${mirror}'; commit`);
}

/** Runs with a change of one member each, so that their snapshots can go, all but the first and the last. */
async function withHistory(scene: HttpScene, runs: number): Promise<void> {
  for (let n = 0; n < runs; n += 1) {
    await scene.completed();
    await scene.exec(`update $table set plan = 'v${n}' where id = 'm001'`);
  }
}

async function snapshots(mirror: string): Promise<number> {
  const [row] = await system.rows<{ n: string }>(
    `select count(*) as n from retl.generation g join retl.run r using (run_id) join retl.mirror m using (mirror_id)
     where m.name = $1 and rows_present`,
    [mirror],
  );
  return Number(row?.n);
}

/** Answers that are kept of runs that were closed: `old` ones a year ago, `new` ones just now. */
async function receipts(mirror: string, age: 'old' | 'new'): Promise<number> {
  const [row] = await system.rows<{ n: string }>(
    `select count(*) as n from retl.batch b join retl.run r using (run_id) join retl.mirror m using (mirror_id)
     where m.name = $1 and b.receipt <> '{"pruned":true}' and (r.closed_at < now() - interval '1 day') = $2`,
    [mirror, age === 'old'],
  );
  return Number(row?.n);
}

test('old receipts and an abandoned run go while another mirror delivers; what was accepted stays, and the next run goes on', async () => {
  const scene = await HttpScene.create(system, 'tidied', { rows: 10, idempotent: true });
  await withHistory(scene, 3);
  scene.audience.fault({ kind: 'status', status: 400 });
  await scene.exec(`update $table set plan = 'other' where id > 'm005'`);
  const handle = await scene.start();
  await handle.result().catch(() => undefined);
  await scene.exec(`update $table set plan = 'third' where id > 'm005'`);
  scene.audience.fault({ kind: 'delay', ms: 2_000 });
  const abandoned = await scene.start();
  await scene.until(abandoned, ({ phase }) => phase === 'additions');
  await scene.signal('cancel');
  await abandoned.result().catch(() => undefined);
  await aYearLater('tidied');
  const held = await scene.held();
  expect((await scene.runs()).at(-1)?.closing).toBeNull();

  const busy = await HttpScene.create(system, 'delivering', { rows: 15, idempotent: true });
  busy.audience.fault({ kind: 'delay', ms: 6_000 });
  const delivering = await busy.start();
  await busy.untilSeen(1);
  const { counts } = await (await start()).result();
  expect(counts).toMatchObject({ candidates: 1, putOff: 0 });
  expect(counts.receipts).toBeGreaterThan(2);
  expect((await scene.runs()).at(-1)?.closing).toBe('expired');
  expect(await scene.held()).toBe(held);
  expect(await receipts('tidied', 'old')).toBe(0);
  await completedBy(delivering);
  expect(busy.audience.state.members).toEqual(await busy.wanted());
  expect(await receipts('delivering', 'new')).toBeGreaterThan(0);

  await scene.completed();
  expect(scene.audience.state.members).toEqual(await scene.wanted());
  expect((await verifyLog(system.journal, { effects: true })).kind).toBe('intact');
});

test.each([
  ['retl.prune_closed(', 'unanswered'],
  ['retl.adopt_abandoned(', 'unanswered'],
  ['retl.close_run(', 'unanswered'],
] as const)('a worker killed at %s (%s) has lost a step, and another one goes on', async (statement, how) => {
  const name = `killed-${statement.slice(5, 11).replace('_', '-')}-${how}`;
  const scene = await HttpScene.create(system, name, { rows: 10, idempotent: true });
  await withHistory(scene, 1);
  await scene.exec(`update $table set plan = 'next'`);
  scene.audience.fault({ kind: 'delay', ms: 2_000 });
  const handle = await scene.start();
  await scene.until(handle, ({ phase }) => phase === 'additions');
  await scene.signal('cancel');
  await handle.result().catch(() => undefined);
  await aYearLater(name);
  const held = system.proxy.hold({ statement, how });
  const maintenance = await start();
  await held.reached;
  await worker.kill();
  worker = await system.startWorker();
  const { counts } = await maintenance.result();
  expect(counts.putOff).toBe(0);
  expect((await scene.runs()).map(({ closing }) => closing)).toEqual(['completed', 'expired']);
  expect(await receipts(name, 'old')).toBe(0);
  expect(await snapshots(name)).toBeGreaterThan(0);
  await scene.completed();
  expect(scene.audience.state.members).toEqual(await scene.wanted());
});

test('cancelled it ends as cancelled; `retl maintenance` does it, also without Temporal, and tells what there is', async () => {
  const held = system.proxy.hold({ statement: 'retl.prune_generations(', how: 'unseen' });
  const handle = await start();
  await held.reached;
  await handle.cancel();
  held.release();
  await expect(handle.result()).rejects.toThrow();
  await eventually(async () => (await handle.describe()).status.name === 'CANCELLED');

  const options = { cwd: system.project.folder, env: system.env };
  const ran = await retl(['maintenance', 'run', '--only', 'receipts,generations', '--json'], options);
  expect(JSON.parse(ran.stdout)).toMatchObject({
    started: true,
    outcome: 'completed',
    counts: { putOff: 0 },
  });
  const once = await retl(['maintenance', 'run', '--once'], options);
  expect([once.code, once.stdout]).toEqual([0, 'Nothing had to go.\n']);
  expect((await retl(['maintenance', 'run', '--once', '--only', 'candidates'], options)).code).toBe(2);
  const status = JSON.parse((await retl(['maintenance', 'status', '--json'], options)).stdout);
  expect(status).toMatchObject({
    keeps: { receiptsMs: 30 * 86_400_000, candidatesMs: 7 * 86_400_000, effectsMs: null },
    waiting: { generations: 0, receiptsOfRuns: 0 },
    schedule: null,
    last: { kind: 'ended', how: 'completed' },
  });
});
