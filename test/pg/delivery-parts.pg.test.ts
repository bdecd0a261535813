/** Rule 4: operations of a request that were proven not applied go again in the same run, and those beside them stand. */

import { noopMetricMeter } from '@temporalio/common';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { OpenWriter, RunAttempt } from '../../src/activities/attempt.ts';
import { Rejections } from '../../src/activities/delivery/rejections.ts';
import { DeliveryWindow } from '../../src/activities/delivery/window.ts';
import { RunMetrics } from '../../src/activities/run-metrics.ts';
import type { BatchRequest, OperationOutcome } from '../../src/destinations/port.ts';
import { ARRAY_FRAME } from '../../src/domain/request.ts';
import type { RejectionSettings } from '../../src/domain/settings.ts';
import { settleParts } from '../../src/journal/batch-parts.ts';
import { countRun } from '../../src/journal/run-record.ts';
import { closeRun } from '../../src/journal/runs.ts';
import { verifyLog } from '../../src/journal/verify-log.ts';
import { createTestJournal, type TestJournal } from '../support/journal.ts';
import { type Prepared, rowsOf, ScriptedRun } from '../support/journal-run.ts';

const NO_METRICS = new RunMetrics(noopMetricMeter);
const EIGHT = { a: '1', b: '1', c: '1', d: '1', e: '1', f: '1', g: '1', h: '1' };

let journal: TestJournal;
beforeAll(async () => {
  journal = await createTestJournal();
});
afterAll(() => journal.close());

const YES: OperationOutcome = { kind: 'accepted' };
const NO: OperationOutcome = { kind: 'rejected', code: 'row-rejected', reason: 'not valid' };
const NEVER: OperationOutcome = { kind: 'not-applied', code: 'row-unprocessed' };

type Answer = (id: string, n: number) => OperationOutcome;

/** Eight members in one request; `answer` says what the destination makes of each in its `n`th request. */
async function scene(mirror: string, answer: Answer, onRejection: RejectionSettings = { kind: 'stop' }) {
  const run = await ScriptedRun.open(journal.runtime, { mirror, onRejection });
  await run.upToAdditions(rowsOf(EIGHT));
  const sent: string[] = [];
  const upsert = async ({ operations }: BatchRequest) => {
    const ids = operations.map((op) => String(JSON.parse(op.identity).id));
    sent.push(ids.join(''));
    const n = sent.length;
    return { kind: 'settled' as const, outcomes: ids.map((id) => answer(id, n)), receipt: { n } };
  };
  const window = async () => {
    await journal.admin.query(
      `update retl.batch set retry_at = now() where state = 'not-applied' and run_id = $1`,
      [run.run],
    );
    await run.again();
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
        capabilities: {
          recovery: 'manual',
          batchDelivery: 'accepted',
          longestRequestMs: 1_000,
          visible: 'on_accept',
        },
        limits: { rows: 8, bytes: 1_000_000, inFlight: 1 },
      },
      writer: { upsert },
      store: {
        collect: async (work: () => Promise<unknown>) => ({ value: await work(), writes: new Map() }),
        committed: () => undefined,
      },
      abandon: () => undefined,
    } as unknown as OpenWriter;
    const limits = { until: performance.now() + 20_000, resolveOnly: false, pollNow: false };
    return new DeliveryWindow(a, w, 'upsert', limits, new Rejections(onRejection, 0)).run();
  };
  return { run, sent, window };
}

async function batchesOf(run: ScriptedRun): Promise<readonly string[]> {
  const { rows } = await journal.admin.query<{ batch: string }>(
    `select state || ' ' || upper(operations) - lower(operations) as batch from retl.batch
     where run_id = $1 and action = 'upsert' order by 1`,
    [run.run],
  );
  return rows.map(({ batch }) => batch);
}

test('rule 4: what was not looked at is sent again by itself, and nobody else; the log tells of each once', async () => {
  const order: string[] = [];
  const { run, sent, window } = await scene('parted', (id, n) => {
    if (n === 1) order.push(id);
    return n === 1 && [2, 3, 6].includes(order.indexOf(id)) ? NEVER : YES;
  });
  expect(await window()).toMatchObject({ kind: 'wait', code: 'row-unprocessed' });
  expect(await batchesOf(run)).toEqual([
    'not-applied 1',
    'not-applied 2',
    'parted 8',
    'settled 1',
    'settled 2',
    'settled 2',
  ]);
  expect(await countRun(run.db, run.run)).toMatchObject({ added: 5, rejected: 0 });
  expect(await window()).toEqual({ kind: 'done' });
  const [all = '', ...again] = sent;
  expect(again).toEqual([`${all[2]}${all[3]}`, all[6]]);
  expect(await countRun(run.db, run.run)).toMatchObject({ added: 8, rejected: 0 });
  await run.complete();
  expect(await verifyLog(journal.runtime, { effects: true })).toMatchObject({ kind: 'intact' });
  const { rows } = await journal.admin.query(`select from retl.membership_${(await run.record()).target}`);
  expect(rows).toHaveLength(8);
});

