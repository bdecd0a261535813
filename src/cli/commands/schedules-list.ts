/** `retl schedules list [mirror]…`: what is scheduled, and how it goes. */

import type { Command } from 'commander';
import type { TemporalClient } from '../../client/connect.ts';
import type { Schedule } from '../../client/schedules.ts';
import { loadProject } from '../../config/load.ts';
import type { ScheduleTable } from '../../domain/schedule.ts';
import { type Invocation, newCommand } from '../command.ts';
import type { Project } from '../environment.ts';
import { EXIT, type ExitCode } from '../exit-codes.ts';
import { LIST_HEAD, type Listed, listedRow, listedState, noteLines } from '../schedule-view.ts';
import { addSelection, selectMirrors } from '../selection.ts';
import { withTemporal } from '../temporal.ts';
import { wantedSchedules as wantedOf } from '../wanted-schedules.ts';

export function schedulesListCommand(): Command {
  const command = newCommand(
    {
      name: 'list',
      summary: 'next starts, last outcomes, what was skipped and missed',
      description:
        'Lists the schedules of this project as Temporal has them: when each starts next, how its last run stands, and ' +
        'how many starts were skipped because a run was still under way, or missed in an outage. Also says which ' +
        'differ from the files, and which mirrors wait for `retl schedules apply`.',
      examples: [
        ['retl schedules list', 'all of them'],
        ['retl schedules list "vip-*"', 'those whose name begins with vip-'],
        ['retl schedules list --json', 'as a JSON document'],
      ],
    },
    list,
  );
  return addSelection(command);
}

async function list(invocation: Invocation): Promise<ExitCode> {
  const { output, project } = invocation;
  const wanted = await wantedSchedules(project);
  const listed = await withTemporal(project, (temporal) => readAll(invocation, temporal, wanted));
  const now = Date.now();
  output.document({ schedules: listed.map(documentOf) });
  if (listed.length === 0) output.line(noneWords(invocation));
  else output.table([LIST_HEAD, ...listed.map((one) => listedRow(one, now))]);
  for (const line of listed.flatMap(noteLines)) output.line(line);
  if (wanted === null)
    output.note(
      'The files have errors: whether the schedules are what they say is not known. See `retl check`.',
    );
  return EXIT.ok;
}

function documentOf(listed: Listed) {
  const { lastOutcome } = listed;
  const isParked = lastOutcome !== null && typeof lastOutcome !== 'string';
  return {
    ...listed,
    lastOutcome: isParked ? 'parked' : lastOutcome,
    asks: isParked ? lastOutcome : null,
    state: listedState(listed),
  };
}

function noneWords({ args, options }: Invocation): string {
  if (args.length > 0 || options.tag !== undefined) return 'None of these mirrors has a schedule.';
  return 'No schedules. Write a `schedule:` into a mirror, then `retl schedules apply`.';
}

/** `null` where the files have errors: what is in Temporal is shown all the same. */
async function wantedSchedules(project: Project): Promise<ScheduleTable | null> {
  const loaded = await loadProject(project.dir, null, null);
  return loaded.kind === 'ok' ? wantedOf(loaded.settings) : null;
}

async function readAll(
  invocation: Invocation,
  temporal: TemporalClient,
  wanted: ScheduleTable | null,
): Promise<readonly Listed[]> {
  const { readSchedule, scheduledMirrors } = await import('../../client/schedules.ts');
  const there = await scheduledMirrors(temporal);
  const names = [...new Set([...there, ...Object.keys(wanted ?? {})])].sort();
  const listed: Listed[] = [];
  const selected = await selectMirrors(invocation, there);
  for (const mirror of selected?.mirrors ?? names) {
    const found = await readSchedule(temporal, mirror);
    const isWanted = wanted !== null && Object.hasOwn(wanted, mirror);
    if (found === null ? isWanted : isWanted || found.owner === 'ours')
      listed.push(await describe(temporal, mirror, found, wanted));
  }
  return listed;
}

async function describe(
  temporal: TemporalClient,
  mirror: string,
  schedule: Schedule | null,
  wanted: ScheduleTable | null,
): Promise<Listed> {
  const { changeFor } = await import('../../client/schedule-change.ts');
  const settings = wanted !== null && Object.hasOwn(wanted, mirror) ? wanted[mirror] : undefined;
  const change =
    settings === undefined
      ? null
      : changeFor(mirror, settings, schedule, { taskQueue: temporal.taskQueue, takeOver: false });
  return {
    mirror,
    schedule,
    lastOutcome: schedule === null ? null : await outcome(temporal, schedule),
    change: wanted === null ? 'unknown' : (change ?? { kind: 'orphan', mirror }),
  };
}

const ANSWER_WITHIN_MS = 2_000;

/** A run that waits for a person must not look like one that is at work. */
async function outcome(temporal: TemporalClient, schedule: Schedule): Promise<Listed['lastOutcome']> {
  const { outcomeOf } = await import('../../client/schedule-runs.ts');
  const { mirror, lastStart } = schedule;
  if (lastStart === null) return null;
  const found = await outcomeOf(temporal, mirror, lastStart);
  if (found !== 'running') return found;
  const { readProgress } = await import('../../client/watch.ts');
  const progress = await readProgress(temporal, lastStart.workflowId, ANSWER_WITHIN_MS);
  return progress?.parked ?? found;
}
