/** `retl maintenance status`: what waits to go, and how the last maintenance went. */

import type { Command } from 'commander';
import type { MaintenanceState } from '../../client/maintenance.ts';
import type { Schedule } from '../../client/schedules.ts';
import { RetlError } from '../../domain/errors.ts';
import type { MaintenanceProgress } from '../../domain/maintenance.ts';
import { durationText } from '../../domain/schedule.ts';
import type { MaintenanceSettings } from '../../domain/settings.ts';
import type { RetentionBacklog } from '../../journal/retention.ts';
import { type Invocation, newCommand } from '../command.ts';
import { type Project, readSettings } from '../environment.ts';
import { EXIT, type ExitCode } from '../exit-codes.ts';
import { span } from '../progress-view.ts';
import { readAllowed } from '../read-rights.ts';
import { ago } from '../run-view.ts';
import { lookAtTemporal } from '../temporal.ts';
import { showCounts } from './maintenance-run.ts';

export function maintenanceStatusCommand(): Command {
  return newCommand(
    {
      name: 'status',
      summary: 'what waits to go, and how the last maintenance went',
      description:
        'Shows how long things are kept, what in the journal has become superfluous by that, when maintenance runs next, and what ' +
        'the last one did. Needs the role retl_inspector in the journal.',
      examples: [
        ['retl maintenance status', 'for people'],
        ['retl maintenance status --json', 'as a JSON document'],
      ],
    },
    status,
  );
}

interface Seen {
  readonly state: MaintenanceState;
  readonly schedule: Schedule | null;
  readonly progress: MaintenanceProgress | null;
}

async function status(invocation: Invocation): Promise<ExitCode> {
  const { output, project } = invocation;
  const { maintenance } = await readSettings(project);
  const backlog = await readAllowed(invocation, async (journal) => {
    const { retentionBacklog } = await import('../../journal/retention.ts');
    return retentionBacklog(journal, maintenance);
  });
  const seen = await look(project);
  const { state, schedule, progress } = seen ?? NOTHING_SEEN;
  const next = schedule === null || schedule.paused ? null : (schedule.nextStarts[0] ?? null);
  const { keepReceiptsMs, keepCandidatesMs, compactMs } = maintenance;
  output.document({
    keeps: { receiptsMs: keepReceiptsMs, candidatesMs: keepCandidatesMs, effectsMs: compactMs },
    waiting: backlog,
    schedule: schedule === null ? null : { paused: schedule.paused, next: next?.toISOString() ?? null },
    last: seen === null ? null : state,
    progress,
  });
  for (const line of keptLines(maintenance, backlog)) output.line(line);
  if (seen === null) {
    output.note('Temporal cannot be asked: when it runs, and how it went, is not known.');
    return EXIT.ok;
  }
  output.line(`next       ${nextWords(maintenance, schedule, next)}`);
  output.line(`last       ${stateWords(state, progress)}`);
  if (state.kind === 'ended' && state.counts !== null) showCounts(output, state.counts);
  return EXIT.ok;
}

const NOTHING_SEEN: Seen = { state: { kind: 'none' }, schedule: null, progress: null };

/** `null`: Temporal cannot be asked; what waits in the journal is told all the same. */
async function look(project: Project): Promise<Seen | null> {
  try {
    return await lookAtTemporal(project, async (temporal) => {
      const { maintenanceProgress, newestMaintenance } = await import('../../client/maintenance.ts');
      const newest = await newestMaintenance(temporal);
      const running = newest.state.kind === 'running' ? newest.state.workflowId : null;
      return { ...newest, progress: running === null ? null : await maintenanceProgress(temporal, running) };
    });
  } catch (error) {
    if (error instanceof RetlError && error.code === 'temporal.connect') return null;
    throw error;
  }
}

function keptLines(
  { keepReceiptsMs, keepCandidatesMs, compactMs }: MaintenanceSettings,
  waiting: RetentionBacklog,
): readonly string[] {
  const effects = compactMs === null ? 'for good' : `for ${durationText(compactMs)}`;
  return [
    `keeps      receipts for ${durationText(keepReceiptsMs)}, candidates for ${durationText(keepCandidatesMs)}, single effects ${effects}`,
    `waiting    ${waiting.generations} snapshots, receipts of ${waiting.receiptsOfRuns} runs, ${waiting.tables} tables; ` +
      `${waiting.candidates} open runs are old enough to be closed if nobody holds them`,
  ];
}

function nextWords(settings: MaintenanceSettings, schedule: Schedule | null, next: Date | null): string {
  if (schedule === null)
    return settings.schedule === null
      ? '`maintenance` is not enabled'
      : '`retl schedules apply` has it run by itself';
  if (next === null) return 'paused; `retl schedules resume --maintenance` goes on';
  return `in ${span(Math.max(0, next.getTime() - Date.now()))}`;
}

function stateWords(state: MaintenanceState, progress: MaintenanceProgress | null): string {
  switch (state.kind) {
    case 'none':
      return 'none that Temporal remembers';
    case 'running':
      return `under way since ${ago(state.startedAt, Date.now())}${progress === null ? '' : `: ${progress.task ?? 'at its end'}`}`;
    case 'ended': {
      const when = state.endedAt === null ? '' : `, ${ago(state.endedAt, Date.now())}`;
      return `${state.how}${when}${state.message === null ? '' : `: ${state.message}`}`;
    }
  }
}
