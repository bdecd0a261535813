/** What is told of the mirrors for metrics is what the journal has, whatever has been in it before. */

import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { BatchId } from '../../src/domain/ids.ts';
import { markNotApplied, markStaged, markUnknown } from '../../src/journal/batches.ts';
import { listMirrors } from '../../src/journal/inspect.ts';
import { noteWait } from '../../src/journal/open-state.ts';
import { closeRun, releaseRun } from '../../src/journal/runs.ts';
import { MIRROR_SIGNS, type MirrorSigns, readVitalSigns } from '../../src/journal/vital-signs.ts';
import { GuardScene, HELD, members } from '../support/guard-scene.ts';
import { ScriptedRun } from '../support/journal-run.ts';

const scene = new GuardScene();
beforeAll(() => scene.open());
afterAll(() => scene.close());

const NONE = { batches: 0, age: 0 };

async function signsOf(mirror: string): Promise<MirrorSigns> {
  const { mirrors } = await readVitalSigns(scene.journal.runtime);
  const found = mirrors.find((m) => m.mirror === mirror);
  if (found === undefined) throw new Error(`no signs of ${mirror}`);
  return found;
}

const stateOf = async (mirror: string) => (await signsOf(mirror)).open?.state ?? null;

/** Sets stamps of a batch back, as if it had been `minutes` ago. */
async function age(id: BatchId, minutes: number): Promise<void> {
  await scene.journal.admin.query(
    `update retl.batch set sent_at = sent_at - $2 * interval '1 minute', staged_at = staged_at - $2 * interval '1 minute',
       next_poll_at = next_poll_at - $2 * interval '1 minute', retry_at = retry_at - $2 * interval '1 minute'
     where batch_id = decode($1, 'hex')`,
    [id.slice('sha256:'.length), minutes],
  );
}

/** A run of one request of two members that is on its way. */
async function sent(mirror: string): Promise<{ readonly run: ScriptedRun; readonly id: BatchId }> {
  const run = await ScriptedRun.open(scene.journal.runtime, { mirror });
  await run.upToAdditions(members('ab'));
  const [batch] = await run.prepare('upsert', 2, 1);
  if (batch === undefined) throw new Error('nothing was prepared');
  await run.sending(batch.id);
  return { run, id: batch.id };
}

test('a journal without a mirror has an empty log, and nothing to tell', async () => {
  const empty = new GuardScene();
  await empty.open();
  expect(await readVitalSigns(empty.journal.runtime)).toEqual({ head: 0n, earliest: 1n, mirrors: [] });
  await empty.close();
});

test('what a mirror holds is what `retl status` says, before it is folded, too', async () => {
  const mirror = scene.name();
  const { runtime } = scene.journal;
  const heldOf = async () => (await listMirrors(runtime)).find((m) => m.mirror === mirror)?.held;
  await ScriptedRun.whole(runtime, { mirror }, members(HELD));
  expect(await signsOf(mirror)).toMatchObject({ held: 10, open: null, lastOutcome: 'completed' });
  const run = await ScriptedRun.open(runtime, { mirror });
  await run.upToAdditions(members('abcdefgkl'));
  await run.deliver('upsert', { size: 1 });
  expect((await signsOf(mirror)).held).toBe(12);
  await run.beginRemovals();
  await run.deliver('remove', { size: 2, count: 1 });
  expect((await signsOf(mirror)).held).toBe(10);
  expect(await heldOf()).toBe(10);
  const { head, earliest } = await readVitalSigns(runtime);
  const [{ last } = { last: '' }] = (
    await runtime.query<{ last: string }>('select max(position) as last from retl.log_entry')
  ).rows;
  expect({ head, earliest }).toEqual({ head: BigInt(last), earliest: 1n });
});

