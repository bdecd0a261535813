/** What a person types as an identity or a key, and what comes of it. */

import { createHash } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import { identitiesOf, sourceKeyOf } from '../../src/cli/identity.ts';
import { harmless } from '../../src/cli/value-text.ts';
import type { MemberRule, MirrorSettings } from '../../src/domain/settings.ts';
import { mirrorNamed } from './mirror-settings.ts';

const sha = (text: string) => createHash('sha256').update(text).digest('hex');
const hashes = (...texts: readonly string[]) => texts.map((text) => `sha256:${sha(text)}`);

function mirror(
  identity: MemberRule['identity'],
  more: Partial<MirrorSettings['destination']> = {},
): MirrorSettings {
  return mirrorNamed('vip', [{ identity, payload: {}, when: [] }], more);
}

function candidates(typed: string, settings: MirrorSettings | null, raw = false): readonly string[] {
  const found = identitiesOf(typed, settings, raw);
  return found.kind === 'candidates' ? found.hashes : [];
}

const EMAIL = mirror({ email: { column: 'mail', normalize: ['email'] } });
const HASHED = mirror({ email_sha256: { column: 'mail', normalize: ['email'], hash: 'sha256' } });
const PLAIN = mirror({ id: { column: 'id' } });
const TWO = mirror({ region: { column: 'r' }, id: { column: 'id' } });

describe('an identity', () => {
  test.each([
    [
      'a bare value of one field, normalised as the mapping says',
      ' Ann@Example.COM ',
      EMAIL,
      ['{"email":"ann@example.com"}'],
    ],
    ['the same as JSON', '{"email":"ANN@example.com"}', EMAIL, ['{"email":"ann@example.com"}']],
    [
      'double-hash: hashed as the mapping says',
      'Ann@x.com',
      HASHED,
      [`{"email_sha256":"${sha('ann@x.com')}"}`],
    ],
    [
      'double-hash: a digest already',
      sha('ann@x.com').toUpperCase(),
      HASHED,
      [`{"email_sha256":"${sha('ann@x.com')}"}`],
    ],
    [
      'bigint/numeric: a number that the source may have as text',
      '9007199254740993',
      PLAIN,
      ['{"id":"9007199254740993"}'],
    ],
    ['one that it may have either way', '42', PLAIN, ['{"id":"42"}', '{"id":42}']],
    [
      'key-concat: several fields, in whatever order',
      '{"region":"a","id":"bc"}',
      TWO,
      ['{"id":"bc","region":"a"}'],
    ],
    [
      'a module’s identity, literally, and as a target that reads texts would take it',
      '{"b":1,"a":{"c":2}}',
      null,
      ['{"a":{"c":2},"b":1}', '{"a":"{\\"c\\":2}","b":"1"}'],
    ],
    [
      'bigint/numeric: one hash for a number and its text, where the target reads texts',
      '42',
      mirror({ id: { column: 'id' } }, { type: 'postgres' }),
      ['{"id":"42"}'],
    ],
  ])('%s', (_, typed, settings, texts) => {
    expect(candidates(typed, settings)).toEqual(hashes(...texts));
  });

  test('--raw applies no rule', () => {
    const digest = sha('ann@x.com');
    expect(candidates(digest, HASHED, true)).toEqual(hashes(`{"email_sha256":"${digest}"}`));
    expect(candidates('Ann@X.com', EMAIL, true)).toEqual(hashes('{"email":"Ann@X.com"}'));
  });

  test('nfc-nfd, case-only: the target’s folding applies to what is hashed', () => {
    const folding = mirror({ id: { column: 'id' } }, { options: { identity_folding: ['case', 'nfc'] } });
    expect(candidates('JU\u0308RGEN', folding)).toEqual(hashes('{"id":"jürgen"}'));
    expect(candidates('J\u00dcrgen', folding)).toEqual(hashes('{"id":"jürgen"}'));
  });

  test('constants of the mapping need not be typed, and each member of the mapping is a candidate', () => {
    const typed = mirrorNamed('vip', [
      {
        identity: { kind: { value: 'email' }, value: { column: 'm', normalize: ['email'] } },
        payload: {},
        when: [],
      },
      {
        identity: { kind: { value: 'phone' }, value: { column: 'p', normalize: ['phone'] } },
        payload: {},
        when: [],
      },
    ]);
    expect(candidates('a@x', typed)).toEqual(hashes('{"kind":"email","value":"a@x"}'));
    expect(candidates('+49 30 1234567', typed)).toEqual(hashes('{"kind":"phone","value":"+49301234567"}'));
    expect(candidates('{"kind":"phone","value":"a@x"}', typed)).toEqual([]);
  });

  test('its hash, as `retl rejections` shows it, needs no configuration', () => {
    const hash = `sha256:${sha('x')}`;
    expect(candidates(hash, null)).toEqual([hash]);
  });

  test.each([
    ['not of the form', 'canary', EMAIL],
    ['empty', '', EMAIL],
    ['of a field that is none', '{"canary":"x"}', EMAIL],
    ['of a field that every object has', '{"constructor":"x"}', EMAIL],
    ['of too few fields', '{"id":"canary"}', TWO],
    ['bare, where there are several fields', 'canary', TWO],
    ['bare, without rules', 'canary', null],
    ['broken JSON', '{"email":"canary"', EMAIL],
    ['a number that a double does not hold', '{"id":0.1000000000000000000001}', PLAIN],
    ['null', '{"email":null}', EMAIL],
  ])('leaks: what is %s is refused, without a word of it', (_, typed, settings) => {
    const found = identitiesOf(typed, settings, false);
    expect(found.kind).toBe('refused');
    expect(JSON.stringify(found)).not.toContain('canary');
  });
});

test.each([
  ['42', '["42"]'],
  ['a "b"', '["a \\"b\\""]'],
  ['["eu","42"]', '["eu","42"]'],
  ['[1, "b"]', '["1","b"]'],
  ['[', null],
  ['[null]', null],
  ['[]', null],
])('a key %s', (typed, key) => {
  expect(sourceKeyOf(typed)).toBe(key);
});

test('values cannot steer a terminal', () => {
  expect(harmless('a\u001b[2Jb\u009bc\u202ed\n')).toBe('a\\u001b[2Jb\\u009bc\\u202ed\\u000a');
  expect(harmless('Jürgen 😀')).toBe('Jürgen 😀');
});
