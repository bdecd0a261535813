/** `retl runs --state`: runs are found by the words that the list shows. */

import { afterAll, beforeAll, expect, test } from 'vitest';
import { stateOf } from '../../src/cli/run-view.ts';
import type { BatchId } from '../../src/domain/ids.ts';
import type { RunState } from '../../src/domain/run.ts';
import { markStaged, markUnknown, notePoll } from '../../src/journal/batches.ts';
import { listRuns } from '../../src/journal/inspect.ts';
import { noteWait } from '../../src/journal/open-state.ts';
import { resolveBatch } from '../../src/journal/resolve.ts';
import { releaseRun } from '../../src/journal/runs.ts';
import { readVitalSigns } from '../../src/journal/vital-signs.ts';
import { GuardScene, HELD, members } from '../support/guard-scene.ts';
import { ScriptedRun } from '../support/journal-run.ts';

const scene = new GuardScene();

beforeAll(() => scene.open());
afterAll(() => scene.close());

const found = async (mirror: string, ...states: readonly RunState[]) =>
  (await listRuns(scene.journal.runtime, { mirror, states, limit: 10 })).map((run) => stateOf(run));

test('a run is found in the state that it shows, and in no other', async () => {
  const mirror = scene.name();
  await scene.parked(HELD.slice(1), { mirror });
  expect(await found(mirror, 'completed')).toEqual(['completed']);
  expect(await found(mirror, 'parked')).toEqual(['parked (guard)']);
  expect(await found(mirror, 'open')).toEqual(['parked (guard)']);
  expect(await found(mirror, 'completed', 'parked')).toEqual(['parked (guard)', 'completed']);
  expect(await found(mirror, 'running', 'waiting', 'blocked', 'aborted')).toEqual([]);
  expect(await found(scene.name(), 'open')).toEqual([]);
});

/** A run of one request of two members that is on its way. */
async function sent(mirror: string): Promise<{ readonly run: ScriptedRun; readonly id: BatchId }> {
  const run = await ScriptedRun.open(scene.journal.runtime, { mirror });
  await run.upToAdditions(members('ab'));
  const [batch] = await run.prepare('upsert', 2, 1);
  if (batch === undefined) throw new Error('nothing was prepared');
  await run.sending(batch.id);
  return { run, id: batch.id };
}

/** What the run is doing, by the list and by the metrics, which must agree. */
async function doing(mirror: string): Promise<string> {
  const [listed] = await listRuns(scene.journal.runtime, { mirror, limit: 1 });
  const { mirrors } = await readVitalSigns(scene.journal.runtime);
  const signs = mirrors.find((m) => m.mirror === mirror);
  expect(signs?.open?.state ?? null).toBe(listed?.doing?.state ?? null);
  const { state, code } = listed?.doing ?? { state: 'closed', code: null };
  return code === null ? state : `${state}: ${code}`;
}

/** Sets back, by minutes, when the run was to look again, and when its newest attempt began. */
async function wait(mirror: string, minutes: number): Promise<void> {
  const client = await scene.journal.admin.connect();
  try {
    // Attempts are never rewritten: this one is made to have begun earlier.
    await client.query('begin; set local session_replication_role = replica');
    await client.query(
      `with r as (update retl.run set wait_until = wait_until - $2 * interval '1 minute',
         wait_since = wait_since - $2 * interval '1 minute'
         where closing is null and mirror_id = (select mirror_id from retl.mirror where name = $1) returning epoch)
       update retl.attempt a set started_at = started_at - $2 * interval '1 minute' from r where a.epoch = r.epoch`,
      [mirror, minutes],
    );
    await client.query('commit');
  } finally {
    client.release();
  }
}