describe('the state of the open run', () => {
  test('running, blocked with the age of the request, then let go', async () => {
    const mirror = scene.name();
    const { run, id } = await sent(mirror);
    expect(await signsOf(mirror)).toMatchObject({ open: { state: 'running' }, unknown: NONE, staged: NONE });
    await markUnknown(run.db, run.attempt, id, 'lost');
    await noteWait(run.db, run.attempt, { kind: 'blocked', code: 'lost', batch: id, ms: null });
    await age(id, 10);
    const signs = await signsOf(mirror);
    expect(signs).toMatchObject({ open: { state: 'blocked' }, unknown: { batches: 1 }, staged: NONE });
    expect(signs.unknown.age).toBeGreaterThanOrEqual(600);
    expect(signs.unknown.age).toBeLessThan(700);
    await releaseRun(run.db, run.attempt, 'cancelled', 'cancel');
    expect(await stateOf(mirror)).toBe('cancelled');
  });

  test('waiting until a request that was not applied may go again', async () => {
    const mirror = scene.name();
    const { run, id } = await sent(mirror);
    await markNotApplied(run.db, run.attempt, id, 'http-429', 60_000);
    expect(await stateOf(mirror)).toBe('waiting');
    await age(id, 2);
    expect(await stateOf(mirror)).toBe('running');
  });

  test('pending while the destination works, with the age of its jobs and since when it waits', async () => {
    const mirror = scene.name();
    const { run, id } = await sent(mirror);
    expect((await signsOf(mirror)).open?.waits).toBe(0);
    await markStaged(run.db, run.attempt, id, ['job-1'], '{}', 1_000, new Map());
    await age(id, 4);
    await noteWait(run.db, run.attempt, { kind: 'pending', code: 'staged', batch: id, ms: 1_000 });
    const signs = await signsOf(mirror);
    expect(signs).toMatchObject({ open: { state: 'pending' }, staged: { batches: 1 }, unknown: NONE });
    expect(signs.staged.age).toBeGreaterThanOrEqual(240);
    expect(signs.open?.waits).toBeGreaterThanOrEqual(240);
  });

  test('parked while the guard asks; closed otherwise, it is no completion', async () => {
    const mirror = scene.name();
    const { run } = await scene.parked(HELD.slice(1), { mirror });
    await scene.journal.admin.query(
      `update retl.run set closed_at = closed_at - interval '1 hour', opened_at = opened_at - interval '1 hour'
       where mirror_id = (select mirror_id from retl.mirror where name = $1)`,
      [mirror],
    );
    const parked = await signsOf(mirror);
    expect(parked).toMatchObject({ open: { state: 'parked' }, lastOutcome: 'completed' });
    expect(parked.open?.age).toBeGreaterThanOrEqual(3_600);
    await closeRun(run.db, run.attempt, 'aborted', 'abort');
    const closed = await signsOf(mirror);
    expect(closed).toMatchObject({ open: null, lastOutcome: 'aborted', held: 10 });
    expect(closed.sinceCompleted).toBeGreaterThanOrEqual(3_600);
  });

  test('a mirror that has never completed has stood still since it was first admitted', async () => {
    const mirror = scene.name();
    await ScriptedRun.open(scene.journal.runtime, { mirror });
    await scene.journal.admin.query(
      `update retl.mirror set created_at = created_at - interval '2 hours' where name = $1`,
      [mirror],
    );
    const { sinceCompleted, lastOutcome } = await signsOf(mirror);
    expect(sinceCompleted).toBeGreaterThanOrEqual(7_200);
    expect(lastOutcome).toBeNull();
  });
});

test('a look costs what is open and no more: years of runs and of their requests are not read', async () => {
  const { admin, runtime } = scene.journal;
  const mirror = scene.name();
  await ScriptedRun.whole(runtime, { mirror }, members('ab'));
  await ScriptedRun.whole(runtime, { mirror: scene.name() }, members('ab'));
  const past = 5_000;
  const client = await admin.connect();
  try {
    // A history is written as it would have been left behind, without playing it.
    await client.query('begin; set local session_replication_role = replica');
    await client.query(
      `insert into retl.run overriding system value
       select x.* from retl.run r join retl.mirror m using (mirror_id) cross join generate_series(1, $2::int) n
       cross join jsonb_populate_record(null::retl.run, to_jsonb(r) || jsonb_build_object('run_id', 1000000 + n,
         'first_sequence', null, 'additions_end', null, 'removals_end', null)) x where m.name = $1`,
      [mirror, past],
    );
    await client.query(
      `insert into retl.batch
       select x.* from retl.batch b join retl.run r using (run_id) join retl.mirror m using (mirror_id)
       cross join generate_series(1, $2::int) n
       cross join jsonb_populate_record(null::retl.batch, to_jsonb(b) || jsonb_build_object('run_id', 1000000 + n,
         'batch_id', '\\x' || encode(sha256(convert_to(n::text, 'UTF8')), 'hex'))) x
       where m.name = $1 and b.action = 'finish' and r.run_id < 1000000`,
      [mirror, past],
    );
    await client.query(
      `insert into retl.generation
       select x.* from retl.generation g join retl.run r using (run_id) join retl.mirror m using (mirror_id)
       cross join generate_series(1, $2::int) n
       cross join jsonb_populate_record(null::retl.generation, to_jsonb(g) || jsonb_build_object('run_id', 1000000 + n,
         'generation_id', 1000000 + n, 'state', 'superseded')) x
       where m.name = $1 and r.run_id < 1000000`,
      [mirror, past],
    );
    await client.query('commit; analyze retl.run; analyze retl.batch; analyze retl.generation');
    const { rows } = await client.query<{ 'QUERY PLAN': string }>(
      `explain (analyze, costs off) ${MIRROR_SIGNS}`,
    );
    const plan = rows.map((row) => row['QUERY PLAN']).join('\n');
    expect(plan).not.toMatch(/Seq Scan on (batch|run|generation)/);
    // Not one step of it came by as many rows as there are runs, or passed over as many.
    const counts = [...plan.matchAll(/actual time=\S+ rows=(\d+)|Rows Removed by Filter: (\d+)/g)];
    expect(counts.length).toBeGreaterThan(10);
    expect(Math.max(...counts.map(([, found, removed]) => Number(found ?? removed)))).toBeLessThan(1_000);
  } finally {
    client.release(true);
  }
});
