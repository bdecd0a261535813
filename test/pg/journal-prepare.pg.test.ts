/** Rules 1, 2, 4 and 5: what may be prepared, and prepared again, as a careless or malicious worker would try. */

import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { openBatches, stepBatch } from '../../src/journal/batch-record.ts';
import {
  markNotApplied,
  markRefused,
  markStaged,
  prepareSending,
  retryBatch,
  settleBatch,
  settleStep,
} from '../../src/journal/batches.ts';
import { closeRun, plan } from '../../src/journal/runs.ts';
import { stateOf } from '../support/journal.ts';
import { type Prepared, rowsOf, ScriptedRun } from '../support/journal-run.ts';
import { BatchScene } from '../support/journal-scene.ts';

const RULE = 'RM003';
const FINAL = 'RM006';

const scene = new BatchScene();

beforeAll(() => scene.open());
afterAll(() => scene.close());

describe('preparing', () => {
  beforeEach(async () => {
    scene.run = await scene.fresh({ maxBatchRows: 3 });
  });

  test('rule 1: nothing is prepared before the seal, before the plan, before the guard', async () => {
    scene.run = await ScriptedRun.open(scene.journal.runtime, { mirror: scene.name() });
    const any = () => scene.rawPrepare('upsert', scene.id('x'), '{1}', scene.id('h'), '{1}');
    expect(await any()).toBe(RULE);
    await scene.run.init();
    expect(await any()).toBe(RULE);
    await scene.run.load(rowsOf({ a: '1' }));
    expect(await any()).toBe(RULE);
    await scene.run.seal();
    expect(await any()).toBe(RULE);
    await plan(scene.journal.runtime, scene.run.attempt);
    expect(await any()).toBe(RULE);
  });

  test('nothing, not even the session, is prepared before the baseline is known', async () => {
    scene.run = await ScriptedRun.open(scene.journal.runtime, { mirror: scene.name() });
    expect(await stateOf(scene.run.prepareStep('init'))).toBe(RULE);
  });

  test('rule 1: removals are neither planned nor prepared before the additions are accepted', async () => {
    const { firstSequence } = await scene.run.record();
    expect(await scene.rawPrepare('remove', scene.id('x'), `{${firstSequence}}`, scene.id('h'), '{1}')).toBe(
      RULE,
    );
    expect(await stateOf(scene.run.beginRemovals())).toBe(RULE);
    const batches = await scene.run.prepare('upsert', 3);
    expect(await stateOf(scene.run.beginRemovals())).toBe(RULE);
    for (const b of batches) await scene.run.sending(b.id);
    expect(await stateOf(scene.run.beginRemovals())).toBe(RULE);
    const [first, second] = batches;
    if (first === undefined || second === undefined) throw new Error('two batches');
    await scene.run.settle(first);
    expect(await stateOf(scene.run.beginRemovals())).toBe(RULE);
    await markStaged(scene.journal.runtime, scene.run.attempt, second.id, ['job'], '{}', 0);
    // staged-as-done: taken for later is not accepted.
    expect(await stateOf(scene.run.beginRemovals())).toBe(RULE);
    await scene.run.settle(second);
    expect(await stateOf(scene.run.beginRemovals())).toBeNull();
  });

  test('rule 4: operations are taken up in order: none skipped, none twice, none that is not planned', async () => {
    const { firstSequence, additionsEnd } = await scene.run.record();
    const first = firstSequence ?? 0n;
    expect(
      await scene.rawPrepare('upsert', scene.id('before'), `{${first - 1n}}`, scene.id('h'), '{1}'),
    ).toBe(RULE);
    expect(
      await scene.rawPrepare('upsert', scene.id('too many'), `{${first + 3n}}`, scene.id('h'), '{1}'),
    ).toBe(RULE);
    const beyond = `{${first + 2n},${(additionsEnd ?? 0n) + 1n}}`;
    const two = (label: string) => `${scene.id(label).slice(0, -1)},${scene.id(`${label} 2`).slice(1)}`;
    expect(await scene.rawPrepare('upsert', two('beyond'), beyond, two('h'), '{1,1}')).toBe(RULE);
    expect(
      await scene.rawPrepare('upsert', two('backwards'), `{${first + 1n},${first}}`, two('h'), '{1,1}'),
    ).toBe(RULE);
    const batches = await scene.run.prepare('upsert', 2, 1);
    expect(batches[0]?.first).toBe(first);
    // The next one begins where that one ended, whatever its caller believes.
    expect(await scene.rawPrepare('upsert', scene.id('again'), `{${first + 1n}}`, scene.id('h'), '{1}')).toBe(
      RULE,
    );
    expect((await scene.run.prepare('upsert', 2, 1))[0]?.first).toBe(first + 2n);
  });

  test('rule 4: one batch id is one batch, in this run or another', async () => {
    const batch = await scene.one(1);
    const { firstSequence } = await scene.run.record();
    const same = `{"\\\\x${batch.id.slice(7)}"}`;
    expect(
      await scene.rawPrepare('upsert', same, `{${(firstSequence ?? 0n) + 1n}}`, scene.id('h'), '{1}'),
    ).toBe('23505');
  });

  test('limits, nulls and arrays that do not fit are refused', async () => {
    const first = (await scene.run.record()).firstSequence ?? 0n;
    const last = `{${first}}`;
    const cases: readonly (readonly [unknown, unknown, unknown, unknown, unknown])[] = [
      [null, scene.id('x'), last, scene.id('h'), '{1}'],
      ['init', scene.id('x'), last, scene.id('h'), '{1}'],
      ['delete', scene.id('x'), last, scene.id('h'), '{1}'],
      ['upsert', null, last, scene.id('h'), '{1}'],
      ['upsert', scene.id('x'), null, scene.id('h'), '{1}'],
      ['upsert', scene.id('x'), last, null, '{1}'],
      ['upsert', scene.id('x'), last, scene.id('h'), null],
      ['upsert', '{}', '{}', '{}', '{}'],
      ['upsert', null, null, null, null],
      ['upsert', '{null}', last, scene.id('h'), '{1}'],
      ['upsert', scene.id('x'), '{null}', scene.id('h'), '{1}'],
      ['upsert', scene.id('x'), last, '{null}', '{1}'],
      ['upsert', scene.id('x'), last, scene.id('h'), '{null}'],
      ['upsert', scene.id('x'), last, scene.id('h'), '{-1}'],
      ['upsert', scene.id('x'), last, scene.id('h'), '{0}'],
      ['upsert', scene.id('x'), last, scene.id('h'), '{1000001}'],
      ['upsert', scene.id('x'), `{{${first}}}`, scene.id('h'), '{1}'],
      ['upsert', scene.id('x'), `[2:2]={${first}}`, scene.id('h'), '{1}'],
      ['upsert', scene.id('x'), `{${first},${first}}`, scene.id('h'), '{1}'],
      ['upsert', scene.id('x'), '{-5}', scene.id('h'), '{1}'],
      ['upsert', scene.id('x'), '{9223372036854775807}', scene.id('h'), '{1}'],
      ['upsert', '{"\\\\x00"}', last, scene.id('h'), '{1}'],
      ['upsert', scene.id('x'), last, '{"\\\\x00"}', '{1}'],
    ];
    for (const c of cases)
      expect([RULE, '23502', '23514'], String(c)).toContain(await scene.rawPrepare(...c));
    expect(await openBatches(scene.journal.runtime, scene.run.attempt)).toEqual([]);
    expect(await scene.rawPrepare('upsert', scene.id('x'), last, scene.id('h'), '{1}')).toBeNull();
  });

  test('rule 5: an attempt that finds unresolved requests plans nothing until none is left', async () => {
    const batch = await scene.sent(2);
    await scene.run.again();
    expect(await scene.stateNow(batch)).toBe('unknown');
    expect(await stateOf(scene.run.prepare('upsert', 2))).toBe(RULE);
    await markStaged(scene.journal.runtime, scene.run.attempt, batch.id, ['job'], '{}', 0);
    expect(await stateOf(scene.run.prepare('upsert', 2))).toBe(RULE);
    await scene.run.settle(batch);
    expect(await stateOf(scene.run.prepare('upsert', 2))).toBeNull();
  });

  test('rule 5: within the attempt that staged them, sending of the phase goes on', async () => {
    const batch = await scene.sent(2);
    await markStaged(scene.journal.runtime, scene.run.attempt, batch.id, ['job'], '{}', 0);
    expect(await stateOf(scene.run.prepare('upsert', 2, 1))).toBeNull();
    await scene.run.again();
    expect(await stateOf(scene.run.prepare('upsert', 2, 1))).toBe(RULE);
  });

  test('rule 5: after a rejection nothing is planned or tried again, and a later attempt sends nothing prepared', async () => {
    const batches = await scene.run.prepare('upsert', 1);
    const [first, second, third, fourth] = batches;
    if (!first || !second || !third || !fourth) throw new Error('four batches');
    for (const b of [first, second]) await scene.run.sending(b.id);
    await markNotApplied(scene.journal.runtime, scene.run.attempt, second.id, '429', 0);
    await scene.run.settle(first, new Set(first.members));
    // Already being launched when the rejection came: in flight, and recorded.
    expect(await stateOf(scene.run.sending(third.id))).toBeNull();
    await scene.run.settle(third);
    const { draft } = await scene.run.draft(await scene.run.record(), 'upsert', second.first, second.last, 2);
    expect(await stateOf(retryBatch(scene.journal.runtime, scene.run.attempt, second.id, [draft]))).toBe(
      RULE,
    );
    await scene.run.again();
    expect(await stateOf(scene.run.sending(fourth.id))).toBe(RULE);
    expect(await stateOf(scene.run.beginRemovals())).toBe(RULE);
    expect(await stateOf(closeRun(scene.journal.runtime, scene.run.attempt, 'rejected', 'row'))).toBeNull();
  });
});

