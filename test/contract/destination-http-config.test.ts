/** What the `http` destination makes of its configuration, before anything is sent. */

import { describe, expect, test } from 'vitest';
import { z } from 'zod';
import { conformanceRequest } from '../../src/destinations/conformance-session.ts';
import { httpDestination } from '../../src/destinations/http/index.ts';
import { retryAfterMs } from '../../src/destinations/web-retry-after.ts';
import { buildBody } from '../../src/domain/request.ts';
import { member, PATH, PER_ROW, parsed } from '../support/fake-audience-writer.ts';
import { LOCALHOST_CERTIFICATE } from '../support/localhost-certificate.ts';

const API = 'https://api.example.com/v1';
const MINIMAL = { upsert: { method: 'POST', path: PATH }, remove: { method: 'DELETE', path: PATH } };
const JOBS = {
  poll: { path: '/jobs/{job}' },
  state: { at: '/state', running: ['running'], done: ['done'] },
  results: { per_request: {} },
};
const BY_PATH = {
  upsert: { method: 'PUT', path: '/members/{email_sha256}' },
  remove: { method: 'DELETE', path: '/members/{email_sha256}', body: 'none' },
};

function problems(schema: 'connectionSchema' | 'optionsSchema', value: unknown): readonly string[] {
  const result = httpDestination[schema].safeParse(value);
  return result.success
    ? []
    : result.error.issues.map(({ path, message }) => `${path.join('.')}: ${message}`);
}

describe('connection', () => {
  test.each([
    ['https', { base_url: API }],
    ['plain http on loopback', { base_url: 'http://127.0.0.1:8080' }],
    ['plain http on IPv6 loopback', { base_url: 'http://[::1]:8080' }],
    ['plain http where it is asked for', { base_url: 'http://crm.internal', allow_plain_http: true }],
    ['a private authority', { base_url: API, tls: { ca: LOCALHOST_CERTIFICATE } }],
    ['basic', { base_url: API, auth: { basic: { user: 'u', password: 'p' } } }],
    [
      'oauth2',
      { base_url: API, auth: { oauth2: { token_url: `${API}/token`, client_id: 'a', client_secret: 'b' } } },
    ],
  ])('%s is taken', (_, connection) => {
    expect(problems('connectionSchema', connection)).toEqual([]);
  });

  test.each([
    ['plain http elsewhere', { base_url: 'http://api.example.com' }, 'base_url'],
    ['a host that only begins like loopback', { base_url: 'http://127.0.0.1.example.com' }, 'base_url'],
    ['a user in the URL', { base_url: 'https://me:secret@api.example.com' }, 'base_url'],
    ['a query in the URL', { base_url: `${API}?key=secret` }, 'base_url'],
    ['no URL', { base_url: 'api.example.com' }, 'base_url'],
    ['an unknown key', { base_url: API, retries: 3 }, ''],
    [
      'two kinds of auth',
      { base_url: API, auth: { bearer: 'a', basic: { user: 'u', password: 'p' } } },
      'auth',
    ],
    ['a line break in a token', { base_url: API, auth: { bearer: 'secret\r\nHost: evil' } }, 'auth'],
    ['a header that frames the request', { base_url: API, headers: { 'Content-Length': '3' } }, 'headers'],
    ['a CA that is none', { base_url: API, tls: { ca: 'secret' } }, 'tls.ca'],
    [
      'a token endpoint in plain http',
      {
        base_url: API,
        auth: {
          oauth2: { token_url: 'http://id.example.com/token', client_id: 'a', client_secret: 'secret' },
        },
      },
      'auth.oauth2.token_url',
    ],
  ])('%s is refused, and nothing of it is repeated', (_, connection, path) => {
    const found = problems('connectionSchema', connection);
    expect(found.map((problem) => problem.startsWith(path))).toContain(true);
    expect(found.join()).not.toContain('secret\r');
    expect(found.join()).not.toContain('me:secret');
  });
});

