import { describe, expect, it } from 'vitest';
import { compileMapping } from '../../src/domain/mapping.ts';
import type { FieldRule } from '../../src/domain/settings.ts';
import type { Column, RawRow } from '../../src/domain/source-row.ts';
import { failure, keyHash, mapper, member, row, rule, sha256Hex, text } from './support.ts';

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
    expect(failure(() => map(['1'])).details).not.toHaveProperty('keyHash'); // its key is anybody's guess
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
