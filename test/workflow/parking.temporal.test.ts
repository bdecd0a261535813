/** A run beyond its limits waits, durably, for an answer to what it shows (design.md section 4, Guard and Control). */

import { setTimeout as sleep } from 'node:timers/promises';
import { ApplicationFailure, WorkflowUpdateFailedError } from '@temporalio/client';
import type { TestWorkflowEnvironment } from '@temporalio/testing';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { DecideResult } from '../../src/activities/results.ts';
import { startTimeSkipping } from '../support/temporal.ts';
import {
  admitted,
  COUNTS,
  continuing,
  DONE,
  held,
  MORE,
  type Plan,
  Script,
  SHOWN,
  untilStopped,
} from './script.ts';
import { type Act, Stage } from './stage.ts';

const OTHER = `sha256:${'0'.repeat(64)}`;
const DAY_MS = 86_400_000;

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

const passed = { kind: 'passed', approved: 0, counts: COUNTS } as const;
const completed = { kind: 'result', result: { outcome: 'completed' } };
const once: Plan = { guard: [held(), passed] };

/** Why an update was refused; `null` where it was taken. */
async function answered(act: Act, update: 'approve' | 'reject', decision: unknown): Promise<string | null> {
  try {
    await act.handle.executeUpdate(update, { args: [decision] });
    return null;
  } catch (error) {
    if (!(error instanceof WorkflowUpdateFailedError) || !(error.cause instanceof ApplicationFailure))
      throw error;
    return error.cause.type ?? '';
  }
}
const approved = (act: Act) => answered(act, 'approve', { shown: SHOWN });

/** The failure that an execution ends with. */
async function failure(act: Act): Promise<unknown> {
  return act.handle.result().then(
    () => null,
    (error: { readonly cause?: ApplicationFailure }) => {
      const { type, details, nonRetryable } = error.cause ?? {};
      return { type, code: (details?.[0] as { readonly code?: string } | undefined)?.code, nonRetryable };
    },
  );
}

describe('a parked run', () => {
  test('shows what it would do, until when it waits, and how to answer', async () => {
    const act = await stage.start({ guard: [held()] });
    const { parked, waiting, phase } = await act.untilWaiting('parked');
    expect(phase).toBe('guard');
    expect(parked).toMatchObject({ code: 'max-removals', removals: 8, held: 20, shown: SHOWN });
    expect(waiting).toEqual({
      kind: 'parked',
      code: 'max-removals',
      untilMs: parked?.deadlineMs,
      batch: null,
    });
    const details = await act.details();
    expect(details).toContain('would remove 8 of 20 members (40.0 %)');
    expect(details).toContain(new Date(parked?.deadlineMs ?? 0).toISOString());
    expect(details).toContain(`{"shown": "${SHOWN}"}`);
    for (const command of ['retl approve vip-customers', 'retl reject vip-customers'])
      expect(details).toContain(command);
    await act.handle.signal('cancel');
    await act.ending();
  });

  test('asks the journal once, then not before the deadline, an answer or a message', async () => {
    const act = await stage.start({ guard: [held(), held({ leftMs: 1 }), passed] });
    await act.untilWaiting('parked');
    await env.sleep('23 hours');
    expect(act.script.count('guard')).toBe(1);
    await act.handle.signal('resume');
    expect(await act.ending()).toMatchObject(completed);
    expect(act.script.count('guard')).toBe(3);
  });

  test('ends at its deadline where nobody answers: closed, failed, and never shown as success', async () => {
    const act = await stage.start({
      guard: [held(), { kind: 'guard-expired', code: 'max-removals', counts: COUNTS }],
    });
    expect(await failure(act)).toEqual({ type: 'guard-held', code: 'run.guard-expired', nonRetryable: true });
    expect(act.script.steps.slice(-3)).toEqual(['guard', 'guard', 'close:guard-expired']);
    expect(await act.lasted()).toBeGreaterThanOrEqual(DAY_MS);
    expect(act.script.count('deliver')).toBe(0);
  });
});

