/** Rule 3: what the answers of a `lookup` adapter about a lost request lead to; and what it saved, it is given again. */

import { noopMetricMeter } from '@temporalio/common';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { OpenWriter, RunAttempt } from '../../src/activities/attempt.ts';
import { DeliveryWindow } from '../../src/activities/delivery/window.ts';
import { RunMetrics } from '../../src/activities/run-metrics.ts';
import type { BatchOutcome, PollOutcome } from '../../src/destinations/port.ts';
import { ARRAY_FRAME } from '../../src/domain/request.ts';
import { recordProgress } from '../../src/journal/batches.ts';
import { exactText } from '../../src/journal/safe-text.ts';
import { createTestJournal, type TestJournal } from '../support/journal.ts';
import { rowsOf, ScriptedRun } from '../support/journal-run.ts';

const NO_METRICS = new RunMetrics(noopMetricMeter);

let journal: TestJournal;
beforeAll(async () => {
  journal = await createTestJournal();
});
afterAll(() => journal.close());

/** A run whose one request was lost after its job was saved; `look` goes on with it, as these answers say. */
async function lost(mirror: string, saved = 'job-1') {
  const run = await ScriptedRun.open(journal.runtime, { mirror });
  await run.upToAdditions(rowsOf({ a: '1', b: '1' }));
  const asked: unknown[] = [];
  const window = async (answer: BatchOutcome, polled: PollOutcome = answer) => {
    const a = {
      deps: { journal: journal.runtime, metrics: NO_METRICS },
      attempt: run.attempt,
      record: await run.record(),
      settings: { batch: { pollDeadlineMs: 60_000 } },
      stop: new AbortController().signal,
    } as unknown as RunAttempt;
    const w = {
      destination: {
        adapter: { frame: () => ARRAY_FRAME },
        options: {},
        capabilities: { recovery: 'lookup', batchDelivery: 'asynchronous', longestRequestMs: 1_000 },
        limits: { rows: 5, bytes: 1_000_000, inFlight: 1 },
      },
      writer: {
        upsert: async ({ batchId }: Parameters<OpenWriter['writer']['upsert']>[0]) => {
          await recordProgress(journal.runtime, run.attempt, batchId, saved);
          return { kind: 'unknown', code: 'lost' };
        },
        reconcileBatch: async (_: unknown, __: unknown, progress: unknown) => {
          asked.push(['look', progress]);
          return answer;
        },
        poll: async (_: unknown, ids: unknown, __: unknown, progress: unknown) => {
          asked.push(['poll', ids, progress]);
          return polled;
        },
      },
      store: {
        collect: async (work: () => Promise<unknown>) => ({ value: await work(), writes: new Map() }),
        committed: () => undefined,
      },
      abandon: () => undefined,
    } as unknown as OpenWriter;
    const limits = { until: performance.now() + 20_000, resolveOnly: false, pollNow: true };
    return new DeliveryWindow(a, w, 'upsert', limits).run();
  };
  await window({ kind: 'unknown', code: 'never asked' });
  const state = async () => {
    const { rows } = await journal.admin.query(
      `select state from retl.batch where run_id = $1 and action = 'upsert'`,
      [run.run],
    );
    return rows.map((row: { state: string }) => row.state);
  };
  return { asked, window, state };
}

test('a look that got no answer is made again in a while, before the send deadline and after it', async () => {
  const { window, state } = await lost('unanswered');
  const end = await window({ kind: 'unknown', code: 'lookup-http-500', unanswered: true });
  expect(end).toMatchObject({ kind: 'wait', code: 'lookup-http-500', ms: 30_000 });
  expect(await state()).toEqual(['unknown']);
});

test('"there is none" is held against the send deadline', async () => {
  const { window, state } = await lost('absent');
  const absent = { kind: 'not-applied', code: 'absent', retryAfterMs: null, tooLarge: false } as const;
  expect(await window(absent)).toMatchObject({ kind: 'wait', code: 'before-send-deadline' });
  expect(await state()).toEqual(['unknown']);
});

test('a job that is found is staged at once, and is polled with what was saved of it', async () => {
  const { window, state, asked } = await lost('found');
  const found = { kind: 'staged', jobIds: ['job-1'], receipt: {} } as const;
  expect((await window(found)).kind).toBe('pending');
  expect(await state()).toEqual(['staged']);
  expect(await window(found, { kind: 'accepted', receipt: {} })).toEqual({ kind: 'done' });
  expect(await state()).toEqual(['settled']);
  expect(asked).toEqual([
    ['look', 'job-1'],
    ['poll', ['job-1'], 'job-1'],
  ]);
});

test('what was saved comes back whole, however long, and is refused where it could not be', async () => {
  const saved = `😀${'x'.repeat(400_000)}`;
  const { window, asked } = await lost('long', saved);
  await window({ kind: 'unknown', code: 'x', unanswered: true });
  expect(asked).toEqual([['look', saved]]);
  expect(() => exactText('x'.repeat(2_000_000))).toThrow('longer than');
  expect(() => exactText('a\0b')).toThrow('no text');
  expect(() => exactText('\ud83d')).toThrow('no text');
});
