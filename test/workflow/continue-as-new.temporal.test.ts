/** Continue-as-new: when Temporal suggests it, never for nothing, and without losing a message (design.md section 8). */

import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { Carried } from '../../src/domain/messages.ts';
import { type EagerServer, startEagerServer } from './eager-server.ts';
import {
  type Answer,
  admitted,
  BLOCKED,
  CLOSED,
  COUNTS,
  DONE,
  MORE,
  type Plan,
  held as parked,
  Script,
  SHOWN,
  UNRESOLVED,
} from './script.ts';
import { type Act, Stage } from './stage.ts';

const SUGGESTED_AFTER = 30;

let server: EagerServer;
let stage: Stage;
beforeAll(async () => {
  server = await startEagerServer(SUGGESTED_AFTER);
  stage = await Stage.open(server.env);
});
afterAll(async () => {
  await stage.close();
  await server.stop();
});

const completed = { kind: 'result', result: { outcome: 'completed', runId: '1' } };
/** What the journal tells the execution that continues another one. */
const held = admitted('1', { resume: 'held', phase: 'additions' });

interface Execution {
  readonly runId: string;
  readonly windows: number;
  readonly events: number;
  readonly carried: unknown;
}
type History = Awaited<ReturnType<Act['handle']['fetchHistory']>>;
type Continued = NonNullable<History['events']>[number]['workflowExecutionContinuedAsNewEventAttributes'];

/** The executions of a chain, oldest first: their run ids and their histories. */
async function chain(act: Act): Promise<readonly Execution[]> {
  const found: Execution[] = [];
  let runId: string | null = act.handle.firstExecutionRunId;
  while (runId !== null) {
    const { events = [] }: History = await stage.client
      .getHandle(act.handle.workflowId, runId)
      .fetchHistory();
    const windows = (events ?? []).filter(
      (e) => e.activityTaskScheduledEventAttributes?.activityType?.name === 'deliver',
    ).length;
    const next: Continued = events?.at(-1)?.workflowExecutionContinuedAsNewEventAttributes;
    const input = next?.input?.payloads?.[0]?.data;
    const carried = input ? JSON.parse(Buffer.from(input).toString()).carried : null;
    found.push({ runId, windows, events: events?.length ?? 0, carried });
    runId = next?.newExecutionRunId ?? null;
  }
  return found;
}

function windows(n: number): readonly Answer<'deliver'>[] {
  return [...Array.from({ length: n }, () => MORE), DONE];
}

describe.concurrent('many windows', () => {
  test('span several executions of one holder, and none is lost, repeated or wasted', async () => {
    const act = await stage.start({ admit: [admitted(), held], deliver: windows(12) });
    expect(await act.ending()).toMatchObject(completed);
    expect(act.script.count('deliver')).toBe(14);
    const executions = await chain(act);
    expect(executions.length).toBeGreaterThanOrEqual(3);
    expect(act.script.count('admit')).toBe(executions.length);
    expect(new Set(act.script.calls.map((c) => c.args.firstRunId))).toEqual(
      new Set([act.handle.firstExecutionRunId]),
    );
    for (const { windows: some, events, carried } of executions.slice(0, -1)) {
      expect(some).toBeGreaterThanOrEqual(1);
      expect(events).toBeGreaterThanOrEqual(SUGGESTED_AFTER);
      expect(events).toBeLessThan(SUGGESTED_AFTER + 15);
      expect(carried).toEqual({ runId: '1', paused: false, control: 'none', resumed: false, parked: null });
    }
  });

  test('of a resumed generation, and the last execution still goes on with a fresh run', async () => {
    const admit = [
      admitted('1', { resume: 'sealed', phase: 'additions' }),
      held,
      held,
      admitted('2', { phase: 'init' }),
    ];
    const act = await stage.start({ admit, deliver: windows(9) });
    expect(await act.ending()).toMatchObject({
      kind: 'result',
      result: { outcome: 'completed', runId: '2' },
    });
    expect((await chain(act)).map((e) => (e.carried as Carried | null)?.resumed)).toContain(true);
    expect(act.script.count('promote')).toBe(2);
  });

  test('a phase that is long waits long: a wait that ends by a message counts as done, too', async () => {
    const act = await stage.start({
      admit: [admitted(), held],
      deliver: [...Array.from({ length: 12 }, () => BLOCKED), DONE],
    });
    for (let looks = 1; looks <= 12; looks += 1) {
      await act.script.begun('deliver', looks);
      await act.handle.signal('resume');
    }
    expect(await act.ending()).toMatchObject(completed);
    expect((await chain(act)).length).toBeGreaterThan(1);
  });
});

