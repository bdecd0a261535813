/** Schedules in words: what changes, what is there, and how it goes. */

import type { ScheduleChange } from '../client/schedule-change.ts';
import type { ScheduledOutcome } from '../client/schedule-runs.ts';
import type { Schedule } from '../client/schedules.ts';
import { assertNever } from '../domain/assert-never.ts';
import type { Parked } from '../domain/messages.ts';
import type { ScheduleDifference } from '../domain/schedule.ts';
import type { Style } from './output.ts';
import { parkedWords } from './parked-view.ts';
import { span, whole } from './progress-view.ts';
import { ago } from './run-view.ts';
import { goneWords } from './wanted-schedules.ts';

type Paint = (style: Style, text: string) => string;

/** One change, a line for it and one for each difference. */
export function changeLines(change: ScheduleChange, dryRun: boolean, paint: Paint): readonly string[] {
  const { mirror } = change;
  const line = (style: Style, done: string, would: string, more = '') =>
    `${paint(style, (dryRun ? would : done).padEnd(dryRun ? 12 : 9))}  ${mirror}${more}`;
  switch (change.kind) {
    case 'create':
      return [line('green', 'created', 'would create')];
    case 'unchanged':
      return [line('dim', 'unchanged', 'unchanged')];
    case 'update': {
      const edited = change.edited ? ' (somebody has changed it in Temporal since it was applied)' : '';
      return [line('yellow', 'updated', 'would update', edited), ...change.differences.map(differenceLine)];
    }
    case 'delete':
      return [line('red', 'deleted', 'would delete', ` (${goneWords(mirror)})`)];
    case 'orphan':
      return [line('yellow', 'left over', 'left over', `: ${goneWords(mirror)}; --prune deletes it`)];
    case 'conflict':
      return [
        line('red', 'refused', 'refused', `: ${conflictWords(change)}; --take-over makes it this project’s`),
      ];
    default:
      return assertNever(change);
  }
}

function differenceLine({ part, found, wanted }: ScheduleDifference): string {
  return `    ${part}: ${found} → ${wanted}`;
}

function conflictWords({ owner, taskQueue }: Extract<ScheduleChange, { kind: 'conflict' }>): string {
  return owner === 'unmanaged'
    ? 'a schedule of this name is there that retl has not made'
    : `a schedule of this name belongs to the task queue ${taskQueue}`;
}

/** One mirror's schedule beside what its file says. */
export interface Listed {
  readonly mirror: string;
  /** `null` where it is not in Temporal. */
  readonly schedule: Schedule | null;
  /** What the guard asks, where the last run is parked. */
  readonly lastOutcome: ScheduledOutcome | Parked | null;
  /** What `apply` would do; `unknown` where the files have errors. */
  readonly change: ScheduleChange | 'unknown';
}

/** One word, stable for programs. */
export function listedState({ schedule, change }: Listed): string {
  if (schedule === null) return 'not applied';
  const kind = change === 'unknown' ? 'unchanged' : change.kind;
  if (kind === 'conflict') return 'foreign';
  if (kind === 'orphan') return 'left over';
  const state = schedule.paused ? 'paused' : 'active';
  return kind === 'update' ? `${state}, differs` : state;
}

export const LIST_HEAD = [
  'MIRROR',
  'TIMES',
  'STATE',
  'NEXT',
  'LAST RUN',
  'STARTED',
  'RUNS',
  'SKIPPED',
  'MISSED',
];

/** `now` in ms since the epoch. */
export function listedRow(listed: Listed, now: number): readonly string[] {
  const { mirror, schedule, lastOutcome } = listed;
  if (schedule === null) return [mirror, '', listedState(listed), '', '', '', '', '', ''];
  const { counts, lastStart } = schedule;
  return [
    mirror,
    timesWords(schedule),
    listedState(listed),
    nextWords(schedule, now),
    outcomeWord(lastOutcome),
    lastStart === null ? '' : ago(lastStart.at, now),
    whole(counts.started),
    whole(counts.skipped),
    whole(counts.missed),
  ];
}

function outcomeWord(outcome: Listed['lastOutcome']): string {
  if (outcome === null) return 'none yet';
  return typeof outcome === 'string' ? outcome : 'parked';
}

function timesWords({ form }: Schedule): string {
  return form.time_zone === 'UTC' ? form.times : `${form.times} ${form.time_zone}`;
}

function nextWords({ nextStarts, paused }: Schedule, now: number): string {
  const [next] = nextStarts;
  if (paused || next === undefined) return 'none';
  return `in ${span(Math.max(0, next.getTime() - now))}`;
}

/** What a table has no room for. */
export function noteLines({ mirror, schedule, change, lastOutcome }: Listed): readonly string[] {
  const lines: string[] = [];
  if (lastOutcome !== null && typeof lastOutcome !== 'string')
    lines.push(
      `${mirror}: parked by the guard: ${parkedWords(lastOutcome)}; \`retl approve ${mirror}\` or \`retl reject ${mirror}\` answers until ${new Date(lastOutcome.deadlineMs).toISOString()}`,
    );
  if (schedule?.paused === true && schedule.note !== null) lines.push(`${mirror}: ${schedule.note}`);
  if (change === 'unknown') return lines;
  if (change.kind === 'create') lines.push(`${mirror}: \`retl schedules apply\` creates it`);
  if (change.kind === 'update')
    lines.push(
      `${mirror}: differs from its file; \`retl schedules apply\` mends that`,
      ...change.differences.map(differenceLine),
    );
  if (change.kind === 'orphan')
    lines.push(`${mirror}: ${goneWords(mirror)}; \`retl schedules apply --prune\` deletes it`);
  if (change.kind === 'conflict') lines.push(`${mirror}: ${conflictWords(change)}`);
  return lines;
}
