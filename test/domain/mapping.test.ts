import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { canonicalJson } from '../../src/domain/canonical-json.ts';
import { compileMapping } from '../../src/domain/mapping.ts';
import { MAX_MEMBERS_PER_ROW, type MappedRow } from '../../src/domain/member.ts';
import { normalize } from '../../src/domain/normalize.ts';
import type { Condition, FieldRule, MemberRule } from '../../src/domain/settings.ts';
import { type Column, InvalidValue, type RawRow, type SourceValue } from '../../src/domain/source-row.ts';
import { bool, digits, failure, float, jsonb, sha256Hex, text } from './support.ts';

const columns = [digits('id'), text('email'), text('plan'), bool('active'), jsonb('tags'), float('score')];

function row(values: Partial<Record<string, string | null>>): RawRow {
  return columns.map((column) => values[column.name] ?? null);
}

function rule(parts: Partial<MemberRule>): MemberRule {
  return { identity: { email: { column: 'email' } }, payload: {}, when: [], ...parts };
}

function mapper(rules: readonly MemberRule[], key: readonly string[] = ['id']): (raw: RawRow) => MappedRow {
  return compileMapping(rules, key, columns, sha256Hex);
}

/** The mapped row's only member. */
function member(mapped: MappedRow): { identity: string; upsert: string } {
  expect(mapped.members).toHaveLength(1);
  const [only] = mapped.members;
  if (only === undefined) return expect.fail('no member');
  expect(only.remove).toBeNull();
  return only;
}

function keyHash(...parts: (string | null)[]): string {
  return `sha256:${sha256Hex(JSON.stringify(parts))}`;
}

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
    const given = member(mapper([rule({ identity })])(row({ id: '1', email: ' Bob@X.com ' })));
    expect(given.identity).toBe(`{"email_sha256":"${sha256Hex('bob@x.com')}"}`);
    expect(given.upsert).toBe(given.identity);
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

describe('source keys', () => {
  const two = (a: string | null, b: string | null) => row({ email: a, plan: b, id: '1' });
  const keyed = mapper([], ['email', 'plan']);

  it('key-concat: parts never run together, whatever they contain', () => {
    const part = fc.oneof(
      fc.string({
        unit: fc.constantFrom('a', '|', '\u001f', '"', ',', '\\', '[', '1'),
        minLength: 1,
        maxLength: 4,
      }),
      fc.constantFrom('NULL', 'null'),
    );
    fc.assert(
      fc.property(part, part, part, part, (a, b, c, d) => {
        const same = keyed(two(a, b)).sourceKey === keyed(two(c, d)).sourceKey;
        expect(same).toBe(a === c && b === d);
      }),
      { numRuns: 1000 },
    );
    const pairs = [
      ['a', 'bc'],
      ['ab', 'c'],
      ['1', '23'],
      ['12', '3'],
      ['a","b', 'c'],
      ['a', 'b","c'],
    ] as const;
    expect(new Set(pairs.map(([a, b]) => keyed(two(a, b)).sourceKey)).size).toBe(pairs.length);
  });

  it('bigint/numeric: are exact texts: neighbours of 2^53 and 0.1 against 0.10 are distinct', () => {
    const ids = ['9007199254740992', '9007199254740993', '0.1', '0.10', '9'.repeat(39)];
    expect(ids.map((id) => mapper([])(row({ id })).sourceKey)).toEqual(ids.map((id) => `["${id}"]`));
  });

  it('null-key: NULL and empty parts fail, also one of several, naming column and key hash', () => {
    for (const [a, b, column] of [
      [null, 'x', 'email'],
      ['x', null, 'plan'],
      ['', 'x', 'email'],
      ['x', '', 'plan'],
    ] as const) {
      expect(failure(() => keyed(two(a, b)))).toMatchObject({
        code: 'data.null-key',
        details: { column, keyHash: keyHash(a, b) },
      });
    }
  });

  it('null-key, rule 7: a row that is excluded still has its key checked', () => {
    const excluded = rule({ when: [{ column: 'plan', is: 'not_null' }] });
    expect(mapper([excluded])(row({ id: '7' }))).toEqual({ sourceKey: '["7"]', members: [] });
    expect(failure(() => mapper([excluded])(row({}))).code).toBe('data.null-key');
  });

  it('nul+surrogates, nan/infinity: a key that cannot be written exactly fails by rule, without its value', () => {
    for (const [email, broken] of [
      ['secret\0', 'nul-character'],
      ['secret\ud83d', 'lone-surrogate'],
    ] as const) {
      const failed = failure(() => keyed(two(email, 'x')));
      expect(failed).toMatchObject({
        code: 'data.invalid-value',
        details: { rule: broken, column: 'email' },
      });
      expect(failed.message).not.toContain('secret');
    }
    const byScore = mapper([], ['score']);
    expect(failure(() => byScore(row({ score: 'NaN' }))).details).toMatchObject({
      rule: 'not-finite',
      column: 'score',
    });
    expect(byScore(row({ score: '-0' }))).toEqual(byScore(row({ score: '0' })));
  });

  it('are at most 2,000 bytes of UTF-8', () => {
    const keyOf = (id: string) => mapper([])(row({ id })).sourceKey;
    expect(keyOf('x'.repeat(1996))).toHaveLength(2000);
    expect(failure(() => keyOf('x'.repeat(1997))).code).toBe('data.key-too-long');
    expect(keyOf('€'.repeat(665))).toHaveLength(669);
    expect(failure(() => keyOf('€'.repeat(666))).code).toBe('data.key-too-long');
  });
});

