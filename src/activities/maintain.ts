/** The activity of the workflow `maintenance`: a window of bounded steps of one task, each in a transaction of its own. */

import { Context } from '@temporalio/activity';
import { RetlError } from '../domain/errors.ts';
import {
  addCounts,
  type MaintenanceCounts,
  type MaintenanceStep,
  type MaintenanceTask,
  NOTHING_DONE,
  type RetentionSettings,
} from '../domain/maintenance.ts';
import { maintainJournal } from '../journal/maintain.ts';
import { nextReplaced } from '../journal/retention.ts';
import { loadRun } from '../journal/run-record.ts';
import { closeAbandoned } from './abandoned.ts';
import type { Dependencies } from './deps.ts';
import { failing } from './failures.ts';
import { tidyTarget } from './tidy-target.ts';

export interface MaintenanceDependencies {
  readonly runs: Dependencies;
  /** As configured now. @throws RetlError `config.…` */
  retention(): Promise<RetentionSettings>;
}

export interface MaintainArgs {
  readonly task: MaintenanceTask;
  /** Of the window before; `null` begins the task. */
  readonly cursor: string | null;
  readonly windowMs: number;
  /** Of the chain of executions: who holds the runs that are closed. */
  readonly firstRunId: string;
}

const HEARTBEAT_MS = 2_000;

export function createMaintenanceActivities(deps: MaintenanceDependencies) {
  return { maintain: (args: MaintainArgs) => failing(deps.runs.logger, () => maintain(deps, args)) };
}

export type MaintenanceActivities = ReturnType<typeof createMaintenanceActivities>;

/** A window that is told to stop ends between two steps; so does a worker that shuts down. @throws JournalError, RetlError */
async function maintain(deps: MaintenanceDependencies, args: MaintainArgs): Promise<MaintenanceStep> {
  const context = Context.current();
  const timer = setInterval(() => context.heartbeat(), HEARTBEAT_MS);
  const stop = AbortSignal.any([context.cancellationSignal, AbortSignal.timeout(args.windowMs)]);
  try {
    const settings = await deps.retention();
    let counts: MaintenanceCounts = NOTHING_DONE;
    for (let cursor = args.cursor; ; ) {
      const step = await takeStep(deps.runs, { ...args, cursor }, settings, stop);
      deps.runs.metrics.maintained(step.counts);
      counts = addCounts(counts, step.counts);
      cursor = step.cursor;
      if (step.kind === 'done' || stop.aborted) return { ...step, counts };
    }
  } finally {
    clearInterval(timer);
  }
}

function takeStep(
  deps: Dependencies,
  { task, cursor, firstRunId }: MaintainArgs,
  settings: RetentionSettings,
  stop: AbortSignal,
): Promise<MaintenanceStep> {
  switch (task) {
    case 'candidates':
      return closeAbandoned(deps, settings, cursor, firstRunId);
    case 'destinations':
      return tidyNext(deps, cursor, stop);
    default:
      return maintainJournal(deps.journal, task, settings, cursor, () => stop.aborted);
  }
}

/** Of each target that runs have replaced, by the settings of the newest one; the cursor names the target before. */
async function tidyNext(
  deps: Dependencies,
  cursor: string | null,
  stop: AbortSignal,
): Promise<MaintenanceStep> {
  const next = await nextReplaced(deps.journal, BigInt(cursor ?? '0'));
  if (next === null) return { kind: 'done', cursor: null, counts: {} };
  const { target, attempt } = next;
  const record = await loadRun(deps.journal, attempt.run);
  const after = target.toString();
  try {
    const settings = deps.configuration.parse(record.settings);
    const tidied = await tidyTarget({ deps, attempt, record, settings, stop });
    const counts = { destinations: tidied.removals, putOff: tidied.kind === 'failed' ? 1 : 0 };
    return { kind: 'more', cursor: tidied.kind === 'more' ? cursor : after, counts };
  } catch (error) {
    // A revision that this release does not read.
    if (!(error instanceof RetlError)) throw error;
    return { kind: 'more', cursor: after, counts: { putOff: 1 } };
  }
}