describe('options', () => {
  test.each([
    ['the least there can be', {}],
    ['per-request outcomes', { outcomes: 'per_request' }],
    ['expected counts', { outcomes: { per_request: { expect: { '/received': 'rows', '/invalid': 0 } } } }],
    ['per-row outcomes', { outcomes: PER_ROW }],
    ['one member a request', BY_PATH],
    [
      '404 as an accepted removal',
      { remove: { ...BY_PATH.remove, accepts: [204, 404] }, upsert: BY_PATH.upsert },
    ],
  ])('%s is taken', (_, options) => {
    expect(problems('optionsSchema', { ...MINIMAL, ...options })).toEqual([]);
  });

  test.each([
    ['a path without its slash', { upsert: { method: 'POST', path: 'members' } }, 'upsert.path'],
    ['a path that walks up', { upsert: { method: 'POST', path: '/a/../b' } }, 'upsert.path'],
    [
      'a path that is another host',
      { upsert: { method: 'POST', path: '//evil.example.com/a' } },
      'upsert.path',
    ],
    ['an upsert by GET', { upsert: { method: 'GET', path: PATH } }, 'upsert.method'],
    ['many members under one member’s path', { ...BY_PATH, body: 'array' }, 'upsert.body'],
    [
      'a removal that names nobody',
      { remove: { method: 'DELETE', path: PATH, body: 'none' } },
      'remove.body',
    ],
    ['a status of two minds', { nothing_applied: [429, 400] }, 'refused'],
    ['success as "nothing applied"', { nothing_applied: [200] }, 'nothing_applied'],
    [
      '207 for a whole request',
      { outcomes: { per_request: { statuses: [207] } } },
      'outcomes.per_request.statuses',
    ],
    ['500 as an acceptance', { upsert: { method: 'POST', path: PATH, accepts: [500] } }, 'upsert.accepts'],
    [
      '404 as an accepted upsert',
      { upsert: { method: 'POST', path: PATH, accepts: [404] } },
      'upsert.accepts',
    ],
    [
      'operation ids that are not sent',
      { outcomes: { per_row: { ...PER_ROW.per_row, match: 'operation_id' } } },
      'operation_id',
    ],
    ['a constant field over the list', { body: { wrap: 'members', fields: { members: 1 } } }, 'body'],
    [
      'a poll that names no job',
      { asynchronous: { ...JOBS, poll: { path: '/jobs' } } },
      'asynchronous.poll.path: must have `{job}` once',
    ],
    [
      'a state with two meanings',
      { asynchronous: { ...JOBS, state: { at: '/s', running: [1], done: [2], failed: [1] } } },
      'asynchronous.state: one value cannot mean two things',
    ],
    ['results without a form', { asynchronous: { ...JOBS, results: {} } }, 'asynchronous.results: must be'],
    [
      'outcomes of an answer that is a job',
      { asynchronous: JOBS, outcomes: 'per_request' },
      'outcomes: says what an answer means',
    ],
    [
      'results by an operation id that is not sent',
      {
        asynchronous: {
          ...JOBS,
          results: { per_row: { list: '', id: 'i', match: 'operation_id', ok: { field: 'f', values: [1] } } },
        },
      },
      'operation_id: must name the field',
    ],
    ['a lookup of nothing', { lookup: { by_key: { path: '/keys' } } }, 'lookup.by_key.path: must have'],
    ['a lookup of no member', { lookup: { by_member: { path: '/m' } } }, 'lookup.by_member.path: must name'],
    [
      'a split that is tried again',
      { split: [413] },
      'split: a status cannot stand in `nothing_applied` too',
    ],
    ['a split at success', { split: [200] }, 'split: may hold statuses from 400 to 599 only'],
    ['both a count and a list', { verify_empty: { path: PATH, count: '/n', list: '/l' } }, 'verify_empty'],
  ])('%s is refused', (_, options, start) => {
    const found = problems('optionsSchema', { ...MINIMAL, ...options });
    expect(found.map((problem) => problem.startsWith(start))).toContain(true);
  });

  test('fields that requests and outcomes name must be fields of the identity', () => {
    const check = (options: object, identity: string[], payload: string[] = []) =>
      httpDestination.checkFields(parsed(API, { options }).options, identity, payload);
    expect(check(BY_PATH, ['email_sha256'])).toEqual([]);
    expect(check(BY_PATH, ['phone'])).toHaveLength(2);
    expect(check({ outcomes: PER_ROW }, ['email_sha256'])).toEqual([]);
    expect(check({ outcomes: PER_ROW }, ['phone'])[0]).toContain('"email_sha256" is not an identity field');
    expect(check({ outcomes: PER_ROW }, ['email_sha256', 'list'])[0]).toContain('operation_id');
    expect(check({ operation_id: 'plan' }, ['email_sha256'], ['plan'])[0]).toContain('also a field');
  });
});

