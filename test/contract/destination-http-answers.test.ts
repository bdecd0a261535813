/** What the answers of an HTTP API prove, and what they do not (rules 3 and 5; cases.md by name). */

import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import type { BatchOutcome } from '../../src/destinations/port.ts';
import { FakeAudience, type Fault } from '../support/fake-audience.ts';
import { member, members, openWriter, PATH, PER_ROW } from '../support/fake-audience-writer.ts';

let fake: FakeAudience;

beforeAll(async () => {
  fake = await FakeAudience.start();
});
beforeEach(() => fake.reset());
afterAll(() => fake.stop());

/** Sends five members, `a` to `e`, into a fault. */
async function send(fault: Fault | null, options: object = {}): Promise<BatchOutcome> {
  const { writer, request } = await openWriter(fake.url, { options });
  if (fault !== null) fake.fault(fault);
  const outcome = await writer.upsert(request('upsert', members(5)));
  await writer.close();
  return outcome;
}

function json(status: number, value: unknown, headers: Record<string, string> = {}): Fault {
  const body = typeof value === 'string' ? value : JSON.stringify(value);
  return { kind: 'status', status, body, headers: { 'content-type': 'application/json', ...headers } };
}

const ROWS = { outcomes: PER_ROW };
const kinds = (outcome: BatchOutcome) =>
  outcome.kind === 'settled' ? outcome.outcomes.map(({ kind }) => kind) : outcome.kind;

