/** `retl schedules pause|resume|trigger|delete <mirror>…`: acts on schedules that are in Temporal, by name, pattern or tag. */

import type { Command } from 'commander';
import type { TemporalClient } from '../../client/connect.ts';
import type { Schedule } from '../../client/schedules.ts';
import { assertNever } from '../../domain/assert-never.ts';
import { MAINTENANCE_NAME } from '../../domain/schedule.ts';
import { type CommandText, type Invocation, newCommand } from '../command.ts';
import { EXIT, type ExitCode } from '../exit-codes.ts';
import { Refusal } from '../failures.ts';
import { startingOnTemporal } from '../no-worker.ts';
import { addSelection, requireNamed, selectMirrors } from '../selection.ts';
import { withTemporal } from '../temporal.ts';
import { shownBy } from '../wanted-schedules.ts';

export function schedulesPauseCommand(): Command {
  return scheduleCommand(
    {
      name: 'pause',
      summary: 'start no more runs until resumed',
      description:
        'Pauses schedules. A run that is under way goes on; `retl pause` holds that one. `retl schedules apply` leaves a ' +
        'paused schedule paused.',
      examples: [
        ['retl schedules pause vip-customers', 'one mirror'],
        ['retl schedules pause "*"', 'every schedule of this project'],
      ],
    },
    pause,
  );
}

export function schedulesResumeCommand(): Command {
  return scheduleCommand(
    {
      name: 'resume',
      summary: 'start runs again',
      description:
        'Resumes schedules that were paused, by a person or after a failure. Starts that fell into the pause are not made ' +
        'up for.',
      examples: [['retl schedules resume vip-customers', 'go on with the next start']],
    },
    resume,
  );
}

export function schedulesTriggerCommand(): Command {
  return scheduleCommand(
    {
      name: 'trigger',
      summary: 'start a scheduled run now',
      description:
        'Starts a run out of turn, as the schedule would, also while it is paused. It never starts a second one beside a run ' +
        'of the same schedule: with `overlap: skip` that is refused, with buffer_one the new run waits for its turn. ' +
        '`retl run` starts one without a schedule, and follows it.',
      examples: [['retl schedules trigger vip-customers', 'start it now']],
    },
    trigger,
    startingOnTemporal,
  );
}

export function schedulesDeleteCommand(): Command {
  return scheduleCommand(
    {
      name: 'delete',
      summary: 'delete schedules from Temporal',
      description:
        'Deletes schedules with their counts. A run that is under way goes on. While `schedule:` stands in a mirror’s file, ' +
        'the next `retl schedules apply` creates its schedule again.',
      examples: [['retl schedules delete old-customers', 'one that is not needed any more']],
    },
    remove,
  );
}

/** What became of one schedule; `kind` is stable, for programs. */
interface Done {
  readonly kind: string;
  readonly words: string;
  /** Of the workflow that was started. */
  readonly workflowId?: string;
  readonly exit: ExitCode;
}

type Act = (temporal: TemporalClient, schedule: Schedule) => Promise<Done>;

type Connect = typeof startingOnTemporal;
const onTemporal: Connect = ({ project }, work) => withTemporal(project, work);

function scheduleCommand(text: CommandText, act: Act, connect = onTemporal): Command {
  const command = addSelection(newCommand(text, (invocation) => actOnAll(invocation, act, connect)));
  return command.option('--maintenance', 'the schedule of maintenance');
}

async function actOnAll(invocation: Invocation, act: Act, connect: Connect): Promise<ExitCode> {
  const { output } = invocation;
  if (invocation.options.maintenance !== true) await requireNamed(invocation);
  return connect(invocation, async (temporal) => {
    const results: (Omit<Done, 'words'> & { readonly mirror: string })[] = [];
    for (const schedule of await chosen(invocation, temporal)) {
      const { words, ...done } = await act(temporal, schedule);
      results.push({ mirror: schedule.mirror, ...done });
      output.line(`${schedule.mirror}: ${words}`);
    }
    output.document({ schedules: results.map(({ exit: _, ...result }) => result) });
    return results.find(({ exit }) => exit !== EXIT.ok)?.exit ?? EXIT.ok;
  });
}