describe('the updates', () => {
  test('approve: the journal has it, the guard looks again, the run goes on', async () => {
    const act = await stage.start(once);
    await act.untilWaiting('parked');
    expect(await approved(act)).toBeNull();
    expect(await act.ending()).toMatchObject(completed);
    expect(act.script.calls.find((call) => call.name === 'decide')?.args).toEqual({
      run: '1',
      shown: SHOWN,
      verdict: 'approved',
    });
    expect(act.script.steps.filter((s) => s === 'guard' || s.startsWith('decide'))).toEqual([
      'guard',
      'decide:approved',
      'guard',
    ]);
  });

  test('reject: the run is closed, and fails', async () => {
    const act = await stage.start({
      guard: [held(), { kind: 'guard-rejected', code: 'max-removals', counts: COUNTS }],
    });
    await act.untilWaiting('parked');
    expect(await answered(act, 'reject', { shown: SHOWN })).toBeNull();
    expect(await failure(act)).toEqual({
      type: 'guard-held',
      code: 'run.guard-rejected',
      nonRetryable: true,
    });
    expect(act.script.steps.slice(-3)).toEqual(['decide:rejected', 'guard', 'close:guard-rejected']);
  });

  test('are refused where nothing is asked, or something else, and leave no trace', async () => {
    const act = await stage.start({ extract: [untilStopped(DONE), DONE], ...once });
    await act.script.begun('extract');
    expect(await approved(act)).toBe('not-parked');
    await act.handle.signal('pause');
    await act.untilWaiting('paused');
    await act.handle.signal('resume');
    await act.untilWaiting('parked');
    expect(await answered(act, 'approve', { shown: OTHER })).toBe('stale');
    for (const garbage of [undefined, null, 'yes', {}, { shown: 7 }])
      expect(await answered(act, 'reject', garbage)).toBe('input');
    expect(act.script.count('decide')).toBe(0);
    expect(await approved(act)).toBeNull();
    await act.ending();
  });

  test.each(['expired', 'answered', 'closed', 'stale'] as const)(
    'say why the journal refuses: %s',
    async (why) => {
      const act = await stage.start({ guard: [held()], decide: [{ kind: 'refused', why }] });
      await act.untilWaiting('parked');
      expect(await approved(act)).toBe(why);
      expect(await act.progress()).toMatchObject({ waiting: { kind: 'parked' } });
      await act.handle.signal('cancel');
      await act.ending();
    },
  );

  test('an answer under way is given its word before the execution ends', async () => {
    const slow = async (): Promise<DecideResult> => {
      await sleep(700);
      return { kind: 'decided' };
    };
    for (const end of ['cancel', 'abort', 'temporal'] as const) {
      const act = await stage.start({ guard: [held()], decide: [slow] });
      await act.untilWaiting('parked');
      const answer = approved(act);
      await act.script.begun('decide');
      await (end === 'temporal' ? act.handle.cancel() : act.handle.signal(end));
      expect(await answer).toBeNull();
      await act.ending();
    }
  });
});

describe('control', () => {
  test.each([
    ['cancel', { kind: 'result', result: { outcome: 'cancelled' } }, 'release:cancelled'],
    ['abort', { kind: 'result', result: { outcome: 'aborted' } }, 'close:aborted'],
  ] as const)('%s ends the wait', async (signal, ending, last) => {
    const act = await stage.start({ guard: [held()] });
    await act.untilWaiting('parked');
    await act.handle.signal(signal);
    expect(await act.ending()).toMatchObject(ending);
    expect(act.script.steps.at(-1)).toBe(last);
  });

  test('Temporal’s own cancel lets the run go, too', async () => {
    const act = await stage.start({ guard: [held()] });
    await act.untilWaiting('parked');
    await act.handle.cancel();
    expect(await act.ending()).toEqual({ kind: 'cancelled' });
    expect(act.script.steps.at(-1)).toBe('release:cancelled');
  });

  test('paused, it can be answered, and goes on only when it is resumed', async () => {
    const act = await stage.start(once);
    await act.untilWaiting('parked');
    await act.handle.signal('pause');
    expect(await act.untilWaiting('paused')).toMatchObject({ parked: { shown: SHOWN } });
    expect(await approved(act)).toBeNull();
    await env.sleep('1 hour');
    expect(act.script.count('guard')).toBe(1);
    await act.handle.signal('resume');
    expect(await act.ending()).toMatchObject(completed);
  });

  test('told to look, it asks the guard again; while it is paused the pause outlives that', async () => {
    const act = await stage.start({ guard: [held(), held(), passed] });
    await act.untilWaiting('parked');
    await act.handle.signal('look');
    await act.until(() => act.script.count('guard') === 2);
    await act.untilWaiting('parked');
    await act.handle.signal('pause');
    await act.untilWaiting('paused');
    await act.handle.signal('look');
    await env.sleep('1 hour');
    expect(await act.progress()).toMatchObject({ paused: true, waiting: { kind: 'paused' } });
    expect(act.script.count('guard')).toBe(2);
    await act.handle.signal('resume');
    expect(await act.ending()).toMatchObject(completed);
  });
});

