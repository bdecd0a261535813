/** Rules 1 and 5: what a run may do once members were rejected, as far as the journal lets it. */

import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { RejectionSettings } from '../../src/domain/settings.ts';
import { markNotApplied, markRefused, retryBatch } from '../../src/journal/batches.ts';
import { listRejections } from '../../src/journal/rejections.ts';
import { countRun } from '../../src/journal/run-record.ts';
import { admit, closeRun, promote } from '../../src/journal/runs.ts';
import { stateOf } from '../support/journal.ts';
import { admission, identityHash, type Prepared, rowsOf, ScriptedRun } from '../support/journal-run.ts';
import { BatchScene } from '../support/journal-scene.ts';

const RULE = 'RM003';
const CONTINUE: RejectionSettings = { kind: 'continue' };
const upTo = (max: number): RejectionSettings => ({ kind: 'tolerate', max, maxShare: null });
const share = (maxShare: number): RejectionSettings => ({ kind: 'tolerate', max: null, maxShare });
const FIVE = { a: '1', b: '1', c: '1', d: '1', e: '1' };
const only = (...ids: readonly string[]) => new Set(ids);

const scene = new BatchScene();
beforeAll(() => scene.open());
afterAll(() => scene.close());

async function opened(
  onRejection: RejectionSettings,
  members: Readonly<Record<string, string>> = FIVE,
  mirror = scene.name(),
): Promise<ScriptedRun> {
  const run = await ScriptedRun.open(scene.journal.runtime, { mirror, onRejection });
  await run.upToAdditions(rowsOf(members));
  return run;
}

/** Refuses the next batch of `size` operations as a whole. */
async function refused(run: ScriptedRun, size: number, divisible: boolean): Promise<Prepared> {
  const [batch] = await run.prepare('upsert', size, 1);
  if (batch === undefined) throw new Error('nothing to prepare');
  await run.sending(batch.id);
  await markRefused(run.db, run.attempt, batch.id, 'http-400', 'one of them', divisible);
  return batch;
}

async function finish(run: ScriptedRun): Promise<void> {
  await run.beginFinish();
  await run.step('finish');
  await run.foldAll();
  await promote(run.db, run.attempt);
}

async function membersOf(run: ScriptedRun): Promise<readonly string[]> {
  const { target } = await run.record();
  const { rows } = await scene.journal.admin.query<{ hash: string }>(
    `select encode(identity_hash, 'hex') as hash from retl.membership_${target}`,
  );
  const names = new Map(Object.keys(FIVE).map((id) => [identityHash(id).toString('hex'), id]));
  return rows.map(({ hash }) => names.get(hash) ?? '?').sort();
}

async function exceptionsOf(run: ScriptedRun) {
  const { rows } = await scene.journal.admin.query(
    `select encode(identity_hash, 'hex') as hash, change, held_sequence is not null as held from retl.exception
     where run_id = $1 order by sequence`,
    [run.run],
  );
  const names = new Map(Object.keys(FIVE).map((id) => [identityHash(id).toString('hex'), id]));
  return rows.map((row) => ({ id: names.get(row.hash), change: row.change, held: row.held }));
}

test('rule 5: by default nothing is prepared or sent after a rejection', async () => {
  const run = await opened({ kind: 'stop' });
  const [first, second] = await run.prepare('upsert', 2, 2);
  if (first === undefined || second === undefined) throw new Error('two batches');
  await run.sending(first.id);
  await run.settle(first, only('a', 'b', 'c', 'd', 'e'));
  expect(await stateOf(run.prepare('upsert', 1))).toBe(RULE);
  await run.again();
  expect(await stateOf(run.sending(second.id))).toBe(RULE);
});

