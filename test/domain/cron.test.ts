import fc from 'fast-check';
import { expect, test } from 'vitest';
import { cronRanges, cronText, parseCron } from '../../src/domain/cron.ts';

function textOf(text: string): string {
  const result = parseCron(text);
  if (result.kind === 'invalid') throw new Error(result.message);
  return cronText(result.cron);
}

test.each([
  ['0 6 * * 1-5', '0 6 * * 1-5'],
  [' 0  6 * * mon-FRI ', '0 6 * * 1-5'],
  ['*/15 * * * *', '*/15 * * * *'],
  ['0,15,30,45 * * * *', '*/15 * * * *'],
  ['5/15 * * * *', '5,20,35,50 * * * *'],
  ['0-30/10 * * * *', '0,10,20,30 * * * *'],
  ['*/7 * * * *', '*/7 * * * *'],
  ['0 0 1 jan,Jul *', '0 0 1 1,7 *'],
  ['0 0 * * 7', '0 0 * * 0'],
  ['0 0 * * 5-7', '0 0 * * 0,5-6'],
  ['0 0 * * 0-7', '0 0 * * *'],
  ['0 0 29 2 *', '0 0 29 2 *'],
  ['@hourly', '0 * * * *'],
  ['@weekly', '0 0 * * 0'],
])('%s means %s', (written, canonical) => {
  expect(textOf(written)).toBe(canonical);
});

test.each([
  ['0 6 * *', /4 fields/],
  ['0 0 6 * * *', /6 fields/],
  ['', /0 fields/],
  ['60 * * * *', /minute is out of range/],
  ['* 24 * * *', /hour is out of range/],
  ['* * 0 * *', /day of the month is out of range/],
  ['* * * 13 *', /month is out of range/],
  ['* * * * 8', /day of the week is out of range/],
  ['* * * * someday', /day of the week is out of range/],
  ['mon * * * *', /minute is out of range/],
  ['*/0 * * * *', /step of the minute is 0/],
  ['30-10 * * * *', /runs backwards/],
  ['* * * * fri-mon', /runs backwards/],
  ['1,,2 * * * *', /not of the right form/],
  ['-5 * * * *', /not of the right form/],
  ['0 0 L * *', /out of range/],
  ['0 0 30 2 *', /No month that is named has this day/],
  ['0 0 31 4,6,9,11 *', /No month that is named has this day/],
  ['0 6 1 * 1', /read in two ways/],
  ['@every 5m', /no shorthand/],
  ['@constructor', /no shorthand/],
  ['constructor', /1 field\./],
  ['__proto__', /1 field\./],
])('%s is refused, and the remedy says what would be valid', (written, message) => {
  const result = parseCron(written);
  expect(result).toMatchObject({ kind: 'invalid', message: expect.stringMatching(message) });
  expect(result.kind === 'invalid' && result.remedy).toBeTruthy();
});

const subsetOf = (least: number, most: number) =>
  fc
    .uniqueArray(fc.integer({ min: least, max: most }), { minLength: 1 })
    .map((values) => values.sort((a, b) => a - b));

test('the canonical text of any times is read back as the same times', () => {
  fc.assert(
    fc.property(
      subsetOf(0, 59),
      subsetOf(0, 23),
      subsetOf(1, 12),
      subsetOf(0, 6),
      (minute, hour, month, dayOfWeek) => {
        const dayOfMonth = Array.from({ length: 31 }, (_, index) => index + 1);
        const cron = { minute, hour, dayOfMonth, month, dayOfWeek };
        expect(parseCron(cronText(cron))).toEqual({ kind: 'ok', cron });
      },
    ),
  );
});

test('ranges give exactly the values, and no two of them touch', () => {
  fc.assert(
    fc.property(subsetOf(0, 59), (values) => {
      const ranges = cronRanges(values);
      const given = ranges.flatMap(({ start, end }) =>
        Array.from({ length: end - start + 1 }, (_, index) => start + index),
      );
      expect(given).toEqual(values);
      for (const [index, { end }] of ranges.entries())
        expect(ranges[index + 1]?.start ?? Number.POSITIVE_INFINITY).toBeGreaterThan(end + 1);
    }),
  );
});

test('no text whatever is anything but read or refused', () => {
  fc.assert(
    fc.property(fc.string({ maxLength: 40 }), (text) => {
      expect(['ok', 'invalid']).toContain(parseCron(text).kind);
    }),
  );
});
