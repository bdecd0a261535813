/** Rule 5: how far a refused request is divided, and what is left of it when the window, or the bound, is at its end. */

import { noopMetricMeter } from '@temporalio/common';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { OpenWriter, RunAttempt } from '../../src/activities/attempt.ts';
import { DIVIDED } from '../../src/activities/delivery/policy.ts';
import { Rejections } from '../../src/activities/delivery/rejections.ts';
import { DeliveryWindow } from '../../src/activities/delivery/window.ts';
import { RunMetrics } from '../../src/activities/run-metrics.ts';
import type { BatchOutcome, BatchRequest } from '../../src/destinations/port.ts';
import { ARRAY_FRAME } from '../../src/domain/request.ts';
import { refusals } from '../../src/journal/batch-record.ts';
import { countRun } from '../../src/journal/run-record.ts';
import { createTestJournal, type TestJournal } from '../support/journal.ts';
import { rowsOf, ScriptedRun } from '../support/journal-run.ts';

const NO_METRICS = new RunMetrics(noopMetricMeter);

let journal: TestJournal;
beforeAll(async () => {
  journal = await createTestJournal();
});
afterAll(() => journal.close());

const EIGHT = { a: '1', b: '1', c: '1', d: '1', e: '1', f: '1', g: '1', h: '1' };
const ACCEPTED: BatchOutcome = { kind: 'accepted', receipt: {} };
const REFUSED: BatchOutcome = { kind: 'refused', code: 'http-400', reason: 'not valid', divisible: true };

/** A run of eight members in one request; `answer` says what the destination makes of each. */
async function scene(
  mirror: string,
  answer: (ids: readonly string[], stop: AbortController) => BatchOutcome,
) {
  const run = await ScriptedRun.open(journal.runtime, { mirror, onRejection: { kind: 'continue' } });
  await run.upToAdditions(rowsOf(EIGHT));
  const sent: string[] = [];
  const window = async (divided?: number) => {
    const stop = new AbortController();
    const a = {
      deps: { journal: journal.runtime, metrics: NO_METRICS },
      attempt: run.attempt,
      record: await run.record(),
      settings: { batch: { pollDeadlineMs: 60_000 } },
      stop: stop.signal,
    } as unknown as RunAttempt;
    const w = {
      destination: {
        adapter: { frame: () => ARRAY_FRAME },
        options: {},
        capabilities: { recovery: 'manual', batchDelivery: 'accepted', longestRequestMs: 1_000 },
        limits: { rows: 8, bytes: 1_000_000, inFlight: 2 },
      },
      writer: {
        upsert: async ({ operations }: BatchRequest) => {
          const ids = operations.map((op) => String(JSON.parse(op.identity).id));
          sent.push(ids.sort().join(''));
          return answer(ids, stop);
        },
      },
      store: {
        collect: async (work: () => Promise<unknown>) => ({ value: await work(), writes: new Map() }),
        committed: () => undefined,
      },
      abandon: () => undefined,
    } as unknown as OpenWriter;
    const limits = { until: performance.now() + 20_000, resolveOnly: false, pollNow: false };
    const before = divided ?? (await refusals(journal.runtime, run.attempt, DIVIDED)).divided;
    return new DeliveryWindow(a, w, 'upsert', limits, new Rejections({ kind: 'continue' }, before)).run();
  };
  const batches = async () => {
    const { rows } = await journal.admin.query<{ batch: string }>(
      `select state || ' ' || upper(operations) - lower(operations) as batch from retl.batch
       where run_id = $1 and action = 'upsert' order by 1`,
      [run.run],
    );
    return rows.map(({ batch }) => batch);
  };
  return { run, sent, window, batches };
}

const isBad = (ids: readonly string[]) => ids.includes('a');

test('whole-batch-reject: halves are divided until the one to blame stands alone, and nobody is sent twice but in a refused request', async () => {
  const { run, sent, window, batches } = await scene('halved', (ids) => (isBad(ids) ? REFUSED : ACCEPTED));
  expect(await window()).toEqual({ kind: 'done' });
  expect(await batches()).toEqual([
    'not-applied 2',
    'not-applied 4',
    'not-applied 8',
    'settled 1',
    'settled 1',
    'settled 2',
    'settled 4',
  ]);
  const taken = sent.filter((ids) => !isBad([...ids]));
  expect([...taken.join('')].sort().join('')).toBe('bcdefgh');
  expect(await countRun(run.db, run.run)).toMatchObject({ added: 7, rejected: 1 });
});

test('whole-batch-reject: at its bound a refused request counts as rejected whole, and the others are sent all the same', async () => {
  const { run, sent, window, batches } = await scene('bounded', (ids) => (isBad(ids) ? REFUSED : ACCEPTED));
  expect(await window(99)).toEqual({ kind: 'done' });
  expect(sent).toHaveLength(3);
  expect(await batches()).toEqual(['not-applied 8', 'refused 4', 'settled 4']);
  expect(await countRun(run.db, run.run)).toMatchObject({ added: 4, rejected: 4 });
  expect(await refusals(run.db, run.attempt, DIVIDED)).toMatchObject({
    stops: false,
    tolerated: false,
    divided: 1,
  });
});

test('rule 5: a window that ends between the refusal and its halves leaves them to the next, which counts what was divided', async () => {
  let refusing = true;
  const { run, sent, window, batches } = await scene('cut', (_, stop) => {
    if (!refusing) return ACCEPTED;
    stop.abort();
    return REFUSED;
  });
  expect(await window()).toEqual({ kind: 'stopped' });
  expect(await batches()).toEqual(['not-applied 8']);
  refusing = false;
  await run.again();
  expect(await window()).toEqual({ kind: 'done' });
  expect(sent.map((ids) => ids.length)).toEqual([8, 4, 4]);
  expect(await batches()).toEqual(['not-applied 8', 'settled 4', 'settled 4']);
});

test('rule 5: a member that is too large alone is rejected like any other', async () => {
  const tooLarge: BatchOutcome = {
    kind: 'not-applied',
    code: 'http-413',
    retryAfterMs: null,
    tooLarge: true,
  };
  const { run, window } = await scene('large', (ids) => (isBad(ids) ? tooLarge : ACCEPTED));
  for (let end = await window(); end.kind !== 'done'; end = await window())
    expect(end).toMatchObject({ kind: 'wait', code: 'too-large:http-413' });
  expect(await countRun(run.db, run.run)).toMatchObject({ added: 7, rejected: 1 });
});
