import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { canonicalJson } from '../../src/domain/canonical-json.ts';
import { compileMapping } from '../../src/domain/mapping.ts';
import { MAX_MEMBERS_PER_ROW } from '../../src/domain/member.ts';
import { normalize } from '../../src/domain/normalize.ts';
import type { Condition, FieldRule, MemberRule } from '../../src/domain/settings.ts';
import { type Column, InvalidValue, type RawRow, type SourceValue } from '../../src/domain/source-row.ts';
import { columns, digits, failure, keyHash, mapper, member, row, rule, sha256Hex, text } from './support.ts';

describe('a compiled mapping', () => {
  /** What a rule means, without any of the code that makes it fast. */
  function reference(rules: readonly MemberRule[], raw: RawRow): unknown {
    const value = (name: string) => raw[columns.findIndex((column) => column.name === name)] ?? null;
    const column = (name: string): Column => columns.find((c) => c.name === name) ?? expect.fail(name);
    const build = (fields: { readonly [field: string]: FieldRule }): { [field: string]: SourceValue } =>
      Object.fromEntries(
        Object.entries(fields).map(([name, field]) => {
          if ('value' in field) return [name, field.value];
          const cell = value(field.column);
          if (cell === null) return [name, null];
          if (!field.normalize && !field.hash && !field.as)
            return [name, JSON.parse(column(field.column).json(cell))];
          let current = column(field.column).text(cell);
          for (const step of field.normalize ?? []) current = normalize(step, current) ?? expect.fail(step);
          return [name, field.hash ? sha256Hex(current) : current];
        }),
      );
    const members = rules
      .filter(({ when }) => when.every((c) => 'is' in c && (value(c.column) === null) === (c.is === 'null')))
      .map(({ identity, payload }) => ({
        identity: canonicalJson(build(identity)),
        upsert: canonicalJson({ ...build(identity), ...build(payload) }),
        remove: null,
      }));
    return { sourceKey: JSON.stringify([value('id')]), members };
  }

  const column = fc.constantFrom('email', 'plan', 'active', 'tags', 'score');
  const payloadField: fc.Arbitrary<FieldRule> = fc.oneof(
    column.map((name) => ({ column: name })),
    column.map((name) => ({ column: name, as: 'text' as const })),
    column.map((name) => ({ column: name, normalize: ['trim' as const, 'lower' as const] })),
    fc.constantFrom('plan', 'active', 'score').map((name) => ({ column: name, hash: 'sha256' as const })),
    fc.constantFrom('x', 1.5, true, null).map((value) => ({ value })),
  );
  const names = fc.constantFrom('a', 'B', 'é', '10', '2', '"', '__proto__', 'z z').map((name) => `p${name}`);
  const rules = fc.record({
    identity: fc.constantFrom<MemberRule['identity']>(
      { email: { column: 'email', normalize: ['trim', 'lower'], hash: 'sha256' } },
      { z: { column: 'email' }, pb: { column: 'id' }, A: { value: 'list-1' } },
    ),
    payload: fc.dictionary(names, payloadField, { maxKeys: 5 }).map((fields) => {
      const { pb: _taken, ...others } = fields;
      return others;
    }),
    when: fc.subarray<Condition>([
      { column: 'plan', is: 'not_null' },
      { column: 'active', is: 'null' },
    ]),
  });
  const nullable = (...texts: string[]) => fc.constantFrom(null, ...texts);
  const rows = fc.record({
    id: fc.bigInt({ min: 1n, max: 10n ** 30n }).map(String),
    email: fc.constantFrom('a@x', ' B@Y ', '"quoted"', '😀'),
    plan: nullable('vip', ' ', 'x\ny'),
    active: nullable('t', 'f'),
    tags: nullable('{"b":1,"a":[1.0,null]}', '[]', 'null', '"x"'),
    score: nullable('0.1', '-0', '1e+23'),
  });

  it('gives what the rule says, for every rule and row', () => {
    fc.assert(
      fc.property(rules, rows, (one, values) => {
        expect(mapper([one])(row(values))).toEqual(reference([one], row(values)));
      }),
      { numRuns: 500 },
    );
  });

  it('gives the same text every time', () => {
    fc.assert(
      fc.property(rules, rows, (one, values) => {
        const map = mapper([one]);
        const first = map(row(values));
        map(row({ ...values, email: 'other@x' }));
        expect(map(row(values))).toEqual(first);
        expect(mapper([one])(row(values))).toEqual(first);
      }),
    );
  });
});

