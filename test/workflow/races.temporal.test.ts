/**
 * Messages that meet an activity at the moment it ends, on a real server: the time-skipping one loses a workflow task over
 * an activity that completes while it is being cancelled, and tries again what was told to stop.
 */

import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type DevServer, startDevServer } from '../support/temporal.ts';
import { admitted, BATCH, BLOCKED, COUNTS, DONE, failing, MORE, untilStopped } from './script.ts';
import { type Act, Stage } from './stage.ts';

let server: DevServer;
let stage: Stage;
beforeAll(async () => {
  server = await startDevServer();
  stage = await Stage.open(server.env);
});
afterAll(async () => {
  await stage.close();
  await server.stop();
});

const cancelled = { kind: 'result', result: { outcome: 'cancelled', runId: '1' } };
const aborted = { kind: 'result', result: { outcome: 'aborted', runId: '1' } };
const completed = { kind: 'result', result: { outcome: 'completed' } };
const ENDINGS = [
  ['cancel', cancelled],
  ['abort', aborted],
] as const;

describe('a message and an answer at the same moment', () => {
  test.each(ENDINGS)('%s while seal ends', async (signal, end) => {
    const act: Act = await stage.start({
      seal: [
        async () => {
          await act.handle.signal(signal);
          return { kind: 'sealed', counts: COUNTS };
        },
      ],
    });
    expect(await act.ending()).toMatchObject(end);
    expect(act.script.count('guard')).toBe(0);
  });

  test.each(ENDINGS)('%s while a step finds itself blocked', async (signal, end) => {
    const act: Act = await stage.start({
      deliver: [
        async () => {
          await act.handle.signal(signal);
          return BLOCKED;
        },
      ],
    });
    expect(await act.ending()).toMatchObject(end);
    expect(act.script.count('deliver')).toBe(1);
  });

  test('pause and resume between windows', async () => {
    const pausing = async () => {
      await act.handle.signal('pause');
      await act.handle.signal('resume');
      return MORE;
    };
    const act: Act = await stage.start({ deliver: [pausing, pausing, pausing, DONE] });
    expect(await act.ending()).toMatchObject(completed);
    expect(act.script.count('deliver')).toBe(5);
  });
});

describe('an attempt that fails after it was told to stop', () => {
  /** Fails as with a lost database. */
  const away = untilStopped(failing('unavailable', 'journal.unavailable'));

  test.each(ENDINGS)('%s: it has stopped, and not failed', async (signal, end) => {
    const act = await stage.start({ deliver: [away] });
    await act.script.begun('deliver');
    await act.handle.signal(signal);
    expect(await act.ending()).toMatchObject(end);
    expect(act.script.count('deliver')).toBe(1);
  });

  test('pause: the same, and the run goes on after resume', async () => {
    const act = await stage.start({ extract: [away, DONE] });
    await act.script.begun('extract');
    await act.handle.signal('pause');
    await act.untilWaiting('paused');
    await act.handle.signal('resume');
    expect(await act.ending()).toMatchObject(completed);
    expect(act.script.count('extract')).toBe(2);
  });

  test('a failure that no retry would mend is still one', async () => {
    const act = await stage.start({ deliver: [untilStopped(failing('defect', 'journal.refused'))] });
    await act.script.begun('deliver');
    await act.handle.signal('pause');
    expect(await act.ending()).toMatchObject({ kind: 'failed', type: 'invalid' });
  });
});

describe('search attributes', () => {
  const shown = async (act: Act) => {
    const { searchAttributes } = await act.handle.describe();
    return [searchAttributes.RetlMirror, searchAttributes.RetlPhase, searchAttributes.RetlOutcome].flat();
  };

  test('where they are registered they show mirror, phase, what is waited for, and outcome', async () => {
    const act = await stage.start({
      admit: [admitted('1', { searchAttributes: true })],
      deliver: [BLOCKED, DONE],
    });
    await act.untilWaiting('blocked');
    expect(await shown(act)).toEqual(['vip-customers', 'blocked', undefined]);
    expect(await act.details()).toContain(`batch \`${BATCH}\``);
    await act.handle.signal('resume');
    expect(await act.ending()).toMatchObject(completed);
    expect(await shown(act)).toEqual(['vip-customers', 'closed', 'completed']);
  });

  test('a run that was never admitted is found by its mirror, and shows how it ended', async () => {
    const refusal = {
      kind: 'refused',
      code: 'run.busy',
      message: 'by whom',
      searchAttributes: true,
    } as const;
    const refused = await stage.start({ admit: [refusal] });
    expect(await refused.ending()).toMatchObject({ kind: 'failed', type: 'refused' });
    expect(await shown(refused)).toEqual(['vip-customers', 'closed', 'refused']);
    const invalid = await stage.start({ admit: [failing('invalid', 'config.invalid', true)] });
    expect(await invalid.ending()).toMatchObject({ kind: 'failed', type: 'invalid' });
    expect(await shown(invalid)).toEqual(['vip-customers', 'closed', 'invalid']);
  });

  test('where they are not, the workflow does without', async () => {
    const act = await stage.start();
    expect(await act.ending()).toMatchObject(completed);
    const { events } = await act.handle.fetchHistory();
    expect(events?.some((e) => e.upsertWorkflowSearchAttributesEventAttributes)).toBe(false);
  });
});
