/** Rule 5, a window at a time: what goes on being sent while jobs are open, what is polled, and what stops it. */

import { setTimeout as sleep } from 'node:timers/promises';
import { noopMetricMeter } from '@temporalio/common';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import type { OpenWriter, RunAttempt } from '../../src/activities/attempt.ts';
import type { WindowEnd } from '../../src/activities/delivery/ends.ts';
import { DeliveryWindow } from '../../src/activities/delivery/window.ts';
import { RunMetrics } from '../../src/activities/run-metrics.ts';
import type { BatchOutcome, BatchRequest, Capabilities, PollOutcome } from '../../src/destinations/port.ts';
import { ARRAY_FRAME } from '../../src/domain/request.ts';
import { BatchScene } from '../support/journal-scene.ts';

const NO_METRICS = new RunMetrics(noopMetricMeter);

const scene = new BatchScene();
beforeAll(() => scene.open());
afterAll(() => scene.close());

interface Fake {
  readonly capabilities?: Partial<Capabilities>;
  readonly inFlight?: number;
  readonly pollNow?: boolean;
  readonly upsert?: (request: BatchRequest, n: number) => BatchOutcome;
  readonly poll?: (request: BatchRequest, n: number) => PollOutcome;
}

let sent: string[] = [];
let polled: string[] = [];
let atOnce = 0;
beforeEach(async () => {
  scene.run = await scene.fresh();
  sent = [];
  polled = [];
  atOnce = 0;
});

const job = (n: number): BatchOutcome => ({ kind: 'staged', jobIds: [`job-${n}`], receipt: { n } });
const ACCEPTED: BatchOutcome = { kind: 'accepted', receipt: {} };

/** A new attempt on five members, one in each request. */
async function attempt(fake: Fake): Promise<WindowEnd> {
  const run = scene.run;
  await run.again();
  const a = {
    deps: { journal: scene.journal.runtime, metrics: NO_METRICS },
    attempt: run.attempt,
    record: await run.record(),
    settings: { batch: { pollDeadlineMs: 86_400_000 } },
    stop: new AbortController().signal,
  } as unknown as RunAttempt;
  let open = 0;
  const call = async <T>(list: string[], request: BatchRequest, answer: (n: number) => T): Promise<T> => {
    list.push(request.batchId);
    const n = list.length;
    open += 1;
    atOnce = Math.max(atOnce, open);
    await sleep(20);
    open -= 1;
    return answer(n);
  };
  const w = {
    destination: {
      adapter: { frame: () => ARRAY_FRAME },
      options: {},
      capabilities: {
        recovery: 'lookup',
        longestRequestMs: 1_000,
        batchDelivery: 'asynchronous',
        ...fake.capabilities,
      },
      limits: { rows: 1, bytes: 1_000_000, inFlight: fake.inFlight ?? 2 },
    },
    writer: {
      upsert: (request: BatchRequest) =>
        call(sent, request, (n) => (fake.upsert ?? ((_, k) => job(k)))(request, n)),
      poll: (request: BatchRequest) =>
        call(polled, request, (n) => (fake.poll ?? (() => ACCEPTED))(request, n)),
    },
    store: {
      collect: async (work: () => Promise<unknown>) => ({ value: await work(), writes: new Map() }),
      committed: () => undefined,
    },
    abandon: () => undefined,
  } as unknown as OpenWriter;
  const limits = { until: performance.now() + 20_000, resolveOnly: false, pollNow: fake.pollNow ?? true };
  return new DeliveryWindow(a, w, 'upsert', limits).run();
}

async function states(): Promise<readonly string[]> {
  const { rows } = await scene.journal.admin.query<{ state: string }>(
    `select state from retl.batch where run_id = $1 and action = 'upsert' order by operations`,
    [scene.run.run],
  );
  return rows.map((row) => row.state);
}

describe('the attempt that stages', () => {
  test('sends all the others, and then waits for the sooner poll', async () => {
    expect(await attempt({})).toMatchObject({ kind: 'pending', code: 'staged', ms: 1_000 });
    expect(sent).toHaveLength(5);
    expect(await states()).toEqual(Array.from({ length: 5 }, () => 'staged'));
  });

  test('keeps to the jobs that the provider has room for, and to the requests in flight', async () => {
    expect((await attempt({ capabilities: { maxStaged: 2 }, inFlight: 3 })).kind).toBe('pending');
    expect(sent).toHaveLength(2);
    expect(await states()).toEqual(['staged', 'staged']);
    expect(atOnce).toBe(2);
    expect((await attempt({ capabilities: { maxStaged: 2 }, inFlight: 3 })).kind).toBe('pending');
    expect(polled).toHaveLength(2);
    expect(sent).toHaveLength(4);
    expect((await attempt({ capabilities: { maxStaged: 2 } })).kind).toBe('pending');
    expect((await attempt({ capabilities: { maxStaged: 2 } })).kind).toBe('done');
    expect(sent).toHaveLength(5);
    expect(new Set(sent).size).toBe(5);
  });

  test('goes on after answers that are no jobs, and takes them for what they say', async () => {
    const upsert = (_: BatchRequest, n: number) => (n % 2 === 0 ? job(n) : ACCEPTED);
    expect((await attempt({ upsert })).kind).toBe('pending');
    expect([...(await states())].sort()).toEqual(['settled', 'settled', 'settled', 'staged', 'staged']);
  });

  test('sends nothing more once one of them is refused', async () => {
    const upsert = (_: BatchRequest, n: number): BatchOutcome =>
      n === 2 ? { kind: 'refused', code: 'http-400', reason: 'no' } : job(n);
    expect(await attempt({ upsert, inFlight: 1 })).toMatchObject({ kind: 'rejected' });
    expect(sent).toHaveLength(2);
    expect(await states()).toEqual(['staged', 'refused']);
  });

  test('staged-as-done: of an adapter whose answers are outcomes it authorises nothing, and blocks', async () => {
    const accepted = { capabilities: { batchDelivery: 'accepted' } } as const;
    expect(await attempt(accepted)).toMatchObject({ kind: 'blocked', code: 'staged' });
    const first = sent.length;
    expect(first).toBeLessThanOrEqual(2);
    expect(await attempt({ ...accepted, pollNow: false, poll: (_, n) => job(n) })).toMatchObject({
      kind: 'blocked',
    });
    expect(sent).toHaveLength(first);
  });
});