describe('preparing and sending in one commit', () => {
  test('rule 2 and 3: both are durable before the first byte, or neither is', async () => {
    await scene.fresh({ maxBatchRows: 3 });
    const { attempt } = scene.run;
    const drafts = (await scene.run.drafts('upsert', 2)).map((d) => d.draft);
    expect(await stateOf(prepareSending(scene.journal.runtime, attempt, 'upsert', drafts, 0))).toBe(RULE);
    expect(await openBatches(scene.journal.runtime, attempt)).toEqual([]);
    await prepareSending(scene.journal.runtime, attempt, 'upsert', drafts, 1_000);
    const open = await openBatches(scene.journal.runtime, attempt);
    expect(open.map((b) => [b.id, b.state])).toEqual(drafts.map((d) => [d.id, 'sending']));
    expect(await stateOf(prepareSending(scene.journal.runtime, attempt, 'upsert', drafts, 1_000))).toBe(RULE);
  });
});

describe('trying again', () => {
  beforeEach(async () => {
    scene.run = await scene.fresh();
  });

  const pieces = async (batch: Prepared, ends: readonly bigint[], ordinal = 2) => {
    const record = await scene.run.record();
    let first = batch.first;
    const drafts = [];
    for (const last of ends) {
      drafts.push(await scene.run.draft(record, batch.action, first, last, ordinal));
      first = last + 1n;
    }
    return drafts;
  };
  const retry = (batch: Prepared, drafts: Awaited<ReturnType<typeof pieces>>) =>
    stateOf(
      retryBatch(
        scene.journal.runtime,
        scene.run.attempt,
        batch.id,
        drafts.map((d) => d.draft),
      ),
    );

  test('rule 4: only what was proven not applied is prepared again, whole or in pieces that cover it, once', async () => {
    const batch = await scene.sent();
    const { first, last } = batch;
    const whole = await pieces(batch, [last]);
    expect(await retry(batch, whole)).toBe(RULE);
    await markNotApplied(scene.journal.runtime, scene.run.attempt, batch.id, '413', 0);
    expect(await retry(batch, await pieces(batch, [first + 1n]))).toBe(RULE);
    expect(await retry(batch, [])).toBe(RULE);
    expect(await retry(batch, await pieces(batch, [first + 1n, last]))).toBeNull();
    expect(await retry(batch, whole)).toBe(RULE);
    const open = await openBatches(scene.journal.runtime, scene.run.attempt);
    expect(open.map((b) => [b.first, b.last, b.sending, b.state])).toEqual([
      [first, first + 1n, 2, 'prepared'],
      [first + 2n, last, 2, 'prepared'],
    ]);
    // Each piece is a batch like any other: sent, not applied, prepared again.
    const piece = open[0];
    if (piece === undefined) throw new Error('no piece');
    await scene.run.sending(piece.id);
    await markNotApplied(scene.journal.runtime, scene.run.attempt, piece.id, '429', 0);
    const [third] = await pieces({ ...batch, id: piece.id, last: first + 1n }, [first + 1n], 3);
    if (third === undefined) throw new Error('no draft');
    expect(
      await stateOf(retryBatch(scene.journal.runtime, scene.run.attempt, piece.id, [third.draft])),
    ).toBeNull();
  });

  test('rule 6: a refused request is never tried again; it says for ever what it said', async () => {
    const batch = await scene.sent();
    await markRefused(scene.journal.runtime, scene.run.attempt, batch.id, 'bad-request', 'no');
    expect(
      await stateOf(markRefused(scene.journal.runtime, scene.run.attempt, batch.id, 'bad-request', 'no')),
    ).toBeNull();
    expect(await retry(batch, await pieces(batch, [batch.last]))).toBe(FINAL);
    expect(
      await stateOf(markRefused(scene.journal.runtime, scene.run.attempt, batch.id, 'other', 'no')),
    ).toBe(FINAL);
    expect(await stateOf(scene.run.settle(batch))).toBe(FINAL);
    expect(await stateOf(scene.run.beginRemovals())).toBe(RULE);
  });

  test('steps are not retried as members are', async () => {
    const init = await stepBatch(scene.journal.runtime, scene.run.attempt, 'init');
    if (init === null) throw new Error('no init');
    expect(await stateOf(retryBatch(scene.journal.runtime, scene.run.attempt, init.id, []))).toBe(FINAL);
    expect(
      await stateOf(settleBatch(scene.journal.runtime, scene.run.attempt, init.id, '{}', [], new Map())),
    ).toBe(RULE);
    const batch = await scene.sent();
    expect(
      await stateOf(settleStep(scene.journal.runtime, scene.run.attempt, batch.id, '{}', new Map())),
    ).toBe(RULE);
  });
});
