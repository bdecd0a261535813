/** The `lookup` block of `http`: a request whose answer was lost is asked about, and never sent again (rule 3). */

import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { httpDestination } from '../../src/destinations/http/index.ts';
import { member, members, openWriter, parsed } from '../support/fake-audience-writer.ts';
import { FakeJobs } from '../support/fake-jobs.ts';

const ROUTES = {
  upsert: { method: 'POST', path: '/members' },
  remove: { method: 'DELETE', path: '/members' },
  idempotency: { header: 'Idempotency-Key' },
};
const JOBS = {
  poll: { path: '/jobs/{job}' },
  state: { at: '/state', running: ['processing'], done: ['finished'] },
  results: {
    per_row: { list: '/results', id: 'id', match: 'email_sha256', ok: { field: 'status', values: ['ok'] } },
  },
};

let fake: FakeJobs;

beforeAll(async () => {
  fake = await FakeJobs.start();
});
afterEach(() => fake.reset());
afterAll(() => fake.stop());

const open = (options: object) =>
  openWriter(fake.url, { connection: { timeout_ms: 500 }, options: { ...ROUTES, ...options } });

test('an API that can be asked is recovered by asking, also where it would take the same request twice', () => {
  const recovery = (options: object) => {
    const { connection, options: given } = parsed('https://api.example.com', { options });
    return httpDestination.capabilities(connection, given).recovery;
  };
  const lookup = { by_key: { path: '/keys/{key}' } };
  expect(recovery({})).toBe('manual');
  expect(recovery({ idempotent: true })).toBe('idempotent');
  expect(recovery({ lookup })).toBe('lookup');
  expect(recovery({ lookup, idempotent: true })).toBe('lookup');
});

describe.each([
  ['by key', { by_key: { path: '/keys/{key}' } }],
  ['by key, in a list', { by_key: { path: '/search/{key}', list: '/jobs' } }],
])('%s, of an asynchronous API', (_, lookup) => {
  const start = () => open({ asynchronous: JOBS, lookup });

  test('create-unsure: a job whose answer was lost is found, and no second one is begun', async () => {
    const { writer, request } = await start();
    const sent = request('upsert', members(3));
    fake.writes.push({ answer: 'lost', applied: true });
    expect((await writer.upsert(sent)).kind).toBe('unknown');
    const found = await writer.reconcileBatch(sent, null);
    expect(found).toMatchObject({ kind: 'staged', jobIds: ['job-1'] });
    if (found.kind !== 'staged') return;
    expect((await writer.poll(sent, found.jobIds, found.receipt)).kind).toBe('settled');
    expect(fake.jobs.length).toBe(1);
  });

  test('"there is none" is said as it is, for whoever asked to hold it against the send deadline', async () => {
    const { writer, request } = await start();
    const sent = request('upsert', members(3));
    fake.writes.push({ answer: 'lost', applied: false });
    expect((await writer.upsert(sent)).kind).toBe('unknown');
    expect(await writer.reconcileBatch(sent, null)).toMatchObject({
      kind: 'not-applied',
      code: 'lookup-absent',
    });
    expect(fake.requests.filter(({ method }) => method === 'POST').length).toBe(1);
  });

  test.each([
    ['500', { status: 500 }],
    ['401', { status: 401 }],
    ['a page', { status: 404, headers: { 'content-type': 'text/html' }, body: '<html>' }],
    ['half an answer', { status: 200, body: '{"job_id":' }],
    ['no job', { status: 200, body: '{"jobs":[{"job_id":""}],"job_id":""}' }],
    ['a lost answer', 'lost'],
    ['no answer', 'never'],
  ] as const)('%s is unknown, and asked again where it was no answer', async (what, answer) => {
    const { writer, request } = await start();
    fake.reads.push(answer);
    const outcome = await writer.reconcileBatch(request('upsert', members(1)), null);
    expect(outcome).toMatchObject({ kind: 'unknown', ...(what === 'no job' ? {} : { unanswered: true }) });
    expect(outcome).toHaveProperty('code', expect.stringMatching(/^(lookup|reply)-/));
    if (what === 'no job') expect(outcome).not.toHaveProperty('unanswered');
    expect(fake.requests.map(({ method }) => method)).toEqual(['GET']);
  });
});

