/** What the answers of an asynchronous API mean for a whole run: rule 5, from the first job to the last poll. */

import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { listRuns } from '../../src/journal/inspect.ts';
import { retl } from '../cli/support.ts';
import type { Answer, JobEnd } from '../support/fake-jobs.ts';
import { System } from '../support/system.ts';
import { JobsScene } from '../support/system-jobs.ts';
import { completedBy, ending } from '../support/system-scene.ts';

let system: System;
beforeAll(async () => {
  system = await System.start();
  await system.startWorker();
});
afterAll(() => system.stop());

const CANCELLED = { kind: 'result', result: { outcome: 'cancelled' } };
/** More than any test waits for. */
const FOR_EVER = 1_000_000;

/** What the journal alone says of the mirror's blocked run, as `retl runs --state blocked` finds it. */
async function blocked({ mirror }: JobsScene): Promise<object | null> {
  const [run] = await listRuns(system.journal, { mirror, states: ['blocked'], limit: 1 });
  if (run === undefined || run.doing === null) return null;
  const { state, code, batch } = run.doing;
  return { state, code, batch };
}

describe.concurrent('jobs', () => {
  test('rule 5: while earlier ones are staged the others go on being sent; staged-as-done: none of them is accepted before its job tells', async () => {
    const scene = await JobsScene.create(system, 'jobs-all', { rows: 15 });
    scene.api.polls = 2;
    const handle = await scene.start();
    const { waiting, counts } = await scene.untilWaiting(handle, 'pending');
    expect(scene.seen.slice(0, 3)).toEqual(['POST members', 'POST members', 'POST members']);
    expect(counts).toMatchObject({ added: 0 });
    expect(waiting?.sinceMs).toBeLessThanOrEqual(Date.now());
    expect((await scene.batches('upsert')).map((b) => b.state)).toEqual(['staged', 'staged', 'staged']);
    expect(await scene.held()).toBe(0);
    expect((await completedBy(handle)).counts).toMatchObject({ added: 15 });
    expect(scene.api.jobs).toHaveLength(3);
    expect(scene.holds).toHaveLength(15);
    expect(await scene.held()).toBe(15);
  });

  test('mixed-order: the second job ends first, and no removal is sent before the first has ended, no finish before the removal', async () => {
    const scene = await JobsScene.create(system, 'jobs-order', { rows: 12 });
    await scene.completed();
    await scene.exec(
      `update $table set plan = 'other' where id <= 'm010'; delete from $table where id > 'm010'`,
    );
    scene.api.requests.length = 0;
    scene.api.slow.push(3, 0);
    scene.api.polls = 1;
    const handle = await scene.start();
    await scene.untilJobs(6);
    expect(scene.api.jobs.slice(3).map((job) => `${job.action} ${job.ended}`)).toEqual([
      'upsert true',
      'upsert true',
      'remove false',
    ]);
    await scene.untilWaiting(handle, 'pending');
    expect(await scene.batches('finish')).toHaveLength(1);
    expect((await completedBy(handle)).counts).toMatchObject({ changed: 10, removed: 2 });
    const writes = scene.seen.filter((line) => !line.startsWith('GET'));
    expect(writes).toEqual(['POST members', 'POST members', 'DELETE members']);
    const polled = scene.seen
      .slice(0, scene.seen.indexOf('DELETE members'))
      .filter((line) => line.startsWith('GET'));
    expect(polled.length).toBeGreaterThanOrEqual(5);
    expect(scene.holds).toHaveLength(10);
  });

  test('poll-error: polls answered by 500, 401, a page and nothing at all, then done: one job, and the outcome of the last poll', async () => {
    const scene = await JobsScene.create(system, 'jobs-polls');
    const page: Answer = { status: 200, headers: { 'content-type': 'text/html' }, body: '<html></html>' };
    scene.api.reads.push({ status: 500 }, { status: 401 }, page, 'never', { status: 429 });
    const handle = await scene.start();
    await scene.until(handle, (p) => p.waiting?.kind === 'pending' && p.waiting.code !== 'staged');
    // Nobody need wait for the cadence, which grows.
    for (let n = 0; n < 6; n += 1) {
      await scene.signal('poll');
      await sleep(300);
    }
    expect((await completedBy(handle)).counts).toMatchObject({ added: 5 });
    expect(scene.api.jobs).toHaveLength(1);
    expect(await scene.batches('upsert')).toMatchObject([{ state: 'settled', sending: 1, resends: 0 }]);
  });

  const nothings: readonly (readonly [string, JobEnd])[] = [
    ['silent-noop: "finished" without results', { results: [] }],
    ['counts-only: "finished" with counts', { results: { received: 5, invalid: 1 } }],
    ['results that name somebody else', { foreign: ['stranger'] }],
    ['results that leave one out', { missing: [2] }],
  ];
  test.each(nothings)('%s: accepts nobody, starts no second job, and is shown', async (_, end) => {
    const scene = await JobsScene.create(system, `jobs-nothing-${nothings.findIndex((n) => n[1] === end)}`);
    scene.api.ends.push(end);
    const handle = await scene.start();
    const { counts } = await scene.until(
      handle,
      (p) => p.waiting?.kind === 'pending' && p.waiting.code !== 'staged',
    );
    expect(counts).toMatchObject({ added: 0, rejected: 0 });
    await scene.signal('poll');
    await sleep(1_000);
    expect(scene.api.jobs).toHaveLength(1);
    expect(await scene.batches('upsert')).toMatchObject([{ state: 'staged', sending: 1 }]);
    expect((await scene.batches('remove')).concat(await scene.batches('finish'))).toEqual([]);
    expect(await scene.held()).toBe(0);
    await scene.signal('cancel');
    expect(await ending(handle)).toMatchObject(CANCELLED);
  });

  test('a job that nobody knows blocks the run with its batch named; asked again, it is polled and not sent', async () => {
    const scene = await JobsScene.create(system, 'jobs-missing');
    scene.api.reads.push({ status: 404 });
    const handle = await scene.start();
    const { waiting } = await scene.untilWaiting(handle, 'blocked');
    expect(waiting?.batch).toBe(`sha256:${(await scene.batches('upsert'))[0]?.id}`);
    expect(await blocked(scene)).toEqual({ state: 'blocked', code: 'poll-http-404', batch: waiting?.batch });
    await scene.signal('poll');
    await completedBy(handle);
    expect(scene.api.jobs).toHaveLength(1);
  });

  test('rule 5: the jobs of other batches are polled to their end while one that tells nothing waits for a person', async () => {
    const scene = await JobsScene.create(system, 'jobs-others', { rows: 15 });
    scene.api.slow.push(0, 1, 2);
    scene.api.ends.push({ state: 'failed', results: [] });
    const handle = await scene.start();
    const { waiting } = await scene.untilWaiting(handle, 'blocked');
    expect(waiting).toMatchObject({ code: 'job-failed', untilMs: expect.any(Number) });
    // Nobody asks: the timer of the others does.
    await scene.until(handle, (p) => p.waiting?.kind === 'blocked' && p.waiting.untilMs === null);
    expect(await scene.batches('upsert')).toMatchObject([
      { state: 'staged', reason: 'jobs-lost:job-failed' },
      { state: 'settled' },
      { state: 'settled' },
    ]);
    const lost = (await scene.batches('upsert'))[0]?.id ?? '';
    const run = (...args: readonly string[]) => retl(args, { cwd: system.project.folder, env: system.env });
    const shown = await run('status', scene.mirror);
    expect(shown.stdout).toContain('jobs-lost:job-failed');
    expect(shown.stdout).toContain(`retl resolve ${scene.mirror} sha256:${lost} --accepted`);
    const said = ['--accepted', '--because', 'the API’s list of jobs says so', '--yes'];
    expect((await run('resolve', scene.mirror, `sha256:${lost}`, ...said)).code).toBe(0);
    expect((await completedBy(handle)).counts).toMatchObject({ added: 15 });
    expect(scene.api.jobs).toHaveLength(3);
  });

  test('a first answer with an empty job id is no acceptance, and no second job', async () => {
    const scene = await JobsScene.create(system, 'jobs-no-id');
    scene.api.writes.push({ answer: { status: 202, body: '{"job_id":""}' }, applied: true });
    const handle = await scene.start();
    await scene.untilWaiting(handle, 'blocked');
    await scene.signal('resume');
    await scene.untilWaiting(handle, 'blocked');
    expect(scene.api.jobs).toHaveLength(1);
    expect(await scene.batches('upsert')).toMatchObject([{ state: 'unknown' }]);
    await scene.signal('cancel');
    expect(await ending(handle)).toMatchObject(CANCELLED);
  });

  test('rule 5: rows of a job, some accepted and some rejected: the run stops, and what was accepted stays', async () => {
    const scene = await JobsScene.create(system, 'jobs-rows', { rows: 10 });
    scene.api.ends.push({ reject: [1, 3], shuffle: true });
    const end = await scene.run();
    expect(end).toMatchObject({ kind: 'failed', type: 'rejected' });
    expect(scene.api.jobs).toHaveLength(2);
    expect(await scene.batches('upsert')).toMatchObject([{ state: 'settled' }, { state: 'settled' }]);
    expect(scene.holds).toHaveLength(8);
    expect(await scene.batches('finish')).toEqual([]);
    expect(await scene.runs()).toMatchObject([{ closing: 'rejected' }]);
  });

  test('past its deadline a job blocks the run, which is neither failed nor sent again; `poll` still finds its end', async () => {
    const scene = await JobsScene.create(system, 'jobs-late', { batch: { poll_deadline: '2s' } });
    scene.api.polls = FOR_EVER;
    const handle = await scene.start();
    const { waiting } = await scene.untilWaiting(handle, 'blocked');
    expect(waiting).toMatchObject({ code: 'poll-deadline' });
    expect(await blocked(scene)).toEqual({ state: 'blocked', code: 'poll-deadline', batch: waiting?.batch });
    const shown = await retl(['status', scene.mirror], { cwd: system.project.folder, env: system.env });
    expect(shown.stdout).toContain(`\`retl poll ${scene.mirror}\` asks once more`);
    for (const job of scene.api.jobs) job.polls = 0;
    await scene.signal('poll');
    expect((await completedBy(handle)).counts).toMatchObject({ added: 5 });
    expect(scene.api.jobs).toHaveLength(1);
  });
});

