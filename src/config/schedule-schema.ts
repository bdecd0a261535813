/** What `schedule` of a mirror may hold, as people write it, and the settings that it gives. */

import { z } from 'zod';
import { CRON_WORDS, parseCron } from '../domain/cron.ts';
import type { ScheduleSettings } from '../domain/schedule.ts';
import { nearest } from './nearest.ts';
import { DURATION_WORDS, parseDuration } from './quantities.ts';
import { durationFrom } from './quantity-schema.ts';

const DEFAULTS = {
  time_zone: 'UTC',
  overlap: 'skip',
  catch_up: '1h',
  pause_on_failure: false,
} as const;

const TIME_ZONE_WORDS = 'an IANA time zone such as Europe/Berlin, or UTC';

/** Below a second the bounds say what is wrong. */
const isWholeSeconds = (text: string) => {
  const value = parseDuration(text);
  return value === null || value < 1000 || value % 1000 === 0;
};

const every = durationFrom(1000, '1s').refine(isWholeSeconds, {
  error: 'Temporal keeps times to the second, and this is no whole number of them.',
});

const cron = z.string().check((context) => {
  const result = parseCron(context.value);
  if (result.kind === 'invalid')
    context.issues.push({
      code: 'custom',
      message: result.message,
      input: context.value,
      params: { remedy: result.remedy },
    });
});

const timeZone = z.string().check((context) => {
  const { value } = context;
  if (isTimeZone(value)) return;
  const meant = nearest(value, TIME_ZONES);
  const list = `Expected: ${TIME_ZONE_WORDS}.`;
  context.issues.push({
    code: 'custom',
    message: 'This is no time zone that is known.',
    input: value,
    params: { remedy: meant === null ? list : `Did you mean \`${meant}\`? ${list}` },
  });
});

const TIME_ZONES = ['UTC', ...Intl.supportedValuesOf('timeZone')];

/** Temporal's server tells upper case from lower, which JavaScript does not, and knows no bare offsets. */
const TIME_ZONE_FORM = /^(?:UTC|[A-Z][A-Za-z_-]*(?:\/[A-Z][A-Za-z0-9_+-]*)+)$/;

function isTimeZone(name: string): boolean {
  if (TIME_ZONES.includes(name)) return true;
  if (!TIME_ZONE_FORM.test(name)) return false;
  const inOtherCase = TIME_ZONES.some((known) => known.toLowerCase() === name.toLowerCase());
  try {
    // Also knows the older names, which the list leaves out.
    return !inOtherCase && new Intl.DateTimeFormat('en', { timeZone: name }).format(0) !== '';
  } catch {
    return false;
  }
}

/** Also where a key of it has an error of its own: every problem is told at once. */
const isMapping = ({ value }: { readonly value: unknown }) =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

/** What goes with any time: what `defaults` of retl.yaml may hold. */
const parts = {
  time_zone: timeZone.meta({ description: TIME_ZONE_WORDS, default: DEFAULTS.time_zone }).optional(),
  jitter: durationFrom(1000, '1s').describe(DURATION_WORDS).optional(),
  overlap: z
    .enum(['skip', 'buffer_one'])
    .meta({ description: 'skip or buffer_one', default: DEFAULTS.overlap })
    .optional(),
  catch_up: durationFrom(10_000, '10s')
    .meta({ description: DURATION_WORDS, default: DEFAULTS.catch_up })
    .optional(),
  pause_on_failure: z
    .boolean()
    .meta({ description: 'true or false', default: DEFAULTS.pause_on_failure })
    .optional(),
};

export const scheduleDefaultsInput = z.strictObject(parts);

export const scheduleInput = z
  .strictObject({
    every: every.describe(`${DURATION_WORDS}, in whole seconds`).optional(),
    cron: cron.describe(CRON_WORDS).optional(),
    ...parts,
  })
  .refine((schedule) => (schedule.every === undefined) !== (schedule.cron === undefined), {
    error: 'A schedule needs either `every` or `cron`, and not both.',
    params: { remedy: 'Expected: `every: 15m`, or `cron: "0 6 * * 1-5"` with a `time_zone`.' },
    when: isMapping,
  })
  .refine((schedule) => schedule.every === undefined || schedule.time_zone === undefined, {
    path: ['time_zone'],
    error: '`every` counts from 1970 in UTC and takes no time zone.',
    params: { remedy: 'Leave `time_zone` out, or write a `cron`.' },
    when: isMapping,
  })
  .refine((schedule) => !isLonger(schedule.jitter, schedule.every), {
    path: ['jitter'],
    error: 'The jitter is longer than the time between two starts.',
    params: { remedy: 'Expected: at most the duration of `every`.' },
    when: isMapping,
  });

export type ScheduleInput = z.infer<typeof scheduleInput>;

/** Of values that may have errors of their own, which are told elsewhere. */
export function isLonger(duration: unknown, limit: unknown): boolean {
  if (typeof duration !== 'string' || typeof limit !== 'string') return false;
  const [value, most] = [parseDuration(duration), parseDuration(limit)];
  return value !== null && most !== null && value > most;
}

/** `input` must have passed `scheduleInput`. */
export function scheduleSettings(input: ScheduleInput): ScheduleSettings {
  return {
    times:
      input.cron === undefined
        ? { kind: 'every', everyMs: ms(input.every) }
        : { kind: 'cron', cron: input.cron, timeZone: input.time_zone ?? DEFAULTS.time_zone },
    jitterMs: input.jitter === undefined ? 0 : ms(input.jitter),
    overlap: input.overlap ?? DEFAULTS.overlap,
    catchUpMs: ms(input.catch_up ?? DEFAULTS.catch_up),
    pauseOnFailure: input.pause_on_failure ?? DEFAULTS.pause_on_failure,
  };
}

function ms(text: string | undefined): number {
  const value = text === undefined ? null : parseDuration(text);
  if (value === null) throw new Error('a duration was not checked before it was read');
  return value;
}