test('rule 5: a rejection beside it stops the run, and what was not applied stays unsent', async () => {
  const { run, sent, window } = await scene('parted-stop', (id) =>
    id === 'b' ? NO : id === 'c' ? NEVER : YES,
  );
  expect(await window()).toEqual({ kind: 'rejected', code: 'row-rejected' });
  expect(await countRun(run.db, run.run)).toMatchObject({ added: 6, rejected: 1 });
  await expect(window()).rejects.toMatchObject({ sqlState: 'RM003' });
  expect(sent).toHaveLength(1);
});

test('poison-row: what is never applied counts as rejected in the end: there is no hot loop', async () => {
  const { run, sent, window } = await scene('parted-bound', (id) => (id === 'c' ? NEVER : YES));
  for (let n = 1; n < 5; n += 1) expect((await window()).kind).toBe('wait');
  expect(await window()).toEqual({ kind: 'rejected', code: 'row-unprocessed' });
  expect(sent.slice(1)).toEqual(['c', 'c', 'c', 'c']);
  expect(await countRun(run.db, run.run)).toMatchObject({ added: 7, rejected: 1 });
});

test('a request of which nothing was applied goes again whole', async () => {
  const { run, sent, window } = await scene('parted-none', (_, n) => (n === 1 ? NEVER : YES));
  expect((await window()).kind).toBe('wait');
  expect(await window()).toEqual({ kind: 'done' });
  expect(sent[0]).toBe(sent[1]);
  expect(await batchesOf(run)).toEqual(['not-applied 8', 'settled 8']);
});

/** A request of eight members on its way, and its pieces: the first three, of which none was applied, and the rest. */
async function underWay(mirror: string, more: object = {}) {
  const run = await ScriptedRun.open(journal.runtime, { mirror, ...more });
  await run.upToAdditions(rowsOf(EIGHT));
  const [batch] = await run.prepare('upsert', 8, 1);
  if (batch === undefined) throw new Error('nothing was prepared');
  await run.sending(batch.id);
  const record = await run.record();
  const first = record.firstSequence ?? 0n;
  const pieces = [
    { draft: (await run.draft(record, 'upsert', first, first + 2n, 1)).draft, applied: false },
    { draft: (await run.draft(record, 'upsert', first + 3n, first + 7n, 1)).draft, applied: true },
  ];
  const part = (some: typeof pieces = pieces, receipt = '{}') => settle(run, batch, some, receipt);
  return { run, batch, pieces, part };
}

function settle(
  run: ScriptedRun,
  { id }: Prepared,
  pieces: Parameters<typeof settleParts>[3],
  receipt: string,
): Promise<void> {
  const parting = { batch: id, receipt, code: 'row-unprocessed', retryMs: 0 };
  return settleParts(run.db, run.attempt, parting, pieces, [], new Map());
}

test('rule 6: parted once, a request is not parted otherwise; an exact repeat changes nothing', async () => {
  const { run, part, pieces } = await underWay('parted-twice');
  await part();
  const before = await batchesOf(run);
  await part();
  expect(await batchesOf(run)).toEqual(before);
  await expect(part(pieces, '{"other":1}')).rejects.toMatchObject({ sqlState: 'RM006' });
  await expect(
    journal.admin.query(`update retl.batch set receipt = '{"x":1}' where state = 'parted' and run_id = $1`, [
      run.run,
    ]),
  ).rejects.toMatchObject({ code: 'RM006' });
});

test('an old receipt of a parted request is pruned like that of its pieces', async () => {
  const { run, part } = await underWay('parted-pruned');
  await part(undefined, '{"secret":"words"}');
  await closeRun(run.db, run.attempt, 'aborted', 'abort');
  await journal.admin.query(
    `update retl.run set closed_at = closed_at - interval '3 days', opened_at = opened_at - interval '3 days' where run_id = $1`,
    [run.run],
  );
  await journal.runtime.query('select retl.prune_closed(86400000, 1000)');
  const { rows } = await journal.admin.query(
    `select distinct receipt from retl.batch where run_id = $1 and receipt is not null`,
    [run.run],
  );
  expect(rows).toEqual([{ receipt: '{"pruned":true}' }]);
});

test.each([
  ['none that was applied', (all: readonly Piece[]) => all.map((one) => ({ ...one, applied: false }))],
  ['all applied', (all: readonly Piece[]) => all.map((one) => ({ ...one, applied: true }))],
  ['a gap at the end', (all: readonly Piece[]) => all.slice(0, 1)],
] as const)('rule 4: pieces with %s are refused, and the request is as it was', async (name, change) => {
  const { run, part, pieces } = await underWay(`parted ${name}`.replaceAll(' ', '-'));
  await expect(part([...change(pieces)])).rejects.toMatchObject({ sqlState: 'RM003' });
  expect(await batchesOf(run)).toEqual(['sending 8']);
});
type Piece = Parameters<typeof settleParts>[3][number];

test('rule 3: what a second copy has not applied the first may have: the request stays unknown', async () => {
  const { run, batch, part } = await underWay('parted-resent', { mayResend: true });
  await run.again();
  await journal.admin.query('select retl.mark_resending($1, $2, decode($3, $4), 60000)', [
    run.run,
    run.attempt.epoch,
    batch.id.slice('sha256:'.length),
    'hex',
  ]);
  await part();
  expect(await batchesOf(run)).toEqual(['unknown 8']);
});