test('a parked run that is looked at again and again keeps its question, and what was said beforehand', async () => {
  const plan = { generation: SHOWN, removals: 8, removalDigest: SHOWN };
  const script = new Script({
    admit: [admitted(), admitted('1', { resume: 'held', phase: 'guard' })],
    guard: [...Array.from({ length: 14 }, () => parked()), { kind: 'passed', approved: 0, counts: COUNTS }],
  });
  const act = await stage.start(script, { mirror: 'vip-customers', approveUpTo: 3, plan });
  for (let looks = 1; looks <= 13; looks += 1) {
    await script.begun('guard', looks);
    await act.handle.signal('resume');
  }
  await script.begun('guard', 14);
  // Also in the moment between two executions it is to the same question.
  await act.handle.executeUpdate('approve', { args: [{ shown: SHOWN }] });
  expect(await act.ending()).toMatchObject(completed);
  const executions = await chain(act);
  expect(executions.length).toBeGreaterThan(1);
  for (const { carried } of executions.slice(0, -1))
    expect(carried).toMatchObject({ parked: { shown: SHOWN, removals: 8 } });
  for (const { args } of script.calls.filter((call) => call.name === 'guard'))
    expect(args).toMatchObject({ approveUpTo: 3, plan });
});

describe.concurrent('messages around a continue-as-new', () => {
  const endless: Plan = { admit: [admitted(), held], deliver: [MORE] };

  test.each([
    ['cancel', 'cancelled'],
    ['abort', 'aborted'],
  ])('%s is heeded, whenever it comes', async (signal, outcome) => {
    const delays = Array.from({ length: 12 }, (_, i) => 150 + i * 170);
    const ends = await Promise.all(
      delays.map(async (ms) => {
        const act = await stage.start(endless);
        await sleep(ms);
        await act.handle.signal(signal);
        return act.ending();
      }),
    );
    for (const end of ends) expect(end).toMatchObject({ kind: 'result', result: { outcome } });
  });

  test('Temporal’s own cancel is heeded in whichever execution it meets, and ends the chain as cancelled', async () => {
    const delays = Array.from({ length: 8 }, (_, i) => 150 + i * 230);
    const ends = await Promise.all(
      delays.map(async (ms) => {
        const act = await stage.start(endless);
        await sleep(ms);
        await stage.client.getHandle(act.handle.workflowId).cancel();
        return act.ending();
      }),
    );
    for (const end of ends) expect(end).toEqual({ kind: 'cancelled' });
  });

  test('pauses are kept until resume, however many there are', async () => {
    const act = await stage.start({ admit: [admitted(), held], deliver: windows(12) });
    for (let nth = 1; nth <= 6; nth += 1) {
      await act.script.begun('deliver', nth);
      await stage.client.getHandle(act.handle.workflowId).signal('pause');
      await pausedIn(act);
      const before = act.script.count('deliver');
      await sleep(60);
      expect(act.script.count('deliver')).toBe(before);
      await stage.client.getHandle(act.handle.workflowId).signal('resume');
    }
    expect(await act.ending()).toMatchObject(completed);
    expect((await chain(act)).length).toBeGreaterThan(2);
  });

  test('an abort that waits for a blocked batch goes on waiting for it in the next execution', async () => {
    let open = true;
    const act = await stage.start({
      admit: [admitted(), held],
      deliver: [BLOCKED],
      close: [async () => (open ? UNRESOLVED : CLOSED)],
    });
    await act.untilWaiting('blocked');
    await act.handle.signal('abort');
    for (let nth = 1; nth <= 9; nth += 1) {
      await act.script.begun('close', nth);
      await stage.client.getHandle(act.handle.workflowId).signal('resume');
    }
    open = false;
    await stage.client.getHandle(act.handle.workflowId).signal('resume');
    expect(await act.ending()).toMatchObject({ kind: 'result', result: { outcome: 'aborted' } });
    const executions = await chain(act);
    expect(executions.length).toBeGreaterThan(1);
    expect(executions[0]?.carried).toMatchObject({ control: 'abort' });
    expect(act.script.calls.filter((c) => c.name === 'deliver' && c.args.resolveOnly === false)).toHaveLength(
      1,
    );
  });

  test.each([
    ['a pause', { paused: true, control: 'none' }, 'resume', 'completed'],
    ['a cancel', { paused: false, control: 'cancel' }, null, 'cancelled'],
    ['an abort of a paused run', { paused: true, control: 'abort' }, null, 'aborted'],
  ] as const)(
    '%s that is carried over is heeded before anything is launched',
    async (_, carried, signal, outcome) => {
      const input = { mirror: 'vip-customers', carried: { ...carried, runId: '1', resumed: false } };
      const act = await stage.start({ admit: [held] }, input);
      if (signal !== null) {
        await act.untilWaiting('paused');
        expect(act.script.steps).toEqual(['admit']);
        await act.handle.signal(signal);
      }
      expect(await act.ending()).toMatchObject({ kind: 'result', result: { outcome, runId: '1' } });
      expect(act.script.count('deliver')).toBe(outcome === 'completed' ? 2 : 0);
    },
  );
});

/** Between two executions nobody may answer for a second. */
async function pausedIn(act: Act): Promise<void> {
  const newest = stage.client.getHandle(act.handle.workflowId);
  for (let tries = 0; tries < 300; tries += 1) {
    const progress = await newest.query<{ waiting: { kind: string } | null }>('progress').catch(() => null);
    if (progress?.waiting?.kind === 'paused') return;
    await sleep(30);
  }
  throw new Error('it never paused');
}