describe('a row that breaks a rule', () => {
  it('ragged-rows: fails when it has fewer or more values than columns, never shifting any', () => {
    const map = mapper([rule({})]);
    for (const ragged of [
      [],
      ['1'],
      ['1', 'a@x', 'vip', 't', '[]'],
      ['1', 'a@x', 'vip', 't', '[]', '1', 'x'],
    ]) {
      expect(failure(() => map(ragged))).toMatchObject({
        code: 'data.invalid-row',
        details: { rule: 'row-length', columns: 6, values: ragged.length },
      });
    }
    const holes: RawRow = Object.assign(new Array(6), { 0: '1' });
    expect(failure(() => map(holes)).details).toMatchObject({ rule: 'missing-value' });
  });

  it('null-key, double-hash: an identity of NULL or nothing fails, hashed or not, and never becomes a member', () => {
    const fields: FieldRule[] = [
      { column: 'email' },
      { column: 'email', as: 'text' },
      { column: 'email', normalize: ['trim'] },
      { column: 'email', hash: 'sha256' },
      { column: 'email', normalize: ['email'], hash: 'sha256' },
      { column: 'email', normalize: ['phone'], hash: 'sha256' },
    ];
    for (const field of fields) {
      const map = mapper([rule({ identity: { e: field } })]);
      for (const email of [null, '']) {
        expect(failure(() => map(row({ id: '1', email })))).toMatchObject({
          code: 'data.null-key',
          details: { column: 'email', field: 'e', keyHash: keyHash('1') },
        });
      }
    }
    const blank = mapper([
      rule({ identity: { e: { column: 'email', normalize: ['email'], hash: 'sha256' } } }),
    ]);
    expect(failure(() => blank(row({ id: '1', email: ' \t ' }))).code).toBe('data.null-key');
    const jsonNull = mapper([rule({ identity: { t: { column: 'tags' } } })]);
    expect(failure(() => jsonNull(row({ id: '1', tags: 'null' }))).code).toBe('data.null-key');
  });

  it('rule 7: a text that is not of its form fails the row; it is not an exclusion, and its value is not told', () => {
    const secret = 'secret, not an address';
    for (const part of ['identity', 'payload'] as const) {
      const map = mapper([
        rule({
          identity: { id: { column: 'id' } },
          [part]: { e: { column: 'email', normalize: ['email'] } },
        }),
      ]);
      const failed = failure(() => map(row({ id: '1', email: secret })));
      expect(failed).toMatchObject({
        code: 'data.invalid-row',
        details: { rule: 'not-email', column: 'email', field: 'e', keyHash: keyHash('1') },
      });
      expect(failed.message).not.toContain('secret');
    }
  });

  it('double-hash: an empty text in a payload is not hashed', () => {
    const map = mapper([rule({ payload: { p: { column: 'plan', normalize: ['trim'], hash: 'sha256' } } })]);
    for (const plan of ['', '  ']) {
      expect(failure(() => map(row({ id: '1', email: 'a@x', plan })))).toMatchObject({
        code: 'data.invalid-row',
        details: { rule: 'hash-of-empty', column: 'plan', field: 'p' },
      });
    }
  });

  it('nan/infinity, nul+surrogates: fails by rule, column and key hash, in any part of a member', () => {
    const map = mapper([rule({ payload: { score: { column: 'score' }, plan: { column: 'plan' } } })]);
    const base = { id: '1', email: 'a@x' };
    for (const [values, broken, column] of [
      [{ score: 'NaN' }, 'not-finite', 'score'],
      [{ score: '-Infinity' }, 'not-finite', 'score'],
      [{ plan: 'a\0' }, 'nul-character', 'plan'],
      [{ plan: '\ude00' }, 'lone-surrogate', 'plan'],
      [{ email: 'a\0' }, 'nul-character', 'email'],
    ] as const) {
      expect(failure(() => map(row({ ...base, ...values })))).toMatchObject({
        code: 'data.invalid-value',
        details: { rule: broken, column, keyHash: keyHash('1') },
      });
    }
    expect(member(map(row({ ...base, plan: '😀 \\u0000', score: '-0' }))).upsert).toBe(
      '{"email":"a@x","plan":"😀 \\\\u0000","score":0}',
    );
  });

  it('an error that is no rule of a value passes through as it is', () => {
    const broken: Column = { ...text('id'), text: () => expect.fail('a bug') };
    const map = compileMapping([], ['id'], [broken], sha256Hex);
    expect(() => map(['1'])).toThrow('a bug');
  });
});

