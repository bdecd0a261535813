/** Rules 3 and 5: sending, and sending again, as a careless or malicious worker would try. */

import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { type BatchId, sequence, sha256FromHex } from '../../src/domain/ids.ts';
import { openBatches } from '../../src/journal/batch-record.ts';
import {
  markNotApplied,
  markRefused,
  markResending,
  markSending,
  markStaged,
  markUnknown,
  recordProgress,
  retryBatch,
  settleBatch,
  settleStep,
} from '../../src/journal/batches.ts';
import { logHead } from '../../src/journal/log.ts';
import { closeRun, recordBaseline } from '../../src/journal/runs.ts';
import { stateOf } from '../support/journal.ts';
import { type Prepared, ScriptedRun, shaHex } from '../support/journal-run.ts';
import { BatchScene } from '../support/journal-scene.ts';

const RULE = 'RM003';
const UNKNOWN_BATCH = 'RM004';

const scene = new BatchScene();

beforeAll(() => scene.open());
afterAll(() => scene.close());

describe('sending', () => {
  beforeEach(async () => {
    scene.run = await scene.fresh();
  });

  test('rule 3: a batch is sent once; only what is prepared can be', async () => {
    const batch = await scene.one();
    const decide = (x: Promise<unknown>) => stateOf(x);
    expect(await decide(scene.run.settle(batch))).toBe(RULE);
    expect(await decide(markUnknown(scene.journal.runtime, scene.run.attempt, batch.id, 'x'))).toBe(RULE);
    expect(await decide(markNotApplied(scene.journal.runtime, scene.run.attempt, batch.id, 'x', 0))).toBe(
      RULE,
    );
    expect(await decide(markRefused(scene.journal.runtime, scene.run.attempt, batch.id, 'x', 'w'))).toBe(
      RULE,
    );
    expect(await decide(markStaged(scene.journal.runtime, scene.run.attempt, batch.id, ['j'], '{}', 0))).toBe(
      RULE,
    );
    expect(await decide(recordProgress(scene.journal.runtime, scene.run.attempt, batch.id, 'x'))).toBe(RULE);
    expect(await decide(scene.run.sending(batch.id))).toBeNull();
    expect(await decide(scene.run.sending(batch.id))).toBe(RULE);
    expect(await decide(markResending(scene.journal.runtime, scene.run.attempt, batch.id, 1000))).toBe(RULE);
  });

  test('rule 3: a send deadline lies ahead, and not for ever', async () => {
    const batch = await scene.one();
    const call = (ms: unknown) =>
      stateOf(
        scene.journal.runtime.query("select retl.mark_sending($1, $2, decode($3, 'hex'), $4)", [
          scene.run.run,
          scene.run.attempt.epoch,
          batch.id.slice(7),
          ms,
        ]),
      );
    for (const ms of [null, 0, -60_000, 86_400_001, '9223372036854775807']) expect(await call(ms)).toBe(RULE);
    expect(await call(1)).toBeNull();
  });

  test('rule 3: absence proves nothing before the send deadline', async () => {
    const batch = await scene.one();
    await scene.run.sending(batch.id, 300);
    await markUnknown(scene.journal.runtime, scene.run.attempt, batch.id, 'reset');
    const absent = () =>
      stateOf(markNotApplied(scene.journal.runtime, scene.run.attempt, batch.id, 'not-found', 0));
    expect(await absent()).toBe(RULE);
    await sleep(350);
    expect(await absent()).toBeNull();
    expect(await absent()).toBeNull(); // an exact repeat
  });

  test('blind-replay: an unknown request goes again only where the adapter has declared itself idempotent', async () => {
    const batch = await scene.sent();
    await markUnknown(scene.journal.runtime, scene.run.attempt, batch.id, 'reset');
    expect(await stateOf(markResending(scene.journal.runtime, scene.run.attempt, batch.id, 1000))).toBe(RULE);
    scene.run = await scene.fresh({ mayResend: true });
    const again = await scene.sent();
    await markUnknown(scene.journal.runtime, scene.run.attempt, again.id, 'reset');
    expect(await stateOf(markResending(scene.journal.runtime, scene.run.attempt, again.id, 1000))).toBeNull();
  });

  test('rule 3: "nothing applied" about a second copy proves nothing about the first', async () => {
    scene.run = await scene.fresh({ mayResend: true });
    const batch = await scene.sent();
    await markUnknown(scene.journal.runtime, scene.run.attempt, batch.id, 'reset');
    await markResending(scene.journal.runtime, scene.run.attempt, batch.id, 1000);
    await markNotApplied(scene.journal.runtime, scene.run.attempt, batch.id, '429', 5_000);
    await markNotApplied(scene.journal.runtime, scene.run.attempt, batch.id, '429', 5_000); // its answer was lost
    const [open] = await openBatches(scene.journal.runtime, scene.run.attempt);
    expect(open).toMatchObject({ state: 'unknown', reason: '429', resends: 1 });
    // So it can only go again under the same key, never be prepared anew under another.
    const { draft } = await scene.run.draft(await scene.run.record(), 'upsert', batch.first, batch.last, 2);
    expect(await stateOf(retryBatch(scene.journal.runtime, scene.run.attempt, batch.id, [draft]))).toBe(RULE);
    await markResending(scene.journal.runtime, scene.run.attempt, batch.id, 1000);
    expect(await stateOf(scene.run.settle(batch))).toBeNull();
  });

  /** A batch whose first copy is lost, and whose second one is on its way. */
  async function resent(lastCopyDecides = false) {
    scene.run = await scene.fresh({ mayResend: true, lastCopyDecides });
    const batch = await scene.sent();
    await markUnknown(scene.journal.runtime, scene.run.attempt, batch.id, 'reset');
    await markResending(scene.journal.runtime, scene.run.attempt, batch.id, 1000);
    return batch;
  }

  async function evidenceOf(batch: Prepared) {
    const { rows } = await scene.journal.admin.query(
      `select state, reason, refusal, retry_at is not null as waits, accepted, position,
         (select count(*)::int from retl.rejection x where x.batch_id = b.batch_id) as rejections
       from retl.batch b where batch_id = decode($1, 'hex')`,
      [batch.id.slice(7)],
    );
    return rows[0];
  }

  test('rule 3: where the last copy speaks for all, rows that it rejects settle; a refusal of the whole still proves nothing', async () => {
    const batch = await resent(true);
    await markRefused(scene.journal.runtime, scene.run.attempt, batch.id, 'http-400', 'no');
    expect(await evidenceOf(batch)).toMatchObject({ state: 'unknown', reason: 'http-400' });
    await scene.run.settle(batch, new Set(['b']));
    await scene.run.settle(batch, new Set(['b'])); // its answer was lost
    expect(await evidenceOf(batch)).toMatchObject({ state: 'settled', accepted: 4, rejections: 1 });
    // Nobody can declare that of requests that are never sent again.
    await expect(scene.fresh({ mayResend: false, lastCopyDecides: true })).rejects.toThrow();
  });

  test('rule 3: a refusal of a second copy proves nothing about the first, also when it is said twice', async () => {
    const batch = await resent();
    const refuse = (words: string) =>
      markRefused(scene.journal.runtime, scene.run.attempt, batch.id, 'http-400', words);
    await refuse('no');
    const doubt = { state: 'unknown', reason: 'http-400', refusal: 'no', waits: true, accepted: null };
    expect(await evidenceOf(batch)).toMatchObject(doubt);
    await refuse('no'); // its answer was lost
    await refuse('not at all');
    expect(await evidenceOf(batch)).toMatchObject({ ...doubt, refusal: 'not at all' });
    // Not even an attempt that only asks can make a refusal of it.
    await scene.run.again();
    await refuse('no');
    expect(await evidenceOf(batch)).toMatchObject(doubt);
    const closing = closeRun(scene.journal.runtime, scene.run.attempt, 'rejected', 'http-400');
    expect(await stateOf(closing)).toBe(RULE);
    await markResending(scene.journal.runtime, scene.run.attempt, batch.id, 1000);
    await scene.run.settle(batch);
    expect(await evidenceOf(batch)).toMatchObject({ state: 'settled', accepted: 5, rejections: 0 });
  });

  test('rule 3: rows rejected of a second copy settle nothing; a whole acceptance of it does', async () => {
    const batch = await resent();
    const head = await logHead(scene.journal.runtime);
    const reject = (members: readonly string[]) => scene.run.settle(batch, new Set(members));
    for (const members of [['a'], ['a'], ['a', 'b', 'c', 'd', 'e']]) {
      await reject(members);
      expect(await evidenceOf(batch)).toEqual({
        state: 'unknown',
        reason: 'refused-row',
        refusal: null,
        waits: true,
        accepted: null,
        position: null,
        rejections: 0,
      });
    }
    expect(await logHead(scene.journal.runtime)).toEqual(head);
    const stray = [{ sequence: sequence(batch.last + 1n), code: 'c', reason: 'w' }];
    const malformed = settleBatch(
      scene.journal.runtime,
      scene.run.attempt,
      batch.id,
      '{}',
      stray,
      new Map([['kept', 'v']]),
    );
    expect(await stateOf(malformed)).toBe(RULE);
    await markResending(scene.journal.runtime, scene.run.attempt, batch.id, 1000);
    await reject([]);
    expect(await evidenceOf(batch)).toMatchObject({ state: 'settled', accepted: 5 });
  });

  test('rule 3: jobs of a second copy say nothing about the first either', async () => {
    for (const deny of [
      (id: BatchId) => markRefused(scene.journal.runtime, scene.run.attempt, id, 'no', 'w'),
      (id: BatchId) => markNotApplied(scene.journal.runtime, scene.run.attempt, id, 'no', 0),
    ]) {
      const batch = await resent();
      await markStaged(scene.journal.runtime, scene.run.attempt, batch.id, ['j'], '{}', 0);
      await deny(batch.id);
      expect(await evidenceOf(batch)).toMatchObject({ state: 'unknown', reason: 'no' });
    }
  });

  test('rule 3: a refusal that is looked up proves nothing before the send deadline', async () => {
    const batch = await scene.one();
    await scene.run.sending(batch.id, 300);
    await markUnknown(scene.journal.runtime, scene.run.attempt, batch.id, 'reset');
    const refuse = () =>
      stateOf(markRefused(scene.journal.runtime, scene.run.attempt, batch.id, 'http-400', 'no'));
    expect(await refuse()).toBe(RULE);
    await sleep(350);
    expect(await refuse()).toBeNull();
    expect(await refuse()).toBeNull(); // an exact repeat
    expect(await scene.stateNow(batch)).toBe('refused');
  });

  test('create-unsure: a session whose opening was never answered is not opened a second time, by no function', async () => {
    scene.run = await ScriptedRun.open(scene.journal.runtime, { mirror: scene.name() });
    const { runtime } = scene.journal;
    await recordBaseline(runtime, scene.run.attempt, 'new-empty', 'verified', null);
    const id = await scene.run.prepareStep('init');
    await scene.run.sending(id);
    await scene.run.again(); // the worker has died; this attempt finds it
    expect(await stateOf(scene.run.prepareStep('init'))).toBe('23505');
    expect(await stateOf(scene.run.prepareStep('init', 2))).toBe('23505');
    const absent = () => markNotApplied(runtime, scene.run.attempt, id, 'not-found', 0);
    for (const call of [
      () => scene.run.sending(id),
      () => markResending(runtime, scene.run.attempt, id, 1000),
      () => retryBatch(runtime, scene.run.attempt, id, []),
      absent,
      () => scene.run.load([]),
      () => closeRun(runtime, scene.run.attempt, 'discarded', null),
    ]) {
      expect(await stateOf(call())).not.toBeNull();
    }
    expect(await stateOf(absent())).toBe(RULE);
    expect(await openBatches(runtime, scene.run.attempt)).toMatchObject([
      { id, state: 'unknown', resends: 0 },
    ]);
    // Found by what was saved of it, it is the one session there is.
    await settleStep(runtime, scene.run.attempt, id, '{"session":"7"}', new Map());
    expect(await scene.run.record()).toMatchObject({ phase: 'extract' });
  });

  test('a batch of another run, or none at all, is not found', async () => {
    const batch = await scene.one();
    const other = await scene.fresh();
    const calls = [
      () => markSending(scene.journal.runtime, other.attempt, batch.id, 1000),
      () => markUnknown(scene.journal.runtime, other.attempt, batch.id, 'x'),
      () => settleBatch(scene.journal.runtime, other.attempt, batch.id, '{}', [], new Map()),
      () => retryBatch(scene.journal.runtime, other.attempt, batch.id, []),
      () => markSending(scene.journal.runtime, scene.run.attempt, sha256FromHex(shaHex('nothing')), 1000),
    ];
    for (const call of calls) expect(await stateOf(call())).toBe(UNKNOWN_BATCH);
  });
});
