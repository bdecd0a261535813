/** Rule 3: a worker that was frozen between the commit of `sending` and the first byte sends nothing when it wakes up. */

import { noopMetricMeter } from '@temporalio/common';
import type pg from 'pg';
import { afterAll, afterEach, beforeAll, expect, test, vi } from 'vitest';
import type { OpenWriter, RunAttempt } from '../../src/activities/attempt.ts';
import { DeliveryWindow } from '../../src/activities/delivery/window.ts';
import { RunMetrics } from '../../src/activities/run-metrics.ts';
import type { BatchOutcome } from '../../src/destinations/port.ts';
import { ARRAY_FRAME } from '../../src/domain/request.ts';
import { createTestJournal, type TestJournal } from '../support/journal.ts';
import { rowsOf, ScriptedRun } from '../support/journal-run.ts';

const NO_METRICS = new RunMetrics(noopMetricMeter);

let journal: TestJournal;
beforeAll(async () => {
  journal = await createTestJournal();
});
afterEach(() => {
  vi.useRealTimers();
});
afterAll(() => journal.close());

/** The journal, with a sleep of the machine after each statement that marks requests as sending. */
function sleepingAfter(pool: pg.Pool, ms: number): pg.Pool {
  return new Proxy(pool, {
    get(target, name) {
      const value: unknown = Reflect.get(target, name, target);
      if (typeof value !== 'function') return value;
      if (name !== 'query') return value.bind(target);
      return async (text: string, values?: unknown[]) => {
        const result = await target.query(text, values);
        if (/prepare_batches\(|mark_sending\(/.test(text)) vi.setSystemTime(Date.now() + ms);
        return result;
      };
    },
  });
}

/** Delivers the additions of a fresh run; the journal's answer to `sending` is read `ms` late. */
async function deliver(mirror: string, ms: number) {
  const run = await ScriptedRun.open(journal.runtime, { mirror });
  await run.upToAdditions(rowsOf({ a: '1', b: '1' }));
  vi.useFakeTimers({ toFake: ['Date'] });
  const sent: string[] = [];
  const a = {
    deps: { journal: sleepingAfter(journal.runtime, ms), metrics: NO_METRICS },
    attempt: run.attempt,
    record: await run.record(),
    stop: new AbortController().signal,
  } as unknown as RunAttempt;
  const w = {
    destination: {
      adapter: {
        frame: () => ARRAY_FRAME,
      },
      options: {},
      capabilities: { recovery: 'manual', longestRequestMs: 1_000 },
      limits: { rows: 5, bytes: 1_000_000, inFlight: 1 },
    },
    writer: {
      upsert: async (request: { readonly body: string }): Promise<BatchOutcome> => {
        sent.push(request.body);
        return { kind: 'accepted', receipt: {} };
      },
    },
    store: {
      collect: async (work: () => Promise<unknown>) => ({ value: await work(), writes: new Map() }),
      committed: () => undefined,
    },
    abandon: () => undefined,
  } as unknown as OpenWriter;
  const limits = { until: performance.now() + 20_000, resolveOnly: false, pollNow: false };
  const end = await new DeliveryWindow(a, w, 'upsert', limits).run();
  const { rows } = await journal.admin.query(
    'select state, reason from retl.batch where run_id = $1 and action = $2',
    [run.run, 'upsert'],
  );
  return { end, sent, batches: rows };
}

test('past a minute it is recorded as not applied, and goes out later under another id', async () => {
  const { end, sent, batches } = await deliver('late', 61_000);
  expect(sent).toEqual([]);
  expect(end).toMatchObject({ kind: 'wait', code: 'sent-too-late' });
  expect(batches).toEqual([{ state: 'not-applied', reason: 'sent-too-late' }]);
});

test('within a minute it is sent', async () => {
  const { end, sent, batches } = await deliver('in-time', 59_000);
  expect(sent).toHaveLength(1);
  expect(end).toEqual({ kind: 'done' });
  expect(batches).toMatchObject([{ state: 'settled' }]);
});
