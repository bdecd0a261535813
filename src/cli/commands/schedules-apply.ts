/** `retl schedules apply`: makes Temporal's schedules what the files say. */

import type { Command } from 'commander';
import type { TemporalClient } from '../../client/connect.ts';
import type { ScheduleChange } from '../../client/schedule-change.ts';
import type { ApplyOptions } from '../../client/schedules.ts';
import { loadProject } from '../../config/load.ts';
import type { ScheduleTable } from '../../domain/schedule.ts';
import { type Invocation, newCommand } from '../command.ts';
import { EXIT, type ExitCode } from '../exit-codes.ts';
import { InvalidProject } from '../failures.ts';
import { startingOnTemporal } from '../no-worker.ts';
import type { Output } from '../output.ts';
import { counted } from '../problems-view.ts';
import { changeLines } from '../schedule-view.ts';
import { withTemporal } from '../temporal.ts';
import { wantedSchedules } from '../wanted-schedules.ts';

export function schedulesApplyCommand(): Command {
  return newCommand(
    {
      name: 'apply',
      summary: 'make Temporal’s schedules what the files say',
      description:
        'Creates and updates the schedules of all mirrors with a `schedule:`, and that of maintenance, and tells what differed, also where somebody has ' +
        'changed one in Temporal. One whose mirror or `schedule:` is gone is named, and deleted with --prune. A schedule ' +
        'that is paused stays paused. Running it again changes nothing.',
      examples: [
        ['retl schedules apply --dry-run', 'what would change'],
        ['retl schedules apply', 'create and update'],
        ['retl schedules apply --prune', 'and delete those that no file asks for any more'],
      ],
    },
    apply,
  )
    .option('--dry-run', 'change nothing, and tell what would change')
    .option('--prune', 'delete the schedules of this project whose mirror or `schedule:` is gone')
    .option('--take-over', 'also change schedules of the same name that another hand or task queue has made');
}

interface Wanted extends ApplyOptions {
  readonly prune: boolean;
}

async function apply(invocation: Invocation): Promise<ExitCode> {
  const { output, project, options } = invocation;
  // Whole or not at all: a file that cannot be read must not look like a schedule that is gone.
  const loaded = await loadProject(project.dir, null, null);
  if (loaded.kind === 'invalid') throw new InvalidProject(loaded.problems);
  const schedules = wantedSchedules(loaded.settings);
  const wanted: Wanted = {
    dryRun: options.dryRun === true,
    takeOver: options.takeOver === true,
    prune: options.prune === true,
  };
  const work = async (temporal: TemporalClient) => [
    ...(await applyAll(temporal, schedules, wanted)),
    ...(await withoutFile(temporal, schedules, wanted)),
  ];
  const changes = await (wanted.dryRun ? withTemporal(project, work) : startingOnTemporal(invocation, work));
  output.document({ dryRun: wanted.dryRun, changes });
  show(output, changes, wanted);
  return changes.some(({ kind }) => kind === 'conflict') ? EXIT.refused : EXIT.ok;
}

async function applyAll(
  temporal: TemporalClient,
  schedules: ScheduleTable,
  options: ApplyOptions,
): Promise<readonly ScheduleChange[]> {
  const { applySchedule } = await import('../../client/schedules.ts');
  const changes: ScheduleChange[] = [];
  for (const [mirror, settings] of Object.entries(schedules))
    changes.push(await applySchedule(temporal, mirror, settings, options));
  return changes;
}

/** Schedules of ours that no file asks for. Those of other projects in the namespace are none of our business. */
async function withoutFile(
  temporal: TemporalClient,
  schedules: ScheduleTable,
  { prune, dryRun }: Wanted,
): Promise<readonly ScheduleChange[]> {
  const { deleteSchedule, readSchedule, scheduledMirrors } = await import('../../client/schedules.ts');
  const changes: ScheduleChange[] = [];
  for (const mirror of await scheduledMirrors(temporal)) {
    if (Object.hasOwn(schedules, mirror)) continue;
    const found = await readSchedule(temporal, mirror);
    if (found?.owner !== 'ours') continue;
    if (prune && !dryRun) await deleteSchedule(temporal, mirror);
    changes.push({ kind: prune ? 'delete' : 'orphan', mirror });
  }
  return changes;
}

function show(output: Output, changes: readonly ScheduleChange[], { dryRun }: Wanted): void {
  for (const change of changes)
    for (const line of changeLines(change, dryRun, (style, text) => output.style(style, text)))
      output.line(line);
  if (changes.length === 0)
    output.line('Neither a mirror nor maintenance has a schedule, and Temporal has none of this project.');
  else if (changes.every(({ kind }) => kind === 'unchanged'))
    output.line(`${counted(changes.length, 'schedule')}; nothing to change.`);
  else if (dryRun) output.line('Nothing was changed: this was a dry run.');
}