describe('target key', () => {
  const key = (url: string, options: object = {}) => {
    const { connection, options: full } = parsed(url, { options });
    return httpDestination.targetKey(connection, full);
  };

  test.each([
    ['upper-case host', 'https://API.example.com/v1'],
    ['default port', 'https://api.example.com:443/v1'],
    ['trailing slash', `${API}/`],
    ['trailing dot', 'https://api.example.com./v1'],
    ['dots in the path', 'https://api.example.com/x/../v1'],
  ])('is the same for one URL written with %s', (_, url) => {
    expect(key(url)).toBe(key(API));
  });

  test('is the same where a path is written in another way, or its placeholder has another name', () => {
    expect(key(API, { upsert: { method: 'PUT', path: '/%61udiences/42/members' } })).toBe(key(API));
    const renamed = { ...BY_PATH, upsert: { method: 'PUT', path: '/members/{hash}' } };
    expect(key(API, renamed)).toBe(key(API, BY_PATH));
  });

  test('is the same with a slash at the end, and however the query is ordered', () => {
    const at = (path: string) => key(API, { upsert: { method: 'POST', path } });
    expect(at(`${PATH}/`)).toBe(key(API));
    expect(at('/members?list=1&mode=a&list=0')).toBe(at('/members/?mode=a&list=1&list=0'));
    expect(at('/members?list=1&list=0')).not.toBe(at('/members?list=0&list=1'));
    expect(at('/members?list=1')).not.toBe(at('/members'));
  });

  test('is the same for two mirrors on one audience that only remove, or only send, in another way', () => {
    expect(key(API, { remove: { method: 'DELETE', path: '/audiences/42/gone' } })).toBe(key(API));
    expect(key(API, { upsert: { method: 'PUT', path: PATH } })).toBe(key(API));
    expect(key(API, { body: { wrap: 'members' } })).toBe(key(API));
  });

  test('differs by scheme, host, port, base path and the path of upserts', () => {
    const others = [
      key(API),
      key('http://127.0.0.1/v1'),
      key('https://api2.example.com/v1'),
      key('https://api.example.com:444/v1'),
      key('https://api.example.com/v2'),
      key(API, { upsert: { method: 'POST', path: '/audiences/43/members' }, separate_places: true }),
    ];
    expect(new Set(others).size).toBe(others.length);
  });

  test('differs by the constant fields and headers that may select an audience, and shows neither', () => {
    const list = (id: string) => key(API, { body: { wrap: 'members', fields: { list_id: id } } });
    const header = (headers: object) => key(API, { upsert: { method: 'POST', path: PATH, headers } });
    const keys = [
      key(API),
      list('A-1'),
      list('B-2'),
      header({ 'X-List': 'A-1' }),
      header({ 'X-List': 'B-2' }),
    ];
    expect(new Set(keys).size).toBe(keys.length);
    expect(keys.join()).not.toMatch(/A-1|B-2/);
    expect(header({ 'x-list': 'A-1' })).toBe(header({ 'X-List': 'A-1' }));
    const own = {
      upsert: { method: 'POST', path: PATH, body: { wrap: 'members', fields: { list_id: 'A-1' } } },
    };
    expect(key(API, own)).toBe(list('A-1'));
    const secret = { connection: { headers: { 'X-Key': 'secret' }, auth: { bearer: 'secret' } } };
    const { connection, options } = parsed(API, secret);
    expect(httpDestination.targetKey(connection, options)).toBe(key(API));
  });
});