test('two jobs under one key are one too many', async () => {
  const { writer, request } = await open({
    asynchronous: JOBS,
    lookup: { by_key: { path: '/search/{key}', list: '/jobs' } },
  });
  const sent = request('upsert', members(1));
  await writer.upsert(sent);
  await writer.upsert(sent);
  expect(await writer.reconcileBatch(sent, null)).toEqual({ kind: 'unknown', code: 'lookup-ambiguous' });
});

test('an API that answers at once is asked for the answer it gave under the key', async () => {
  const { writer, request } = await open({
    outcomes: { per_row: { ...JOBS.results.per_row } },
    lookup: { by_key: { path: '/keys/{key}' } },
  });
  const sent = request('upsert', members(2));
  const results = [
    { id: 'b', status: 'ok' },
    { id: 'a', status: 'invalid' },
  ];
  fake.reads.push({ status: 200, body: JSON.stringify({ results }) });
  expect(await writer.reconcileBatch(sent, null)).toMatchObject({
    kind: 'settled',
    outcomes: [{ kind: 'rejected' }, { kind: 'accepted' }],
  });
  fake.reads.push({ status: 200, body: JSON.stringify({ results: results.slice(1) }) });
  expect(await writer.reconcileBatch(sent, null)).toEqual({ kind: 'unknown', code: 'reply-lacks-ids' });
});

describe('by member', () => {
  const start = () => open({ lookup: { by_member: { path: '/members/{email_sha256}', member: '/member' } } });
  const hold = (...held: ReturnType<typeof members>) => {
    for (const one of held) fake.members.set(String(one.identity.email_sha256), one.upsert);
  };

  test('an upsert is accepted where every member is held as it was sent', async () => {
    const { writer, request } = await start();
    hold(...members(3));
    expect((await writer.reconcileBatch(request('upsert', members(3)), null)).kind).toBe('accepted');
  });

  test('a removal is accepted where no member is held any more', async () => {
    const { writer, request } = await start();
    expect((await writer.reconcileBatch(request('remove', members(3)), null)).kind).toBe('accepted');
  });

  test('members that are held as before prove that nothing was applied, as far as an absence proves anything', async () => {
    const { writer, request } = await start();
    hold(...members(2));
    const changed = ['a', 'b'].map((id) => member(id, { plan: 'basic' }));
    const absent = { kind: 'not-applied', code: 'lookup-absent' };
    expect(await writer.reconcileBatch(request('upsert', changed), null)).toMatchObject(absent);
    expect(await writer.reconcileBatch(request('remove', changed), null)).toMatchObject(absent);
  });

  test('some of one and some of the other is unknown', async () => {
    const { writer, request } = await start();
    hold(...members(2));
    for (const three of [members(3), [...members(3)].reverse()])
      expect(await writer.reconcileBatch(request('upsert', three), null)).toEqual({
        kind: 'unknown',
        code: 'lookup-mixed',
      });
  });

  test('bigint/numeric: numbers that lose digits on the way are not taken for their neighbours', async () => {
    const { writer, request } = await start();
    hold(member('a', { points: 9_007_199_254_740_992 }));
    const one = member('a', { points: 9_007_199_254_740_992 });
    expect(await writer.reconcileBatch(request('upsert', [one]), null)).toEqual({
      kind: 'unknown',
      code: 'lookup-not-comparable',
    });
  });
});

test('whole-batch-reject: only a status of `split` says that halves may be tried', async () => {
  const { writer, request } = await open({ split: [400, 409] });
  const answers = [400, 409, 422];
  const outcomes: unknown[] = [];
  for (const status of answers) {
    fake.writes.push({ answer: { status }, applied: false });
    outcomes.push(await writer.upsert(request('upsert', members(2))));
  }
  expect(outcomes).toMatchObject([
    { kind: 'refused', code: 'http-400', divisible: true },
    { kind: 'refused', code: 'http-409', divisible: true },
    { kind: 'refused', code: 'http-422' },
  ]);
  expect(outcomes[2]).not.toHaveProperty('divisible');
});
