/** `retl maintenance run`: takes away what runs have left behind, now. */

import type { Command } from 'commander';
import type { MaintenanceState } from '../../client/maintenance.ts';
import {
  addCounts,
  countLines,
  MAINTENANCE_TASKS,
  type MaintenanceCounts,
  type MaintenanceTask,
  NOTHING_DONE,
} from '../../domain/maintenance.ts';
import type { JournalTask } from '../../journal/maintain.ts';
import { choicesIn } from '../choice-argument.ts';
import { type Invocation, newCommand } from '../command.ts';
import { readSettings } from '../environment.ts';
import { EXIT, type ExitCode } from '../exit-codes.ts';
import { Refusal } from '../failures.ts';
import { withJournal } from '../journal.ts';
import { startingOnTemporal } from '../no-worker.ts';
import type { Output } from '../output.ts';

/** What needs no worker: the others speak with Temporal about holders, and with destinations. */
const JOURNAL_TASKS: readonly JournalTask[] = ['generations', 'log', 'receipts'];

export function maintenanceRunCommand(): Command {
  return newCommand(
    {
      name: 'run',
      summary: 'take away what runs have left behind, now',
      description:
        'Starts the workflow `maintenance`, or finds the one that is under way, and waits for its end: superseded snapshots, old ' +
        'answers of providers, runs that nobody goes on with, what only served a part of the log that was compacted, and what ' +
        'replaced sets have left at destinations. Nothing goes that is needed. Runs are not disturbed. With `--once` this ' +
        `process itself does what concerns the journal alone (${JOURNAL_TASKS.join(', ')}), without Temporal.`,
      examples: [
        ['retl maintenance run', 'everything'],
        ['retl maintenance run --only receipts,generations', 'these alone'],
        ['retl maintenance run --once', 'without Temporal, as far as the journal goes'],
      ],
    },
    run,
  )
    .option('--only <tasks>', `some of ${MAINTENANCE_TASKS.join(', ')}, with commas`, tasksArgument)
    .option('--once', 'do it in this process, and end')
    .option('--detach', 'return as soon as it is started');
}

function tasksArgument(text: string): readonly MaintenanceTask[] {
  return choicesIn(text, MAINTENANCE_TASKS);
}

async function run(invocation: Invocation): Promise<ExitCode> {
  const { output, options } = invocation;
  const only = Array.isArray(options.only) ? (options.only as readonly MaintenanceTask[]) : undefined;
  if (options.once === true) return once(invocation, only);
  const { maintenanceEnd, startMaintenance } = await import('../../client/maintenance.ts');
  return startingOnTemporal(invocation, async (temporal) => {
    const { workflowId, started } = await startMaintenance(temporal, only === undefined ? {} : { only });
    output.note(
      started
        ? `Maintenance started (workflow ${workflowId}).`
        : `Maintenance is under way already (workflow ${workflowId}).`,
    );
    if (options.detach === true) {
      output.document({ workflowId, started });
      return EXIT.ok;
    }
    const ended = await maintenanceEnd(temporal, workflowId);
    output.document({ workflowId, started, outcome: ended.how, counts: ended.counts });
    return showEnd(output, ended);
  });
}

function showEnd(output: Output, ended: Extract<MaintenanceState, { kind: 'ended' }>): ExitCode {
  if (ended.counts !== null) {
    showCounts(output, ended.counts);
    return EXIT.ok;
  }
  output.line(`Maintenance ${ended.how}${ended.message === null ? '' : `: ${ended.message}`}`);
  return ended.how === 'cancelled' ? EXIT.stopped : EXIT.failure;
}

export function showCounts(output: Output, counts: MaintenanceCounts): void {
  const lines = countLines(counts);
  for (const line of lines) output.line(line);
  if (lines.length === 0) output.line('Nothing had to go.');
}

async function once(
  { output, project }: Invocation,
  only: readonly MaintenanceTask[] | undefined,
): Promise<ExitCode> {
  const tasks = JOURNAL_TASKS.filter((task) => only?.includes(task) ?? true);
  if (only !== undefined && tasks.length < only.length)
    throw new Refusal(
      EXIT.usage,
      'usage',
      `In this process only ${JOURNAL_TASKS.join(', ')} can be done.`,
      'Leave `--once` out: a worker does all of it.',
    );
  const { maintenance } = await readSettings(project);
  const { maintainJournal } = await import('../../journal/maintain.ts');
  const { requireSchema } = await import('../../journal/migrate.ts');
  const counts = await withJournal(project, async (journal) => {
    await requireSchema(journal);
    let sum = NOTHING_DONE;
    for (const task of tasks)
      for (let cursor: string | null = null, more = true; more; ) {
        const step = await maintainJournal(journal, task, maintenance, cursor, () => false);
        sum = addCounts(sum, step.counts);
        cursor = step.cursor;
        more = step.kind === 'more';
      }
    return sum;
  });
  output.document({ tasks, counts });
  showCounts(output, counts);
  return EXIT.ok;
}
