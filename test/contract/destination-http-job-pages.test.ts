/** Results of a job on several pages: what tells of each operation may be too long for one answer (rule 5). */

import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { httpOptionsSchema } from '../../src/destinations/http/options.ts';
import type { PollOutcome } from '../../src/destinations/port.ts';
import { members, openWriter } from '../support/fake-audience-writer.ts';
import { FakeJobs, type JobEnd } from '../support/fake-jobs.ts';

const ROWS = {
  list: '/results',
  id: 'id',
  match: 'email_sha256',
  ok: { field: 'status', values: ['ok'] },
  reason: 'reason',
};
const LINK = { next: '/next' };
const CURSOR = { next: '/cursor', query: 'cursor' };
const OFFSET = { offset: 'offset', limit: { query: 'rows', rows: 2 } };
const APART = { path: '/jobs/{job}/results' };

let fake: FakeJobs;

beforeAll(async () => {
  fake = await FakeJobs.start();
});
afterEach(() => fake.reset());
afterAll(() => fake.stop());

function options(results: object, more: object = {}) {
  return {
    upsert: { method: 'POST', path: '/members' },
    remove: { method: 'DELETE', path: '/members' },
    asynchronous: {
      poll: { path: '/jobs/{job}' },
      state: { at: '/state', running: ['processing'], done: ['finished'], failed: ['failed'] },
      results: { per_row: ROWS, ...results },
      ...more,
    },
  };
}

/** Five members, two on a page; what the job comes to. */
async function polled(end: JobEnd, results: object, more: object = {}): Promise<PollOutcome> {
  fake.pageRows = 2;
  fake.ends.push(end);
  const { writer, request } = await openWriter(fake.url, {
    connection: { auth: { bearer: 'page-secret' } },
    options: options(results, more),
  });
  const sent = request('upsert', members(5));
  const outcome = await writer.upsert(sent);
  if (outcome.kind !== 'staged') throw new Error(`staged, and not ${outcome.kind}`);
  return writer.poll(sent, outcome.jobIds, outcome.receipt);
}

const pagesAsked = () => fake.requests.filter(({ method }) => method === 'GET').length;

describe.each([
  ['links', { pages: LINK }, false],
  ['cursors', { pages: CURSOR }, false],
  ['offsets', { pages: OFFSET }, false],
  ['links of results apart', { pages: LINK, request: APART }, true],
  ['cursors of results apart', { pages: CURSOR, request: APART }, true],
  ['offsets of results apart', { pages: OFFSET, request: APART }, true],
] as const)('by %s', (_, results, apart) => {
  test('every page is read, and each operation told of, on whichever page it stands', async () => {
    fake.resultsApart = apart;
    const outcome = await polled({ reject: [4], shuffle: true }, results);
    if (outcome.kind !== 'settled') throw new Error(`settled, and not ${outcome.kind}`);
    expect(outcome.outcomes.map(({ kind }) => kind)).toEqual([
      'accepted',
      'accepted',
      'accepted',
      'accepted',
      'rejected',
    ]);
    expect(outcome.outcomes[4]).toMatchObject({ code: 'row-rejected', reason: 'row 5 is not valid' });
  });

  test.each([
    ['lacks an id', { missing: [3] }, /^reply-lacks-ids/],
    ['repeats an id of another page', { repeat: [0] }, /^reply-repeats-ids/],
    ['adds an id', { foreign: ['nobody'] }, /^reply-/],
  ] as const)('rule 5: a page that %s accepts nothing', async (_name, end, code) => {
    fake.resultsApart = apart;
    expect(await polled(end, results)).toMatchObject({ kind: 'unknown', code: expect.stringMatching(code) });
  });
});

test('without `pages` the first page alone says nothing of the others', async () => {
  expect(await polled({}, {})).toMatchObject({ kind: 'unknown', code: 'reply-lacks-ids' });
});

test.each([
  ['another host', 'http://127.0.0.1:9/jobs/job-1?cursor=2', 'page-elsewhere'],
  ['another scheme', 'file:///etc/passwd', 'page-elsewhere'],
  ['who asks', 'http://me:secret@127.0.0.1/', 'page-elsewhere'],
  ['no address', 'http://[', 'page-elsewhere'],
  ['a list', ['/a'], 'page-elsewhere'],
  ['itself', '/jobs/job-1', 'pages-repeat'],
])('a link to %s is not followed, and proves nothing', async (_, next, code) => {
  fake.nextPage = () => next;
  expect(await polled({}, { pages: LINK })).toEqual({ kind: 'unknown', code });
  expect(pagesAsked()).toBe(1);
});

test('a link is followed from where it stands, and keeps to what is below the base URL', async () => {
  fake.nextPage = (from) => `?cursor=${from}`;
  expect(await polled({}, { pages: LINK })).toMatchObject({ kind: 'settled' });
});

test('there are as many pages as the settings allow, and no more', async () => {
  expect(await polled({}, { pages: { ...LINK, most: 2 } })).toEqual({
    kind: 'unknown',
    code: 'pages-too-many',
  });
  expect(pagesAsked()).toBe(2);
});

test('poll-error: a page that fails leaves the job as it was, and a page that is gone is no lost job', async () => {
  for (const [status, code] of [
    [500, 'poll-http-500'],
    [404, 'poll-http-404'],
  ] as const) {
    fake.resultsApart = true;
    const results = { pages: LINK, request: APART };
    // The poll, the first page, and then the second.
    fake.nextPage = (from) => {
      if (from === 2) fake.reads.push({ status });
      return null;
    };
    expect(await polled({}, results)).toEqual({ kind: 'unknown', code });
    expect(fake.jobs.length).toBe(1);
    fake.reset();
  }
});

test('a failed job is believed to have applied nothing only once its last page has been read', async () => {
  const accepted = { id: 'somebody', status: 'ok' };
  const results = [{ id: 'a', status: 'no' }, { id: 'b', status: 'no' }, accepted];
  const word = { failed: 'not_applied' };
  expect(await polled({ state: 'failed', results }, { pages: LINK }, word)).toMatchObject({
    kind: 'missing',
    code: 'job-failed',
  });
  fake.reset();
  expect(
    await polled({ state: 'failed', results: results.slice(0, 2) }, { pages: LINK }, word),
  ).toMatchObject({ kind: 'refused', code: 'job-failed' });
});

test.each([
  [{ next: 'no pointer' }],
  [{ offset: 'from', next: '/next' }],
  [{ next: '/next', query: 'a=b' }],
  [{ next: '/next', most: 0 }],
  [{}],
])('pages %j are refused', (pages) => {
  expect(httpOptionsSchema.safeParse(options({ pages })).success).toBe(false);
});