describe('members', () => {
  it('transformed-key: the removal is the identity that was upserted, hashed and all, byte for byte', () => {
    const identity = { email_sha256: { column: 'email', normalize: ['email'], hash: 'sha256' } } as const;
    const map = mapper([rule({ identity, payload: { plan: { column: 'plan' } } })]);
    const hashed = `"email_sha256":"${sha256Hex('bob@x.com')}"`;
    // Whatever the rest of the row is. A removal of its own would stand in `remove`; null: it is the identity.
    for (const [id, plan] of [
      ['1', 'vip'],
      ['2', 'gold'],
    ] as const)
      expect(map(row({ id, email: ' Bob@X.com ', plan })).members).toEqual([
        { identity: `{${hashed}}`, upsert: `{${hashed},"plan":"${plan}"}`, remove: null },
      ]);
  });

  it('double-hash: spellings of an address and its digest are one member', () => {
    const identity = { e: { column: 'email', normalize: ['email'], hash: 'sha256' } } as const;
    const map = mapper([rule({ identity })]);
    const digest = sha256Hex('bob@x.com');
    const spellings = [' Bob@X.com ', 'bob@x.com', digest, ` ${digest.toUpperCase()} `];
    const identities = spellings.map((email) => member(map(row({ id: '1', email }))).identity);
    expect(new Set(identities)).toEqual(new Set([`{"e":"${digest}"}`]));
  });

  it('double-hash: without e-mail or phone, 64 hex digits are a text like any other', () => {
    const digest = sha256Hex('bob@x.com');
    const identity = { e: { column: 'email', normalize: ['trim', 'lower'], hash: 'sha256' } } as const;
    expect(member(mapper([rule({ identity })])(row({ id: '1', email: digest }))).identity).toBe(
      `{"e":"${sha256Hex(digest)}"}`,
    );
  });

  it('nfc-nfd: two forms of one address are one member where it is normalised as e-mail, else two', () => {
    const identities = (fields: MemberRule['identity']) =>
      ['ju\u0308rgen@x.com', 'j\u00fcrgen@x.com'].map(
        (email) => member(mapper([rule({ identity: fields })])(row({ id: '1', email }))).identity,
      );
    expect(new Set(identities({ e: { column: 'email', normalize: ['email'] } })).size).toBe(1);
    expect(new Set(identities({ e: { column: 'email' } })).size).toBe(2);
  });

  it('null-clears: NULL, an empty text and a missing field are three payloads', () => {
    const map = mapper([rule({ payload: { plan: { column: 'plan' } } })]);
    const upserts = ['x', null, ''].map((plan) => member(map(row({ id: '1', email: 'a@x', plan }))).upsert);
    expect(upserts).toEqual([
      '{"email":"a@x","plan":"x"}',
      '{"email":"a@x","plan":null}',
      '{"email":"a@x","plan":""}',
    ]);
    expect(member(mapper([rule({})])(row({ id: '1', email: 'a@x' }))).upsert).toBe('{"email":"a@x"}');
  });

  it('null-clears: normalising or hashing a NULL payload gives null', () => {
    const payload: MemberRule['payload'] = {
      p: { column: 'plan', normalize: ['phone'], hash: 'sha256' },
      n: { column: 'plan', as: 'number' },
    };
    const given = member(mapper([rule({ payload })])(row({ id: '1', email: 'a@x' })));
    expect(given.upsert).toBe('{"email":"a@x","n":null,"p":null}');
  });

  it('bigint/numeric: exact digits reach the payload, as text or as a number that is not rounded', () => {
    const payload: MemberRule['payload'] = { t: { column: 'id' }, n: { column: 'id', as: 'number' } };
    const map = mapper([rule({ payload })]);
    const given = member(map(row({ id: '9007199254740992', email: 'a@x' })));
    expect(given.upsert).toBe('{"email":"a@x","n":9007199254740992,"t":"9007199254740992"}');
    expect(member(map(row({ id: '0.10', email: 'a@x' }))).upsert).toBe('{"email":"a@x","n":0.1,"t":"0.10"}');
    expect(failure(() => map(row({ id: '9007199254740993', email: 'a@x' })))).toMatchObject({
      code: 'data.invalid-value',
      details: { rule: 'inexact-number', column: 'id', field: 'n', keyHash: keyHash('9007199254740993') },
    });
  });

  it('several rules give several members; identical ones collapse, conflicting ones fail the row', () => {
    const byEmail = rule({ payload: { plan: { column: 'plan' } } });
    const byPlan = rule({ identity: { email: { column: 'plan' } }, payload: { plan: { column: 'plan' } } });
    const map = mapper([byEmail, byPlan]);
    expect(map(row({ id: '1', email: 'a', plan: 'b' })).members.map((m) => m.identity)).toEqual([
      '{"email":"a"}',
      '{"email":"b"}',
    ]);
    expect(map(row({ id: '1', email: 'b', plan: 'b' })).members).toHaveLength(1);
    const other = mapper([byEmail, { ...byPlan, payload: { plan: { value: 'x' } } }]);
    expect(failure(() => other(row({ id: '1', email: 'b', plan: 'b' }))).code).toBe(
      'data.conflicting-payloads',
    );
  });
});

