/**
 * When a mirror runs by itself. A schedule is compared in its plain form, one text per part, so that what the configuration
 * wants and what Temporal has can be told apart part by part, whoever changed it.
 */

import { canonicalJson } from './canonical-json.ts';
import { cronText, parseCron } from './cron.ts';
import { MAINTENANCE_WORKFLOW, maintenanceWorkflowId } from './maintenance.ts';
import { MIRROR_WORKFLOW, mirrorWorkflowId } from './messages.ts';

export type ScheduleTimes =
  /** At whole multiples since 1970, in UTC: a schedule of 15 minutes runs at :00, :15, :30 and :45. */
  | { readonly kind: 'every'; readonly everyMs: number }
  /** Five fields that `parseCron` reads, by the clock of an IANA time zone. */
  | { readonly kind: 'cron'; readonly cron: string; readonly timeZone: string };

export interface ScheduleSettings {
  readonly times: ScheduleTimes;
  /** Each start is put off by a random time up to this, in ms; 0: none. */
  readonly jitterMs: number;
  /** What a start does while the run before is still under way. No policy lets two run at once. */
  readonly overlap: 'skip' | 'buffer_one';
  /** How late a start may be made up for after an outage, in ms; what is later is counted as missed. */
  readonly catchUpMs: number;
  readonly pauseOnFailure: boolean;
}

/** Schedules by mirror; a mirror without one is not in it. That of maintenance is MAINTENANCE_NAME's. */
export interface ScheduleTable {
  readonly [mirror: string]: ScheduleSettings;
}

/** Parts that can differ, named as people write them. */
export const SCHEDULE_PARTS = [
  'times',
  'time_zone',
  'jitter',
  'overlap',
  'catch_up',
  'pause_on_failure',
  'workflow',
  'task_queue',
  'limits',
] as const;
export type SchedulePart = (typeof SCHEDULE_PARTS)[number];

/** One text per part; equal texts mean equal behaviour. */
export type ScheduleForm = { readonly [P in SchedulePart]: string };

export interface ScheduleDifference {
  readonly part: SchedulePart;
  /** What Temporal has. */
  readonly found: string;
  /** What the configuration wants. */
  readonly wanted: string;
}

export const SCHEDULE_PREFIX = 'mirror/';

/** Where mirrors with a schedule are listed by name, this stands for the project's maintenance: no mirror can be called so. */
export const MAINTENANCE_NAME = '(maintenance)';

/** What a schedule starts. */
export interface ScheduledWork {
  readonly workflowType: string;
  /** Also the id of the schedule; Temporal appends the time to that of each workflow. */
  readonly workflowId: string;
  readonly input: { readonly mirror?: string };
}

/** @param name of a mirror, or MAINTENANCE_NAME. @param taskQueue the project's */
export function scheduledWork(name: string, taskQueue: string): ScheduledWork {
  return name === MAINTENANCE_NAME
    ? { workflowType: MAINTENANCE_WORKFLOW, workflowId: maintenanceWorkflowId(taskQueue), input: {} }
    : { workflowType: MIRROR_WORKFLOW, workflowId: mirrorWorkflowId(name), input: { mirror: name } };
}

export function scheduleId(name: string, taskQueue: string): string {
  return scheduledWork(name, taskQueue).workflowId;
}

/** What the configuration wants. */
export function wantedForm(name: string, settings: ScheduleSettings, taskQueue: string): ScheduleForm {
  const { times } = settings;
  const { workflowType, workflowId, input } = scheduledWork(name, taskQueue);
  return {
    times: times.kind === 'every' ? everyText(times.everyMs) : cronTimes(times.cron),
    time_zone: times.kind === 'every' ? 'UTC' : times.timeZone,
    jitter: durationText(settings.jitterMs),
    overlap: settings.overlap,
    catch_up: durationText(settings.catchUpMs),
    pause_on_failure: String(settings.pauseOnFailure),
    workflow: workflowText(workflowType, workflowId, [input]),
    task_queue: taskQueue,
    limits: 'none',
  };
}

function cronTimes(text: string): string {
  const result = parseCron(text);
  if (result.kind === 'invalid') throw new Error('a cron expression was not checked before it was used');
  return cronTimesText(cronText(result.cron));
}

export function everyText(everyMs: number): string {
  return `every ${durationText(everyMs)}`;
}

export function cronTimesText(canonical: string): string {
  return `cron ${canonical}`;
}

export function workflowText(type: string, workflowId: string, args: readonly unknown[]): string {
  return `${type} as ${workflowId} with ${args.map((arg) => JSON.stringify(arg)).join(', ')}`;
}

const UNITS: readonly (readonly [string, number])[] = [
  ['d', 86_400_000],
  ['h', 3_600_000],
  ['m', 60_000],
  ['s', 1000],
];

/** Exact, in the largest unit that divides it: `15m`, `90s`, `1500ms`; 0 is `none`. */
export function durationText(ms: number): string {
  if (ms === 0) return 'none';
  const [unit, size] = UNITS.find(([, length]) => ms % length === 0) ?? ['ms', 1];
  return `${ms / size}${unit}`;
}

export function differencesOf(found: ScheduleForm, wanted: ScheduleForm): readonly ScheduleDifference[] {
  return SCHEDULE_PARTS.filter((part) => found[part] !== wanted[part]).map((part) => ({
    part,
    found: found[part],
    wanted: wanted[part],
  }));
}

/** What a fingerprint of the form is made of. */
export function formText(form: ScheduleForm): string {
  return canonicalJson({ ...form });
}
