/**
 * Rule 9: a worker that is frozen past its heartbeat, and thawed after another one has finished its run, can change nothing
 * in the journal, nor where the destination has a fence. For an API without one the window remains that the README names:
 * a request that was about to leave may leave late, but only once.
 */

import type { WorkflowHandleWithFirstExecutionRunId as Handle } from '@temporalio/client';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { System } from '../support/system.ts';
import { HttpScene, TableScene } from '../support/system-destinations.ts';
import { completedBy, ending, eventually } from '../support/system-scene.ts';
import { startTcpProxy, type TcpProxy } from '../support/tcp-proxy.ts';

const SENDING = { statement: 'retl.prepare_batches(', how: 'unanswered' } as const;

let system: System;
let line: TcpProxy;
let read: { scene: HttpScene; handle: Handle };
let late: { scene: HttpScene; handle: Handle };
let table: { scene: TableScene; handle: Handle };
/** Bytes that the target's server had sent before the frozen worker was thawed. */
let carried: number;
/** What the journal held before. */
let journal: readonly object[];

beforeAll(async () => {
  system = await System.start();
  const temporal = await lineTo(`tcp://${system.temporal.address}`);
  const worker = await system.startWorker({ TEMPORAL_ADDRESS: `${temporal.host}:${temporal.port}` });

  const first = await HttpScene.create(system, 'reply-unread', { rows: 10, idempotent: true });
  first.audience.fault({ kind: 'delay', ms: 20_000 });
  read = { scene: first, handle: await first.start() };
  await first.untilSeen(1);

  const second = await HttpScene.create(system, 'request-late', { rows: 10 });
  const beforeSecond = system.proxy.hold(SENDING);
  late = { scene: second, handle: await second.start() };
  await beforeSecond.reached;

  line = await lineTo(system.sourceUrl);
  const third = await TableScene.create(system, 'table-late', { rows: 10, through: line });
  const beforeThird = system.proxy.hold(SENDING);
  table = { scene: third, handle: await third.start() };
  await beforeThird.reached;

  worker.freeze();
  // Else the server gives tasks to its open polls for a minute: true to life, but slow.
  temporal.cut();
  await system.startWorker();
  await completedBy(read.handle);
  await completedBy(table.handle);
  await second.untilWaiting(late.handle, 'blocked');
  // A later run writes what the frozen one would undo.
  await third.exec(`update $table set plan = 'gold'`);
  await third.completed();
  await first.exec(`update $table set plan = 'gold'`);
  await first.completed();

  journal = await everything();
  carried = line.carried;
  worker.thaw();
  beforeSecond.release();
  beforeThird.release();
  await second.untilSeen(1);
  await eventually(() => line.carried > carried);
});
afterAll(() => system.stop());

async function lineTo(url: string): Promise<TcpProxy> {
  const { hostname, port } = new URL(url);
  const proxy = await startTcpProxy({ host: hostname, port: Number(port) });
  system.defer(() => proxy.close());
  return proxy;
}

function everything(): Promise<readonly object[]> {
  return system.rows(`select b.batch_id, b.state, b.receipt, b.resends, r.epoch, r.phase, r.closing,
    (select position from retl.log_head) as head from retl.batch b join retl.run r using (run_id)
    order by b.batch_id`);
}

describe('thawed late', () => {
  test('its receipts are refused by the journal: nothing in it has changed', async () => {
    expect(await everything()).toEqual(journal);
  });

  test('a reply that it reads late accepts nothing a second time', async () => {
    const { scene } = read;
    expect(scene.audience.state.members).toEqual(await scene.wanted());
    expect(new Set(scene.writes.map((write) => write.key)).size).toBe(scene.writes.length - 1);
  });

  test('a fenced table refuses its late writes: the newer rows stand', async () => {
    const { scene } = table;
    expect(await scene.targetRows()).toEqual(await scene.sourceRows());
    expect(await scene.targetRows(`select distinct plan from audience`)).toEqual([{ plan: 'gold' }]);
  });

  test('without a fence its one late request is applied once, and the run stays blocked on that batch', async () => {
    const { scene, handle } = late;
    const { waiting } = await scene.untilWaiting(handle, 'blocked');
    expect(scene.writes.map((write) => write.key)).toEqual([waiting?.batch]);
    expect(scene.audience.state.effects).toHaveLength(5);
    await scene.signal('cancel');
    await ending(handle);
  });
});
