/**
 * Rules 3 and 10: an opening and a finish that an earlier attempt prepared, or that the destination takes for later, through
 * the activity's own code.
 */

import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import type { OpenWriter, RunAttempt } from '../../src/activities/attempt.ts';
import { runStep } from '../../src/activities/step.ts';
import type { StepFound } from '../../src/destinations/port.ts';
import { stepBatch } from '../../src/journal/batch-record.ts';
import { countRun } from '../../src/journal/run-record.ts';
import { closeRun, promote, recordBaseline } from '../../src/journal/runs.ts';
import { stateOf } from '../support/journal.ts';
import { ScriptedRun } from '../support/journal-run.ts';
import { BatchScene } from '../support/journal-scene.ts';

const scene = new BatchScene();
const JOB = { kind: 'pending', jobIds: ['job-1'], receipt: { job: 'job-1' } } as const;
const ACCEPTED = { kind: 'accepted', receipt: { done: true } } as const;

beforeAll(() => scene.open());
afterAll(() => scene.close());
beforeEach(async () => {
  scene.run = await scene.fresh();
  await scene.run.deliver('upsert');
  await scene.run.beginRemovals();
  await scene.run.beginFinish();
});

interface Told {
  /** The step; absent: the finish. */
  readonly action?: 'init' | 'finish';
  readonly resolveOnly?: boolean;
  readonly pollNow?: boolean;
  readonly deadlineMs?: number;
  /** What the adapter writes into its store meanwhile. */
  readonly writes?: ReadonlyMap<string, string>;
}

let asked = 0;
let sent = 0;

/** A new attempt that brings the step as far as the answers let it. */
async function finish(answer: StepFound, told: Told = {}) {
  const run = scene.run;
  await run.again();
  const a = {
    deps: { journal: scene.journal.runtime },
    attempt: run.attempt,
    record: await run.record(),
    settings: { batch: { pollDeadlineMs: told.deadlineMs ?? 86_400_000 } },
    stop: new AbortController().signal,
    counts: () => countRun(scene.journal.runtime, run.run),
  } as unknown as RunAttempt;
  const w = {
    destination: { capabilities: { recovery: 'lookup', longestRequestMs: 1_000 } },
    store: {
      collect: async (work: () => Promise<unknown>) => ({
        value: await work(),
        writes: told.writes ?? new Map(),
      }),
    },
  } as unknown as OpenWriter;
  return runStep(a, w, {
    action: told.action ?? 'finish',
    resolveOnly: told.resolveOnly ?? false,
    pollNow: told.pollNow ?? true,
    request: () => null,
    send: async () => {
      sent += 1;
      if (answer.kind === 'missing') throw new Error('only a question is answered so');
      return answer;
    },
    reconcile: async () => {
      asked += 1;
      return answer;
    },
  });
}

const state = async (action: 'init' | 'finish' = 'finish') =>
  stepBatch(scene.journal.runtime, scene.run.attempt, action);

test.each(['init', 'finish'] as const)(
  'rule 3: a step that was prepared is provably unsent: the next attempt sends it, once and as it was prepared: %s',
  async (action) => {
    if (action === 'init') {
      scene.run = await ScriptedRun.open(scene.journal.runtime, { mirror: scene.name() });
      await recordBaseline(scene.journal.runtime, scene.run.attempt, 'new-empty', 'verified', null);
    }
    const id = await scene.run.prepareStep(action);
    const before = { sent, asked };
    expect(await finish(ACCEPTED, { action })).toMatchObject({ kind: 'done' });
    expect({ sent, asked }).toEqual({ ...before, sent: before.sent + 1 });
    expect(await state(action)).toMatchObject({ id, state: 'settled', sending: 1, resends: 0 });
  },
);

test('a pending finish is staged with its jobs, promotes nothing, closes nothing, and is polled until it is accepted', async () => {
  expect(await finish(JOB, { writes: new Map([['finish-job', 'job-1']]) })).toMatchObject({
    kind: 'pending',
    code: 'staged',
    ageMs: 0,
  });
  expect(await state()).toMatchObject({ state: 'staged', jobIds: ['job-1'], polls: 0 });
  expect(await stateOf(promote(scene.journal.runtime, scene.run.attempt))).toBe('RM003');
  expect(await stateOf(closeRun(scene.journal.runtime, scene.run.attempt, 'aborted', null))).toBe('RM003');
  expect(await finish(JOB)).toMatchObject({ kind: 'pending' });
  expect(await state()).toMatchObject({ state: 'staged', polls: 1 });
  const before = sent;
  expect(await finish(ACCEPTED)).toMatchObject({ kind: 'done' });
  expect(sent).toBe(before);
  expect((await scene.run.record()).phase).toBe('promote');
  const { rows } = await scene.journal.admin.query(`select value from retl.store where key = 'finish-job'`);
  expect(rows).toEqual([{ value: 'job-1' }]);
});

