/** Rules 2, 3, 5 and 6: settling, as a careless or malicious worker would try. */

import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { sequence } from '../../src/domain/ids.ts';
import {
  markNotApplied,
  markRefused,
  markStaged,
  markUnknown,
  retryBatch,
  settleBatch,
} from '../../src/journal/batches.ts';
import { logHead } from '../../src/journal/log.ts';
import { closeRun } from '../../src/journal/runs.ts';
import { readStore } from '../../src/journal/store.ts';
import { stateOf } from '../support/journal.ts';
import { BatchScene } from '../support/journal-scene.ts';

const RULE = 'RM003';
const FINAL = 'RM006';

const scene = new BatchScene();

beforeAll(() => scene.open());
afterAll(() => scene.close());

describe('settling', () => {
  beforeEach(async () => {
    scene.run = await scene.fresh();
  });

  test('rule 6: a settled batch stays as it is; an exact repeat changes nothing', async () => {
    const batch = await scene.sent();
    await scene.run.settle(batch, new Set(['c', 'a']));
    const head = await logHead(scene.journal.runtime);
    await scene.run.settle(batch, new Set(['a', 'c']));
    const turned = [...batch.members.keys()].reverse().flatMap((i) => {
      const member = batch.members[i];
      return member === 'a' || member === 'c'
        ? [{ sequence: sequence(batch.first + BigInt(i)), code: 'refused-row', reason: 'x' }]
        : [];
    });
    await settleBatch(scene.journal.runtime, scene.run.attempt, batch.id, '{"ok":true}', turned, new Map());
    expect(await logHead(scene.journal.runtime)).toEqual(head);
    // receipt-downgrade: none of these comes back.
    const later = [
      () => scene.run.settle(batch),
      () => scene.run.settle(batch, new Set(['a', 'b', 'c'])),
      () =>
        settleBatch(scene.journal.runtime, scene.run.attempt, batch.id, '{"ok":false}', turned, new Map()),
      () => markStaged(scene.journal.runtime, scene.run.attempt, batch.id, ['j'], '{}', 0),
      () => markUnknown(scene.journal.runtime, scene.run.attempt, batch.id, 'x'),
      () => markNotApplied(scene.journal.runtime, scene.run.attempt, batch.id, 'x', 0),
      () => markRefused(scene.journal.runtime, scene.run.attempt, batch.id, 'x', 'w'),
      () => scene.run.sending(batch.id),
      () => retryBatch(scene.journal.runtime, scene.run.attempt, batch.id, []),
    ];
    for (const call of later) expect(await stateOf(call())).toBe(FINAL);
  });

  test('rule 2: what the adapter keeps in its store commits with the receipt, whole, however long', async () => {
    const batch = await scene.sent();
    const { runtime } = scene.journal;
    const saved = `😀${'x'.repeat(400_000)}`;
    const longest = '€'.repeat(512);
    const settle = (value: string) =>
      settleBatch(runtime, scene.run.attempt, batch.id, '{}', [], new Map([[longest, value]]));
    await expect(settle('a\0b')).rejects.toThrow('no text');
    const { target } = await scene.run.record();
    expect((await readStore(runtime, target)).size).toBe(0);
    await settle(saved);
    expect((await readStore(runtime, target)).get(longest)).toBe(saved);
  });

  test('rule 6: not even the owner rewrites an outcome, an entry or an attempt by accident', async () => {
    const batch = await scene.sent();
    await scene.run.settle(batch);
    for (const sql of [
      "update retl.batch set receipt = '{}' where state = 'settled'",
      "update retl.batch set state = 'unknown' where state = 'settled'",
      'update retl.batch set folded = false, accepted = 0 where folded',
      'update retl.log_entry set effects = 0',
      'delete from retl.log_entry',
      'truncate retl.log_entry cascade',
      "update retl.attempt set step = 'seal'",
      "update retl.rejection set reason = ''",
      "update retl.revision set settings = ''",
    ]) {
      expect(await stateOf(scene.journal.owner.query(sql)), sql).toBe(FINAL);
    }
  });

  test('rejections lie within their batch, once each, with a code and words', async () => {
    const batch = await scene.sent();
    const settle = (
      rejected: unknown,
      codes: unknown,
      reasons: unknown,
      keys: unknown = null,
      values: unknown = null,
    ) =>
      stateOf(
        scene.journal.runtime.query(
          "select retl.settle_batch($1, $2, decode($3, 'hex'), '{}', $4::bigint[], $5::text[], $6::text[], $7::text[], $8::text[])",
          [scene.run.run, scene.run.attempt.epoch, batch.id.slice(7), rejected, codes, reasons, keys, values],
        ),
      );
    const { first, last } = batch;
    for (const [rejected, codes, reasons] of [
      [`{${first - 1n}}`, '{c}', '{w}'],
      [`{${last + 1n}}`, '{c}', '{w}'],
      [`{${first},${first}}`, '{c,c}', '{w,w}'],
      ['{null}', '{c}', '{w}'],
      [`{${first}}`, '{null}', '{w}'],
      [`{${first}}`, '{c}', '{null}'],
      [`{${first}}`, null, '{w}'],
      [`{${first}}`, '{c}', '{}'],
      [`{${first}}`, '{c,c}', '{w,w}'],
    ]) {
      expect(await settle(rejected, codes, reasons), `${rejected} ${codes} ${reasons}`).toBe(RULE);
    }
    expect(await settle(`{${first}}`, '{someone@example.org}', '{w}')).toBe('23514');
    for (const [keys, values] of [
      ['{k}', '{}'],
      ['{k,l}', '{v}'],
      ['{null}', '{v}'],
      ['{k,k}', '{v,w}'],
      [null, '{v}'],
    ]) {
      expect(await settle(null, null, null, keys, values), `${keys} ${values}`).toBe(RULE);
    }
    expect(await scene.stateNow(batch)).toBe('sending');
    expect(await settle(`{${first}}`, '{c}', '{w}', '{k,l}', '{v,null}')).toBeNull();
  });

  test('evidence-rolled-back: a settlement fails whole: no rejection, store or entry of it stays', async () => {
    const batch = await scene.sent();
    const head = await logHead(scene.journal.runtime);
    const bad = [{ sequence: sequence(batch.last + 1n), code: 'c', reason: 'w' }];
    const call = settleBatch(
      scene.journal.runtime,
      scene.run.attempt,
      batch.id,
      '{}',
      bad,
      new Map([['undone', 'v']]),
    );
    expect(await stateOf(call)).toBe(RULE);
    expect(await logHead(scene.journal.runtime)).toEqual(head);
    const { rows } = await scene.journal.admin.query('select from retl.store where key = $1', ['undone']);
    expect(rows).toEqual([]);
  });

  test('a batch whose every operation is rejected has no entry, and closes without being folded', async () => {
    const batch = await scene.sent();
    const head = await logHead(scene.journal.runtime);
    await scene.run.settle(batch, new Set(batch.members));
    expect(await logHead(scene.journal.runtime)).toEqual(head);
    await closeRun(scene.journal.runtime, scene.run.attempt, 'rejected', 'row');
    // What was refused can still be named.
    const { rows } = await scene.journal.runtime.query(
      `select o.identity from retl.operation_${scene.run.run} o join retl.rejection using (sequence)`,
    );
    expect(rows.length + (await identitiesInGeneration())).toBeGreaterThanOrEqual(5);
  });

  async function identitiesInGeneration(): Promise<number> {
    const { generation } = await scene.run.record();
    if (generation === null) return 0;
    const { rows } = await scene.journal.runtime.query(
      `select from retl.operation_${scene.run.run} o join retl.rejection using (sequence)
       join retl.generation_${generation} g using (identity_hash)`,
    );
    return rows.length;
  }

  test('a staged batch names its jobs, at least one, and they do not change', async () => {
    const batch = await scene.sent();
    const stage = (jobs: unknown) =>
      stateOf(
        scene.journal.runtime.query(
          "select retl.mark_staged($1, $2, decode($3, 'hex'), $4::text[], '{}', 0)",
          [scene.run.run, scene.run.attempt.epoch, batch.id.slice(7), jobs],
        ),
      );
    for (const jobs of [null, '{}', '{null}', '{a,null}'])
      expect(await stage(jobs), String(jobs)).toBe('23514');
    expect(await stage('{a,b}')).toBeNull();
    expect(await stage('{a,b}')).toBeNull();
    for (const jobs of ['{a}', '{b,a}', null]) expect(await stage(jobs), String(jobs)).toBe(FINAL);
  });

  test('rule 2: a settlement needs a receipt', async () => {
    const batch = await scene.sent();
    const call = scene.journal.runtime.query(
      "select retl.settle_batch($1, $2, decode($3, 'hex'), null, null, null, null, null, null)",
      [scene.run.run, scene.run.attempt.epoch, batch.id.slice(7)],
    );
    expect(await stateOf(call)).toBe('23514');
  });
});
