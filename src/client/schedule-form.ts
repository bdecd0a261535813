/** Between the plain form of a schedule (domain/schedule.ts) and what Temporal's client takes and gives. */

import type {
  CalendarSpec,
  DayOfWeek,
  Month,
  ScheduleDescription,
  ScheduleSpec,
  ScheduleSpecDescription,
} from '@temporalio/client';
import { cronRanges, cronText, parseCron } from '../domain/cron.ts';
import {
  cronTimesText,
  durationText,
  everyText,
  type ScheduleForm,
  type ScheduleSettings,
  workflowText,
} from '../domain/schedule.ts';

const MONTHS: readonly Month[] = [
  'JANUARY',
  'FEBRUARY',
  'MARCH',
  'APRIL',
  'MAY',
  'JUNE',
  'JULY',
  'AUGUST',
  'SEPTEMBER',
  'OCTOBER',
  'NOVEMBER',
  'DECEMBER',
];
const DAYS: readonly DayOfWeek[] = [
  'SUNDAY',
  'MONDAY',
  'TUESDAY',
  'WEDNESDAY',
  'THURSDAY',
  'FRIDAY',
  'SATURDAY',
];

/** Cron is sent as the times it means: the server would not give the text back. */
export function specOf({ times, jitterMs }: ScheduleSettings): ScheduleSpec {
  const jitter = jitterMs === 0 ? {} : { jitter: jitterMs };
  return times.kind === 'every'
    ? { intervals: [{ every: times.everyMs }], ...jitter }
    : { calendars: [calendarOf(times.cron)], timezone: times.timeZone, ...jitter };
}

function calendarOf(text: string): CalendarSpec {
  const result = parseCron(text);
  if (result.kind === 'invalid') throw new Error('a cron expression was not checked before it was used');
  const { minute, hour, dayOfMonth, month, dayOfWeek } = result.cron;
  return {
    second: 0,
    minute: [...cronRanges(minute)],
    hour: [...cronRanges(hour)],
    dayOfMonth: [...cronRanges(dayOfMonth)],
    month: cronRanges(month).map(({ start, end }) => ({
      start: nameOf(MONTHS, start - 1),
      end: nameOf(MONTHS, end - 1),
    })),
    dayOfWeek: cronRanges(dayOfWeek).map(({ start, end }) => ({
      start: nameOf(DAYS, start),
      end: nameOf(DAYS, end),
    })),
  };
}

function nameOf<T>(names: readonly T[], index: number): T {
  const name = names[index];
  if (name === undefined) throw new Error('a month or day that is none');
  return name;
}

/** What Temporal has, also where somebody has edited it there into something that no configuration could say. */
export function foundForm(description: ScheduleDescription): ScheduleForm {
  const { spec, policies, action } = description;
  return {
    times: timesText(spec),
    time_zone: spec.timezone === undefined || spec.timezone === '' ? 'UTC' : spec.timezone,
    jitter: durationText(spec.jitter ?? 0),
    overlap: (policies.overlap ?? 'SKIP').toLowerCase(),
    catch_up: durationText(policies.catchupWindow),
    pause_on_failure: String(policies.pauseOnFailure),
    workflow: workflowText(action.workflowType, action.workflowId ?? '', action.args ?? []),
    task_queue: action.taskQueue,
    limits: limitsText(description),
  };
}

function timesText({ intervals = [], calendars = [] }: ScheduleSpecDescription): string {
  const parts = [
    ...intervals.map(({ every, offset }) =>
      (offset ?? 0) === 0 ? everyText(every) : `${everyText(every)} plus ${durationText(offset)}`,
    ),
    ...calendars.map(calendarText),
  ];
  return parts.length === 0 ? 'never' : parts.join(', ');
}

type Calendar = NonNullable<ScheduleSpecDescription['calendars']>[number];
type Ranges<T> = readonly { readonly start: T; readonly end: T; readonly step: number }[];

function calendarText(calendar: Calendar): string {
  const text = cronTimesText(
    cronText({
      minute: valuesOf(calendar.minute, (value) => value),
      hour: valuesOf(calendar.hour, (value) => value),
      dayOfMonth: valuesOf(calendar.dayOfMonth, (value) => value),
      month: valuesOf(calendar.month, (name) => MONTHS.indexOf(name) + 1),
      dayOfWeek: valuesOf(calendar.dayOfWeek, (name) => DAYS.indexOf(name)),
    }),
  );
  const seconds = valuesOf(calendar.second, (value) => value);
  const years = valuesOf(calendar.year, (value) => value);
  const more = [
    ...(seconds.join() === '0' ? [] : [`seconds ${seconds.join()}`]),
    ...(years.length === 0 ? [] : [`years ${years.join()}`]),
  ];
  return [text, ...more].join(' ');
}

function valuesOf<T>(ranges: Ranges<T>, number: (value: T) => number): readonly number[] {
  const values = new Set<number>();
  for (const { start, end, step } of ranges)
    for (let value = number(start); value <= number(end); value += Math.max(1, step)) values.add(value);
  return [...values].sort((a, b) => a - b);
}

/** What may keep a run from starting or from ending in its own time. A schedule of this project has none of it. */
function limitsText({ spec, state, action }: ScheduleDescription): string {
  const limits = [
    ...(state.remainingActions === undefined ? [] : [`${state.remainingActions} more starts`]),
    ...(spec.startAt === undefined ? [] : [`from ${spec.startAt.toISOString()}`]),
    ...(spec.endAt === undefined ? [] : [`until ${spec.endAt.toISOString()}`]),
    ...((spec.skip ?? []).length === 0 ? [] : ['times that are left out']),
    ...(action.workflowExecutionTimeout === undefined ? [] : ['an execution timeout']),
    ...(action.workflowRunTimeout === undefined ? [] : ['a run timeout']),
    ...(action.retry === undefined ? [] : ['a retry policy']),
  ];
  return limits.length === 0 ? 'none' : limits.join(', ');
}
