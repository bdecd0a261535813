import { describe, expect, it } from 'vitest';
import type { Condition } from '../../src/domain/settings.ts';
import { failure, mapper, row, rule } from './support.ts';

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
