/** The `asynchronous` block of `http`: answers that name a job, and polls of it. Only proof settles (rule 5). */

import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import type { Receipt } from '../../src/destinations/port.ts';
import { members, type OpenWriter, openWriter } from '../support/fake-audience-writer.ts';
import { FakeJobs, type JobEnd } from '../support/fake-jobs.ts';

const ROWS = {
  list: '/results',
  id: 'id',
  match: 'email_sha256',
  ok: { field: 'status', values: ['ok'] },
  reason: 'reason',
};
const JOBS = {
  poll: { path: '/jobs/{job}' },
  state: { at: '/state', running: ['processing'], done: ['finished'], failed: ['failed'] },
  results: { per_row: ROWS },
};

let fake: FakeJobs;

beforeAll(async () => {
  fake = await FakeJobs.start();
});
afterEach(() => fake.reset());
afterAll(() => fake.stop());

const open = (asynchronous: object = {}, options: object = {}): Promise<OpenWriter> =>
  openWriter(fake.url, {
    connection: { timeout_ms: 500 },
    options: {
      upsert: { method: 'POST', path: '/members' },
      remove: { method: 'DELETE', path: '/members' },
      idempotency: { header: 'Idempotency-Key' },
      asynchronous: { ...JOBS, ...asynchronous },
      ...options,
    },
  });

/** Starts a job of `count` members that ends like this. */
async function staged(end: JobEnd = {}, asynchronous: object = {}, count = 5) {
  const { writer, request } = await open(asynchronous);
  fake.ends.push(end);
  const sent = request('upsert', members(count));
  const outcome = await writer.upsert(sent);
  if (outcome.kind !== 'staged') throw new Error(`staged, and not ${outcome.kind}`);
  return { writer, sent, outcome, poll: () => writer.poll(sent, outcome.jobIds, outcome.receipt) };
}

describe('the first answer', () => {
  test('rule 5: a job id is staged and nothing more, whatever the status', async () => {
    const { outcome } = await staged();
    expect(outcome).toEqual({
      kind: 'staged',
      jobIds: ['job-1'],
      pollAfterMs: 10_000,
      receipt: { status: 202, body: '{"job_id":"job-1"}', jobIds: ['job-1'] },
    });
    expect(fake.members.size).toBe(0);
  });

  test.each([
    ['an empty id', '{"job_id":""}'],
    ['no id', '{"status":"queued"}'],
    ['a null id', '{"job_id":null}'],
    ['one id twice', '{"job_id":["a","a"]}'],
    ['an id that cannot be asked for', '{"job_id":".."}'],
    ['a success word', '{"ok":true}'],
    ['nothing', ''],
  ])('%s is unknown: neither an acceptance nor a reason to start a second job', async (_, body) => {
    for (const status of [200, 201, 202]) {
      const { writer, request } = await open();
      fake.writes.push({ answer: { status, body }, applied: true });
      const outcome = await writer.upsert(request('upsert', members(2)));
      expect(outcome).toMatchObject({ kind: 'unknown', code: 'reply-lacks-job-id' });
    }
    expect(fake.jobs.length).toBe(3);
  });

  test('a success status that is not one of `statuses` is unknown', async () => {
    const { writer, request } = await open();
    fake.writes.push({ answer: { status: 204, body: '' }, applied: true });
    expect(await writer.upsert(request('upsert', members(1)))).toEqual({ kind: 'unknown', code: 'http-204' });
  });

  test('429: Retry-After of the first answer and of a running job is the time of the next poll', async () => {
    fake.retryAfter = '60';
    fake.polls = 1;
    const { outcome, poll } = await staged();
    expect(outcome.pollAfterMs).toBe(60_000);
    expect(await poll()).toMatchObject({ kind: 'staged', jobIds: ['job-1'], pollAfterMs: 60_000 });
  });
});