describe('an attempt that finds jobs', () => {
  beforeEach(async () => {
    await attempt({ capabilities: { maxStaged: 3 } });
    expect(sent).toHaveLength(3);
  });

  test('asks about each once, within the requests in flight, and plans nothing while one is left', async () => {
    const poll = (_: BatchRequest, n: number): PollOutcome =>
      n === 2 ? { kind: 'unknown', code: 'http-500' } : ACCEPTED;
    expect(await attempt({ poll })).toMatchObject({ kind: 'pending', code: 'http-500' });
    expect(polled).toHaveLength(3);
    expect(new Set(polled)).toEqual(new Set(sent));
    expect(atOnce).toBeLessThanOrEqual(3);
    expect(sent).toHaveLength(3);
    expect([...(await states())].sort()).toEqual(['settled', 'settled', 'staged']);
  });

  test('before its time asks about nothing', async () => {
    expect(await attempt({ pollNow: false })).toMatchObject({ kind: 'pending', code: 'staged' });
    expect(polled).toEqual([]);
  });

  test('takes a poll that is refused or misread for no word about the jobs: nothing is sent again', async () => {
    const answers: readonly PollOutcome[] = [
      { kind: 'not-applied', code: 'http-429', retryAfterMs: 5_000, tooLarge: false },
      { kind: 'misconfigured', code: 'http-401', reason: 'no' },
      { kind: 'settled', outcomes: [], receipt: {} },
    ];
    const poll = (_: BatchRequest, n: number): PollOutcome => answers[n - 1] ?? ACCEPTED;
    expect((await attempt({ poll })).kind).toBe('pending');
    expect(await states()).toEqual(['staged', 'staged', 'staged']);
    expect(sent).toHaveLength(3);
  });

  test('a job that nobody knows blocks; all the others are polled in the same round, and in their own time', async () => {
    const poll = (request: BatchRequest, n: number): PollOutcome =>
      request.batchId === sent[0]
        ? { kind: 'missing', code: 'job-missing' }
        : n > 3 && request.batchId === sent[1]
          ? ACCEPTED
          : job(sent.indexOf(request.batchId) + 1);
    const blocked = { kind: 'blocked', code: 'job-missing', batch: sent[0] };
    for (const round of [1, 2]) {
      const end = await attempt({ poll, inFlight: 1 });
      expect(end).toMatchObject(blocked);
      expect(end).toHaveProperty('ms', 1_000 * 2 ** round);
      expect(polled.slice(3 * (round - 1)).sort()).toEqual([...sent].sort());
    }
    expect([...(await states())].sort()).toEqual(['settled', 'staged', 'staged']);
    // Before its time it is not asked about, and shown as what it is.
    expect(await attempt({ poll, pollNow: false })).toMatchObject(blocked);
    expect(polled).toHaveLength(6);
    expect(await attempt({ poll: (r) => (r.batchId === sent[0] ? poll(r, 0) : ACCEPTED) })).toEqual(blocked);
    expect([...(await states())].sort()).toEqual(['settled', 'settled', 'staged']);
    expect(sent).toHaveLength(3);
  });

  test('rule 5: a job that is rejected keeps no other from being asked about in the same round, and nothing is sent', async () => {
    const poll = (_: BatchRequest, n: number): PollOutcome =>
      n === 1
        ? { kind: 'refused', code: 'job-failed', reason: 'no' }
        : n === 2
          ? job(sent.indexOf(polled[1] ?? '') + 1)
          : ACCEPTED;
    const end = await attempt({ poll, inFlight: 1 });
    expect([...polled].sort()).toEqual([...sent].sort());
    // What still runs is asked about in its own time, and not when the closing of the run looks again.
    expect(end).toEqual({ kind: 'rejected', code: 'job-failed', ms: 2_000 });
    expect([...(await states())].sort()).toEqual(['refused', 'settled', 'staged']);
    expect(sent).toHaveLength(3);
  });

  test('rule 5: one past its deadline blocks, and the others are polled on, until they are settled', async () => {
    await scene.journal.admin.query(
      `update retl.batch set staged_at = staged_at - interval '25 hours' where batch_id = decode($1, 'hex')`,
      [sent[0]?.replace('sha256:', '')],
    );
    const poll = (_: BatchRequest, n: number) => job(sent.indexOf(polled[n - 1] ?? '') + 1);
    expect(await attempt({ poll })).toMatchObject({
      kind: 'blocked',
      code: 'poll-deadline',
      batch: sent[0],
      ms: 2_000,
    });
    expect(polled).toHaveLength(3);
    const end = await attempt({ poll: (r) => (r.batchId === sent[0] ? job(1) : ACCEPTED) });
    expect(end).toEqual({ kind: 'blocked', code: 'poll-deadline', batch: sent[0] });
    expect([...(await states())].sort()).toEqual(['settled', 'settled', 'staged']);
  });
});
