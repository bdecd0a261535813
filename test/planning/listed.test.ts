/** What a target tells of itself, against what is held; and how its words become the mapping's (design.md section 4, "Strategies"). */

import { describe, expect, test } from 'vitest';
import type { FieldRule, MappingSettings } from '../../src/domain/settings.ts';
import type { Column } from '../../src/domain/source-row.ts';
import { listedIdentity } from '../../src/planning/listed-identity.ts';
import { ListedSet } from '../../src/planning/listed-set.ts';

const member = (id: string, payload: string | null) => ({ identity: JSON.stringify({ id }), payload });

describe('a listing', () => {
  test('is the same, missing, unexpected, different, not compared, or told twice', () => {
    const set = new ListedSet([]);
    for (const [n, id] of ['same', 'gone', 'changed', 'untold', 'unknown', 'twice'].entries())
      set.hold(member(id, id === 'unknown' ? null : 'p'), 2n ** 33n + BigInt(n));
    expect(set.tell(member('same', 'p'))).toEqual({ match: 'same', sequence: 2n ** 33n });
    expect(set.tell(member('changed', 'q'))).toEqual({ match: 'different', sequence: 2n ** 33n + 2n });
    expect(set.tell(member('untold', null)).match).toBe('uncompared');
    expect(set.tell(member('unknown', 'q')).match).toBe('uncompared');
    expect(set.tell(member('twice', 'p')).match).toBe('same');
    expect(set.tell(member('twice', 'p')).match).toBe('repeated');
    expect(set.tell(member('new', 'p'))).toEqual({ match: 'unexpected', sequence: null });
    expect(set.tell(member('new', 'p')).match).toBe('repeated');
    expect(set.counts).toEqual({
      held: 6,
      same: 2,
      different: 1,
      uncompared: 2,
      unexpected: 1,
      repeated: 2,
      missing: 1,
    });
    expect(set.missing(10)).toEqual([2n ** 33n + 1n]);
  });

  test('null-key: what lacks its identity is nobody’s: each is unexpected, and none is a member told twice', () => {
    const set = new ListedSet([]);
    set.hold(member('a:null,', 'p'), 1n);
    const nobody = { identity: '{"id":null,"region":"1"}', payload: 'p' };
    for (const told of [nobody, nobody])
      expect(set.tell(told)).toEqual({ match: 'unexpected', sequence: null });
    expect(set.tell(member('a:null,', 'p')).match).toBe('same');
    expect(set.counts).toMatchObject({ held: 1, same: 1, unexpected: 2, repeated: 0, missing: 0 });
  });

  test('case-only: where the target folds identities, another spelling is the same member', () => {
    const set = new ListedSet(['case']);
    set.hold(member('A@x', 'p'), 1n);
    expect(set.tell(member('a@X', 'p')).match).toBe('same');
  });
});

const column = (name: string, typeName: string, json: (raw: string) => string): Column => ({
  name,
  typeName,
  json,
  text: (raw) => raw,
});
const COLUMNS = [
  column('id', 'int8', (raw) => `"${raw}"`),
  column('region', 'int4', (raw) => raw),
  column('isOpen', 'bool', (raw) => (raw === 't' ? 'true' : 'false')),
  column('own', 'bool', (raw) => `"${raw}"`),
  column('doc', 'jsonb', (raw) => raw),
];

const mapping = (...identities: readonly { readonly [field: string]: FieldRule }[]): MappingSettings => ({
  kind: 'rules',
  members: identities.map((identity) => ({ identity, payload: {}, when: [] })),
});

describe('an identity that a target tells', () => {
  test('key-concat: takes the form of its rule and column, and not the one that its text looks like', () => {
    const rules = mapping({
      id: { column: 'id' },
      region: { column: 'region' },
      open: { column: 'isOpen' },
      own: { column: 'own' },
      hash: { column: 'region', hash: 'sha256' },
      number: { column: 'id', as: 'number' },
      kind: { value: 7 },
    });
    const listed = { id: '12', region: '12', open: 'true', own: 'true', hash: '12', number: '12', kind: '7' };
    expect(listedIdentity(rules, COLUMNS)(JSON.stringify(listed))).toEqual({
      id: '12',
      region: 12,
      open: true,
      own: 'true',
      hash: '12',
      number: 12,
      kind: 7,
    });
  });

  test.each<[string, MappingSettings, string]>([
    [
      'bigint/numeric: a number that no double holds',
      mapping({ id: { column: 'id', as: 'number' } }),
      '9007199254740993',
    ],
    ['a text in place of a number', mapping({ id: { column: 'region' } }), 'twelve'],
    ['a column of any form', mapping({ id: { column: 'doc' } }), '1'],
    ['rules that differ', mapping({ id: { column: 'id' } }, { id: { column: 'region' } }), '1'],
    ['another field', mapping({ other: { column: 'id' } }), '1'],
    ['a mapping by a module', { kind: 'module', path: 'map.ts', export: 'default', digest: '' }, '1'],
  ])('is refused where its form is not certain: %s', (_, rules, id) => {
    expect(() => listedIdentity(rules, COLUMNS)(JSON.stringify({ id }))).toThrow(
      expect.objectContaining({ code: 'data.baseline-listing' }),
    );
  });
});
