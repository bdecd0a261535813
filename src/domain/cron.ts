/**
 * Cron expressions of five fields, read into the plain sets of minutes, hours and days that they mean. Two texts that mean
 * the same times give the same sets, and the same text back. What the many cron programs read differently is refused.
 */

/** Sorted, without repeats, never empty. Months run from 1, days of the week from 0 (Sunday) to 6. */
export interface Cron {
  readonly minute: readonly number[];
  readonly hour: readonly number[];
  readonly dayOfMonth: readonly number[];
  readonly month: readonly number[];
  readonly dayOfWeek: readonly number[];
}

export type CronResult =
  | { readonly kind: 'ok'; readonly cron: Cron }
  | { readonly kind: 'invalid'; readonly message: string; readonly remedy: string };

/** From `start` to `end`, both included. */
export interface CronRange {
  readonly start: number;
  readonly end: number;
}

export const CRON_WORDS =
  'five fields (minute, hour, day of month, month, day of week) such as "0 6 * * 1-5", or @hourly, @daily, @weekly, @monthly or @yearly';

interface Field {
  readonly words: string;
  readonly least: number;
  readonly most: number;
  /** Names of the values from `least` on. */
  readonly names: readonly string[];
}

const MONTHS = ['jan', 'feb', 'mar', 'apr', 'may', 'jun', 'jul', 'aug', 'sep', 'oct', 'nov', 'dec'];
const DAYS = ['sun', 'mon', 'tue', 'wed', 'thu', 'fri', 'sat'];

const FIELDS: { readonly [Name in keyof Cron]: Field } = {
  minute: { words: 'minute', least: 0, most: 59, names: [] },
  hour: { words: 'hour', least: 0, most: 23, names: [] },
  dayOfMonth: { words: 'day of the month', least: 1, most: 31, names: [] },
  month: { words: 'month', least: 1, most: 12, names: MONTHS },
  dayOfWeek: { words: 'day of the week', least: 0, most: 6, names: DAYS },
};

const SHORTHANDS: ReadonlyMap<string, string> = new Map([
  ['@hourly', '0 * * * *'],
  ['@daily', '0 0 * * *'],
  ['@weekly', '0 0 * * 0'],
  ['@monthly', '0 0 1 * *'],
  ['@yearly', '0 0 1 1 *'],
]);

const DAYS_IN_MONTH = [31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];

class Invalid extends Error {
  constructor(
    message: string,
    readonly remedy: string,
  ) {
    super(message);
  }
}

export function parseCron(text: string): CronResult {
  try {
    return { kind: 'ok', cron: parsed(text) };
  } catch (error) {
    if (!(error instanceof Invalid)) throw error;
    return { kind: 'invalid', message: error.message, remedy: error.remedy };
  }
}

function parsed(text: string): Cron {
  const written = text.trim();
  if (written.startsWith('@') && !SHORTHANDS.has(written))
    throw new Invalid('This is no shorthand that is known.', `Expected: ${CRON_WORDS}.`);
  const fields = (SHORTHANDS.get(written) ?? written).split(/\s+/).filter((part) => part !== '');
  const [minute, hour, dayOfMonth, month, dayOfWeek] = fields;
  if (
    fields.length !== 5 ||
    minute === undefined ||
    hour === undefined ||
    dayOfMonth === undefined ||
    month === undefined ||
    dayOfWeek === undefined
  )
    throw new Invalid(
      `This has ${fields.length} ${fields.length === 1 ? 'field' : 'fields'}.`,
      `Expected: ${CRON_WORDS}.`,
    );
  return checked({
    minute: valuesOf(FIELDS.minute, minute),
    hour: valuesOf(FIELDS.hour, hour),
    dayOfMonth: valuesOf(FIELDS.dayOfMonth, dayOfMonth),
    month: valuesOf(FIELDS.month, month),
    dayOfWeek: valuesOf(FIELDS.dayOfWeek, dayOfWeek),
  });
}