describe('when', () => {
  const holds = (condition: Condition, values: Partial<Record<string, string | null>>) =>
    mapper([rule({ when: [condition] })])(row({ id: '1', email: 'a@x', ...values })).members.length === 1;

  it('decides for every condition: NULL, empty and blank are three things', () => {
    const table: [Condition['column'], string, (string | null)[], (string | null)[]][] = [
      ['plan', 'null', [null], ['', ' ', 'null']],
      ['plan', 'not_null', ['', ' ', 'null'], [null]],
      ['plan', 'empty', [null, ''], [' ', 'x']],
      ['plan', 'not_empty', [' ', 'x'], [null, '']],
      ['active', 'true', ['t'], ['f', null]],
      ['active', 'false', ['f'], ['t', null]],
    ];
    for (const [column, is, yes, no] of table) {
      const condition = { column, is } as Condition;
      for (const value of yes) expect(holds(condition, { [column]: value }), `${is} ${value}`).toBe(true);
      for (const value of no) expect(holds(condition, { [column]: value }), `${is} ${value}`).toBe(false);
    }
  });

  it('compares exact texts, and NULL equals nothing', () => {
    expect(holds({ column: 'plan', equals: 'vip' }, { plan: 'vip' })).toBe(true);
    for (const plan of ['VIP', 'vip ', null])
      expect(holds({ column: 'plan', equals: 'vip' }, { plan })).toBe(false);
    expect(holds({ column: 'plan', in: ['a', 'NULL'] }, { plan: 'a' })).toBe(true);
    for (const plan of ['b', null])
      expect(holds({ column: 'plan', in: ['a', 'NULL'] }, { plan })).toBe(false);
    expect(holds({ column: 'active', equals: 'true' }, { active: 't' })).toBe(true);
  });

  it('all conditions must hold', () => {
    const when: Condition[] = [
      { column: 'plan', is: 'not_null' },
      { column: 'active', is: 'true' },
    ];
    const given = (values: Record<string, string>) =>
      mapper([rule({ when })])(row({ id: '1', email: 'a', ...values })).members.length;
    expect([given({ plan: 'x', active: 't' }), given({ plan: 'x' }), given({ active: 't' })]).toEqual([
      1, 0, 0,
    ]);
  });

  it('rule 7: a condition that cannot be decided fails the row', () => {
    expect(failure(() => holds({ column: 'plan', is: 'true' }, { plan: 'true' }))).toMatchObject({
      code: 'data.invalid-row',
      details: { rule: 'not-boolean', column: 'plan' },
    });
    expect(failure(() => holds({ column: 'score', equals: 'NaN' }, { score: 'NaN' })).code).toBe(
      'data.invalid-value',
    );
  });

  it('an excluded row may hold what the member could not', () => {
    const map = mapper([rule({ when: [{ column: 'email', is: 'not_null' }] })]);
    expect(map(row({ id: '1' })).members).toEqual([]);
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
