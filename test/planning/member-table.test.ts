import { createHash } from 'node:crypto';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { HashTable } from '../../src/planning/hash-table.ts';
import { MemberTable } from '../../src/planning/member-table.ts';

const latin1 = (text: string) => createHash('sha256').update(text).digest().toString('latin1');
const hex = (text: string) => createHash('sha256').update(text).digest('hex');

test('a table finds every hash that was added and no other, also past its chunks, and sorts by bytes', () => {
  const table = new HashTable(8, 9);
  const all = Array.from({ length: 20_000 }, (_, i) => `m${i}`);
  const foundEarly = all.filter((text, index) => {
    const isThere = table.find(latin1(text)) !== -1;
    table.setWord(table.add(latin1(text)), 8, index);
    return isThere;
  });
  expect(foundEarly).toEqual([]);
  expect(table.size).toBe(all.length);
  expect(all.filter((text, index) => table.word(table.find(latin1(text)), 8) !== index)).toEqual([]);
  expect(table.find(latin1('m20000'))).toBe(-1);
  const sorted = [...table.sorted(() => true)].map((row) => all[row] ?? '');
  expect(sorted).toEqual(all.toSorted((a, b) => (hex(a) < hex(b) ? -1 : 1)));
});

test('hashes that differ in their last byte alone are two', () => {
  const table = new HashTable(8, 8);
  const [one, other] = ['\x01', '\x02'].map((end) => '\xff'.repeat(31) + end);
  table.add(one ?? '');
  expect(table.find(other ?? '')).toBe(-1);
  table.add(other ?? '');
  expect([table.find(one ?? ''), table.find(other ?? '')]).toEqual([0, 1]);
  expect([...table.sorted(() => true)]).toEqual([0, 1]);
});

const MEMBERS = fc.dictionary(fc.constantFrom('a', 'b', 'c', 'd', 'e'), fc.constantFrom('1', '2'));

test('counts are those of two sets compared, whatever was accepted and taken back before', () => {
  fc.assert(
    fc.property(MEMBERS, MEMBERS, MEMBERS, (first, held, wanted) => {
      const table = new MemberTable();
      for (const [id, payload] of Object.entries(first)) table.hold(latin1(id), latin1(payload), 1n);
      for (const id of Object.keys(first)) if (!Object.hasOwn(held, id)) table.release(latin1(id));
      for (const [id, payload] of Object.entries(held))
        table.hold(latin1(id), latin1(payload), 2n ** 40n + 7n);
      for (const [id, payload] of Object.entries(wanted)) table.want(latin1(id), latin1(payload), '');
      const ids = Object.keys(wanted);
      const both = ids.filter((id) => Object.hasOwn(held, id));
      const removed = Object.keys(held).filter((id) => !Object.hasOwn(wanted, id));
      expect(table.counts).toEqual({
        held: Object.keys(held).length,
        added: ids.length - both.length,
        changed: both.filter((id) => held[id] !== wanted[id]).length,
        unchanged: both.filter((id) => held[id] === wanted[id]).length,
        removed: removed.length,
        collapsed: 0,
      });
      expect(table.removals(9)).toEqual(
        removed
          .map(hex)
          .sort()
          .map((identity) => ({ identity, sequence: 2n ** 40n + 7n })),
      );
    }),
  );
});

test('a member given again is collapsed where payload and removal are alike, and else a conflict, counted once', () => {
  const table = new MemberTable();
  const want = (id: string, payload: string, removal = '') =>
    table.want(latin1(id), latin1(payload), removal);
  expect([want('a', '1'), want('a', '1'), want('b', '1', latin1('x'))]).toEqual([
    'added',
    'collapsed',
    'added',
  ]);
  expect(table.conflicts(9)).toEqual({ count: 0, identities: [] });
  expect([want('b', '1', latin1('y')), want('a', '2'), want('a', '3')]).toEqual([
    'conflict',
    'conflict',
    'conflict',
  ]);
  expect(table.conflicts(9)).toEqual({ count: 2, identities: [hex('a'), hex('b')].sort() });
  expect(table.conflicts(1).identities).toHaveLength(1);
});