describe('parked again', () => {
  test.each(['additions', 'removals'] as const)(
    'at the end of the %s: answered, the phase goes on',
    async (phase) => {
      const act = await stage.start(
        { admit: [admitted('1', { resume: 'held', phase })], deliver: [MORE, held(), DONE] },
        continuing('1'),
      );
      expect(await act.untilWaiting('parked')).toMatchObject({ phase, parked: { shown: SHOWN } });
      expect(await approved(act)).toBeNull();
      expect(await act.ending()).toMatchObject(completed);
      expect(await act.progress()).toMatchObject({ parked: null });
    },
  );

  test('before the removals, and rejected: closed as it is, with no removal', async () => {
    const act = await stage.start({
      deliver: [held(), { kind: 'guard-rejected', code: 'max-removals', counts: COUNTS }],
    });
    await act.untilWaiting('parked');
    await answered(act, 'reject', { shown: SHOWN });
    expect(await failure(act)).toMatchObject({ code: 'run.guard-rejected' });
    expect(act.script.steps.slice(-3)).toEqual(['decide:rejected', 'deliver:upsert', 'close:guard-rejected']);
  });
});

describe('a run that nobody approved', () => {
  test.each(['guard-rejected', 'guard-expired'] as const)(
    '%s, is closed so by the next, which reads anew',
    async (resume) => {
      const act = await stage.start({ admit: [admitted('1', { resume, phase: 'guard' }), admitted('2')] });
      expect(await act.ending()).toMatchObject({
        kind: 'result',
        result: { outcome: 'completed', runId: '2' },
      });
      expect(act.script.steps.slice(0, 4)).toEqual(['admit', `close:${resume}`, 'admit', 'init']);
    },
  );
});

describe('what is said beforehand', () => {
  const plan = { generation: SHOWN, removals: 8, removalDigest: OTHER };
  const sealed = (phase: 'guard' | 'additions') => [
    admitted('1', { resume: 'sealed', phase }),
    admitted('2'),
  ];
  const guards = (script: Script) => script.calls.filter((c) => c.name === 'guard').map((c) => c.args);

  test('so many removals in all: what a resumed run took of them is not there for the fresh one', async () => {
    const script = new Script({
      admit: sealed('guard'),
      guard: [{ ...passed, approved: 6 }, passed],
    });
    const act = await stage.start(script, { mirror: 'vip-customers', approveUpTo: 10 });
    expect(await act.ending()).toMatchObject(completed);
    expect(guards(script)).toMatchObject([
      { run: '1', approveUpTo: 10 },
      { run: '2', approveUpTo: 4 },
    ]);
  });

  test('a saved plan that the source has moved past: closed with nothing sent, and refused', async () => {
    const script = new Script({ guard: [{ kind: 'plan-stale', counts: COUNTS }] });
    const act = await stage.start(script, { mirror: 'vip-customers', plan });
    expect(await failure(act)).toEqual({ type: 'refused', code: 'run.plan-stale', nonRetryable: true });
    expect(guards(script)).toMatchObject([{ plan }]);
    expect(script.steps.slice(-2)).toEqual(['guard', 'close:discarded']);
  });

  test('a saved plan makes an unsent snapshot give way, and one run of it is all', async () => {
    const script = new Script({ admit: sealed('guard') });
    const act = await stage.start(script, { mirror: 'vip-customers', plan });
    expect(await act.ending()).toMatchObject({
      kind: 'result',
      result: { outcome: 'completed', runId: '2' },
    });
    expect(guards(script)).toMatchObject([{ run: '2', plan }]);
    expect(script.steps.slice(0, 3)).toEqual(['admit', 'close:discarded', 'admit']);
    expect(script.count('admit')).toBe(2);
  });

  test('a saved plan does not finish what another run has begun to send', async () => {
    const script = new Script({ admit: sealed('additions') });
    const act = await stage.start(script, { mirror: 'vip-customers', plan });
    expect(await failure(act)).toMatchObject({ type: 'refused', code: 'run.plan-stale' });
    expect(script.steps).toEqual(['admit', 'release:cancelled']);
  });

  test.each([
    { approveUpTo: -1 },
    { approveUpTo: 0.5 },
    { approveUpTo: '5' },
    { plan: null },
    { plan: { ...plan, generation: 'x' } },
    { plan: { ...plan, removals: '8' } },
    { aproveUpTo: 5 },
  ])('a wish that is none is refused: %j', async (wish) => {
    const act = await stage.start({}, { mirror: 'vip-customers', ...wish });
    expect(await failure(act)).toMatchObject({ type: 'invalid', code: 'input' });
    expect(act.script.steps).toEqual([]);
  });
});