test('what decides how a payload arrives is in the write form, and what the target key says already is not', () => {
  const form = (options: object) => httpDestination.writeForm?.(parsed(API, { options }).options);
  const plain = form({});
  for (const options of [
    { upsert: { method: 'PUT', path: PATH } },
    { upsert: { method: 'POST', path: '/people' } },
    { body: 'ndjson' },
    { body: { wrap: 'members' } },
    { operation_id: 'op' },
  ])
    expect(form(options), JSON.stringify(options)).not.toBe(plain);
  for (const options of [
    { remove: { method: 'POST', path: '/gone' } },
    { upsert: { method: 'POST', path: PATH, body: 'array' } },
    { idempotent: true, outcomes: 'per_request' },
  ])
    expect(form(options), JSON.stringify(options)).toBe(plain);
  expect(form({ body: { wrap: 'members', fields: { list: 1 } } })).toBe(form({ body: { wrap: 'members' } }));
});

test.each([
  ['array', {}, '[{"email_sha256":"a","plan":"vip"},{"email_sha256":"b","plan":"vip"}]'],
  ['ndjson', { body: 'ndjson' }, '{"email_sha256":"a","plan":"vip"}\n{"email_sha256":"b","plan":"vip"}\n'],
  [
    'wrap',
    { body: { wrap: 'members', fields: { list: 42 } } },
    '{"list":42,"members":[{"email_sha256":"a","plan":"vip"},{"email_sha256":"b","plan":"vip"}]}',
  ],
])('a body of shape %s', (_, options, body) => {
  const frame = httpDestination.frame('upsert', parsed(API, { options }).options);
  const request = conformanceRequest(frame, 'upsert', [member('a'), member('b')], 1);
  expect(buildBody(frame, request.operations)).toBe(body);
});

test('recovery is what the user has declared, and a form with one member a request takes one', () => {
  const can = (options: object) => {
    const { connection, options: full } = parsed(API, { options });
    return httpDestination.capabilities(connection, full);
  };
  expect(can({}).recovery).toBe('manual');
  expect(can({ idempotent: true }).recovery).toBe('idempotent');
  expect(can({ idempotency: { header: 'Idempotency-Key' } }).recovery).toBe('manual');
  expect(can(BY_PATH).maxRows).toBe(1);
  expect(can({ identity_folding: ['case', 'nfc'] }).identityFolding).toEqual(['case', 'nfc']);
  // What stands in a path is a text, whatever it was in the mapping.
  expect(can({ ...BY_PATH, identity_folding: ['case'] }).identityFolding).toEqual(['case', 'text']);
});

test('one call may take as long as its exchanges together, those for tokens and the second try included', () => {
  const longest = (more: object) => {
    const { connection, options } = parsed(API, { connection: { timeout_ms: 90_000, ...more } });
    return httpDestination.capabilities(connection, options).longestRequestMs;
  };
  expect(longest({})).toBe(90_000);
  expect(longest({ connect_timeout_ms: 600_000, auth: { bearer: 'a' } })).toBe(90_000);
  const oauth2 = { token_url: `${API}/token`, client_id: 'a', client_secret: 'b' };
  expect(longest({ auth: { oauth2 } })).toBe(360_000);
});

test.each([
  ['60', 60_000],
  ['0', 0],
  [' 5 ', 5_000],
  ['99999999999999999999999', 86_400_000],
  ['Sun, 06 Nov 1994 08:50:37 GMT', 60_000],
  ['Sunday, 06-Nov-94 08:50:37 GMT', 60_000],
  ['Sun Nov  6 08:50:37 1994', 60_000],
  ['Sun, 06 Nov 1994 08:00:00 GMT', 0],
  ['Sun, 06 Nov 2094 08:00:00 GMT', 86_400_000],
  [undefined, null],
  ['', null],
  ['-5', null],
  ['1.5', null],
  ['soon', null],
  ['Sun, 99 Nov 1994 08:50:37 GMT', null],
  ['1994-11-06T08:50:37Z', null],
])('429: Retry-After %j is %j ms', (header, ms) => {
  expect(retryAfterMs(header, Date.parse('1994-11-06T08:49:37Z'))).toBe(ms);
});

test('both schemas can be shown to editors as JSON Schema', () => {
  for (const schema of [httpDestination.connectionSchema, httpDestination.optionsSchema]) {
    const shown = z.toJSONSchema(schema, { io: 'input', unrepresentable: 'any' });
    expect(shown).toMatchObject({ type: 'object', additionalProperties: false });
  }
});