describe('continue', () => {
  test('rule 5: everything else is sent, also by a later attempt; then no removal is planned', async () => {
    const mirror = scene.name();
    await ScriptedRun.whole(scene.journal.runtime, { mirror }, rowsOf({ a: '0', z: '0' }));
    const run = await opened(CONTINUE, FIVE, mirror);
    const [first, second] = await run.prepare('upsert', 2, 2);
    if (first === undefined || second === undefined) throw new Error('two batches');
    await run.sending(first.id);
    await run.settle(first, only('a', 'b', 'c', 'd', 'e'));
    await run.again();
    await run.sending(second.id);
    await run.settle(second);
    await run.deliver('upsert');
    expect(await stateOf(run.beginRemovals())).toBe(RULE);
    expect(await countRun(run.db, run.run)).toMatchObject({ rejected: 2, removed: 0 });
    await closeRun(run.db, run.attempt, 'rejected', 'refused-row');
    expect(await exceptionsOf(run)).toEqual([]);
  });

  test('cannot-remove: a rejected removal lets the others go, and no finish follows', async () => {
    const mirror = scene.name();
    await ScriptedRun.whole(scene.journal.runtime, { mirror }, rowsOf(FIVE));
    const run = await opened(CONTINUE, { a: '1', b: '1' }, mirror);
    await run.beginRemovals();
    await run.deliver('remove', { size: 1, reject: only('d') });
    expect(await countRun(run.db, run.run)).toMatchObject({ removed: 2, rejected: 1 });
    expect(await stateOf(run.beginFinish())).toBe(RULE);
  });

  test('rule 5: a refusal that nothing says one member is to blame for stops it all the same', async () => {
    const run = await opened(CONTINUE);
    await refused(run, 2, false);
    expect(await stateOf(run.prepare('upsert', 1))).toBe(RULE);
  });

  test('whole-batch-reject: the halves of a refused request are sent, and only the offender is rejected', async () => {
    const run = await opened(CONTINUE);
    const [whole] = await run.prepare('upsert', 5);
    if (whole === undefined) throw new Error('a batch');
    await run.sending(whole.id);
    await markNotApplied(run.db, run.attempt, whole.id, 'divided:http-400', 0);
    const record = await run.record();
    const halves = [
      await run.draft(record, 'upsert', whole.first, whole.first, 2),
      await run.draft(record, 'upsert', whole.first + 1n, whole.last, 2),
    ];
    const drafts = halves.map((half) => half.draft);
    await retryBatch(run.db, run.attempt, whole.id, drafts);
    expect(await stateOf(retryBatch(run.db, run.attempt, whole.id, drafts))).toBe(RULE);
    for (const { prepared } of halves) await run.sending(prepared.id);
    const [bad, good] = halves;
    if (bad === undefined || good === undefined) throw new Error('two halves');
    await run.settle(bad.prepared, only(...bad.prepared.members));
    await run.settle(good.prepared);
    expect(await countRun(run.db, run.run)).toMatchObject({ added: 4, rejected: 1 });
  });
});