test('an unknown outcome waits to be verified until an attempt says that nobody can: then the run is blocked', async () => {
  const mirror = scene.name();
  const { runtime } = scene.journal;
  const { run, id } = await sent(mirror);
  expect(await doing(mirror)).toBe('running');
  await markUnknown(runtime, run.attempt, id, 'lost');
  expect(await doing(mirror)).toBe('waiting: lost');
  await noteWait(runtime, run.attempt, { kind: 'blocked', code: 'lost', batch: id, ms: null });
  expect(await doing(mirror)).toBe('blocked: lost');
  expect(await found(mirror, 'blocked')).toEqual(['blocked (additions)']);
  expect(await found(mirror, 'waiting', 'running', 'pending')).toEqual([]);
  // Whoever asks again has not found out yet; and since when it has been so is kept.
  await wait(mirror, 3);
  await run.again();
  expect(await doing(mirror)).toBe('blocked: lost');
  await noteWait(runtime, run.attempt, { kind: 'blocked', code: 'row-rejected', batch: id, ms: null });
  const [{ doing: now } = { doing: null }] = await listRuns(runtime, { mirror, limit: 1 });
  expect(Date.now() - (now?.since?.getTime() ?? 0)).toBeGreaterThan(170_000);
  await resolveBatch(runtime, id, 'accepted', 'looked there');
  expect(await doing(mirror)).toBe('running');
});

test('a run that was let go is neither blocked nor waiting, whatever it has noted', async () => {
  const mirror = scene.name();
  const { run, id } = await sent(mirror);
  await markUnknown(run.db, run.attempt, id, 'lost');
  await noteWait(run.db, run.attempt, { kind: 'blocked', code: 'lost', batch: id, ms: null });
  await releaseRun(run.db, run.attempt, 'cancelled', 'cancel');
  expect(await found(mirror, 'blocked', 'waiting')).toEqual([]);
  expect(await found(mirror, 'cancelled')).toEqual(['cancelled, resumable']);
});

test('rule 5: staged work is pending, and blocked past its deadline, with lost jobs, and where nobody looks any more', async () => {
  const mirror = scene.name();
  const { run, id } = await sent(mirror);
  const { db } = run;
  await markStaged(db, run.attempt, id, ['job-1'], '{}', 1_000, new Map());
  expect(await doing(mirror)).toBe('pending: staged');
  await noteWait(db, run.attempt, { kind: 'pending', code: 'staged', batch: id, ms: 1_000 });
  await wait(mirror, 4);
  expect(await doing(mirror)).toBe('pending: staged');
  await wait(mirror, 2);
  expect(await doing(mirror)).toBe('blocked: nobody-looks');
  await run.again();
  expect(await doing(mirror)).toBe('pending: staged');
  // A worker that is gone for good notes nothing.
  await wait(mirror, 16);
  expect(await doing(mirror)).toBe('blocked: nobody-looks');
  await run.again();
  await noteWait(db, run.attempt, { kind: 'blocked', code: 'poll-deadline', batch: id, ms: null });
  expect(await doing(mirror)).toBe('blocked: poll-deadline');
  await noteWait(db, run.attempt, { kind: 'pending', code: 'staged', batch: id, ms: 1_000 });
  await notePoll(db, run.attempt, id, 'jobs-lost:poll-http-404', 1_000);
  expect(await doing(mirror)).toBe('blocked: poll-http-404');
  await notePoll(db, run.attempt, id, 'http-500', 1_000);
  expect(await doing(mirror)).toBe('pending: staged');
});

test('what an attempt waited for is over when the next begins, or says so', async () => {
  const mirror = scene.name();
  const run = await ScriptedRun.open(scene.journal.runtime, { mirror });
  const away = { kind: 'waiting', code: 'http-503', batch: null, ms: 60_000 } as const;
  await noteWait(run.db, run.attempt, away);
  expect(await doing(mirror)).toBe('waiting: http-503');
  await run.again();
  expect(await doing(mirror)).toBe('running');
  await noteWait(run.db, run.attempt, away);
  await noteWait(run.db, run.attempt, null);
  expect(await doing(mirror)).toBe('running');
  const older = run.attempt;
  await run.again();
  await expect(noteWait(run.db, older, away)).rejects.toMatchObject({ sqlState: 'RM001' });
});

test('the limit is of those that are found', async () => {
  const mirror = scene.name();
  await ScriptedRun.whole(scene.journal.runtime, { mirror }, members('a'));
  await ScriptedRun.open(scene.journal.runtime, { mirror });
  const completed = await listRuns(scene.journal.runtime, { mirror, states: ['completed'], limit: 1 });
  expect(completed).toMatchObject([{ state: 'completed' }]);
});
