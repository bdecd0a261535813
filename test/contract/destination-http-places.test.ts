/** Addresses of one mirror that lead to two audiences are found before anything is sent, and good ones are let be. */

import { describe, expect, test } from 'vitest';
import { httpDestination } from '../../src/destinations/http/index.ts';

const UPSERT = { method: 'POST', path: '/audiences/42/members' };
const REMOVE = { method: 'DELETE', path: '/audiences/42/members' };

/** Places that are refused; those that are only pointed out, with a question mark. */
function found(options: object): readonly string[] {
  const result = httpDestination.optionsSchema.safeParse({ outcomes: 'per_request', ...options });
  if (!result.success) return result.error.issues.map(({ path }) => path.join('.'));
  return (httpDestination.hints?.(result.data) ?? []).map((hint) => `${hint.split('`')[1]}?`);
}

const wrap = (fields: object) => ({ wrap: 'members', fields });

describe('two ids where there should be one', () => {
  test.each([
    ['remove.path', { remove: { ...REMOVE, path: '/audiences/43/members' } }],
    ['remove.path', { remove: { ...REMOVE, path: '/audiences/43/members/{id}', body: 'none' } }],
    ['remove.path', { remove: { ...REMOVE, path: '/%61udiences/%34%33/members' } }],
    ['verify_empty.path', { verify_empty: { path: '/audiences/43', count: '/count' } }],
    ['finish.path', { finish: { method: 'POST', path: '/audiences/43/finish' } }],
    ['lookup.by_key.path', { lookup: { by_key: { path: '/audiences/43/requests/{key}' } } }],
    ['lookup.by_member.path', { lookup: { by_member: { path: '/audiences/43/members/{id}' } } }],
    [
      'asynchronous.poll.path',
      {
        outcomes: undefined,
        asynchronous: {
          poll: { path: '/audiences/43/jobs/{job}' },
          state: { at: '/state', running: ['running'], done: ['done'] },
          results: { per_request: {} },
        },
      },
    ],
    [
      'remove.path',
      {
        upsert: { ...UPSERT, path: '/add/aud_1x/members' },
        remove: { ...REMOVE, path: '/remove/aud_2x/members' },
      },
    ],
    [
      'remove.path',
      {
        upsert: { ...UPSERT, path: '/members?audience=42' },
        remove: { ...REMOVE, path: '/members?a=1&audience=43' },
      },
    ],
    [
      'remove.headers',
      {
        upsert: { ...UPSERT, headers: { 'X-Audience': '42' } },
        remove: { ...REMOVE, headers: { 'x-audience': '43' } },
      },
    ],
    [
      'remove.body.fields',
      {
        upsert: { ...UPSERT, body: wrap({ audience: { id: 42 } }) },
        remove: { ...REMOVE, body: wrap({ audience: { id: 43 } }) },
      },
    ],
  ])('%s is refused: %j', (place, options) => {
    expect(found({ upsert: UPSERT, remove: REMOVE, ...options })).toEqual([place]);
    expect(found({ upsert: UPSERT, remove: REMOVE, ...options, separate_places: true })).toEqual([]);
  });

  test('the message names both and the way out', () => {
    const wrong = { upsert: UPSERT, remove: { ...REMOVE, path: '/audiences/43/members' } };
    const { error } = httpDestination.optionsSchema.safeParse(wrong);
    expect(error?.issues[0]?.message).toContain('“43”, not “42”');
    expect(error?.issues[0]?.message).toContain('`separate_places: true`');
  });
});

describe('shapes that APIs have', () => {
  const at = (upsert: string, remove: string, more: object = {}) => ({
    upsert: { method: 'POST', path: upsert },
    remove: { method: 'POST', path: remove },
    ...more,
  });
  const byPath = (upsert: string, remove: string) => ({
    upsert: { method: 'PUT', path: upsert },
    remove: { method: 'DELETE', path: remove, body: 'none' },
  });
  test.each([
    ['one address', at('/audiences/42/members', '/audiences/42/members/')],
    ['two verbs at the end', at('/lists/42/memberships/add', '/lists/42/memberships/remove')],
    ['two verbs with a digit after them', at('/add/42', '/remove/42')],
    ['verbs within words', at('/members/import2', '/members/batch-delete')],
    ['camel case', at('/v1/audiences/42/addMembers', '/v1/audiences/42/removeMembers')],
    ['a verb after a colon', at('/audiences/42/members:add', '/audiences/42/members:remove')],
    ['subscribe and unsubscribe', at('/api/lists/subscribe', '/api/lists/unsubscribe')],
    ['another depth', at('/users/track', '/users/delete/batch')],
    ['a batch address', at('/lists/42/members', '/lists/42/batch-remove')],
    ['one member each', byPath('/lists/42/members/{id}', '/lists/42/members/{id}')],
    ['one way in and one by the member', byPath('/contacts/{id}', '/lists/42/contacts/{id}')],
    ['two versions', at('/v2/audiences/42/members', '/v3/audiences/42/members')],
    ['another query', at('/members?audience=42&mode=1', '/members?audience=42&mode=0')],
    [
      'other words in fields and headers',
      {
        upsert: {
          ...UPSERT,
          headers: { Accept: 'text/x1', 'API-Version': '2024-10-15' },
          body: wrap({ op: 'add', v: 1 }),
        },
        remove: {
          ...REMOVE,
          headers: { Accept: 'text/x2', 'API-Version': '2025-01-01' },
          body: wrap({ op: 'del', v: 0 }),
        },
      },
    ],
    [
      'a look, a finish and jobs of other names',
      at('/audiences/42/members', '/audiences/42/members', {
        verify_empty: { path: '/audiences/42/count', count: '/count' },
        finish: { method: 'POST', path: '/audiences/42/publish' },
        lookup: { by_key: { path: '/requests/{key}' } },
      }),
    ],
  ])('%s: nothing is said', (_, options) => {
    expect(found(options)).toEqual([]);
  });

  test.each([
    ['remove.path?', at('/audiences/vip/members', '/audiences/lapsed/members')],
    ['remove.path?', at('/members', '/people')],
    [
      'verify_empty.path?',
      at('/a/vip/members', '/a/vip/members', { verify_empty: { path: '/a/old/members', list: '' } }),
    ],
  ])('two names may be two audiences, and are pointed out by check alone: %s %j', (place, options) => {
    expect(found(options)).toEqual([place]);
    expect(found({ ...options, separate_places: true })).toEqual([]);
  });
});

describe('target key and route', () => {
  const base = { base_url: 'https://api.example.com' };
  const WRITTEN = { ...base, auth: { bearer: `\${env:TOKEN}` }, headers: { 'X-Account': 'a' } };
  const options = httpDestination.optionsSchema.parse({ upsert: UPSERT, remove: REMOVE });
  const parse = (connection: object) =>
    httpDestination.connectionSchema.parse({ ...connection, auth: { bearer: 'secret' } });
  const route = (written: { readonly [key: string]: unknown }, over: object = {}) =>
    httpDestination.route?.(
      parse(written),
      httpDestination.optionsSchema.parse({ upsert: UPSERT, remove: REMOVE, ...over }),
      written,
    );

  test('an account is a part of the key, and nothing else of the credentials is', () => {
    const key = (connection: object) => httpDestination.targetKey(parse(connection), options);
    expect(key({ ...base, account: 'acme' })).not.toBe(key(base));
    expect(key({ ...base, account: 'acme' })).not.toBe(key({ ...base, account: 'other' }));
    expect(key(WRITTEN)).toBe(key(base));
  });

  test('credentials count as they are written, unless the account is named', () => {
    const other = { ...WRITTEN, auth: { bearer: `\${env:OTHER}` } };
    expect(route(WRITTEN)).toEqual(route({ ...WRITTEN, timeout_ms: 5_000 }));
    expect(route(other)?.credentials).not.toBe(route(WRITTEN)?.credentials);
    expect(route({ ...WRITTEN, headers: {} })?.credentials).not.toBe(route(WRITTEN)?.credentials);
    expect(route({ ...other, account: 'a' })).toEqual(route({ ...WRITTEN, account: 'a' }));
    expect(JSON.stringify(route(WRITTEN))).not.toContain('secret');
  });

  test.each([
    { path: '/audiences/42/gone' },
    { method: 'POST' },
    { headers: { 'X-List': 'a' } },
    { body: { wrap: 'members', fields: { list: 'a' } } },
  ])('the way of removals is their address, method, headers and constant fields: %j', (change) => {
    const { removals } = route(WRITTEN, { remove: { ...REMOVE, ...change } }) ?? {};
    expect(removals).not.toBe(route(WRITTEN)?.removals);
    expect(route(WRITTEN, { remove: { ...REMOVE, path: `${REMOVE.path}/` } })).toEqual(route(WRITTEN));
  });

  test.each([
    ['/audiences/vip/members', '/audiences/vip/members', true],
    ['/audiences/vip/members/{id}', '/audiences/vip/members', true],
    ['/audiences/vip/members', '/audiences/vip/members/{other}', true],
    ['/audiences/lapsed/members/{id}', '/audiences/vip/members', false],
    ['/audiences/vip/members/remove', '/audiences/vip/members', false],
  ])('removals at %s reach a mirror whose upserts go to %s: %s', (gone, theirs, reached) => {
    const upsertTo = (path: string) => ({
      method: 'POST',
      path,
      body: path.endsWith('}') ? 'single' : 'array',
    });
    const remove = { method: 'POST', path: gone, body: gone.endsWith('}') ? 'single' : 'array' };
    const copied = { upsert: upsertTo('/audiences/lapsed/members'), remove };
    const original = { upsert: upsertTo(theirs), remove: REMOVE, separate_places: true };
    const key = httpDestination.targetKey(parse(base), httpDestination.optionsSchema.parse(original));
    expect(route(base, copied)?.removesFrom.includes(key)).toBe(reached);
    expect(route(base, { ...copied, separate_places: true })?.removesFrom).toEqual([]);
  });
});