test('before its time nothing is asked, unless somebody wants it', async () => {
  await finish({ ...JOB, pollAfterMs: 3_600_000 });
  const before = asked;
  const waits = await finish(ACCEPTED, { pollNow: false });
  expect(waits).toMatchObject({ kind: 'pending', code: 'staged' });
  expect(waits.kind === 'pending' ? waits.ms : 0).toBeGreaterThan(3_500_000);
  expect(asked).toBe(before);
  expect(await finish(ACCEPTED)).toMatchObject({ kind: 'done' });
});

const NOTHINGS: readonly (readonly [string, StepFound])[] = [
  ['http-500', { kind: 'unknown', code: 'http-500' }],
  ['http-401', { kind: 'misconfigured', code: 'http-401', reason: 'no' }],
  ['http-429', { kind: 'not-applied', code: 'http-429', retryAfterMs: 7_000_000, tooLarge: false }],
  ['reply-names-other-jobs', { ...JOB, jobIds: ['job-2'] }],
  ['reply-lacks-job-id', { ...JOB, jobIds: [''] }],
];
test.each(NOTHINGS)('poll-error: %s leaves it staged, and shows why', async (code, answer) => {
  await finish(JOB);
  const before = sent;
  expect(await finish(answer)).toMatchObject({ kind: 'pending', code });
  expect(await state()).toMatchObject({ state: 'staged', reason: code, jobIds: ['job-1'] });
  expect(await finish(ACCEPTED, { resolveOnly: true })).toMatchObject({ kind: 'done' });
  expect(sent).toBe(before);
});

test('a job that nobody knows blocks the run with the finish named; asked again it is polled, and not sent', async () => {
  await finish(JOB);
  const before = sent;
  const blocked = { kind: 'blocked', code: 'poll-http-404', batch: (await state())?.id };
  expect(await finish({ kind: 'missing', code: 'poll-http-404' })).toMatchObject(blocked);
  expect(await state()).toMatchObject({ state: 'staged', reason: 'jobs-lost:poll-http-404' });
  // Before its time it is not asked about, and shown as what it is.
  const polls = asked;
  expect(await finish(ACCEPTED, { pollNow: false })).toMatchObject(blocked);
  expect(asked).toBe(polls);
  expect(await finish(JOB)).toMatchObject({ kind: 'pending', code: 'staged' });
  expect(await finish(ACCEPTED)).toMatchObject({ kind: 'done' });
  expect(sent).toBe(before);
});

test('a job that is refused ends the run, and can be closed then', async () => {
  await finish(JOB);
  expect(await finish({ kind: 'refused', code: 'job-failed', reason: 'no' })).toMatchObject({
    kind: 'rejected',
    code: 'job-failed',
  });
  expect(await stateOf(closeRun(scene.journal.runtime, scene.run.attempt, 'rejected', null))).toBeNull();
});

test('past its deadline it blocks the run, is not sent again, and is asked about by whoever looks again', async () => {
  await finish(JOB, { deadlineMs: 1 });
  const before = sent;
  const late = { deadlineMs: 1, pollNow: false };
  expect(await finish(JOB, late)).toMatchObject({ kind: 'blocked', code: 'poll-deadline' });
  expect(await finish(ACCEPTED, late)).toMatchObject({ kind: 'done' });
  expect(sent).toBe(before);
});

test('rule 3: a look-up that got no answer says nothing: the finish is asked about again, not blocked, and not sent', async () => {
  await finish({ kind: 'unknown', code: 'reset' });
  const before = sent;
  const unanswered = { kind: 'unknown', code: 'lookup-http-500', unanswered: true } as const;
  for (const round of [1, 2, 3]) {
    const end = await finish(unanswered);
    expect(end, String(round)).toMatchObject({ kind: 'wait', code: 'lookup-http-500', ms: 30_000 });
  }
  expect(await state()).toMatchObject({ state: 'unknown', reason: 'reset' });
  expect(await finish({ kind: 'unknown', code: 'two-of-them' })).toMatchObject({
    kind: 'blocked',
    code: 'two-of-them',
  });
  expect(await finish(ACCEPTED)).toMatchObject({ kind: 'done' });
  expect(sent).toBe(before);
});

test('a finish that answers with no job id is unknown, and not pending', async () => {
  expect(await finish({ ...JOB, jobIds: [] })).toMatchObject({ kind: 'wait', code: 'reply-lacks-job-id' });
  expect(await state()).toMatchObject({ state: 'unknown' });
});