describe('tolerate', () => {
  test('rule 1: within the limit removals and finish follow, and the promotion records who was rejected', async () => {
    const mirror = scene.name();
    await ScriptedRun.whole(scene.journal.runtime, { mirror }, rowsOf({ a: '0', d: '1', e: '1' }));
    const run = await opened(upTo(3), { a: '1', b: '1', c: '1' }, mirror);
    await run.deliver('upsert', { reject: only('a', 'b') });
    await run.beginRemovals();
    await run.deliver('remove', { size: 1, reject: only('e') });
    await finish(run);
    // Never removed on that account: the update of `a` and the removal of `e` were refused.
    expect(await membersOf(run)).toEqual(['a', 'c', 'e']);
    const exceptions = await exceptionsOf(run);
    expect(exceptions).toHaveLength(3);
    expect(exceptions).toEqual(
      expect.arrayContaining([
        { id: 'a', change: 'c', held: true },
        { id: 'b', change: 'a', held: false },
        { id: 'e', change: 'r', held: true },
      ]),
    );
    // failed-forgotten: with the same source all three are sent again.
    const next = await opened(upTo(3), { a: '1', b: '1', c: '1' }, mirror);
    expect(await countRun(next.db, next.run)).toMatchObject({
      toAdd: 1,
      toChange: 1,
      toRemove: 1,
      unchanged: 1,
    });
    await next.complete();
    expect(await membersOf(next)).toEqual(['a', 'b', 'c']);
    expect(await exceptionsOf(next)).toEqual([]);
  });

  test('rule 1: one more than the limit, and it holds: no removals before, no finish after them', async () => {
    const mirror = scene.name();
    await ScriptedRun.whole(scene.journal.runtime, { mirror }, rowsOf({ d: '1', e: '1' }));
    const run = await opened(upTo(1), { a: '1', b: '1', c: '1' }, mirror);
    await run.deliver('upsert', { reject: only('a') });
    await run.beginRemovals();
    await run.deliver('remove', { reject: only('e') });
    expect(await stateOf(run.beginFinish())).toBe(RULE);
    await closeRun(run.db, run.attempt, 'rejected', 'refused-row');
    const next = await opened(upTo(1), { a: '1', e: '2' }, mirror);
    await next.deliver('upsert', { reject: only('a', 'e') });
    expect(await stateOf(next.beginRemovals())).toBe(RULE);
    expect(await membersOf(next)).toEqual(['b', 'c', 'e']);
  });

  test('rule 5: a share is of the members that the run desires or removes, not of those it sends', async () => {
    const mirror = scene.name();
    await ScriptedRun.whole(scene.journal.runtime, { mirror }, rowsOf({ a: '1', b: '1', c: '1', d: '1' }));
    const within = await opened(share(0.2), FIVE, mirror);
    await within.deliver('upsert', { reject: only('e') });
    await within.beginRemovals();
    await finish(within);
    const beyond = await opened(share(0.19), FIVE, mirror);
    await beyond.deliver('upsert', { reject: only('e') });
    expect(await stateOf(beyond.beginRemovals())).toBe(RULE);
  });

  test('rule 5: a request refused whole counts with all its members, and each of them is an exception', async () => {
    const run = await opened(upTo(2));
    await refused(run, 2, true);
    await run.deliver('upsert');
    expect(await countRun(run.db, run.run)).toMatchObject({ added: 3, rejected: 2 });
    await run.beginRemovals();
    await finish(run);
    expect((await exceptionsOf(run)).map(({ held }) => held)).toEqual([false, false]);
    expect(await membersOf(run)).toHaveLength(3);
  });

  test('rule 5: a limit is part of a run that tolerates, and of no other; a replacement tolerates nothing', async () => {
    const admitted = (onRejection: RejectionSettings, strategy: 'snapshot-diff' | 'native-replace') =>
      stateOf(admit(scene.journal.runtime, admission({ mirror: scene.name(), strategy, onRejection })));
    expect(await admitted(upTo(0), 'snapshot-diff')).toBeNull();
    expect(await admitted({ kind: 'tolerate', max: null, maxShare: null }, 'snapshot-diff')).toBe('23514');
    expect(await admitted({ kind: 'tolerate', max: 1, maxShare: 0.1 }, 'snapshot-diff')).toBe('23514');
    expect(await admitted(CONTINUE, 'native-replace')).toBe(RULE);
    expect(await admitted(upTo(1), 'native-replace')).toBe(RULE);
  });
});

describe('the list', () => {
  test('poison-row: each rejection says what the next run made of it, and whether it was tolerated', async () => {
    const mirror = scene.name();
    const asked = { mirror, run: null, before: null, limit: 20, values: false };
    const told = async () =>
      (await listRejections(scene.journal.runtime, asked)).rejections.map(
        ({ runId, kind, tolerated, since }) => ({
          run: runId,
          kind,
          tolerated,
          since: since === null ? null : `${since.became} in ${since.runId}`,
        }),
      );
    const first = await opened(upTo(2), { a: '1', b: '1', c: '1' }, mirror);
    await first.deliver('upsert', { reject: only('a', 'b') });
    expect(await told()).toEqual(
      Array(2).fill({ run: `${first.run}`, kind: 'operation', tolerated: false, since: null }),
    );
    await first.beginRemovals();
    await finish(first);
    expect(await told()).toEqual(
      Array(2).fill({ run: `${first.run}`, kind: 'operation', tolerated: true, since: null }),
    );
    // A run that ends before it sends them says nothing of them.
    const idle = await opened(CONTINUE, { a: '1', b: '1', c: '1' }, mirror);
    expect((await told()).map(({ since }) => since)).toEqual(Array(2).fill(`pending in ${idle.run}`));
    await closeRun(idle.db, idle.attempt, 'aborted', null);
    expect((await told()).map(({ since }) => since)).toEqual([null, null]);
    const second = await opened(CONTINUE, { a: '1', b: '1', c: '1' }, mirror);
    await second.deliver('upsert', { reject: only('a') });
    await closeRun(second.db, second.attempt, 'rejected', 'refused-row');
    await ScriptedRun.whole(second.db, { mirror }, rowsOf({ b: '1', c: '1' }));
    const all = await told();
    expect(all.map(({ run, tolerated }) => [run, tolerated])).toEqual([
      [`${second.run}`, false],
      [`${first.run}`, true],
      [`${first.run}`, true],
    ]);
    const third = second.run + 1n;
    expect(all[0]?.since).toBe(`settled in ${third}`);
    expect(all.slice(1).map(({ since }) => since)).toEqual(
      expect.arrayContaining([`rejected in ${second.run}`, `accepted in ${second.run}`]),
    );
  });

  test('whole-batch-reject: a request that was refused whole is one entry, tolerated or not', async () => {
    const run = await opened(upTo(2));
    await refused(run, 2, true);
    await run.deliver('upsert');
    await run.beginRemovals();
    await finish(run);
    const { mirror } = await run.record();
    const asked = { mirror, run: run.run, before: null, limit: 20, values: false };
    expect((await listRejections(run.db, asked)).rejections).toMatchObject([
      { kind: 'request', members: 2, code: 'http-400', tolerated: true, since: null },
    ]);
  });
});