function checked(cron: Cron): Cron {
  const ofMonth = !isWhole(FIELDS.dayOfMonth, cron.dayOfMonth);
  if (ofMonth && !isWhole(FIELDS.dayOfWeek, cron.dayOfWeek))
    throw new Invalid(
      'The day of the month and the day of the week are both restricted, which cron programs read in two ways.',
      'Write `*` for one of the two.',
    );
  const [first = 1] = cron.dayOfMonth;
  if (cron.month.every((month) => (DAYS_IN_MONTH[month - 1] ?? 0) < first))
    throw new Invalid('No month that is named has this day.', 'Name a day that comes.');
  return cron;
}

const ITEM = /^(?:\*|(?<from>\w+)(?:-(?<to>\w+))?)(?:\/(?<step>\d{1,4}))?$/;

function valuesOf(field: Field, text: string): readonly number[] {
  const values = new Set<number>();
  for (const item of text.split(',')) {
    const groups = ITEM.exec(item)?.groups;
    if (groups === undefined)
      throw new Invalid(
        `The ${field.words} is not of the right form.`,
        'Expected: `*`, a number, a range such as 1-5, a step such as */15, or a list of them with commas.',
      );
    const { from, to, step } = groups;
    const start = from === undefined ? field.least : numberOf(field, from);
    // As everywhere: `5/15` begins at 5 and goes on to the end of the field.
    const openEnd = from === undefined || (to === undefined && step !== undefined);
    const end = openEnd ? field.most : to === undefined ? start : numberOf(field, to);
    add(field, values, { start, end, step: step === undefined ? 1 : Number(step) });
  }
  return [...values].sort((a, b) => a - b);
}

function add(field: Field, values: Set<number>, range: CronRange & { readonly step: number }): void {
  if (range.end < range.start)
    throw new Invalid(
      `The range of the ${field.words} runs backwards.`,
      'Write the smaller value first, or a list with commas.',
    );
  if (range.step === 0) throw new Invalid(`The step of the ${field.words} is 0.`, 'Expected: 1 or more.');
  // Sunday is 0 and 7.
  for (let value = range.start; value <= range.end; value += range.step)
    values.add(field === FIELDS.dayOfWeek ? value % 7 : value);
}

function numberOf(field: Field, text: string): number {
  const named = field.names.indexOf(text.toLowerCase());
  const value = named >= 0 ? field.least + named : /^\d{1,2}$/.test(text) ? Number(text) : Number.NaN;
  const most = field === FIELDS.dayOfWeek ? 7 : field.most;
  if (value >= field.least && value <= most) return value;
  const names = field.names.length === 0 ? '' : `, or ${field.names[0]} to ${field.names.at(-1)}`;
  throw new Invalid(
    `The ${field.words} is out of range.`,
    `Expected: a number from ${field.least} to ${most}${names}.`,
  );
}

function isWhole(field: Field, values: readonly number[]): boolean {
  return values.length === field.most - field.least + 1;
}

/** The shortest list of ranges that gives the values. */
export function cronRanges(values: readonly number[]): readonly CronRange[] {
  const ranges: { start: number; end: number }[] = [];
  for (const value of values) {
    const last = ranges.at(-1);
    if (last !== undefined && value === last.end + 1) last.end = value;
    else ranges.push({ start: value, end: value });
  }
  return ranges;
}

/** One text for all expressions that mean the same times. */
export function cronText(cron: Cron): string {
  return (['minute', 'hour', 'dayOfMonth', 'month', 'dayOfWeek'] as const)
    .map((name) => fieldText(FIELDS[name], cron[name]))
    .join(' ');
}

function fieldText(field: Field, values: readonly number[]): string {
  if (isWhole(field, values)) return '*';
  const [first = field.least, second = first] = values;
  const step = second - first;
  const last = values.at(-1) ?? first;
  const isEven = values.every((value, index) => value === first + index * step);
  if (values.length > 2 && step > 1 && isEven && first === field.least && last + step > field.most)
    return `*/${step}`;
  return cronRanges(values)
    .map(({ start, end }) => (start === end ? String(start) : `${start}-${end}`))
    .join(',');
}
