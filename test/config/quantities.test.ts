import fc from 'fast-check';
import { expect, test } from 'vitest';
import { editDistance, nearest } from '../../src/config/nearest.ts';
import { parseDuration, parseShare, parseSize } from '../../src/config/quantities.ts';

const UNITS = [
  ['B', 1],
  ['kB', 1e3],
  ['KB', 1e3],
  ['MB', 1e6],
  ['GB', 1e9],
  ['KiB', 2 ** 10],
  ['MiB', 2 ** 20],
  ['GiB', 2 ** 30],
] as const;
const TIMES = [
  ['ms', 1],
  ['s', 1e3],
  ['m', 6e4],
  ['h', 36e5],
  ['d', 864e5],
] as const;

test('a size is its number times its unit, exactly, or nothing', () => {
  fc.assert(
    fc.property(
      fc.nat(1_000_000_000),
      fc.constantFrom(...UNITS),
      fc.constantFrom('', ' '),
      (n, [unit, bytes], gap) => {
        const exact = BigInt(n) * BigInt(bytes);
        const expected = exact <= BigInt(Number.MAX_SAFE_INTEGER) ? Number(exact) : null;
        expect(parseSize(`${n}${gap}${unit}`)).toBe(expected);
      },
    ),
  );
});

test('a duration is its number times its unit', () => {
  fc.assert(
    fc.property(fc.nat(1_000_000), fc.constantFrom(...TIMES), (n, [unit, ms]) => {
      expect(parseDuration(`${n}${unit}`)).toBe(n * ms);
    }),
  );
});

test('a share is the nearest double of its percentage, from 0 to 1', () => {
  fc.assert(
    fc.property(fc.nat(200_000), (thousandths) => {
      const text = `${Math.floor(thousandths / 1000)}.${String(thousandths % 1000).padStart(3, '0')}%`;
      expect(parseShare(text)).toBe(thousandths > 100_000 ? null : thousandths / 100_000);
    }),
  );
});

test.each(['', '1', '-1MB', '1.5MB', '1mb', 'MB', '1 M B', '0x10B', '1e3B', '１MB'])(
  '%j is no size',
  (text) => {
    expect(parseSize(text)).toBeNull();
  },
);

test.each(['', '24', '-1h', '1.5h', '1H', '1 week', 'h'])('%j is no duration', (text) => {
  expect(parseDuration(text)).toBeNull();
});

test.each(['', '20', '-1%', '100.1%', '1e1%', '%', '.5%', '20 percent'])('%j is no share', (text) => {
  expect(parseShare(text)).toBeNull();
});

test('whatever the text, a quantity is a whole number within bounds or nothing', () => {
  fc.assert(
    fc.property(fc.string({ unit: fc.constantFrom(...'0123456789.-+eEkKMGiBmshd% ') }), (text) => {
      for (const value of [parseSize(text), parseDuration(text)])
        expect(value === null || Number.isSafeInteger(value)).toBe(true);
      const share = parseShare(text);
      expect(share === null || (share >= 0 && share <= 1)).toBe(true);
    }),
  );
});

test('the edit distance is a metric on what people mistype: symmetric, zero only for equals, one for one slip', () => {
  const word = fc.stringMatching(/^[a-e]{0,8}$/);
  fc.assert(
    fc.property(word, word, (a, b) => {
      expect(editDistance(a, b)).toBe(editDistance(b, a));
      expect(editDistance(a, b) === 0).toBe(a === b);
      expect(editDistance(a, b)).toBeLessThanOrEqual(Math.max(a.length, b.length));
      expect(editDistance(a, `${a}x`)).toBe(1);
    }),
  );
});

test.each([
  ['max_removal', 'max_removals'],
  ['maxRemovals', 'max_removals'],
  ['rwos', 'rows'],
  ['completely-else', null],
])('%s means %s', (typed, meant) => {
  expect(nearest(typed, ['rows', 'bytes', 'max_removals', 'empty_snapshot'])).toBe(meant);
});
