/** Control (design.md section 4): what every message does to a run, wherever it meets it. */

import type { TestWorkflowEnvironment } from '@temporalio/testing';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { startTimeSkipping } from '../support/temporal.ts';
import {
  admitted,
  BLOCKED,
  CLOSED,
  COUNTS,
  continuing,
  DONE,
  failing,
  MORE,
  type Plan,
  STOPPED,
  UNRESOLVED,
  untilStopped,
  wait,
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

const cancelled = { kind: 'result', result: { outcome: 'cancelled', runId: '1', abortTooLate: false } };
const aborted = { kind: 'result', result: { outcome: 'aborted', runId: '1', abortTooLate: false } };
const completed = { kind: 'result', result: { outcome: 'completed', abortTooLate: false } };

/** Each phase whose activity is told to stop, and works until then. */
const STOPPABLE: readonly (readonly ['init' | 'extract' | 'deliver' | 'finish', string, Plan])[] = [
  ['init', 'init', { init: [untilStopped(STOPPED)] }],
  ['extract', 'extract', { extract: [untilStopped(STOPPED)] }],
  ['deliver', 'additions', { deliver: [untilStopped(STOPPED)] }],
  [
    'deliver',
    'removals',
    { admit: [admitted('1', { resume: 'held', phase: 'removals' })], deliver: [untilStopped(STOPPED)] },
  ],
  ['finish', 'finish', { finish: [untilStopped(STOPPED)] }],
];

/** The run may have begun in an execution before. */
const IN_MIDST = continuing('1');

describe.each(STOPPABLE)('in the activity %s of phase %s', (activity, phase, plan) => {
  test('cancel: it is told to stop, its answer waited for, the run let go, and nothing launched', async () => {
    const act = await stage.start(plan, IN_MIDST);
    await act.script.begun(activity);
    expect(await act.progress()).toMatchObject({ phase, control: 'none' });
    await act.handle.signal('cancel');
    expect(await act.ending()).toMatchObject(cancelled);
    expect(act.script.count(activity)).toBe(1);
    expect(act.script.steps.slice(-1)).toEqual(['release:cancelled']);
    expect(act.script.count('close')).toBe(0);
  });

  test('Temporal’s own cancel does the same, and the execution ends as cancelled', async () => {
    const act = await stage.start(plan, IN_MIDST);
    await act.script.begun(activity);
    await act.handle.cancel();
    expect(await act.ending()).toEqual({ kind: 'cancelled' });
    expect((await act.handle.describe()).status.name).toBe('CANCELLED');
    expect(act.script.count(activity)).toBe(1);
    expect(act.script.steps.slice(-1)).toEqual(['release:cancelled']);
  });

  test('abort: the run is closed after the activity has answered', async () => {
    const act = await stage.start(plan, IN_MIDST);
    await act.script.begun(activity);
    await act.handle.signal('abort');
    expect(await act.ending()).toMatchObject(aborted);
    expect(act.script.count(activity)).toBe(1);
    expect(act.script.steps.slice(-1)).toEqual(['close:aborted']);
    expect(act.script.count('release')).toBe(0);
  });

  test('pause: it is told to stop, nothing moves until resume, then the same step goes on', async () => {
    const [first] = plan[activity] ?? [];
    const act = await stage.start({ ...plan, [activity]: [first, DONE] }, IN_MIDST);
    await act.script.begun(activity);
    await act.handle.signal('pause');
    const paused = await act.untilWaiting('paused');
    expect(paused).toMatchObject({ phase, paused: true, control: 'none' });
    await env.sleep('3 days');
    expect(act.script.count(activity)).toBe(1);
    await act.handle.signal('resume');
    expect(await act.ending()).toMatchObject(completed);
  });
});

describe.each(['seal', 'guard'] as const)('in %s, which ends when it has ended', (activity) => {
  const answer = activity === 'seal' ? { kind: 'sealed' as const } : { kind: 'passed' as const };
  const plan: Plan = { [activity]: [untilStopped({ ...answer, counts: COUNTS })] };

  test.each([
    ['cancel', cancelled, 'release:cancelled'],
    ['abort', aborted, 'close:aborted'],
  ])('%s: what it says is waited for, then the run ends', async (signal, end, last) => {
    const act = await stage.start(plan);
    await act.script.begun(activity);
    await act.handle.signal(signal);
    expect(await act.ending()).toMatchObject(end);
    expect(act.script.steps.slice(-2)).toEqual([activity, last]);
  });

  test('pause: the next phase waits for resume', async () => {
    const act = await stage.start(plan);
    await act.script.begun(activity);
    await act.handle.signal('pause');
    await act.untilWaiting('paused');
    expect(act.script.steps.slice(-1)).toEqual([activity]);
    await act.handle.signal('resume');
    expect(await act.ending()).toMatchObject(completed);
    expect(act.script.count(activity)).toBe(1);
  });
});

describe('messages that meet no activity', () => {
  test.each([
    ['cancel', cancelled, 'release:cancelled'],
    ['abort', aborted, 'close:aborted'],
  ])(
    '%s in the very first workflow task is heeded before anything is launched',
    async (signal, end, last) => {
      const act = await stage.startWith(signal, {});
      expect(await act.ending()).toMatchObject(end);
      expect(act.script.steps).toEqual(['admit', last]);
    },
  );

  test('pause in the very first workflow task holds the run before init', async () => {
    const act = await stage.startWith('pause', {});
    await act.untilWaiting('paused');
    expect(act.script.steps).toEqual(['admit']);
    await act.handle.signal('resume');
    expect(await act.ending()).toMatchObject(completed);
  });

  test.each([
    ['a wait', wait(86_400_000), 'retry'],
    ['blocked', BLOCKED, 'blocked'],
  ] as const)('cancel during %s ends the run at once', async (_, result, kind) => {
    const act = await stage.start({ deliver: [result] });
    await act.untilWaiting(kind);
    await act.handle.signal('cancel');
    expect(await act.ending()).toMatchObject(cancelled);
    expect(act.script.count('deliver')).toBe(1);
    expect(await act.lasted()).toBeLessThan(60_000);
  });

  test('cancel while paused ends the run', async () => {
    const act = await stage.startWith('pause', {});
    await act.untilWaiting('paused');
    await act.handle.cancel();
    expect(await act.ending()).toEqual({ kind: 'cancelled' });
  });

  test('pause and resume while a delay is waited for do not shorten it by more than a look', async () => {
    const act = await stage.start({ deliver: [wait(86_400_000), wait(80_000_000), DONE] });
    await act.untilWaiting('retry');
    await act.handle.signal('pause');
    await act.untilWaiting('paused');
    await act.handle.signal('resume');
    expect(await act.ending()).toMatchObject(completed);
    expect(await act.lasted()).toBeGreaterThan(80_000_000);
    expect(act.script.count('deliver')).toBe(4);
  });

  test.each([
    ['cancel', cancelled],
    ['abort', aborted],
  ])('%s that comes while the step finds itself blocked is not slept over', async (signal, end) => {
    const act = await stage.start({ deliver: [untilStopped(BLOCKED)] });
    await act.script.begun('deliver');
    await act.handle.signal(signal);
    expect(await act.ending()).toMatchObject(end);
    expect(act.script.count('deliver')).toBe(1);
  });

  test('pause and resume in the middle of a window, again and again, lose no window and repeat none', async () => {
    const window = untilStopped(async () => {
      await act.handle.signal('resume');
      return MORE;
    });
    const act: Act = await stage.start({ deliver: [window, window, window, DONE] });
    for (const nth of [1, 2, 3]) {
      await act.script.begun('deliver', nth);
      await act.handle.signal('pause');
    }
    expect(await act.ending()).toMatchObject(completed);
    expect(act.script.count('deliver')).toBe(5);
  });
});

describe('cancel meets infrastructure that is away', () => {
  test('cancel between two attempts of an activity does not wait for its backoff', async () => {
    const act = await stage.start({ guard: [failing('unavailable', 'journal.unavailable')] });
    await act.script.begun('guard');
    await act.handle.signal('cancel');
    expect(await act.ending()).toMatchObject(cancelled);
    expect(act.script.count('guard')).toBeLessThan(4);
  });

  test('cancel before the journal has admitted anything ends without a run', async () => {
    const act = await stage.start({ admit: [failing('unavailable', 'journal.unavailable')] });
    await act.script.begun('admit');
    await act.handle.signal('cancel');
    expect(await act.ending()).toMatchObject({
      kind: 'result',
      result: { outcome: 'cancelled', runId: null },
    });
    expect(act.script.count('release')).toBe(0);
    expect(await act.progress()).toMatchObject({ phase: 'closed', runId: null });
  });

  test('a release that the journal does not take holds nobody up for longer than a minute', async () => {
    const act = await stage.start({
      deliver: [untilStopped(STOPPED)],
      release: [failing('unavailable', 'journal.unavailable')],
    });
    await act.script.begun('deliver');
    await act.handle.signal('cancel');
    expect(await act.ending()).toMatchObject(cancelled);
    expect(await act.lasted()).toBeLessThan(90_000);
  });
});

describe('rule 10: abort', () => {
  test('what is unresolved is resolved first, and nothing new is launched meanwhile', async () => {
    const act = await stage.start({
      deliver: [untilStopped(STOPPED), wait(30_000, 'lost'), DONE],
      close: [UNRESOLVED, UNRESOLVED, CLOSED],
    });
    await act.script.begun('deliver');
    await act.handle.signal('abort');
    expect(await act.ending()).toMatchObject(aborted);
    expect(act.script.steps.slice(-6)).toEqual([
      'deliver:upsert',
      'close:aborted',
      'deliver:upsert',
      'close:aborted',
      'deliver:upsert',
      'close:aborted',
    ]);
    const resolving = act.script.calls.filter((c) => c.name === 'deliver').slice(1);
    expect(resolving.map((c) => c.args.resolveOnly)).toEqual([true, true]);
  });

  test('a provider’s delay for a batch that turned out not applied is not waited for', async () => {
    const act = await stage.start({
      deliver: [untilStopped(STOPPED), wait(86_400_000)],
      close: [UNRESOLVED, CLOSED],
    });
    await act.script.begun('deliver');
    await act.handle.signal('abort');
    expect(await act.ending()).toMatchObject(aborted);
    expect(await act.lasted()).toBeLessThan(60_000);
  });

  test('while blocked it waits for the batch without spinning, and asks again on resume', async () => {
    let open = true;
    const act = await stage.start({
      deliver: [BLOCKED],
      close: [async () => (open ? UNRESOLVED : CLOSED)],
    });
    await act.untilWaiting('blocked');
    await act.handle.signal('abort');
    await act.until((p) => p.control === 'abort' && p.waiting?.kind === 'blocked');
    const before = act.script.calls.length;
    expect(act.script.steps.slice(-2)).toEqual(['deliver:upsert', 'close:aborted']);
    await env.sleep('10 days');
    // A cancel cannot make unknown what has to be known first, and does not make the workflow spin either.
    await act.handle.cancel();
    await act.until((p) => p.waiting?.kind === 'blocked');
    await env.sleep('10 days');
    expect(act.script.calls.length - before).toBeLessThanOrEqual(4);
    open = false;
    await act.handle.signal('resume');
    expect(await act.ending()).toEqual({ kind: 'cancelled' });
    expect(act.script.steps.slice(-1)).toEqual(['close:aborted']);
  });

  test.each([
    ['misconfigured', { kind: 'misconfigured' as const, code: 'http-401', counts: COUNTS }],
    ['done', DONE],
    ['rejected', { kind: 'rejected' as const, code: 'http-422', counts: COUNTS }],
  ])('a step that says %s while something stays unresolved does not spin', async (_, answer) => {
    let open = true;
    const act = await stage.start({
      deliver: [untilStopped(STOPPED), answer],
      close: [async () => (open ? UNRESOLVED : CLOSED)],
    });
    await act.script.begun('deliver');
    await act.handle.signal('abort');
    const { waiting } = await act.until((p) => p.waiting !== null && p.waiting.kind !== 'draining');
    expect(waiting?.code).toBe(answer.kind === 'misconfigured' ? answer.code : 'unresolved');
    await env.sleep('10 minutes');
    expect(act.script.count('close')).toBeLessThan(15);
    open = false;
    await act.handle.signal('resume');
    expect(await act.ending()).toMatchObject(aborted);
  });

  test('while requests in flight are being finished, the run says that it drains', async () => {
    let land = () => {};
    const landed = new Promise<void>((resolve) => {
      land = resolve;
    });
    const act = await stage.start({
      deliver: [
        async () => {
          await landed;
          return STOPPED;
        },
      ],
    });
    await act.script.begun('deliver');
    await act.handle.signal('abort');
    expect((await act.untilWaiting('draining')).waiting?.code).toBe('abort');
    land();
    expect(await act.ending()).toMatchObject(aborted);
  });

  test.each(['too late at the close', 'too late in the promotion'])(
    '%s: the run completes and says so',
    async (when) => {
      const inPromotion = when.endsWith('promotion');
      const act: Act = await stage.start({
        finish: [inPromotion ? DONE : untilStopped(STOPPED)],
        close: [{ kind: 'too-late', counts: COUNTS }],
        promote: [
          async () => {
            if (inPromotion) await act.handle.signal('abort');
            return { counts: { ...COUNTS, added: 6 } };
          },
        ],
      });
      if (!inPromotion) {
        await act.script.begun('finish');
        await act.handle.signal('abort');
      }
      expect(await act.ending()).toEqual({
        kind: 'result',
        result: { outcome: 'completed', runId: '1', counts: { ...COUNTS, added: 6 }, abortTooLate: true },
      });
      expect(act.script.steps.slice(-1)).toEqual(['promote']);
    },
  );

  test('an abort outlives a cancel that comes after it', async () => {
    const act = await stage.start({ deliver: [untilStopped(STOPPED)] });
    await act.script.begun('deliver');
    await act.handle.signal('abort');
    await act.handle.signal('cancel');
    expect(await act.ending()).toMatchObject(aborted);
  });

  test('a cancel that turns out too late leaves a completed run completed, also by Temporal’s word', async () => {
    const act: Act = await stage.start({
      promote: [
        async () => {
          await act.handle.cancel();
          return { counts: COUNTS };
        },
      ],
    });
    expect(await act.ending()).toMatchObject(completed);
    expect((await act.handle.describe()).status.name).toBe('COMPLETED');
  });
});
