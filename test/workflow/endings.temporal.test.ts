/** How an execution ends that does not complete: as a failure with a type and a code, and the run closed or let go. */

import { ApplicationFailure, type WorkflowFailedError } from '@temporalio/client';
import type { TestWorkflowEnvironment } from '@temporalio/testing';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { startTimeSkipping } from '../support/temporal.ts';
import {
  admitted,
  BLOCKED,
  CLOSED,
  COUNTS,
  DONE,
  failing,
  type Plan,
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

const completed = { kind: 'result', result: { outcome: 'completed' } };
const away = failing('unavailable', 'journal.unavailable');
const rejected = { kind: 'rejected' as const, code: 'http-422', counts: { ...COUNTS, rejected: 3 } };

/** The failure at the top of the execution, which is what the UI and every client show first. */
async function failure(act: Act): Promise<{ type: unknown; code: unknown; final: boolean; message: string }> {
  const error = (await act.handle.result().then(
    () => null,
    (e: unknown) => e,
  )) as WorkflowFailedError | null;
  const cause = error?.cause;
  if (!(cause instanceof ApplicationFailure)) throw new Error(`not a failure with a type: ${String(cause)}`);
  const [details] = (cause.details ?? []) as readonly { readonly code?: string }[];
  return {
    type: cause.type,
    code: details?.code,
    final: cause.nonRetryable === true,
    message: cause.message,
  };
}

describe('a step that says how the run must end', () => {
  test.each(['guard-rejected', 'guard-expired'] as const)(
    'empty-ok: %s, and nothing was sent',
    async (kind) => {
      const code = 'empty-snapshot';
      const act = await stage.start({ guard: [{ kind, code, counts: COUNTS }] });
      const end = await failure(act);
      expect(end).toMatchObject({ type: 'guard-held', code: `run.${kind}`, final: true });
      expect(end.message).toContain('would remove 1 members');
      expect(act.script.steps.slice(-2)).toEqual(['guard', `close:${kind}`]);
      expect(act.script.count('deliver')).toBe(0);
      expect(act.script.calls.at(-1)?.args.reason).toBe(code);
    },
  );

  test('invalid, found by the seal: the run is closed with its reason', async () => {
    const code = 'data.duplicate-key';
    const act = await stage.start({ seal: [{ kind: 'invalid', code, message: 'two rows', counts: COUNTS }] });
    expect(await failure(act)).toEqual({ type: 'invalid', code, final: true, message: 'two rows' });
    expect(act.script.steps.slice(-2)).toEqual(['seal', 'close:invalid']);
  });

  test.each(['deliver', 'finish', 'init'] as const)(
    'rejected in %s: closed, and says how many',
    async (step) => {
      const act = await stage.start({ [step]: [rejected], close: [{ ...CLOSED, counts: rejected.counts }] });
      const end = await failure(act);
      expect(end).toMatchObject({ type: 'rejected', code: 'http-422', final: true });
      expect(end.message).toContain('3 members');
      expect(act.script.steps.slice(-1)).toEqual(['close:rejected']);
    },
  );

  test.each(['deliver', 'finish'] as const)('misconfigured in %s: let go, to be resumed', async (step) => {
    const act = await stage.start({ [step]: [{ kind: 'misconfigured', code: 'http-401', counts: COUNTS }] });
    const end = await failure(act);
    expect(end).toMatchObject({ type: 'invalid', code: 'http-401', final: true });
    expect(end.message).toContain('is resumed');
    expect(act.script.steps.slice(-2)).toEqual([
      step === 'deliver' ? 'deliver:upsert' : 'finish',
      'release:failed',
    ]);
  });
});

describe('an activity that fails', () => {
  test('for a long time: some twenty tries in about a quarter of an hour, then unavailable, and let go', async () => {
    const act = await stage.start({ deliver: [away] });
    expect(await failure(act)).toMatchObject({
      type: 'unavailable',
      code: 'journal.unavailable',
      final: true,
    });
    expect(act.script.count('deliver')).toBe(20);
    expect(act.script.steps.slice(-1)).toEqual(['release:failed']);
    const lasted = await act.lasted();
    expect(lasted).toBeGreaterThan(10 * 60_000);
    expect(lasted).toBeLessThan(20 * 60_000);
  });

  test('for a moment: it is tried again, and the run completes', async () => {
    const act = await stage.start({ promote: [away, away, { counts: COUNTS }], seal: [away, sealed] });
    expect(await act.ending()).toMatchObject(completed);
  });

  test.each([
    ['extract', 'data.invalid-row', 'close:invalid'],
    ['init', 'destination.not-empty', 'close:invalid'],
    ['deliver', 'config.secret', 'release:failed'],
  ] as const)('invalid in %s (%s): %s', async (step, code, last) => {
    const act = await stage.start({ [step]: [failing('invalid', code)] });
    expect(await failure(act)).toMatchObject({
      type: 'invalid',
      code,
      final: true,
      message: `${code}: words`,
    });
    expect(act.script.count(step)).toBe(1);
    expect(act.script.steps.slice(-1)).toEqual([last]);
  });

  test('rule 9: fenced, so that another execution has the run: nothing more is written', async () => {
    const act = await stage.start({ finish: [failing('fenced', 'run.fenced')] });
    expect(await failure(act)).toMatchObject({ type: 'refused', code: 'run.fenced', final: true });
    expect(act.script.steps.slice(-1)).toEqual(['finish']);
  });

  test('with a bug: invalid, by its code, and let go', async () => {
    const act = await stage.start({ removals: [], deliver: [failing('defect', 'journal.refused')] } as Plan);
    expect(await failure(act)).toMatchObject({ type: 'invalid', code: 'journal.refused', final: true });
    expect(act.script.steps.slice(-1)).toEqual(['release:failed']);
  });

  test('in admission: unavailable or invalid, and there is no run to let go', async () => {
    const lost = await stage.start({ admit: [away] });
    expect(await failure(lost)).toMatchObject({ type: 'unavailable', code: 'journal.unavailable' });
    const wrong = await stage.start({ admit: [failing('invalid', 'config.unknown-mirror')] });
    expect(await failure(wrong)).toMatchObject({ type: 'invalid', code: 'config.unknown-mirror' });
    expect(wrong.script.steps).toEqual(['admit']);
  });

  test.each(['run.busy', 'run.target-owned', 'run.strategy-changed'] as const)(
    'refused: %s',
    async (code) => {
      const act = await stage.start({ admit: [{ kind: 'refused', code, message: 'by whom' }] });
      expect(await failure(act)).toEqual({ type: 'refused', code, final: true, message: 'by whom' });
      expect(act.script.steps).toEqual(['admit']);
    },
  );
});

const sealed = { kind: 'sealed' as const, counts: COUNTS };

describe('an ending that meets trouble itself', () => {
  test.each([
    ['a rejection', { deliver: [rejected] }],
    ['the guard', { guard: [{ kind: 'guard-rejected', code: 'max-removals', counts: COUNTS }] }],
    ['an abort', { admit: [admitted('1')], deliver: [untilStopped(DONE)] }],
    ['a discard', { admit: [admitted('1', { resume: 'discard', phase: 'extract' })] }],
  ] as readonly (readonly [string, Plan])[])(
    'a close that fails for good after %s has a type',
    async (what, plan) => {
      const act = await stage.start({ ...plan, close: [away] });
      if (what === 'an abort') {
        await act.script.begun('deliver');
        await act.handle.signal('abort');
      }
      expect(await failure(act)).toMatchObject({ type: 'unavailable', code: 'journal.unavailable' });
      expect(act.script.steps.slice(-1)).toEqual(['release:failed']);
    },
  );

  test('a promotion that fails for good has a type, and the run is let go to be promoted by the next', async () => {
    const act = await stage.start({ promote: [away] });
    expect(await failure(act)).toMatchObject({ type: 'unavailable' });
    expect(act.script.steps.slice(-1)).toEqual(['release:failed']);
  });

  test('a release that fails does not hide why the run ended', async () => {
    const act = await stage.start({ deliver: [failing('invalid', 'config.secret')], release: [away] });
    expect(await failure(act)).toMatchObject({ type: 'invalid', code: 'config.secret' });
  });

  test('a close that fails does not hide that the data was wrong', async () => {
    const act = await stage.start({ extract: [failing('invalid', 'data.null-key')], close: [away] });
    expect(await failure(act)).toMatchObject({ type: 'invalid', code: 'data.null-key' });
    expect(act.script.steps.slice(-1)).toEqual(['release:failed']);
  });

  test('a rejected run whose other requests are unresolved waits for them; a cancel lets it go instead', async () => {
    const plan: Plan = { deliver: [rejected, BLOCKED, DONE], close: [UNRESOLVED, UNRESOLVED, CLOSED] };
    const patient = await stage.start(plan);
    await patient.untilWaiting('blocked');
    await patient.handle.signal('resume');
    expect(await failure(patient)).toMatchObject({ type: 'rejected', code: 'http-422' });

    const hurried = await stage.start(plan);
    await hurried.untilWaiting('blocked');
    await hurried.handle.signal('cancel');
    expect(await hurried.ending()).toMatchObject({ kind: 'result', result: { outcome: 'cancelled' } });
    expect(hurried.script.steps.slice(-1)).toEqual(['release:cancelled']);
  });

  test.each([
    ['cancel', 'cancelled', 'release:cancelled'],
    ['abort', 'aborted', 'close:discarded'],
  ] as const)('%s while a discard is blocked', async (signal, outcome, last) => {
    let open = true;
    const act = await stage.start({
      admit: [admitted('3', { resume: 'discard', phase: 'init' })],
      init: [BLOCKED],
      close: [async () => (open ? UNRESOLVED : CLOSED)],
    });
    await act.untilWaiting('blocked');
    await act.handle.signal(signal);
    if (signal === 'abort') {
      open = false;
      await act.handle.signal('resume');
    }
    expect(await act.ending()).toMatchObject({ kind: 'result', result: { outcome, runId: '3' } });
    expect(act.script.steps.slice(-1)).toEqual([last]);
    expect(act.script.count('admit')).toBe(1);
  });

  test.each([
    ['of a later release', { kind: 'postponed', counts: COUNTS }],
    ['of nobody', undefined],
  ])('an answer %s ends as a failure, in no loop and no failing workflow task', async (_, answer) => {
    const act = await stage.start({ extract: [answer as never] });
    const end = await failure(act);
    expect(end).toMatchObject({ type: 'invalid', code: 'defect', final: true });
    expect(end.message).toMatch(/a bug of the workflow \(\w*Error\)/);
    expect(act.script.count('extract')).toBe(1);
    const { events } = await act.handle.fetchHistory();
    expect(events?.some((e) => e.workflowTaskFailedEventAttributes)).toBe(false);
  });
});

describe('wrong inputs fail at once, and clearly', () => {
  test.each([
    ['an empty object', {}],
    ['a number for a name', { mirror: 5 }],
    ['characters that no mirror has', { mirror: 'VIP customers/../x' }],
    ['an empty name', { mirror: '' }],
    ['null', null],
    ['nothing', undefined],
    ['a bare name', 'vip-customers'],
    ['a list', ['vip-customers']],
    ['a wish that nobody fulfils', { mirror: 'vip-customers', dryRun: true }],
    ['a name of 64 characters', { mirror: 'a'.repeat(64) }],
    ['what is carried, typed by hand', { mirror: 'vip-customers', carried: 5 }],
    [
      'a control that does not exist',
      { mirror: 'v', carried: { paused: false, control: 'x', resumed: false } },
    ],
  ])('%s', async (_, input) => {
    const act = await stage.start({}, input);
    const end = await failure(act);
    expect(end).toMatchObject({ type: 'invalid', code: 'input', final: true });
    expect(end.message).toMatch(/\{"mirror": "<name>"\}|leave it out/);
    expect(act.script.calls).toEqual([]);
  });
});

describe('the query', () => {
  test('answers before admission, while it is under way, and after the end', async () => {
    let go: () => void = () => undefined;
    const gate = new Promise<void>((resolve) => {
      go = resolve;
    });
    const act = await stage.start({
      admit: [
        async () => {
          await gate;
          return admitted('9');
        },
      ],
      deliver: [wait(5_000), DONE],
    });
    const before = await act.progress();
    expect(before).toMatchObject({ mirror: 'vip-customers', runId: null, phase: 'admit', waiting: null });
    expect(before).toMatchObject({ control: 'none', paused: false, counts: { sourceRows: 0 } });
    go();
    expect(await act.untilWaiting('retry')).toMatchObject({ runId: '9', phase: 'additions', counts: COUNTS });
    await act.ending();
    expect(await act.progress()).toMatchObject({ runId: '9', phase: 'closed', counts: { added: 6 } });
  });

  test('leaks: current details hold names, ids, counts and codes, and no words of anybody else', async () => {
    const act = await stage.start({ extract: [failing('invalid', 'data.invalid-row')] });
    await failure(act);
    const details = await act.details();
    expect(details).toContain('vip-customers');
    expect(details).toContain('run 1');
    expect(details).not.toContain('words');
  });
});
