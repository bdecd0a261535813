/**
 * An opening and a finish that the destination takes for later, on the whole system (rule 10): durable, polled, not begun
 * twice, promoting nothing before they are accepted, and resolved first whatever a person asks meanwhile.
 */

import { afterAll, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest';
import type { RecoveryKind } from '../support/ledger-scene.ts';
import { LEDGER_WORKER, LedgerScene } from '../support/ledger-scene.ts';
import { System } from '../support/system.ts';
import { JobsScene } from '../support/system-jobs.ts';
import { completedBy, ending } from '../support/system-scene.ts';
import type { WorkerProcess } from '../support/worker-process.ts';

vi.setConfig({ testTimeout: 180_000 });

let system: System;
let worker: WorkerProcess;
beforeAll(async () => {
  system = await System.start({ worker: LEDGER_WORKER });
  worker = await system.startWorker();
}, 120_000);
afterAll(() => system.stop());

let serial = 0;
let scene: LedgerScene;
let handle: Awaited<ReturnType<LedgerScene['start']>>;

async function slow(kind: RecoveryKind): Promise<LedgerScene> {
  serial += 1;
  const made = await LedgerScene.create(system, `slow-${serial}-${kind}`, kind, 'slow');
  made.ledger.stuck = 'sessions';
  return made;
}

/** The worker dies by SIGKILL, and another one takes over. */
async function anotherWorker(): Promise<void> {
  await worker.kill();
  worker = await system.startWorker();
}

test('rule 10: a pending opening is durable and polled: nothing is read before it is accepted, and none is begun twice', async () => {
  scene = await slow('manual');
  handle = await scene.start();
  const { phase, waiting } = await scene.untilWaiting(handle, 'pending');
  expect([phase, waiting?.code]).toEqual(['init', 'staged']);
  await anotherWorker();
  await scene.signal('poll');
  await scene.until(handle, (p) => p.waiting?.kind === 'pending' && p.waiting.untilMs !== waiting?.untilMs);
  expect(await scene.batches()).toMatchObject([{ action: 'init', state: 'staged', sending: 1, resends: 0 }]);
  expect(scene.ledger.effects).toEqual([]);
  scene.ledger.stuck = null;
  await scene.signal('poll');
  await completedBy(handle);
  await scene.expectExact(6);
});

describe('while the finish is pending', () => {
  beforeEach(async () => {
    scene = await slow('lookup');
    handle = await scene.start();
    // The opening is accepted, and the finish is kept waiting.
    await scene.untilWaiting(handle, 'pending');
    scene.ledger.stuck = 'finish';
    await scene.signal('poll');
  });

  async function pendingFinish(): Promise<void> {
    await scene.until(handle, (p) => p.phase === 'finish' && p.waiting?.kind === 'pending');
    expect(await scene.runs()).toMatchObject([{ closing: null, phase: 'finish' }]);
    expect(scene.ledger.finishes.size).toBe(0);
  }

  test('nothing is promoted, also by the next worker; accepted, the run completes', async () => {
    await pendingFinish();
    await anotherWorker();
    await scene.signal('poll');
    await pendingFinish();
    scene.ledger.stuck = null;
    await scene.signal('poll');
    await completedBy(handle);
    await scene.expectExact(6);
  });

  test('rule 10: an abort waits for it, and is too late once it is accepted: the run completes', async () => {
    await pendingFinish();
    await scene.signal('abort');
    await scene.until(handle, (p) => p.control === 'abort' && p.waiting?.kind === 'pending');
    await anotherWorker();
    expect(await scene.runs()).toMatchObject([{ closing: null, phase: 'finish' }]);
    scene.ledger.stuck = null;
    await scene.signal('poll');
    expect(await ending(handle)).toMatchObject({
      kind: 'result',
      result: { outcome: 'completed', abortTooLate: true },
    });
    await scene.expectExact(6);
    expect(scene.ledger.sessions.size).toBe(1);
  });

  test('rule 10: a cancel lets go at once; the next run asks about the same finish, completes that run, and begins its own', async () => {
    await pendingFinish();
    await scene.signal('cancel');
    expect(await ending(handle)).toMatchObject({ kind: 'result', result: { outcome: 'cancelled' } });
    expect(await scene.runs()).toMatchObject([{ closing: null, phase: 'finish' }]);
    const next = await scene.start();
    await scene.until(next, (p) => p.phase === 'finish' && p.waiting?.kind === 'pending');
    expect(await scene.batches('finish')).toHaveLength(1);
    scene.ledger.stuck = null;
    await scene.signal('poll');
    await completedBy(next);
    expect(await scene.runs()).toMatchObject([{ closing: 'completed' }, { closing: 'completed' }]);
    expect(await scene.batches('finish')).toMatchObject([
      { sending: 1, resends: 0, state: 'settled' },
      { sending: 1, resends: 0, state: 'settled' },
    ]);
    await scene.expectExact(6);
  });
});

test('http: a finish that is answered with a job is polled like one, promotes nothing meanwhile, and is sent once', async () => {
  const jobs = await JobsScene.create(system, 'slow-http', {
    rows: 4,
    destination: { finish: { method: 'POST', path: '/finish', body: { json: [] } } },
  });
  jobs.api.slow.push(0, 1_000);
  handle = await jobs.start();
  await jobs.until(handle, (p) => p.phase === 'finish' && p.waiting?.kind === 'pending');
  await anotherWorker();
  jobs.api.reads.push({ status: 500 });
  await jobs.signal('poll');
  await jobs.until(handle, (p) => p.waiting?.kind === 'pending' && p.waiting.code === 'poll-http-500');
  expect(await jobs.runs()).toMatchObject([{ closing: null, phase: 'finish' }]);
  await jobs.signal('abort');
  await jobs.until(handle, (p) => p.control === 'abort' && p.waiting?.kind === 'pending');
  for (const job of jobs.api.jobs) job.polls = 0;
  await jobs.signal('poll');
  expect(await ending(handle)).toMatchObject({
    kind: 'result',
    result: { outcome: 'completed', abortTooLate: true },
  });
  expect(jobs.seen.filter((line) => line === 'POST finish')).toHaveLength(1);
  expect(jobs.holds).toHaveLength(4);
});