describe('Acceptance that is not acceptance', () => {
  test('silent-noop: COMPLETE without results leaves all five unresolved, with and without outcomes configured', async () => {
    const nothing = json(200, { status: 'COMPLETE', results: [] });
    expect(await send(nothing)).toEqual({ kind: 'unknown', code: 'reply-not-understood' });
    expect(await send(nothing, ROWS)).toEqual({ kind: 'unknown', code: 'reply-lacks-ids' });
    const expected = { outcomes: { per_request: { expect: { '/accepted': 'rows' } } } };
    expect(await send(nothing, expected)).toEqual({ kind: 'unknown', code: 'reply-not-understood' });
  });

  test.each([207, 200])(
    'partial-as-all: %i with two of five rejected accepts three and names two',
    async (status) => {
      const outcome = await send({ kind: 'rows', status, reject: [1, 3] }, ROWS);
      expect(kinds(outcome)).toEqual(['accepted', 'rejected', 'accepted', 'rejected', 'accepted']);
      expect(outcome).toMatchObject({
        outcomes: { 1: { code: 'row-rejected', reason: 'row 2 is not valid' } },
      });
    },
  );

  test.each([207, 200])(
    'partial-as-all: %i with two of five rejected accepts none where no outcomes are configured',
    async (status) => {
      expect((await send({ kind: 'rows', status, reject: [1, 3] })).kind).toBe('unknown');
    },
  );

  test.each([{}, ROWS, { outcomes: { per_request: { expect: { '/received': 'rows', '/invalid': 0 } } } }])(
    'counts-only: {received: 5, invalid: 1} accepts no row (%j)',
    async (options) => {
      expect((await send({ kind: 'counts' }, options)).kind).toBe('unknown');
    },
  );

  test('counts-only: counts that leave no room for doubt are taken where the user has named them', async () => {
    const options = { outcomes: { per_request: { expect: { '/received': 'rows', '/invalid': 0 } } } };
    expect((await send(json(200, { received: 5, invalid: 0 }), options)).kind).toBe('accepted');
    expect((await send(json(200, { received: 4, invalid: 0 }), options)).kind).toBe('unknown');
  });

  test.each([
    ['lacks', { missing: [2] }, 'reply-lacks-ids'],
    ['repeats', { repeat: [2] }, 'reply-repeats-ids'],
    ['adds', { foreign: ['z'] }, 'reply-adds-ids'],
    ['swaps', { missing: [2], foreign: ['z'] }, 'reply-lacks-ids'],
    ['repeats, in place of another,', { missing: [2], repeat: [1] }, 'reply-repeats-ids'],
  ] as const)('a reply that %s an id accepts nothing', async (_, rows, code) => {
    expect(await send({ kind: 'rows', ...structuredClone(rows as object) }, ROWS)).toEqual({
      kind: 'unknown',
      code,
    });
    expect((await send({ kind: 'rows', ...structuredClone(rows as object) })).kind).toBe('unknown');
  });

  test('two operations that one id would name cannot be told apart', async () => {
    const { writer, request } = await openWriter(fake.url, { options: ROWS });
    const twins = ['x', 'y'].map((list) => ({ ...member('a'), identity: { email_sha256: 'a', list } }));
    fake.fault(json(200, { results: ['a', 'z'].map((id) => ({ id, status: 'ok' })) }));
    expect(await writer.upsert(request('upsert', twins))).toEqual({
      kind: 'unknown',
      code: 'reply-ambiguous-ids',
    });
    await writer.close();
  });

  test('outcomes are matched by id in whatever order they come', async () => {
    const outcome = await send({ kind: 'rows', reject: [0], shuffle: true }, ROWS);
    expect(kinds(outcome)).toEqual(['rejected', 'accepted', 'accepted', 'accepted', 'accepted']);
  });

  test.each(['pending', 'PROCESSING', 202, '503', null, undefined, { ok: true }])(
    'a row whose status is %j is neither accepted nor rejected',
    async (status) => {
      const results = members(5).map(({ identity }) => ({ id: identity.email_sha256, status: 'ok' }));
      const reply = json(200, {
        results: results.map((row, index) => (index === 2 ? { ...row, status } : row)),
      });
      expect(await send(reply, ROWS)).toEqual({ kind: 'unknown', code: 'reply-undecided-row' });
    },
  );

  test('staged-as-done: a 202 with a job id is staged, however often it is polled, and even if 202 were said to accept', async () => {
    for (const options of [{}, ROWS, { outcomes: { per_request: { statuses: [200, 202] } } }]) {
      const { writer, request } = await openWriter(fake.url, { options: { ...options, idempotent: true } });
      const batch = request('upsert', members(5));
      fake.fault({ kind: 'job', id: 'job-7' });
      const outcome = await writer.upsert(batch);
      expect(outcome).toMatchObject({ kind: 'staged', jobIds: ['job-7'] });
      if (outcome.kind !== 'staged') return;
      for (let n = 0; n < 50; n += 1)
        expect(await writer.poll(batch, outcome.jobIds, outcome.receipt)).toEqual(outcome);
      // Not sent again either: the job may be running.
      expect(await writer.reconcileBatch(batch, outcome.receipt)).toEqual(outcome);
      await writer.close();
    }
    expect(fake.requests).toHaveLength(3);
  });

  test('a 202 that names no job is unknown', async () => {
    expect(await send(json(202, { status: 'ok' }))).toEqual({ kind: 'unknown', code: 'http-202' });
    expect((await send(json(202, { job_id: '' }))).kind).toBe('unknown');
  });

  test.each([
    ['an empty 200', json(200, '')],
    ['an empty 201', json(201, '')],
    ['204', { kind: 'status', status: 204 } as const],
    ['a flag', json(200, { ok: true })],
    ['a word', json(200, { status: 'Success', request_id: 'r1' })],
    ['the right count', json(200, { accepted: 5, errors: [] })],
    ['the right count beside what was received', json(200, { received: 5, upserted: 5, failed: 0 })],
    ['true', json(200, true)],
    ['plain text', json(200, 'OK', { 'content-type': 'text/plain' })],
    ['a yes for each id', null],
  ])('without outcomes configured, %s accepts the whole request', async (_, fault) => {
    expect((await send(fault)).kind).toBe('accepted');
  });

  test.each([
    ['{"ok": false}', { ok: false }],
    ['an error', { ok: true, error: 'quota' }],
    ['errors', { errors: [{ row: 2 }] }],
    ['a smaller count', { accepted: 4 }],
    ['a yes, and a smaller count of what was received', { ok: true, received: 4 }],
    ['{}', {}],
    ['null', null],
    ['an id only', { id: 'x' }],
    ['no more than no errors', { errors: [], failed: 0 }],
    ['a count of what was received', { received: 5 }],
    ['a count of what was processed', { processed: 5, request_id: 'r1' }],
    ['a total', { total: 5 }],
    ['a count', { count: 5 }],
    ['a number of rows', { rows: 5 }],
    [
      'results that are only counted',
      { results: members(5).map(({ identity }) => ({ id: identity.email_sha256, received: 1 })) },
    ],
    ['a state in between', { status: 'queued' }],
    ['something unfamiliar', { data: {} }],
    ['the request repeated', members(5).map(({ upsert }) => upsert)],
    ['a list without a yes', { results: members(5).map(({ identity }) => ({ id: identity.email_sha256 })) }],
  ])('without outcomes configured, a 200 with %s accepts nothing', async (_, reply) => {
    expect(await send(json(200, reply))).toEqual({ kind: 'unknown', code: 'reply-not-understood' });
  });

  test.each([203, 205, 206, 207, 226, 299])('a %i that nobody has named accepts nothing', async (status) => {
    expect((await send({ kind: 'status', status })).kind).toBe('unknown');
  });

  test.each([
    [
      'a page of a proxy',
      json(200, '<html>Sign in</html>', { 'content-type': 'text/html' }),
      'reply-is-a-page',
    ],
    ['malformed JSON', json(200, '{"ok":tr'), 'reply-malformed'],
    [
      'an unknown charset',
      json(200, 'ok', { 'content-type': 'text/plain; charset=utf-77' }),
      'reply-undecodable',
    ],
    ['a coding that is none', json(200, '{}', { 'content-encoding': 'zstd' }), 'reply-undecodable'],
  ])('%s under 200 is unknown even where the user vouches for 200', async (_, fault, code) => {
    expect(await send(fault, { outcomes: 'per_request' })).toEqual({ kind: 'unknown', code });
  });
});