describe('polls', () => {
  test('staged-as-done: a running job is staged for as many polls as it runs, and then settles row by row', async () => {
    fake.polls = 50;
    const { poll } = await staged({ reject: [1] });
    for (let n = 0; n < 50; n += 1) expect((await poll()).kind).toBe('staged');
    expect(fake.members.size).toBe(0);
    const settled = await poll();
    expect(settled).toMatchObject({ kind: 'settled' });
    const kinds = settled.kind === 'settled' ? settled.outcomes.map(({ kind }) => kind) : [];
    expect(kinds).toEqual(['accepted', 'rejected', 'accepted', 'accepted', 'accepted']);
  });

  test('poll-error: 500, 401, a page and a time-out say nothing; one job, and the outcome of the last poll', async () => {
    const { poll } = await staged();
    fake.reads.push(
      { status: 500 },
      { status: 401 },
      { status: 200, headers: { 'content-type': 'text/html' }, body: '<html>log in</html>' },
      { status: 404, headers: { 'content-type': 'text/html' }, body: '<html>not here</html>' },
      'never',
      'lost',
    );
    const kinds: string[] = [];
    for (let n = 0; n < 7; n += 1) kinds.push((await poll()).kind);
    expect(kinds).toEqual(['unknown', 'unknown', 'unknown', 'unknown', 'unknown', 'unknown', 'settled']);
    expect(fake.jobs.length).toBe(1);
  });

  test('a job that is not known proves nothing: missing, never refused or absent', async () => {
    const { poll } = await staged();
    fake.reads.push({ status: 404 }, { status: 410 });
    expect(await poll()).toEqual({ kind: 'missing', code: 'poll-http-404' });
    expect(await poll()).toEqual({ kind: 'missing', code: 'poll-http-410' });
  });

  test('429: a poll that is told to wait leaves the job staged until then', async () => {
    const { poll } = await staged();
    fake.reads.push({ status: 429, headers: { 'retry-after': '7' } }, { status: 503 });
    expect(await poll()).toMatchObject({ kind: 'staged', pollAfterMs: 7_000 });
    expect(await poll()).toEqual({ kind: 'unknown', code: 'poll-http-503' });
  });

  test.each<[string, JobEnd, string]>([
    ['silent-noop: no results', { results: [] }, 'reply-lacks-ids'],
    ['results that are no list', { results: { count: 5 } }, 'reply-lacks-ids'],
    ['a lacking id', { missing: [2] }, 'reply-lacks-ids'],
    ['an id told of twice', { repeat: [2] }, 'reply-repeats-ids'],
    ['ids of others', { foreign: ['nobody'] }, 'reply-adds-ids'],
    ['counts-only', { results: '5 of 5' }, 'reply-lacks-ids'],
    ['a row in between', { results: [{ id: 'a', status: 'pending' }] }, 'reply-undecided-row'],
  ])('a job that is done with %s accepts nothing', async (_, end, code) => {
    const { poll } = await staged(end);
    expect(await poll()).toEqual({ kind: 'unknown', code });
  });

  test('results are matched by id, and may stand in a request of their own', async () => {
    fake.resultsApart = true;
    const results = { per_row: ROWS, request: { path: '/jobs/{job}/results' } };
    const { poll } = await staged({ shuffle: true, reject: [0] }, { results });
    fake.reads.push({ status: 200, body: '{"state":"finished"}' }, { status: 500 });
    expect(await poll()).toEqual({ kind: 'unknown', code: 'poll-http-500' });
    const settled = await poll();
    expect(settled.kind === 'settled' && settled.outcomes[0]).toEqual({
      kind: 'rejected',
      code: 'row-rejected',
      reason: 'row 1 is not valid',
    });
  });

  test('accepted and rejected rows may be listed apart; a row in both accepts nothing', async () => {
    const results = {
      by_list: {
        match: 'email_sha256',
        accepted: { list: '/results/yes', id: 'id' },
        rejected: { list: '/results/no', id: 'id', reason: 'why' },
      },
    };
    const one = (id: string) => ({ id, why: 'because' });
    const apart = await staged({ results: { yes: [one('b')], no: [one('a')] } }, { results }, 2);
    expect(await apart.poll()).toMatchObject({
      kind: 'settled',
      outcomes: [{ kind: 'rejected', reason: 'because' }, { kind: 'accepted' }],
    });
    const both = await staged({ results: { yes: [one('a'), one('b')], no: [one('a')] } }, { results }, 2);
    expect(await both.poll()).toEqual({ kind: 'unknown', code: 'reply-repeats-ids' });
    const half = await staged({ results: { yes: [one('a'), one('b')] } }, { results }, 2);
    expect(await half.poll()).toEqual({ kind: 'unknown', code: 'reply-lacks-ids' });
  });

  test('`per_request` is the user’s word for a done job, held to what it must say', async () => {
    const results = { per_request: { expect: { '/results': 'rows' } } };
    expect((await (await staged({ results: 5 }, { results })).poll()).kind).toBe('accepted');
    expect((await (await staged({ results: 4 }, { results })).poll()).kind).toBe('unknown');
  });

  test('a failed job blocks, unless the user vouches that it has applied nothing and it does not contradict', async () => {
    const failed = { state: 'failed', results: [] };
    expect(await (await staged(failed)).poll()).toEqual({ kind: 'missing', code: 'job-failed' });
    const vouched = { failed: 'not_applied' };
    expect(await (await staged(failed, vouched)).poll()).toMatchObject({
      kind: 'refused',
      code: 'job-failed',
    });
    const some = { state: 'failed', results: [{ id: 'a', status: 'ok' }] };
    expect(await (await staged(some, vouched)).poll()).toEqual({ kind: 'missing', code: 'job-failed' });
    expect((await (await staged({ state: 'failed', reject: [0] })).poll()).kind).toBe('settled');
  });

  test('a state that nobody has explained is no end', async () => {
    const { poll } = await staged({ state: 'archived' });
    expect(await poll()).toEqual({ kind: 'unknown', code: 'job-state-not-understood' });
  });

  test('mixed-order: each batch is settled by its own job, in whatever order they end', async () => {
    const { writer, request } = await open();
    const [first, second] = [request('upsert', members(2)), request('upsert', members(3))];
    const one = await writer.upsert(first);
    const two = await writer.upsert(second);
    if (one.kind !== 'staged' || two.kind !== 'staged') throw new Error('both to be staged');
    const [slow] = fake.jobs;
    if (slow !== undefined) slow.polls = 1;
    expect((await writer.poll(second, two.jobIds, two.receipt)).kind).toBe('settled');
    expect((await writer.poll(first, one.jobIds, one.receipt)).kind).toBe('staged');
    // The results of another job name other ids.
    expect((await writer.poll(first, two.jobIds, two.receipt)).kind).toBe('unknown');
    expect((await writer.poll(first, one.jobIds, one.receipt)).kind).toBe('settled');
  });

  test('several jobs of one request settle it together', async () => {
    const { writer, request } = await open();
    const sent = request('upsert', members(4));
    const [one, two] = [members(4).slice(0, 2), members(4).slice(2)];
    await writer.upsert(request('upsert', one));
    await writer.upsert(request('upsert', two));
    expect((await writer.poll(sent, ['job-1', 'job-2'], {})).kind).toBe('settled');
    expect((await writer.poll(sent, ['job-1'], {})).kind).toBe('unknown');
  });
});

