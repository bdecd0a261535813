/** Rules 5 and 10: how the workflow waits for work that a destination has taken and not finished. */

import type { TestWorkflowEnvironment } from '@temporalio/testing';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { StepResult } from '../../src/activities/results.ts';
import { startTimeSkipping } from '../support/temporal.ts';
import {
  type Answer,
  admitted,
  BATCH,
  BLOCKED,
  CLOSED,
  COUNTS,
  continuing,
  DONE,
  UNRESOLVED,
} from './script.ts';
import { type Act, Stage } from './stage.ts';

let env: TestWorkflowEnvironment;
let stage: Stage;
beforeAll(async () => {
  env = await startTimeSkipping();
  stage = await Stage.open(env);
});
afterAll(async () => {
  await stage.close();
  await env.teardown();
});

const completed = { kind: 'result', result: { outcome: 'completed' } };

function pending(ms: number, ageMs = 0, code = 'staged'): StepResult {
  return { kind: 'pending', code, ms, batch: BATCH, ageMs, counts: COUNTS };
}

const deliveries = (act: Act) => act.script.calls.filter((call) => call.name === 'deliver');

test('rule 5: one activity a round, a durable timer between rounds, and no removal before the last is accepted', async () => {
  const act = await stage.start({ deliver: [pending(1_000), pending(2_000), pending(300_000), DONE] });
  expect(await act.ending()).toMatchObject(completed);
  expect(act.script.steps.filter((step) => step.startsWith('deliver'))).toEqual([
    'deliver:upsert',
    'deliver:upsert',
    'deliver:upsert',
    'deliver:upsert',
    'deliver:remove',
  ]);
  expect(await act.lasted()).toBeGreaterThanOrEqual(303_000);
});

test('staged-as-done: the wait is shown, with its age, the batch and the next poll', async () => {
  const act = await stage.start({ deliver: [pending(86_400_000, 7_200_000, 'http-500'), DONE] });
  const { waiting } = await act.untilWaiting('pending');
  expect(waiting).toMatchObject({ code: 'http-500', batch: BATCH });
  expect((waiting?.untilMs ?? 0) - (waiting?.sinceMs ?? 0)).toBe(93_600_000);
  expect(await act.details()).toMatch(/Waits \(pending: http-500, since 20.*, until 20.*`poll` asks at once/);
  await act.handle.signal('cancel');
  expect(await act.ending()).toMatchObject({ kind: 'result', result: { outcome: 'cancelled' } });
});

test('`poll` asks at once and is said to the activity once; `resume` only looks again', async () => {
  const act = await stage.start({ deliver: [pending(86_400_000), pending(86_400_000), DONE] });
  await act.untilWaiting('pending');
  await act.handle.signal('resume');
  await act.until(() => deliveries(act).length === 2);
  await act.untilWaiting('pending');
  await act.handle.signal('poll');
  expect(await act.ending()).toMatchObject(completed);
  expect(deliveries(act).map((call) => 'pollNow' in call.args)).toEqual([false, false, true, false]);
});

test('rule 5: where one batch needs a person, the others are asked about in their own time, and both are shown', async () => {
  const blocked: StepResult = { ...BLOCKED, ms: 300_000 };
  const act = await stage.start({ deliver: [blocked, { ...BLOCKED, ms: 86_400_000 }, BLOCKED, DONE] });
  const { waiting } = await act.untilWaiting('blocked');
  expect(waiting).toMatchObject({ batch: BATCH, untilMs: expect.any(Number) });
  await env.sleep('6 minutes');
  await act.until(({ waiting: now }) => (now?.untilMs ?? 0) > (waiting?.untilMs ?? 0));
  expect(deliveries(act)).toHaveLength(2);
  expect(await act.details()).toMatch(/Waits \(blocked: http-500, until 20.*retl resolve/);
  await act.handle.signal('poll');
  // Nothing is left but the blocked one: that waits for a person alone.
  await act.until(({ waiting: now }) => deliveries(act).length === 3 && now?.untilMs === null);
  await act.handle.signal('resume');
  expect(await act.ending()).toMatchObject(completed);
});

test('a run that is paused polls nothing, and keeps the wish until it goes on', async () => {
  const act = await stage.start({ deliver: [pending(1_000), DONE] });
  await act.untilWaiting('pending');
  await act.handle.signal('pause');
  await act.untilWaiting('paused');
  await act.handle.signal('poll');
  const before = deliveries(act).length;
  await env.sleep('1 hour');
  expect(deliveries(act).length).toBe(before);
  await act.handle.signal('resume');
  expect(await act.ending()).toMatchObject(completed);
  expect(deliveries(act)[before]?.args).toMatchObject({ pollNow: true });
});

test('rule 10: a pending finish is waited for and promotes nothing', async () => {
  const act = await stage.start({ finish: [pending(1_000), pending(1_000), DONE] });
  expect(await act.ending()).toMatchObject(completed);
  expect(act.script.steps.slice(-4)).toEqual(['finish', 'finish', 'finish', 'promote']);
});

test('rule 10: an abort while jobs are under way waits for them, sends nothing, and closes the run then', async () => {
  const resolving: readonly Answer<'deliver'>[] = [pending(86_400_000), pending(1_000), DONE];
  const act = await stage.start({ deliver: resolving, close: [UNRESOLVED, UNRESOLVED, CLOSED] });
  await act.untilWaiting('pending');
  await act.handle.signal('abort');
  expect(await act.ending()).toMatchObject({ kind: 'result', result: { outcome: 'aborted' } });
  expect(
    deliveries(act)
      .slice(1)
      .map((call) => call.args),
  ).toMatchObject([{ resolveOnly: true }, { resolveOnly: true }]);
});

test('rule 5: a rejected run asks about what is left of it when that is due, and is closed then', async () => {
  const rejected: Answer<'deliver'> = { kind: 'rejected', code: 'job-failed', ms: 1_000, counts: COUNTS };
  const act = await stage.start({
    deliver: [rejected, rejected, DONE],
    close: [UNRESOLVED, UNRESOLVED, CLOSED],
  });
  await act.ending();
  expect(deliveries(act)).toHaveLength(3);
  expect(await act.lasted()).toBeLessThan(30_000);
});

test('rule 10: an abort while the finish is pending is too late where it is accepted in the end', async () => {
  const act = await stage.start({
    finish: [pending(86_400_000), pending(1_000), DONE],
    close: [UNRESOLVED, UNRESOLVED, { kind: 'too-late', counts: COUNTS }],
  });
  await act.untilWaiting('pending');
  await act.handle.signal('abort');
  expect(await act.ending()).toMatchObject({
    kind: 'result',
    result: { outcome: 'completed', abortTooLate: true },
  });
});

test('a wish to poll that an execution did not come to is handed to its continuation', async () => {
  const plan = { admit: [admitted('1', { resume: 'held', phase: 'additions' })] };
  const act = await stage.start(plan, continuing('1', { poll: true }));
  expect(await act.ending()).toMatchObject(completed);
  expect(deliveries(act).map((call) => 'pollNow' in call.args)).toEqual([true, false]);
});
