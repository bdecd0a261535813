/** Rules 1, 6 and 10: removals, the finish, and the end of a run, as a careless or malicious worker would try. */

import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { markStaged, markUnknown, settleStep } from '../../src/journal/batches.ts';
import { resolveBatch } from '../../src/journal/resolve.ts';
import { beginFinish, beginRemovals, closeRun, promote } from '../../src/journal/runs.ts';
import { stateOf } from '../support/journal.ts';
import {
  type Action,
  identityHash,
  MAX_PAYLOAD,
  type Prepared,
  rowsOf,
  ScriptedRun,
} from '../support/journal-run.ts';
import { BatchScene } from '../support/journal-scene.ts';

const RULE = 'RM003';
const FINAL = 'RM006';

const scene = new BatchScene();

beforeAll(() => scene.open());
afterAll(() => scene.close());

describe('removals, finish and the end', () => {
  const advance = async (action: Action) => {
    await scene.run.deliver(action);
    if (action === 'upsert') await scene.run.beginRemovals();
    else await scene.run.beginFinish();
  };

  test('mixed-order: no finish before every removal is accepted, no removal among additions', async () => {
    scene.run = await scene.fresh({ held: { a: '1', x: '1', y: '1', z: '1' } });
    expect(await stateOf(scene.run.prepareStep('finish'))).toBe(RULE);
    await advance('upsert');
    expect(await stateOf(beginFinish(scene.journal.runtime, scene.run.attempt))).toBe(RULE);
    expect(
      await scene.rawPrepare(
        'upsert',
        scene.id('x'),
        `{${(await scene.run.record()).removalsEnd}}`,
        scene.id('h'),
        '{1}',
      ),
    ).toBe(RULE);
    const [first] = await scene.run.prepare('remove', 2, 1);
    expect(await stateOf(beginFinish(scene.journal.runtime, scene.run.attempt))).toBe(RULE);
    if (first === undefined) throw new Error('no removal');
    await scene.run.sending(first.id);
    await scene.run.settle(first);
    expect(await stateOf(beginFinish(scene.journal.runtime, scene.run.attempt))).toBe(RULE);
    await scene.run.deliver('remove');
    expect(await stateOf(promote(scene.journal.runtime, scene.run.attempt))).toBe(RULE);
    expect(await stateOf(beginFinish(scene.journal.runtime, scene.run.attempt))).toBeNull();
  });

  test('what the guard saw is what is removed: a set of another size, or of other members, is refused', async () => {
    for (const change of [
      'delete from TABLE where identity_hash = $1',
      "update TABLE set identity_hash = sha256('somebody else') where identity_hash = $1",
    ]) {
      await scene.fresh({ held: { x: '1', y: '1' } });
      await scene.run.deliver('upsert');
      const { target } = await scene.run.record();
      const sql = change.replace('TABLE', `retl.membership_${target}`);
      await scene.journal.admin.query(sql, [identityHash('x')]);
      expect(await stateOf(scene.run.beginRemovals()), change).toBe(RULE);
    }
  });

  test('cannot-remove: a refused removal keeps the member, and the run does not finish', async () => {
    scene.run = await scene.fresh({ held: { x: '1' } });
    await advance('upsert');
    await scene.run.deliver('remove', { reject: new Set(['x']) });
    expect(await stateOf(beginFinish(scene.journal.runtime, scene.run.attempt))).toBe(RULE);
    await closeRun(scene.journal.runtime, scene.run.attempt, 'rejected', 'too-small');
    const next = await ScriptedRun.open(scene.journal.runtime, { mirror: scene.run.request.mirror });
    await next.upToAdditions(rowsOf({ a: '1', b: '1', c: '1', d: '1', e: '1' }));
    expect(await next.deliver('upsert')).toEqual([]);
    await next.beginRemovals();
    expect((await next.prepare('remove', 10)).flatMap((b) => b.members)).toEqual(['x']);
  });

  test('rule 10: a started finish is resolved before anything is closed, and an accepted one completes', async () => {
    scene.run = await scene.fresh();
    await advance('upsert');
    await advance('remove');
    const finish = await scene.run.prepareStep('finish');
    expect(await stateOf(scene.run.prepareStep('finish', 2))).toBe('23505');
    await scene.run.sending(finish);
    const close = () => stateOf(closeRun(scene.journal.runtime, scene.run.attempt, 'aborted', null));
    expect(await close()).toBe(RULE);
    await scene.run.again();
    expect(await close()).toBe(RULE);
    expect(await stateOf(promote(scene.journal.runtime, scene.run.attempt))).toBe(RULE);
    await settleStep(scene.journal.runtime, scene.run.attempt, finish, '{}', new Map());
    expect(await close()).toBe(RULE);
    expect(await stateOf(promote(scene.journal.runtime, scene.run.attempt))).toBe(RULE); // unfolded
    await scene.run.foldAll();
    expect(await stateOf(promote(scene.journal.runtime, scene.run.attempt))).toBeNull();
  });

  test('abort-erases: a run with anything sending, unknown or staged is not closed; a prepared one is', async () => {
    scene.run = await scene.fresh();
    const batches = await scene.run.prepare('upsert', 1);
    const [a, b, c, d] = batches;
    if (!a || !b || !c || !d) throw new Error('four batches');
    const close = () => stateOf(closeRun(scene.journal.runtime, scene.run.attempt, 'aborted', null));
    for (const x of [a, b, c]) await scene.run.sending(x.id);
    expect(await close()).toBe(RULE);
    await scene.run.settle(a);
    await markUnknown(scene.journal.runtime, scene.run.attempt, b.id, 'reset');
    await markStaged(scene.journal.runtime, scene.run.attempt, c.id, ['j'], '{}', 0);
    expect(await close()).toBe(RULE);
    await scene.run.settle(b);
    expect(await close()).toBe(RULE);
    await scene.run.settle(c);
    expect(await close()).toBeNull();
    expect(await scene.stateNow(d)).toBe('not-applied');
  });

  test('a run that has sent members is neither discarded nor called invalid, and none is closed as completed', async () => {
    scene.run = await scene.fresh();
    for (const [how, state] of [
      ['discarded', RULE],
      ['invalid', RULE],
      ['completed', RULE],
      ['nonsense', '23514'],
      [null, RULE],
    ]) {
      const call = scene.journal.runtime.query('select retl.close_run($1, $2, $3, null)', [
        scene.run.run,
        scene.run.attempt.epoch,
        how,
      ]);
      expect(await stateOf(call), String(how)).toBe(state);
    }
  });

  test('rule 1: a native replacement has no removals, and is not promoted before its replacement is confirmed', async () => {
    scene.run = await ScriptedRun.open(scene.journal.runtime, {
      mirror: scene.name(),
      strategy: 'native-replace',
    });
    const baseline = (kind: string) =>
      stateOf(
        scene.journal.runtime.query("select retl.record_baseline($1, $2, $3, 'verified', null)", [
          scene.run.run,
          scene.run.attempt.epoch,
          kind,
        ]),
      );
    expect(await baseline('new-empty')).toBe(RULE);
    expect(await baseline('replace')).toBeNull();
    await scene.run.step('init');
    await scene.run.upToAdditions(rowsOf({ a: '1', b: '1' }));
    await scene.run.deliver('upsert');
    await beginRemovals(scene.journal.runtime, scene.run.attempt, MAX_PAYLOAD);
    expect(
      await scene.rawPrepare(
        'remove',
        scene.id('x'),
        `{${(await scene.run.record()).additionsEnd}}`,
        scene.id('h'),
        '{1}',
      ),
    ).toBe(RULE);
    await scene.run.beginFinish();
    await scene.run.step('finish');
    await scene.run.foldAll();
    expect(await stateOf(promote(scene.journal.runtime, scene.run.attempt))).toBe(RULE);
  });
});

