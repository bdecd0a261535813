/** Who is asking, and that nobody else learns it ("leaks"); then forms that name one member in the path. */

import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { conformanceFinish } from '../../src/destinations/conformance-session.ts';
import type { BatchOutcome } from '../../src/destinations/port.ts';
import { TokenSource } from '../../src/destinations/web-oauth.ts';
import { HttpTransport } from '../../src/destinations/web-transport.ts';
import { FakeAudience } from '../support/fake-audience.ts';
import { member, members, openWriter, PATH, parsed } from '../support/fake-audience-writer.ts';

const CLIENT = { clientId: 'client 1', clientSecret: 's%cret/+"x', expiresInS: 3_600 };

let fake: FakeAudience;
let guarded: FakeAudience;

beforeAll(async () => {
  fake = await FakeAudience.start();
  guarded = await FakeAudience.start({ oauth: CLIENT });
});
beforeEach(() => {
  for (const one of [fake, guarded]) {
    one.reset();
    one.tokenRequests.length = 0;
    one.tokenStatus = null;
    one.revokeTokens();
  }
});
afterAll(async () => {
  await fake.stop();
  await guarded.stop();
});

const oauth = (more: object = {}) => ({
  auth: {
    oauth2: {
      token_url: `${guarded.url}/oauth/token`,
      client_id: CLIENT.clientId,
      client_secret: CLIENT.clientSecret,
      ...more,
    },
  },
});

describe('credentials', () => {
  test.each([
    ['none', 'none', {}],
    ['bearer', { bearer: 'tok' }, { authorization: 'Bearer tok' }],
    ['basic', { basic: { user: 'ü', password: 'p:q' } }, { authorization: 'Basic w7w6cDpx' }],
    ['header', { header: 'X-Api-Key', value: 'key' }, { 'x-api-key': 'key' }],
  ])('%s', async (_, auth, headers) => {
    const connection = { auth, headers: { 'X-Team': 'growth', Authorization: 'Other' } };
    const { writer, request } = await openWriter(fake.url, { connection });
    await writer.upsert(request('upsert', members(1)));
    await writer.close();
    expect(fake.requests[0]?.headers).toMatchObject({
      authorization: 'Other',
      'x-team': 'growth',
      ...headers,
    });
    expect(fake.requests[0]?.headers).toMatchObject({ 'content-type': 'application/json' });
  });

  test.each(['basic', 'body'])(
    'oauth2 (client_auth: %s): one token serves all requests',
    async (client_auth) => {
      const connection = oauth({ client_auth, scope: 'audiences', audience: 'crm' });
      const { writer, request } = await openWriter(guarded.url, { connection });
      const outcomes = await Promise.all([1, 2, 3].map((n) => writer.upsert(request('upsert', members(n)))));
      await writer.close();
      expect(outcomes.map(({ kind }) => kind)).toEqual(Array(3).fill('accepted'));
      expect(guarded.tokenRequests).toHaveLength(1);
      const form = new URLSearchParams(guarded.tokenRequests[0]?.body);
      expect(guarded.tokenRequests[0]?.body.includes('client_secret')).toBe(client_auth === 'body');
      expect(form.get('grant_type')).toBe('client_credentials');
      expect([form.get('scope'), form.get('audience')]).toEqual(['audiences', 'crm']);
    },
  );

  test('oauth2: a token is renewed before its end, by the clock of the context', async () => {
    let now = 0;
    const connection = oauth();
    const { writer, request } = await openWriter(guarded.url, { connection, context: { now: () => now } });
    const tokensAt = async (ms: number) => {
      now = ms;
      await writer.upsert(request('upsert', members(1)));
      return guarded.tokenRequests.length;
    };
    expect(await tokensAt(0)).toBe(1);
    expect(await tokensAt(3_539_000)).toBe(1);
    expect(await tokensAt(3_541_000)).toBe(2);
    await writer.close();
  });

  test('oauth2: a refusal that comes late does not cost the token that has taken its place', async () => {
    const { connection } = parsed(guarded.url, { connection: oauth() });
    const { auth } = connection;
    if (typeof auth !== 'object' || !('oauth2' in auth)) throw new Error('oauth2 was written');
    const endpoint = { url: new URL(auth.oauth2.token_url), ca: undefined, connectTimeoutMs: 1_000 };
    const signal = new AbortController().signal;
    const transport = new HttpTransport({ ...endpoint, timeoutMs: 1_000, keepAliveMs: 0 }, signal);
    const known: string[] = [];
    const tokens = new TokenSource(
      auth.oauth2,
      transport,
      () => 0,
      (token) => known.push(token),
    );
    await tokens.get();
    const [old = ''] = known;
    tokens.forget(old);
    const renewed = await tokens.get();
    tokens.forget(old);
    expect(await tokens.get()).toEqual(renewed);
    expect(known).toHaveLength(2);
    transport.close();
  });

  test('oauth2: a refused token is replaced once, and the same bytes go again', async () => {
    const { writer, request } = await openWriter(guarded.url, { connection: oauth() });
    await writer.upsert(request('upsert', members(1)));
    guarded.revokeTokens();
    const batch = request('upsert', members(2));
    expect((await writer.upsert(batch)).kind).toBe('accepted');
    expect(guarded.requests.slice(1).map(({ body }) => body)).toEqual([batch.body, batch.body]);
    expect(guarded.state.effects).toHaveLength(3);
    guarded.always({ kind: 'status', status: 401 });
    expect(await writer.upsert(request('upsert', members(3)))).toMatchObject({
      kind: 'misconfigured',
      code: 'http-401',
    });
    expect(guarded.requests).toHaveLength(5);
    await writer.close();
  });

  test.each([
    [401, 'misconfigured', 'oauth-http-401'],
    [302, 'misconfigured', 'oauth-http-302'],
    [503, 'not-applied', 'oauth-http-503'],
    [429, 'not-applied', 'oauth-http-429'],
  ])('oauth2: a token endpoint that answers %i means %s, and nothing is sent', async (status, kind, code) => {
    guarded.tokenStatus = status;
    const { writer, request } = await openWriter(guarded.url, { connection: oauth() });
    expect(await writer.upsert(request('upsert', members(1)))).toMatchObject({ kind, code });
    expect(await writer.preflight()).toMatchObject([{ code }]);
    await writer.close();
    expect(guarded.requests).toHaveLength(0);
  });

  test('oauth2: a token endpoint that is down has let nothing through', async () => {
    const { writer, request } = await openWriter(guarded.url, {
      connection: oauth({ token_url: 'http://127.0.0.1:1/t' }),
    });
    expect(await writer.upsert(request('upsert', members(1)))).toMatchObject({
      kind: 'not-applied',
      code: 'oauth-connection-refused',
    });
    await writer.close();
  });
});

