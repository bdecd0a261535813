/** Rule 5: staged work in the journal: what becomes of it, and what it keeps from happening. */

import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { openBatches } from '../../src/journal/batch-record.ts';
import { markStaged, markUnknown, notePoll, settleBatch } from '../../src/journal/batches.ts';
import { logHead } from '../../src/journal/log.ts';
import { resolveBatch } from '../../src/journal/resolve.ts';
import { closeRun } from '../../src/journal/runs.ts';
import { stateOf } from '../support/journal.ts';
import type { Prepared } from '../support/journal-run.ts';
import { BatchScene } from '../support/journal-scene.ts';

const RULE = 'RM003';
const FINAL = 'RM006';
const scene = new BatchScene();

beforeAll(() => scene.open());
afterAll(() => scene.close());
beforeEach(async () => {
  scene.run = await scene.fresh();
});

async function staged(size = 5, nextMs = 60_000): Promise<Prepared> {
  const batch = await scene.sent(size);
  await markStaged(scene.journal.runtime, scene.run.attempt, batch.id, ['job-1'], '{"n":1}', nextMs);
  return batch;
}

const note = (batch: Prepared, code = 'http-500', ms = 60_000) =>
  notePoll(scene.journal.runtime, scene.run.attempt, batch.id, code, ms);
const open = () => openBatches(scene.journal.runtime, scene.run.attempt);

test('the journal says since when it is staged, how often it was asked for, and when it is due', async () => {
  const batch = await staged();
  expect(await open()).toMatchObject([{ state: 'staged', polls: 0, reason: null, jobIds: ['job-1'] }]);
  const [first] = await open();
  expect(first?.pollInMs).toBeGreaterThan(50_000);
  await markStaged(scene.journal.runtime, scene.run.attempt, batch.id, ['job-1'], '{"n":2}', 0);
  const [again] = await open();
  expect(again).toMatchObject({ polls: 1, pollInMs: 0, receipt: '{"n":2}' });
  expect(again?.stagedForMs).toBeGreaterThanOrEqual(first?.stagedForMs ?? 0);
});

test('poll-error: a poll that fails leaves the batch staged, with its jobs and receipt, and shows why', async () => {
  const batch = await staged();
  await note(batch);
  expect(await open()).toMatchObject([
    { state: 'staged', polls: 1, reason: 'http-500', jobIds: ['job-1'], receipt: '{"n":1}' },
  ]);
  await markStaged(scene.journal.runtime, scene.run.attempt, batch.id, ['job-1'], '{}', 0);
  expect(await open()).toMatchObject([{ state: 'staged', polls: 2, reason: null }]);
});

test('only what is staged is polled, and not for ever later', async () => {
  const batch = await scene.sent();
  expect(await stateOf(note(batch))).toBe(RULE);
  await markUnknown(scene.journal.runtime, scene.run.attempt, batch.id, 'reset');
  expect(await stateOf(note(batch))).toBe(RULE);
  await markStaged(scene.journal.runtime, scene.run.attempt, batch.id, ['j'], '{}', 0);
  for (const ms of [-1, 604_800_001]) expect(await stateOf(note(batch, 'x', ms)), String(ms)).toBe(RULE);
  await scene.run.settle(batch);
  expect(await stateOf(note(batch))).toBe(FINAL);
});

test('a job id that is empty names nothing', async () => {
  const batch = await scene.sent();
  const stage = markStaged(scene.journal.runtime, scene.run.attempt, batch.id, ['a', ''], '{}', 0);
  expect(await stateOf(stage)).toBe('23514');
});

test('receipt-downgrade: what a poll has settled no later answer stages again', async () => {
  const batch = await staged();
  await scene.run.settle(batch, new Set(['c']));
  const again = markStaged(scene.journal.runtime, scene.run.attempt, batch.id, ['job-1'], '{}', 0);
  expect(await stateOf(again)).toBe(FINAL);
  expect(await stateOf(scene.run.settle(batch))).toBe(FINAL);
  expect(await stateOf(scene.run.settle(batch, new Set(['c'])))).toBeNull();
});

test('rule 5: the attempt that staged it plans on; one that finds it plans nothing, and removes nothing', async () => {
  const first = await staged(2);
  const second = await scene.sent(2);
  await scene.run.settle(second);
  await scene.run.again();
  expect(await stateOf(scene.one(1))).toBe(RULE);
  expect(await stateOf(scene.run.beginRemovals())).toBe(RULE);
  await scene.run.settle(first);
  const third = await scene.sent(1);
  expect(await stateOf(scene.run.beginRemovals())).toBe(RULE);
  await scene.run.settle(third);
  expect(await stateOf(scene.run.beginRemovals())).toBeNull();
});

test('mixed-order: jobs that end in another order than they began are accepted in that order, and all before a removal', async () => {
  const first = await staged(2);
  const second = await staged(3);
  await scene.run.again();
  const before = await logHead(scene.journal.runtime);
  await scene.run.settle(second);
  expect(await stateOf(scene.run.beginRemovals())).toBe(RULE);
  await scene.run.settle(first);
  expect((await logHead(scene.journal.runtime)).position).toBe(before.position + 2n);
  expect(await stateOf(scene.run.beginRemovals())).toBeNull();
});

test('rule 10: a run with staged work is not closed', async () => {
  const batch = await staged();
  const close = () => closeRun(scene.journal.runtime, scene.run.attempt, 'aborted', null);
  expect(await stateOf(close())).toBe(RULE);
  await settleBatch(scene.journal.runtime, scene.run.attempt, batch.id, '{}', [], new Map());
  expect(await stateOf(close())).toBeNull();
});

test('a person may decide what nobody can ask about any more', async () => {
  const batch = await staged();
  await note(batch, 'job-missing');
  expect(await resolveBatch(scene.journal.runtime, batch.id, 'accepted', 'seen there')).toEqual({
    kind: 'resolved',
  });
  expect(await scene.stateNow(batch)).toBe('settled');
});

test('rule 3: that a staged batch was not applied is not believed before its send deadline', async () => {
  const batch = await staged();
  expect(await resolveBatch(scene.journal.runtime, batch.id, 'not-applied', 'not there')).toMatchObject({
    kind: 'too-early',
  });
  expect(await scene.stateNow(batch)).toBe('staged');
});