describe('dividing a request that was refused', () => {
  const divide = (run: ScriptedRun, { id }: Prepared) =>
    stateOf(markNotApplied(run.db, run.attempt, id, 'divided:http-400', 0));

  async function sentBy(run: ScriptedRun, size: number): Promise<Prepared> {
    const [batch] = await run.prepare('upsert', size, 1);
    if (batch === undefined) throw new Error('nothing to prepare');
    await run.sending(batch.id);
    return batch;
  }

  test('rule 5: is not done where a rejection stops the run, nor with one member alone', async () => {
    const stops = await opened({ kind: 'stop' });
    expect(await divide(stops, await sentBy(stops, 2))).toBe(RULE);
    const goesOn = await opened(CONTINUE);
    expect(await divide(goesOn, await sentBy(goesOn, 1))).toBe(RULE);
    expect(await divide(goesOn, await sentBy(goesOn, 2))).toBeNull();
  });

  test('rule 5: is done a hundred times in a run, whoever asks, and no more', async () => {
    const run = await opened(CONTINUE);
    expect(await divide(run, await sentBy(run, 2))).toBeNull();
    await scene.journal.admin.query(
      `insert into retl.batch select x.* from retl.batch b cross join generate_series(1, 99) n
       cross join jsonb_populate_record(null::retl.batch, to_jsonb(b) || jsonb_build_object(
         'batch_id', '\\x' || encode(sha256(convert_to(b.run_id || '/' || n, 'UTF8')), 'hex'))) x
       where b.run_id = $1 and b.state = 'not-applied'`,
      [run.run],
    );
    expect(await divide(run, await sentBy(run, 2))).toBe(RULE);
  });
});

test('poison-row: a rejection is told of with what came of it, however many runs have ended otherwise meanwhile', async () => {
  const mirror = scene.name();
  const first = await opened({ kind: 'stop' }, FIVE, mirror);
  await first.deliver('upsert', { size: 5, reject: only('a') });
  await closeRun(first.db, first.attempt, 'rejected', 'refused-row');
  const next = await opened({ kind: 'stop' }, { b: '2' }, mirror);
  await closeRun(next.db, next.attempt, 'aborted', 'abort');
  // A hundred and one more like it, as they would have been left behind.
  await scene.journal.admin.query(
    `do $do$ declare v bigint; begin
       for i in 1..101 loop
         v := nextval(pg_get_serial_sequence('retl.run', 'run_id'));
         insert into retl.run overriding system value select x.* from retl.run r cross join lateral
           jsonb_populate_record(null::retl.run, to_jsonb(r) || jsonb_build_object('run_id', v, 'first_sequence', (v << 32) + 1,
             'additions_end', v << 32, 'removals_end', null)) x where r.run_id = ${next.run};
         execute format('create table retl.operation_%s (like retl.operation_${first.run} including all)', v);
         execute format('alter table retl.operation_%s owner to %I', v,
           (select tableowner from pg_tables where schemaname = 'retl' and tablename = 'run'));
       end loop;
     end $do$`,
  );
  const asked = { mirror, run: null, before: null, limit: 10, values: false };
  const since = async () =>
    (await listRejections(scene.journal.runtime, asked)).rejections.map((one) => one.since?.became ?? null);
  expect(await since()).toEqual([null]);
  const open = await opened({ kind: 'stop' }, FIVE, mirror);
  expect(await since()).toEqual(['pending']);
  await open.deliver('upsert');
  await open.beginRemovals();
  await finish(open);
  expect(await since()).toEqual(['accepted']);
});