describe('a finish that answers with a job', () => {
  const FINISH = { finish: { method: 'POST', path: '/finish' } };
  const summary = { generation: '7', members: 0, digest: 'sha256:00' } as const;

  test.each([
    ['is pending while the job runs', { body: '{"state":"processing"}', status: 200 }, 'pending'],
    ['is accepted once it is done', { body: '{"state":"finished"}', status: 200 }, 'accepted'],
    ['proves nothing where the job is missing', { status: 404 }, 'missing'],
    ['proves nothing where the job is gone', { status: 410 }, 'missing'],
    ['is asked about again where nothing answers for it', { status: 500 }, 'unknown'],
  ] as const)('%s', async (_, answer, kind) => {
    const { writer, request } = await open({}, FINISH);
    const { batchId, idempotencyKey } = request('upsert', members(1));
    const finish = { ...summary, batchId, idempotencyKey };
    fake.writes.push({ answer: { status: 202, body: '{"job_id":"f"}' }, applied: false });
    const begun = await writer.finish(finish);
    expect(begun).toMatchObject({ kind: 'pending', jobIds: ['f'] });
    const receipt: Receipt = begun.kind === 'pending' ? begun.receipt : {};
    fake.reads.push(answer);
    expect((await writer.reconcileFinish(finish, receipt)).kind).toBe(kind);
  });
});