describe('leaks', () => {
  const secretsOf = (outcome: BatchOutcome, secrets: readonly string[]) =>
    secrets.filter((secret) => JSON.stringify(outcome).includes(secret));

  test.each([
    ['bearer', { bearer: 'tok"en-123' }, ['tok"en-123', 'tok\\"en-123', 'tok\\\\\\"en-123']],
    ['basic', { basic: { user: 'me', password: 'hunter2' } }, ['hunter2', 'bWU6aHVudGVyMg==']],
    ['header', { header: 'Authorization', value: 'Key abcdef' }, ['abcdef']],
  ])('a 400 that repeats the %s credential leaves it out of the reason', async (_, auth, secrets) => {
    const { writer, request } = await openWriter(fake.url, { connection: { auth } });
    fake.fault({ kind: 'echo' });
    const outcome = await writer.upsert(request('upsert', members(1)));
    await writer.close();
    expect(outcome.kind).toBe('refused');
    expect(JSON.stringify(outcome)).toContain('[secret]');
    expect(secretsOf(outcome, secrets)).toEqual([]);
  });

  test('an oauth2 token is left out too, and so is the client’s secret', async () => {
    const { writer, request } = await openWriter(guarded.url, { connection: oauth() });
    guarded.fault({ kind: 'echo' });
    const outcome = await writer.upsert(request('upsert', members(1)));
    await writer.close();
    expect(outcome.kind).toBe('refused');
    expect(secretsOf(outcome, ['granted-token', CLIENT.clientSecret])).toEqual([]);
  });

  test('an acceptance keeps the status, the request id and a bounded body, without secrets', async () => {
    const { writer, request } = await openWriter(fake.url, { connection: { auth: { bearer: 'tok-123' } } });
    const body = JSON.stringify({ ok: true, id: `tok-123 ${'😀'.repeat(3_000)}` });
    fake.fault({
      kind: 'status',
      status: 200,
      body,
      headers: { 'x-request-id': 'r-1', 'set-cookie': 'sid=1' },
    });
    const outcome = await writer.upsert(request('upsert', members(1)));
    await writer.close();
    if (outcome.kind !== 'accepted') throw new Error(outcome.kind);
    expect(Object.keys(outcome.receipt)).toEqual(['status', 'requestId', 'body']);
    const kept = String(outcome.receipt.body);
    expect(kept.length).toBeLessThanOrEqual(2_001);
    expect(kept).toMatch(/^\{"ok":true,"id":"\[secret\] 😀[^\ufffd]*…$/u);
  });

  test('a secret is left out percent-encoded too, and whole where another is a part of it', async () => {
    const connection = { auth: { bearer: 'tok+1' }, headers: { 'X-Key': 'tok+1-and-more' } };
    const { writer, request } = await openWriter(fake.url, { connection });
    fake.fault({ kind: 'status', status: 400, body: 'no tok+1-and-more, no tok%2B1, no tok+1.' });
    const outcome = await writer.upsert(request('upsert', members(1)));
    await writer.close();
    expect(outcome).toMatchObject({ reason: 'no [secret], no [secret], no [secret].' });
  });

  test('a secret that lies across the bound is not kept by half', async () => {
    const { writer, request } = await openWriter(fake.url, {
      connection: { auth: { bearer: 'tok-123-long' } },
    });
    fake.fault({ kind: 'status', status: 400, body: `${'x'.repeat(494)}tok-123-long` });
    const outcome = await writer.upsert(request('upsert', members(1)));
    await writer.close();
    expect(JSON.stringify(outcome)).not.toContain('tok');
  });

  test('what fails on the network is told by code alone', async () => {
    const { writer, request } = await openWriter('http://127.0.0.1:1', {
      connection: { auth: { bearer: 'tok-123' } },
    });
    const outcome = await writer.upsert(request('upsert', members(1)));
    await writer.close();
    expect(JSON.stringify(outcome)).not.toMatch(/127\.0\.0\.1|ECONN|tok-123/);
  });
});

describe('one member a request', () => {
  const options = {
    upsert: { method: 'PUT', path: `${PATH}/{email_sha256}` },
    remove: { method: 'DELETE', path: `${PATH}/{email_sha256}`, body: 'none', accepts: [200, 204, 404] },
  };

  test('the identity stands in the path, percent-encoded, and the removal has no body', async () => {
    const { writer, request } = await openWriter(fake.url, { options });
    const odd = "a b+ü😀?#%&='()*!";
    expect((await writer.upsert(request('upsert', [member(odd)]))).kind).toBe('accepted');
    expect(fake.held).toEqual([odd]);
    expect((await writer.remove(request('remove', [member(odd)]))).kind).toBe('accepted');
    await writer.close();
    expect(fake.held).toEqual([]);
    expect(fake.requests.map(({ body }) => body)).toEqual([`{"email_sha256":"${odd}","plan":"vip"}`, '']);
    expect(fake.requests[0]?.path).toMatch(/^\/audiences\/42\/members\/[A-Za-z0-9%._~-]+$/);
  });

  test.each(['', '.', '..', '../43', 'a/../../43', '..\\x', '%2e%2e', '/'])(
    'the identity %j would name another resource: refused, and not sent',
    async (id) => {
      const { writer, request } = await openWriter(fake.url, { options });
      expect(await writer.remove(request('remove', [member(id)]))).toEqual({
        kind: 'refused',
        code: 'identity-not-addressable',
        reason: '',
      });
      await writer.close();
      expect(fake.requests).toHaveLength(0);
    },
  );

  test('a 404 is an accepted removal where the user says so, but not as a page', async () => {
    const { writer, request } = await openWriter(fake.url, { options });
    fake.fault({ kind: 'status', status: 404, body: '{"error":"gone"}' });
    expect((await writer.remove(request('remove', [member('a')]))).kind).toBe('accepted');
    const page = { 'content-type': 'text/html' };
    fake.fault({ kind: 'status', status: 404, body: '<pre>Cannot DELETE</pre>', headers: page });
    expect((await writer.remove(request('remove', [member('a')]))).kind).toBe('unknown');
    expect((await writer.upsert(request('upsert', [member('a')]))).kind).toBe('accepted');
    await writer.close();
  });
});

describe('finish', () => {
  const finish = { method: 'POST', path: '/audiences/42/finish' };
  const request = conformanceFinish('7', 3);

  test('without a configured request, finishing needs no call', async () => {
    const { writer } = await openWriter(fake.url);
    expect((await writer.finish(request)).kind).toBe('accepted');
    expect((await writer.reconcileFinish(request, null)).kind).toBe('accepted');
    expect((await writer.abort()).kind).toBe('accepted');
    await writer.close();
    expect(fake.requests).toHaveLength(0);
  });

  test('with one, it tells generation, members and digest, and its lost answer is unknown', async () => {
    const { writer } = await openWriter(fake.url, { options: { finish } });
    fake.fault({ kind: 'status', status: 204 });
    expect((await writer.finish(request)).kind).toBe('accepted');
    expect(JSON.parse(fake.requests[0]?.body ?? '')).toEqual({
      generation: '7',
      members: 3,
      digest: request.digest,
    });
    fake.fault({ kind: 'reset', applied: false });
    expect((await writer.finish(request)).kind).toBe('unknown');
    expect((await writer.reconcileFinish(request, null)).kind).toBe('unknown');
    fake.fault({ kind: 'job', id: 'j' });
    expect(await writer.finish(request)).toMatchObject({ kind: 'pending', jobIds: ['j'] });
    await writer.close();
    expect(fake.requests).toHaveLength(3);
  });

  test('rule 3: a finish that may go twice is turned away for now: asked again; refused for good: that says nothing of the first', async () => {
    const { writer } = await openWriter(fake.url, { options: { finish: { ...finish, idempotent: true } } });
    fake.fault({ kind: 'status', status: 429 });
    expect(await writer.reconcileFinish(request, null)).toEqual({
      kind: 'unknown',
      code: 'replay-http-429',
      unanswered: true,
    });
    fake.fault({ kind: 'status', status: 400, body: '{}' });
    expect(await writer.reconcileFinish(request, null)).toEqual({ kind: 'unknown', code: 'replay-http-400' });
    await writer.close();
  });
});
