/** The phase table of design.md section 4 as the workflow walks it, and what it makes of each answer of a step. */

import type { TestWorkflowEnvironment } from '@temporalio/testing';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { StepResult } from '../../src/activities/results.ts';
import { PHASES, type Phase } from '../../src/domain/run.ts';
import { startTimeSkipping } from '../support/temporal.ts';
import {
  admitted,
  BATCH,
  BLOCKED,
  CLOSED,
  COUNTS,
  continuing,
  DONE,
  MORE,
  UNRESOLVED,
  wait,
} from './script.ts';
import { Stage } from './stage.ts';

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

/** Section 4's table, by the activity of each phase. */
const TABLE: readonly (readonly [Phase, string])[] = [
  ['init', 'init'],
  ['extract', 'extract'],
  ['seal', 'seal'],
  ['guard', 'guard'],
  ['additions', 'deliver:upsert'],
  ['removals', 'deliver:remove'],
  ['finish', 'finish'],
  ['promote', 'promote'],
];

const completed = { kind: 'result', result: { outcome: 'completed', abortTooLate: false } };

test('rule 1: the phases run in the order of the table, once each, and every activity is told run and holder', async () => {
  const act = await stage.start();
  expect(await act.ending()).toEqual({
    kind: 'result',
    result: { outcome: 'completed', runId: '1', counts: { ...COUNTS, added: 6 }, abortTooLate: false },
  });
  expect(act.script.steps).toEqual(['admit', ...TABLE.map(([, step]) => step)]);
  const firstRunId = act.handle.firstExecutionRunId;
  expect(act.script.calls[0]?.args).toEqual({ mirror: 'vip-customers', firstRunId });
  for (const call of act.script.calls.slice(1)) expect(call.args).toMatchObject({ run: '1', firstRunId });
});

test('the table of this test is that of the domain', () => {
  expect(TABLE.map(([phase]) => phase)).toEqual(PHASES.filter((phase) => phase !== 'complete'));
});

test.each(TABLE)('a run that had reached %s is taken up there, and not before', async (phase, first) => {
  const act = await stage.start({ admit: [admitted('7', { resume: 'held', phase })] }, continuing('7'));
  expect(await act.ending()).toMatchObject(completed);
  const from = TABLE.findIndex(([, step]) => step === first);
  expect(act.script.steps).toEqual(['admit', ...TABLE.slice(from).map(([, step]) => step)]);
});

test('windows begin at 5 s, so that progress shows early, and grow to a minute', async () => {
  const act = await stage.start({ deliver: [MORE, MORE, MORE, MORE, MORE, DONE] });
  expect(await act.ending()).toMatchObject(completed);
  const windows = act.script.calls.filter((c) => c.args.action === 'upsert').map((c) => c.args.windowMs);
  expect(windows).toEqual([5_000, 10_000, 20_000, 40_000, 60_000, 60_000]);
});

describe('waits', () => {
  test('retry-after: a day’s wait is one durable timer, and the step is asked again when it is over', async () => {
    const act = await stage.start({ deliver: [wait(86_400_000), DONE] });
    expect(await act.ending()).toMatchObject(completed);
    const passed = await act.lasted();
    expect(passed).toBeGreaterThanOrEqual(86_400_000);
    expect(passed).toBeLessThan(86_400_000 + 60_000);
    expect(act.script.count('deliver')).toBe(3);
    const { events } = await act.handle.fetchHistory();
    expect(events?.filter((e) => e.timerStartedEventAttributes).length).toBe(1);
  });

  test('a wait is shown with its code, its end and its batch, and `resume` looks again at once', async () => {
    const act = await stage.start({ finish: [wait(3_600_000, 'http-503'), DONE] });
    const { waiting, phase } = await act.untilWaiting('retry');
    expect(phase).toBe('finish');
    expect(waiting).toMatchObject({ code: 'http-503', batch: BATCH });
    expect((waiting?.untilMs ?? 0) - (await env.currentTimeMs())).toBeGreaterThan(3_000_000);
    expect(await act.details()).toMatch(/Waits \(retry: http-503, until .*Z, batch `sha256:5e1f`\)/);
    await act.handle.signal('resume');
    expect(await act.ending()).toMatchObject(completed);
  });

  test.each([Number.NaN, Number.POSITIVE_INFINITY, -5, 1e300])(
    'an adapter that asks for %d ms does not stop the workflow for good',
    async (ms) => {
      const act = await stage.start({ deliver: [wait(ms), DONE] });
      expect(await act.ending()).toMatchObject(completed);
      expect(await act.lasted()).toBeLessThan(8 * 86_400_000);
    },
  );

  test('blocked waits without a timer, however long, until `resume`; then the step is asked again', async () => {
    const act = await stage.start({ deliver: [BLOCKED, BLOCKED, DONE] });
    expect((await act.untilWaiting('blocked')).waiting).toEqual({
      kind: 'blocked',
      code: 'http-500',
      untilMs: null,
      batch: BATCH,
    });
    await env.sleep('30 days');
    expect(act.script.count('deliver')).toBe(1);
    expect(await act.details()).toContain('retl resolve');
    await act.handle.signal('resume');
    await act.script.begun('deliver', 2);
    await act.untilWaiting('blocked');
    await act.handle.signal('resume');
    expect(await act.ending()).toMatchObject(completed);
    expect(act.script.count('deliver')).toBe(4);
  });

  test('a message that comes while a step finds that it must wait is heeded, not slept over', async () => {
    let tell: () => Promise<void> = async () => undefined;
    const slow = async () => {
      await tell();
      return BLOCKED;
    };
    const act = await stage.start({
      extract: [
        async () => {
          tell = () => act.handle.signal('resume');
          return DONE;
        },
      ],
      deliver: [slow, DONE],
    });
    expect(await act.ending()).toMatchObject(completed);
  });
});