describe.concurrent('control while jobs are under way', () => {
  test('cancel lets go at once; the next run asks about the same jobs, and starts none', async () => {
    const scene = await JobsScene.create(system, 'jobs-cancel');
    scene.api.polls = FOR_EVER;
    const handle = await scene.start();
    await scene.untilWaiting(handle, 'pending');
    await scene.signal('cancel');
    expect(await ending(handle)).toMatchObject(CANCELLED);
    for (const job of scene.api.jobs) job.polls = 0;
    scene.api.polls = 0;
    await scene.completed();
    expect(scene.api.jobs).toHaveLength(1);
    expect(scene.holds).toHaveLength(5);
  });

  test('abort-erases: an abort waits for the jobs, keeps what they accepted, and sends nothing more', async () => {
    const scene = await JobsScene.create(system, 'jobs-abort');
    scene.api.polls = FOR_EVER;
    const handle = await scene.start();
    await scene.untilWaiting(handle, 'pending');
    await scene.signal('abort');
    await scene.until(handle, (p) => p.control === 'abort' && p.waiting?.kind === 'pending');
    expect(await scene.runs()).toMatchObject([{ closing: null }]);
    for (const job of scene.api.jobs) job.polls = 0;
    await scene.signal('poll');
    expect(await ending(handle)).toMatchObject({
      kind: 'result',
      result: { outcome: 'aborted', counts: { added: 5 } },
    });
    expect(await scene.runs()).toMatchObject([{ closing: 'aborted' }]);
    expect((await scene.completed()).counts).toMatchObject({ unchanged: 5, added: 0 });
    expect(scene.api.jobs).toHaveLength(1);
  });

  test('a workflow that is terminated and started again asks about the jobs of the one before', async () => {
    const scene = await JobsScene.create(system, 'jobs-terminated', { rows: 10 });
    scene.api.polls = FOR_EVER;
    const handle = await scene.start();
    await scene.untilWaiting(handle, 'pending');
    await handle.terminate();
    for (const job of scene.api.jobs) job.polls = 0;
    scene.api.polls = 0;
    await scene.completed();
    expect(scene.api.jobs).toHaveLength(2);
    expect(scene.holds).toHaveLength(10);
  });
});