describe('an operator’s word', () => {
  beforeEach(async () => {
    scene.run = await scene.fresh();
  });
  const resolve = (batch: Prepared, verdict: unknown, because: unknown) =>
    stateOf(
      scene.journal.runtime.query("select retl.resolve_batch(decode($1, 'hex'), $2, $3)", [
        batch.id.slice(7),
        verdict,
        because,
      ]),
    );

  test('only an unknown batch, with a verdict and a reason, and never "not applied" before the send deadline', async () => {
    const batch = await scene.sent();
    expect(await resolve(batch, 'accepted', 'looked')).toBe(RULE);
    await markUnknown(scene.journal.runtime, scene.run.attempt, batch.id, 'reset');
    for (const verdict of [null, '', 'rejected', 'settled'])
      expect(await resolve(batch, verdict, 'looked')).toBe(RULE);
    for (const because of [null, '']) expect(await resolve(batch, 'accepted', because)).toBe(RULE);
    expect(await resolve(batch, 'not-applied', 'looked')).toBe(RULE);
    const old = scene.run.attempt;
    expect(await resolve(batch, 'accepted', 'looked')).toBeNull();
    expect(await scene.stateNow(batch)).toBe('settled');
    // The attempt that may still have been asking is fenced.
    expect(await stateOf(markUnknown(scene.journal.runtime, old, batch.id, 'late'))).toBe('RM001');
    expect(await resolve(batch, 'accepted', 'looked')).toBe(FINAL);
  });

  test('not while another request of the run is on its way: its answer would be lost', async () => {
    const [lost, flying] = await scene.run.prepare('upsert', 2, 2);
    if (lost === undefined || flying === undefined) throw new Error('no batches');
    await scene.run.sending(lost.id);
    await markUnknown(scene.journal.runtime, scene.run.attempt, lost.id, 'reset');
    await scene.run.sending(flying.id, 400);
    expect(await resolve(lost, 'accepted', 'looked')).toBe(RULE);
    expect(await resolveBatch(scene.journal.runtime, lost.id, 'accepted', 'looked')).toEqual({
      kind: 'under-way',
      leftMs: expect.any(Number),
    });
    // Refused, it has fenced nobody.
    await scene.run.settle(flying);
    expect(await resolve(lost, 'accepted', 'looked')).toBeNull();
    expect(await scene.stateNow(lost)).toBe('settled');
  });

  test('a request that can no longer arrive does not hold a verdict up', async () => {
    const [lost, stuck] = await scene.run.prepare('upsert', 2, 2);
    if (lost === undefined || stuck === undefined) throw new Error('no batches');
    await scene.run.sending(lost.id);
    await markUnknown(scene.journal.runtime, scene.run.attempt, lost.id, 'reset');
    await scene.run.sending(stuck.id, 50);
    await sleep(80);
    expect(await resolve(lost, 'accepted', 'looked')).toBeNull();
    await scene.run.again();
    expect(await scene.stateNow(stuck)).toBe('unknown');
  });
});
