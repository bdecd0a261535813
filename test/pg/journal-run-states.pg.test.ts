/** `retl runs --state`: runs are found by the words that the list shows. */

import { afterAll, beforeAll, expect, test } from 'vitest';
import { stateOf } from '../../src/cli/run-view.ts';
import type { RunState } from '../../src/domain/run.ts';
import { markStaged, markUnknown, notePoll } from '../../src/journal/batches.ts';
import { listRuns } from '../../src/journal/inspect.ts';
import { releaseRun } from '../../src/journal/runs.ts';
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

test('blocked is a run whose outcome is unknown, held or let go', async () => {
  const mirror = scene.name();
  const { runtime } = scene.journal;
  const run = await ScriptedRun.open(runtime, { mirror });
  expect(await found(mirror, 'running')).toEqual(['running (init)']);
  await run.upToAdditions(members('ab'));
  const [batch] = await run.prepare('upsert', 2, 1);
  if (batch === undefined) throw new Error('nothing was prepared');
  await run.sending(batch.id);
  expect(await found(mirror, 'blocked', 'waiting')).toEqual([]);
  await markUnknown(runtime, run.attempt, batch.id, 'lost');
  expect(await found(mirror, 'waiting')).toEqual(['waiting (additions)']);
  expect(await found(mirror, 'blocked')).toEqual(['waiting (additions)']);
  await releaseRun(runtime, run.attempt, 'cancelled', 'cancel');
  expect(await found(mirror, 'blocked', 'waiting')).toEqual([]);
  expect(await found(mirror, 'cancelled')).toEqual(['cancelled, resumable']);
});

test('blocked is a run of whose jobs the destination can tell nothing, and not one whose jobs are under way', async () => {
  const mirror = scene.name();
  const { runtime } = scene.journal;
  const run = await ScriptedRun.open(runtime, { mirror });
  await run.upToAdditions(members('ab'));
  const [batch] = await run.prepare('upsert', 2, 1);
  if (batch === undefined) throw new Error('nothing was prepared');
  await run.sending(batch.id);
  await markStaged(runtime, run.attempt, batch.id, ['job-1'], '{}', 1_000, new Map());
  await notePoll(runtime, run.attempt, batch.id, 'http-500', 1_000);
  expect(await found(mirror, 'blocked')).toEqual([]);
  await notePoll(runtime, run.attempt, batch.id, 'jobs-lost:poll-http-404', 1_000);
  expect(await found(mirror, 'blocked')).toEqual(['waiting (additions)']);
  await notePoll(runtime, run.attempt, batch.id, 'http-500', 1_000);
  expect(await found(mirror, 'blocked')).toEqual([]);
});

test('the limit is of those that are found', async () => {
  const mirror = scene.name();
  await ScriptedRun.whole(scene.journal.runtime, { mirror }, members('a'));
  await ScriptedRun.open(scene.journal.runtime, { mirror });
  const completed = await listRuns(scene.journal.runtime, { mirror, states: ['completed'], limit: 1 });
  expect(completed).toMatchObject([{ state: 'completed' }]);
});
