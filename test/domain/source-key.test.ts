import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { compileSourceKey } from '../../src/domain/source-key.ts';
import { failure, keyHash, mapper, row, rule, text } from './support.ts';

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

  it('are not made of columns whose text has no rule of its own: refused before the first row', () => {
    const refused = { ...text('tags'), typeName: 'text[]', noKey: true };
    const compile = (key: readonly string[]) => () =>
      compileSourceKey(key, [text('id'), refused], () => 'hash');
    expect(failure(compile(['id', 'tags']))).toMatchObject({
      code: 'data.invalid-value',
      details: { rule: 'key-type', column: 'tags', type: 'text[]' },
    });
    expect(compile(['id'])().text(['1', '{}'])).toBe('["1"]');
  });

  it('are at most 2,000 bytes of UTF-8', () => {
    const keyOf = (id: string) => mapper([])(row({ id })).sourceKey;
    expect(keyOf('x'.repeat(1996))).toHaveLength(2000);
    expect(failure(() => keyOf('x'.repeat(1997))).code).toBe('data.key-too-long');
    expect(keyOf('€'.repeat(665))).toHaveLength(669);
    expect(failure(() => keyOf('€'.repeat(666))).code).toBe('data.key-too-long');
  });
});