describe('Provider quirks and operations', () => {
  test.each([400, 404, 405, 406, 410, 411, 414, 415, 422, 431])(
    '%i refuses the whole request',
    async (status) => {
      expect(await send(json(status, { error: 'no' }))).toEqual({
        kind: 'refused',
        code: `http-${status}`,
        reason: '{"error":"no"}',
      });
    },
  );

  test.each([402, 408, 409, 412, 418, 423, 425, 500, 502, 503, 504, 599])(
    '%i is unknown unless declared',
    async (status) => {
      expect(await send({ kind: 'status', status })).toEqual({ kind: 'unknown', code: `http-${status}` });
      const declared = await send(
        { kind: 'status', status, headers: { 'retry-after': '7' } },
        { nothing_applied: [status] },
      );
      expect(declared).toMatchObject({ kind: 'not-applied', retryAfterMs: 7_000, tooLarge: false });
    },
  );

  test('whole-batch-reject: a 400 that names a row blames no row; a 409 that names none leaves all unknown', async () => {
    expect((await send(json(400, { error: 'row 2 is invalid' }), ROWS)).kind).toBe('refused');
    expect((await send(json(409, { error: 'conflict' }), ROWS)).kind).toBe('unknown');
  });

  test('a refusal whose rows claim success contradicts itself and proves nothing', async () => {
    expect(await send({ kind: 'rows', status: 422, reject: [1] }, ROWS)).toEqual({
      kind: 'unknown',
      code: 'reply-contradicts-status',
    });
  });

  test('cannot-remove: a refused removal is refused, with the provider’s reason', async () => {
    const { writer, request } = await openWriter(fake.url);
    fake.fault(json(400, { error: 'size too low' }));
    expect(await writer.remove(request('remove', members(1)))).toMatchObject({
      kind: 'refused',
      reason: '{"error":"size too low"}',
    });
    await writer.close();
  });

  test('ambiguous-match: the row that matches several records is rejected, the rest proceed', async () => {
    const results = members(5).map(({ identity }, index) =>
      index === 4
        ? { id: identity.email_sha256, status: 409, reason: 'matches several records' }
        : { id: identity.email_sha256, status: 200 },
    );
    const options = { outcomes: { per_row: { ...PER_ROW.per_row, ok: { field: 'status', values: [200] } } } };
    const outcome = await send(json(207, { results }), options);
    expect(kinds(outcome)).toEqual(['accepted', 'accepted', 'accepted', 'accepted', 'rejected']);
  });

  test('429: nothing is applied, and the provider’s delay is kept', async () => {
    expect(await send({ kind: 'status', status: 429, headers: { 'retry-after': '60' } })).toEqual({
      kind: 'not-applied',
      code: 'http-429',
      retryAfterMs: 60_000,
      tooLarge: false,
    });
    expect(await send({ kind: 'status', status: 429 })).toMatchObject({ retryAfterMs: null });
    expect(await send({ kind: 'status', status: 413 })).toMatchObject({
      kind: 'not-applied',
      tooLarge: true,
    });
  });

  test.each([401, 403])('%i needs another configuration', async (status) => {
    expect(await send({ kind: 'status', status })).toMatchObject({
      kind: 'misconfigured',
      code: `http-${status}`,
    });
  });

  test.each([301, 302, 307, 308])('a redirect (%i) is refused and not followed', async (status) => {
    const location = `${fake.url}/elsewhere`;
    expect(await send({ kind: 'status', status, headers: { location } })).toMatchObject({
      kind: 'misconfigured',
    });
    expect(fake.requests).toHaveLength(1);
  });

  test('303 may mean "done, look there": unknown', async () => {
    expect((await send({ kind: 'status', status: 303, headers: { location: '/done' } })).kind).toBe(
      'unknown',
    );
  });

  test('nul+surrogates: a provider’s reason keeps 😀 and a literal \\u0000, and loses NUL and half pairs', async () => {
    const words = 'a\u0000b \\u0000 😀 \ud83d end';
    const results = members(5).map(({ identity }, index) => ({
      id: identity.email_sha256,
      status: index === 0 ? 'bad' : 'ok',
      reason: words,
    }));
    const outcome = await send(json(200, { results }), ROWS);
    expect(outcome).toMatchObject({ outcomes: { 0: { reason: 'a\ufffdb \\u0000 😀 \ufffd end' } } });
  });

  test('bigint/numeric: an id past 2^53 is never taken for its neighbour', async () => {
    const options = { outcomes: { per_row: { ...PER_ROW.per_row, match: 'n' } } };
    const { writer, request } = await openWriter(fake.url, { options });
    const one = { identity: { n: '9007199254740992' }, upsert: { n: '9007199254740992' }, remove: {} };
    fake.fault(json(200, '{"results":[{"id":9007199254740993,"status":"ok"}]}'));
    expect((await writer.upsert(request('upsert', [one]))).kind).toBe('unknown');
    await writer.close();
  });

  test('case-only: ids come back in the target’s own spelling where folding is declared', async () => {
    const reply = json(200, { results: [{ id: 'ZOË@X.COM', status: 'ok' }] });
    for (const [folding, kind] of [
      [[], 'unknown'],
      [['case', 'nfc'], 'settled'],
    ] as const) {
      const { writer, request } = await openWriter(fake.url, {
        options: { ...ROWS, identity_folding: folding },
      });
      fake.fault(reply);
      expect((await writer.upsert(request('upsert', [member('zoe\u0308@x.com')]))).kind).toBe(kind);
      await writer.close();
    }
  });

  test.each([
    ['a 204', { kind: 'status', status: 204 } as const, { kind: 'misconfigured', code: 'http-204' }],
    ['no count', json(200, { size: 0 }), { kind: 'misconfigured', code: 'reply-not-understood' }],
    ['an empty 200', json(200, ''), { kind: 'misconfigured', code: 'reply-not-understood' }],
    ['a 404', json(404, {}), { kind: 'misconfigured', code: 'http-404' }],
    [
      'the page of a proxy',
      json(200, '<html>', { 'content-type': 'text/html' }),
      { kind: 'failed', code: 'reply-is-a-page' },
    ],
    ['a 503', json(503, {}), { kind: 'failed', code: 'http-503' }],
    ['a 429', json(429, {}), { kind: 'failed', code: 'http-429' }],
  ])(
    'a look at the target’s size that gets %s is tried again only where that can help',
    async (_, fault, check) => {
      const { writer } = await openWriter(fake.url, {
        options: { verify_empty: { path: PATH, count: '/count' } },
      });
      fake.readFault = fault;
      expect(await writer.checkEmpty()).toEqual(check);
      await writer.close();
    },
  );

  test('a list that is too long to be read is not empty', async () => {
    const { writer } = await openWriter(fake.url, {
      options: { verify_empty: { path: PATH, list: '/members' } },
    });
    fake.readFault = json(200, `{"members":["${'x'.repeat(9 * 1024 * 1024)}"]}`);
    expect(await writer.checkEmpty()).toEqual({ kind: 'not-empty' });
    await writer.close();
  });

  test('invisible-effect: the target’s size is asked for before the first write only, and proves nothing else', async () => {
    const { writer, request } = await openWriter(fake.url, {
      options: { verify_empty: { path: PATH, count: '/count' } },
    });
    expect(await writer.checkEmpty()).toEqual({ kind: 'empty' });
    await writer.upsert(request('upsert', members(2)));
    expect(await writer.checkEmpty()).toEqual({ kind: 'not-empty' });
    expect(fake.requests.filter(({ method }) => method === 'GET')).toHaveLength(2);
    await writer.close();
  });
});
