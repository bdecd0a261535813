/**
 * Mapping rules are validation, too, compiled into closures for speed. Here the same validation is written as a zod schema,
 * and the two must agree on every row: what one refuses the other refuses.
 */

import fc from 'fast-check';
import { expect, test } from 'vitest';
import { z } from 'zod';
import { compileMapping } from '../../src/domain/mapping.ts';
import type { MemberRule } from '../../src/domain/settings.ts';
import type { RawRow } from '../../src/domain/source-row.ts';
import { sha256Hex, text } from './support.ts';

const COLUMNS = [text('id'), text('region'), text('email'), text('note'), text('unused')];
const RULES: readonly MemberRule[] = [
  { identity: { email: { column: 'email' } }, payload: { note: { column: 'note' } }, when: [] },
];
const map = compileMapping(RULES, ['id', 'region'], COLUMNS, sha256Hex);

const exact = z.string().refine((s) => s.isWellFormed() && !s.includes('\0'), 'has no exact JSON');
const key = exact.refine((s) => s !== '', 'a key part is empty');
const identity = exact.refine((s) => s !== '', 'an identity is empty');
/** What the rules above say of a row, in the words of zod. */
const row = z.tuple([key, key, identity, exact.nullable(), z.string().nullable()]);

const cell = fc.oneof(
  { weight: 6, arbitrary: fc.string({ unit: 'grapheme', minLength: 1, maxLength: 12 }) },
  fc.constantFrom(null, '', ' ', '\u00a0\t', 'NULL', '\\N', 'a\0b', '\ud83d', '\ude00x', '😀', '\u0000'),
);
const rows: fc.Arbitrary<RawRow> = fc.oneof(
  { weight: 8, arbitrary: fc.tuple(cell, cell, cell, cell, cell) },
  fc.array(cell, { maxLength: 7 }),
);

function accepts(raw: RawRow): boolean {
  try {
    map(raw);
    return true;
  } catch {
    return false;
  }
}

test('the compiled rules accept exactly the rows that the zod schema accepts', () => {
  const seen = { accepted: 0, refused: 0 };
  fc.assert(
    fc.property(rows, (raw) => {
      const accepted = row.safeParse(raw).success;
      seen[accepted ? 'accepted' : 'refused'] += 1;
      expect(accepts(raw)).toBe(accepted);
    }),
    { numRuns: 5_000 },
  );
  // A property over rows of one kind only would prove nothing.
  expect(Math.min(seen.accepted, seen.refused)).toBeGreaterThan(200);
});