describe('a run that is taken over', () => {
  test('rule 8: an extraction that was never sealed is closed first, then a fresh run follows', async () => {
    const act = await stage.start({
      admit: [admitted('3', { resume: 'discard', phase: 'extract' }), admitted('4')],
    });
    expect(await act.ending()).toMatchObject({
      kind: 'result',
      result: { outcome: 'completed', runId: '4' },
    });
    expect(act.script.steps.slice(0, 4)).toEqual(['admit', 'close:discarded', 'admit', 'init']);
    expect(act.script.calls.slice(1, 4).map((c) => c.args.run)).toEqual(['3', undefined, '4']);
  });

  test('a generation too old is closed as expired, then a fresh run follows', async () => {
    const act = await stage.start({
      admit: [admitted('3', { resume: 'expired', phase: 'additions' }), admitted('4')],
    });
    expect(await act.ending()).toMatchObject({ kind: 'result', result: { runId: '4' } });
    expect(act.script.steps.slice(0, 3)).toEqual(['admit', 'close:expired', 'admit']);
  });

  test('rule 10: what is unresolved in a generation too old is resolved, with nothing launched, before it is closed', async () => {
    const act = await stage.start({
      admit: [admitted('3', { resume: 'expired', phase: 'removals', unresolved: true }), admitted('4')],
      close: [UNRESOLVED, CLOSED],
    });
    expect(await act.ending()).toMatchObject({ kind: 'result', result: { runId: '4' } });
    expect(act.script.steps.slice(0, 6)).toEqual([
      'admit',
      'close:expired',
      'deliver:remove',
      'close:expired',
      'admit',
      'init',
    ]);
    expect(act.script.calls[2]?.args).toMatchObject({ run: '3', resolveOnly: true });
  });

  test('rule 10: a session whose opening is unresolved is resolved before it is discarded', async () => {
    const act = await stage.start({
      admit: [admitted('3', { resume: 'discard', phase: 'init', unresolved: true }), admitted('4')],
      close: [UNRESOLVED, CLOSED],
      init: [DONE],
    });
    expect(await act.ending()).toMatchObject({ kind: 'result', result: { runId: '4' } });
    expect(act.script.steps.slice(0, 5)).toEqual([
      'admit',
      'close:discarded',
      'init',
      'close:discarded',
      'admit',
    ]);
  });

  test('after a resumed generation has completed, the same execution goes on with a fresh run', async () => {
    const act = await stage.start({
      admit: [admitted('3', { resume: 'sealed', phase: 'removals' }), admitted('4')],
    });
    expect(await act.ending()).toMatchObject({
      kind: 'result',
      result: { outcome: 'completed', runId: '4' },
    });
    expect(act.script.steps).toEqual([
      'admit',
      'deliver:remove',
      'finish',
      'promote',
      'admit',
      ...TABLE.map(([, step]) => step),
    ]);
  });

  test.each([
    ['extract', ['close:discarded', 'admit', 'init']],
    ['finish', ['finish', 'promote', 'admit', 'init']],
  ] as const)(
    'by the very execution that began it, which Temporal has reset: the same, with a run in the phase %s',
    async (phase, steps) => {
      const act = await stage.start({ admit: [admitted('3', { resume: 'held', phase }), admitted('4')] });
      expect(await act.ending()).toMatchObject({ kind: 'result', result: { runId: '4' } });
      expect(act.script.steps.slice(1, 1 + steps.length)).toEqual(steps);
    },
  );

  test.each(['abort', 'cancel'])('but not where a control was asked for: %s', async (signal) => {
    const act = await stage.start({
      admit: [admitted('3', { resume: 'sealed', phase: 'promote' }), admitted('4')],
      promote: [
        async () => {
          await act.handle.signal(signal);
          return { counts: COUNTS };
        },
      ],
    });
    expect(await act.ending()).toEqual({
      kind: 'result',
      result: { outcome: 'completed', runId: '3', counts: COUNTS, abortTooLate: signal === 'abort' },
    });
    expect(act.script.steps).toEqual(['admit', 'promote']);
  });
});

describe('what the UI shows', () => {
  test('the rate of the phase and the time it leaves stand in the details once something was accepted', async () => {
    const slow: StepResult = { kind: 'wait', code: 'http-429', ms: 10_000, batch: null, counts: COUNTS };
    const some: StepResult = {
      kind: 'wait',
      code: 'http-429',
      ms: 86_400_000,
      batch: null,
      counts: { ...COUNTS, added: 5 },
    };
    const act = await stage.start({ deliver: [slow, some, DONE] });
    await act.untilWaiting('retry');
    expect(await act.details()).not.toContain('a second in this phase');
    await env.sleep(11_000);
    await act.until((progress) => progress.counts.added === 5);
    expect(await act.details()).toMatch(/0\.[45] members a second in this phase, about [45] s left/);
    await act.handle.signal('resume');
    expect(await act.ending()).toMatchObject(completed);
  });

  test('every activity and every timer of the history says in words what it is for', async () => {
    const act = await stage.start({ deliver: [wait(1_000), DONE] });
    expect(await act.ending()).toMatchObject(completed);
    const { events } = await act.handle.fetchHistory();
    const steps = (events ?? []).filter(
      (e) => e.activityTaskScheduledEventAttributes || e.timerStartedEventAttributes,
    );
    const said = steps.map((e) => Buffer.from(e.userMetadata?.summary?.data ?? []).toString());
    expect(said).toHaveLength(11);
    expect(said.filter((words) => words === '')).toEqual([]);
    expect(said).toContain('"Wait: http-429"');
  });
});
