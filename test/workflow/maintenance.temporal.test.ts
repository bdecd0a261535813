/** The workflow `maintenance` on a real server, its one activity played by the test (design.md section 8). */

import { ApplicationFailure, Context } from '@temporalio/activity';
import { Worker } from '@temporalio/worker';
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import type { MaintainArgs } from '../../src/activities/maintain.ts';
import {
  MAINTENANCE_TASKS,
  MAINTENANCE_WORKFLOW,
  type MaintenanceProgress,
  type MaintenanceResult,
  type MaintenanceStep,
  NOTHING_DONE,
} from '../../src/domain/maintenance.ts';
import { type EagerServer, startEagerServer } from './eager-server.ts';
import { recordExecution } from './record-execution.ts';
import { bundleOf } from './stage.ts';

const TASK_QUEUE = 'maintenance-workflow';

let server: EagerServer;
let worker: Worker;
let running: Promise<void>;
let asked: MaintainArgs[];
let answer: (args: MaintainArgs) => MaintenanceStep | Promise<MaintenanceStep>;

const DONE: MaintenanceStep = { kind: 'done', cursor: null, counts: {} };

beforeAll(async () => {
  server = await startEagerServer(40);
  worker = await Worker.create({
    connection: server.env.nativeConnection,
    taskQueue: TASK_QUEUE,
    workflowBundle: await bundleOf('src/workflows/index.ts'),
    activities: {
      maintain: (args: MaintainArgs) => {
        asked.push(args);
        return answer(args);
      },
    },
    maxHeartbeatThrottleInterval: '100 milliseconds',
    defaultHeartbeatThrottleInterval: '100 milliseconds',
  });
  running = worker.run();
});
beforeEach(() => {
  asked = [];
  answer = () => DONE;
});
afterAll(async () => {
  worker.shutdown();
  await running;
  await server.stop();
});

let n = 0;
const start = (input: unknown = {}) =>
  server.env.client.workflow.start<(given: unknown) => Promise<MaintenanceResult>>(MAINTENANCE_WORKFLOW, {
    workflowId: `maintenance-${n++}`,
    taskQueue: TASK_QUEUE,
    args: [input],
  });
const record = (name: string, handle: Awaited<ReturnType<typeof start>>) =>
  recordExecution(server, `maintenance-histories/${name}`, handle.workflowId, handle.firstExecutionRunId);

test('every task is done in its order, window by window, each where the one before ended', async () => {
  answer = ({ task, cursor }) => {
    if (task === 'candidates' && cursor !== '2')
      return { kind: 'more', cursor: cursor === null ? '1' : '2', counts: { candidates: 2, putOff: 1 } };
    return { ...DONE, counts: task === 'receipts' ? { receipts: 7 } : {} };
  };
  const handle = await start();
  const result = await handle.result();
  expect(result).toEqual({
    outcome: 'completed',
    counts: { ...NOTHING_DONE, candidates: 4, putOff: 2, receipts: 7 },
  });
  const tasks = asked.map(({ task, cursor }) => [task, cursor]);
  expect(tasks).toEqual([
    ['candidates', null],
    ['candidates', '1'],
    ['candidates', '2'],
    ...MAINTENANCE_TASKS.slice(1).map((task) => [task, null]),
  ]);
  expect(new Set(asked.map(({ firstRunId }) => firstRunId))).toEqual(new Set([handle.firstExecutionRunId]));
});

test('`only` names the tasks; anything else is refused before anything is done', async () => {
  await (await start({ only: ['receipts', 'generations'] })).result();
  expect(asked.map(({ task }) => task)).toEqual(['generations', 'receipts']);
  for (const wrong of [{ only: ['everything'] }, { only: [] }, { only: 'receipts' }, { task: 'receipts' }])
    await expect((await start(wrong)).result()).rejects.toMatchObject({ cause: { type: 'invalid' } });
  expect(asked).toHaveLength(2);
});

test('a task that fails keeps none of the others from being done, and the end says which; nothing looks green', async () => {
  answer = ({ task }) => {
    if (task === 'log')
      throw ApplicationFailure.create({
        type: 'invalid',
        message: 'the log is not what was written',
        nonRetryable: true,
        details: [{ code: 'log.broken' }],
      });
    return { ...DONE, counts: task === 'receipts' ? { receipts: 1 } : {} };
  };
  const handle = await start();
  await expect(handle.result()).rejects.toMatchObject({
    cause: { type: 'invalid', message: expect.stringContaining('log (log.broken)') },
  });
  expect(asked.map(({ task }) => task)).toEqual([...MAINTENANCE_TASKS]);
  expect(await handle.query<MaintenanceProgress>('progress')).toMatchObject({
    task: null,
    failed: [{ task: 'log', code: 'log.broken' }],
    counts: { receipts: 1 },
  });
  await record('done', handle);
});

test('it continues as new and loses neither its place nor its counts', async () => {
  let windows = 0;
  answer = ({ task }) => {
    if (task !== 'generations' || windows >= 14) return DONE;
    windows += 1;
    return { kind: 'more', cursor: `${windows}`, counts: { generations: 3 } };
  };
  const handle = await start({ only: ['generations', 'receipts'] });
  expect((await handle.result()).counts).toEqual({ ...NOTHING_DONE, generations: 42 });
  expect(asked.map(({ cursor }) => cursor)).toEqual([
    null,
    ...Array.from({ length: 14 }, (_, i) => `${i + 1}`),
    null,
  ]);
  const latest = await server.env.client.workflow.getHandle(handle.workflowId).describe();
  expect(latest.runId).not.toBe(handle.firstExecutionRunId);
  await record('continued', handle);
});

test('cancelled it finishes the step under way, launches no other, and ends as cancelled', async () => {
  let begun = () => {};
  const underWay = new Promise<void>((resolve) => {
    begun = resolve;
  });
  let told = false;
  answer = async () => {
    const context = Context.current();
    const beat = setInterval(() => context.heartbeat(), 50);
    begun();
    await new Promise<void>((resolve) =>
      context.cancellationSignal.addEventListener('abort', () => resolve()),
    );
    clearInterval(beat);
    told = true;
    return { kind: 'more', cursor: 'half', counts: { candidates: 1 } };
  };
  const handle = await start();
  await underWay;
  await handle.cancel();
  await expect(handle.result()).rejects.toThrow();
  expect(told).toBe(true);
  expect((await handle.describe()).status.name).toBe('CANCELLED');
  expect(asked).toHaveLength(1);
  await record('cancelled', handle);
});