describe('compiling', () => {
  it('names an unknown column and those that there are, wherever it stands', () => {
    const wrong: (() => unknown)[] = [
      () => mapper([], ['nope']),
      () => mapper([rule({ identity: { e: { column: 'nope' } } })]),
      () => mapper([rule({ payload: { e: { column: 'nope' } } })]),
      () => mapper([rule({ when: [{ column: 'nope', is: 'null' }] })]),
    ];
    for (const compile of wrong) {
      expect(failure(compile)).toMatchObject({
        code: 'data.unknown-column',
        details: { column: 'nope', available: columns.map((column) => column.name) },
      });
    }
  });

  it('refuses rules that mean nothing or two things', () => {
    const wrong: [string, () => unknown][] = [
      ['no-key', () => mapper([], [])],
      ['no-identity', () => mapper([rule({ identity: {} })])],
      ['field-in-identity-and-payload', () => mapper([rule({ payload: { email: { value: 1 } } })])],
      ['empty-identity-constant', () => mapper([rule({ identity: { e: { value: null } } })])],
      ['empty-identity-constant', () => mapper([rule({ identity: { e: { value: '' } } })])],
      [
        'hash-as-number',
        () => mapper([rule({ payload: { p: { column: 'plan', hash: 'sha256', as: 'number' } } })]),
      ],
      ['not-finite', () => mapper([rule({ payload: { p: { value: Number.NaN } } })])],
      ['nul-character', () => mapper([rule({ payload: { 'p\0': { value: 1 } } })])],
      ['too-many-members', () => mapper(Array.from({ length: MAX_MEMBERS_PER_ROW + 1 }, () => rule({})))],
    ];
    for (const [broken, compile] of wrong) {
      expect(failure(compile)).toMatchObject({ code: 'config.invalid', details: { rule: broken } });
    }
  });

  it('looks at no value: a column whose values are all broken compiles', () => {
    const broken: Column = { ...text('email'), json: () => raise(), text: () => raise() };
    const map = compileMapping([rule({})], ['id'], [digits('id'), broken], sha256Hex);
    expect(failure(() => map(['1', 'x'])).details).toMatchObject({ rule: 'malformed', column: 'email' });
  });
});

function raise(): never {
  throw new InvalidValue('malformed');
}