/** A pattern stands for schedules of this project only; a name that is another's is refused. */
async function chosen(invocation: Invocation, temporal: TemporalClient): Promise<readonly Schedule[]> {
  const { readSchedule, scheduledMirrors } = await import('../../client/schedules.ts');
  const selected = await selectMirrors(invocation, await scheduledMirrors(temporal));
  const also = invocation.options.maintenance === true ? [MAINTENANCE_NAME] : [];
  const mirrors = [...new Set([...(selected?.mirrors ?? []), ...also])];
  const isBroad = selected?.isBroad === true;
  const found: Schedule[] = [];
  for (const mirror of mirrors) {
    const schedule = await readSchedule(temporal, mirror);
    if (schedule?.owner === 'ours') found.push(schedule);
    else if (!isBroad) throw schedule === null ? noSchedule([mirror]) : foreign(schedule);
  }
  if (found.length === 0) throw noSchedule(mirrors);
  return found;
}

function noSchedule(mirrors: readonly string[]): Refusal {
  return new Refusal(
    EXIT.refused,
    'no-schedule',
    `There is no schedule of ${mirrors.map((name) => name.replace(/[()]/g, '')).join(', ')}.`,
    '`retl schedules list` shows those there are; `retl schedules apply` creates what the files say.',
  );
}

function foreign({ mirror, owner, form }: Schedule): Refusal {
  const who =
    owner === 'unmanaged'
      ? 'was not made by retl'
      : `belongs to the task queue ${form.task_queue}, not to this project’s`;
  return new Refusal(
    EXIT.refused,
    'foreign-schedule',
    `The schedule ${mirror === MAINTENANCE_NAME ? 'of maintenance' : `mirror/${mirror}`} ${who}; nothing was changed.`,
    'Use the project that it belongs to, or make it this one’s with `retl schedules apply --take-over`.',
  );
}

const GONE: Done = { kind: 'gone', words: 'gone meanwhile', exit: EXIT.refused };

async function pause(temporal: TemporalClient, { mirror, paused }: Schedule): Promise<Done> {
  if (paused) return { kind: 'unchanged', words: 'paused already', exit: EXIT.ok };
  const { pauseSchedule } = await import('../../client/schedules.ts');
  if (!(await pauseSchedule(temporal, mirror))) return GONE;
  return { kind: 'paused', words: 'paused; a run that is under way goes on', exit: EXIT.ok };
}

async function resume(temporal: TemporalClient, { mirror, paused }: Schedule): Promise<Done> {
  if (!paused) return { kind: 'unchanged', words: 'was not paused', exit: EXIT.ok };
  const { readSchedule, resumeSchedule } = await import('../../client/schedules.ts');
  if (!(await resumeSchedule(temporal, mirror))) return GONE;
  const next = (await readSchedule(temporal, mirror))?.nextStarts[0];
  const when = next === undefined ? '' : `; next start ${next.toISOString()}`;
  return { kind: 'resumed', words: `resumed${when}`, exit: EXIT.ok };
}

async function remove(temporal: TemporalClient, { mirror }: Schedule): Promise<Done> {
  const { deleteSchedule } = await import('../../client/schedules.ts');
  return (await deleteSchedule(temporal, mirror))
    ? { kind: 'deleted', words: 'deleted', exit: EXIT.ok }
    : GONE;
}

async function trigger(temporal: TemporalClient, schedule: Schedule): Promise<Done> {
  const { triggerSchedule } = await import('../../client/schedule-runs.ts');
  const result = await triggerSchedule(temporal, schedule);
  const { kind } = result;
  const { mirror } = schedule;
  switch (kind) {
    case 'started': {
      const { workflowId } = result;
      return {
        kind,
        workflowId,
        words: `started as ${workflowId}; ${shownBy(mirror)} shows it`,
        exit: EXIT.ok,
      };
    }
    case 'waits':
      return { kind, words: 'starts when the run under way has ended', exit: EXIT.ok };
    case 'asked':
      return { kind, words: 'asked; Temporal has not started it yet', exit: EXIT.ok };
    case 'busy':
      return {
        kind,
        words: `refused: a run of this schedule is under way; ${shownBy(mirror)} shows it`,
        exit: EXIT.refused,
      };
    case 'gone':
      return GONE;
    default:
      return assertNever(kind);
  }
}
