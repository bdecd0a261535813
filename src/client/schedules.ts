/**
 * The schedules of a project in Temporal: `mirror/<name>` starts the workflow `mirror` with `{"mirror": "<name>"}`, and that of
 * maintenance (MAINTENANCE_NAME among the mirrors' names) the workflow `maintenance` with `{}`. Temporal
 * appends the time to the id of a workflow that a schedule starts, so that it never meets one that was started by hand:
 * that no two runs of a mirror go on at once is the journal's to see to (design.md section 8).
 */

import {
  ScheduleAlreadyRunning,
  type ScheduleDescription,
  ScheduleNotFoundError,
  type ScheduleOptions,
} from '@temporalio/client';
import { RetlError } from '../domain/errors.ts';
import { MIRROR_NAME } from '../domain/messages.ts';
import {
  MAINTENANCE_NAME,
  SCHEDULE_PREFIX,
  type ScheduleForm,
  type ScheduleSettings,
  scheduledWork,
  scheduleId,
  wantedForm,
} from '../domain/schedule.ts';
import { MAINTENANCE_DETAILS, workflowDetails } from '../domain/workflow-details.ts';
import type { TemporalClient } from './connect.ts';
import { temporalFailure } from './failure.ts';
import { changeFor, type ScheduleChange, type ScheduleOwner } from './schedule-change.ts';
import { foundForm, specOf } from './schedule-form.ts';
import { FINGERPRINT_KEY, fingerprintOf, MANAGED_MEMO, managedNote, pausedNote } from './schedule-marks.ts';

/** One start of a workflow by a schedule. */
export interface ScheduledStart {
  readonly workflowId: string;
  readonly runId: string;
  readonly at: Date;
}

export interface Schedule {
  readonly mirror: string;
  readonly owner: ScheduleOwner;
  readonly form: ScheduleForm;
  readonly asApplied: boolean;
  readonly paused: boolean;
  /** Temporal's own words where a failure has paused it, else this project's. */
  readonly note: string | null;
  /** The next ones, soonest first; also while it is paused. */
  readonly nextStarts: readonly Date[];
  readonly lastStart: ScheduledStart | null;
  /** Ids of its workflows that are under way. */
  readonly running: readonly string[];
  readonly counts: ScheduleCounts;
}

/** Since the schedule was created. */
export interface ScheduleCounts {
  readonly started: number;
  /** Starts that were left out because the run before was still under way. */
  readonly skipped: number;
  /** Starts that an outage of Temporal made later than the catch-up window. */
  readonly missed: number;
}

/**
 * `null` where there is none.
 * @throws RetlError `temporal.connect`
 */
export async function readSchedule(temporal: TemporalClient, mirror: string): Promise<Schedule | null> {
  try {
    const description = await temporal.client.schedule
      .getHandle(scheduleId(mirror, temporal.taskQueue))
      .describe();
    return scheduleFrom(mirror, description, temporal.taskQueue);
  } catch (error) {
    if (error instanceof ScheduleNotFoundError) return null;
    throw temporalFailure(error, 'describe-schedule');
  }
}

function scheduleFrom(mirror: string, found: ScheduleDescription, taskQueue: string): Schedule {
  const form = foundForm(found);
  const applied: unknown = found.action.memo?.[FINGERPRINT_KEY];
  const managed = applied !== undefined || found.memo?.managed_by === MANAGED_MEMO.managed_by;
  const last = found.info.recentActions.at(-1);
  return {
    mirror,
    owner: !managed ? 'unmanaged' : form.task_queue === taskQueue ? 'ours' : 'other-queue',
    form,
    asApplied: applied === fingerprintOf(form),
    paused: found.state.paused,
    note: found.state.note ?? null,
    nextStarts: found.info.nextActionTimes,
    lastStart:
      last === undefined
        ? null
        : {
            workflowId: last.action.workflow.workflowId,
            runId: last.action.workflow.firstExecutionRunId,
            at: last.takenAt,
          },
    running: found.info.runningActions.map(({ workflow }) => workflow.workflowId),
    counts: {
      started: found.info.numActionsTaken,
      skipped: found.info.numActionsSkippedOverlap,
      missed: found.info.numActionsMissedCatchupWindow,
    },
  };
}

/**
 * Mirrors that have a schedule in the namespace, whoever made it, and this project's maintenance, in order of their names. Temporal's list lags by
 * moments: one that was made or deleted just now is told for certain by {@link readSchedule}.
 * @throws RetlError `temporal.connect`
 */
export async function scheduledMirrors({ client, taskQueue }: TemporalClient): Promise<readonly string[]> {
  const mirrors: string[] = [];
  try {
    for await (const { scheduleId: id } of client.schedule.list()) {
      const mirror = id.startsWith(SCHEDULE_PREFIX) ? id.slice(SCHEDULE_PREFIX.length) : '';
      if (MIRROR_NAME.test(mirror)) mirrors.push(mirror);
      if (id === scheduleId(MAINTENANCE_NAME, taskQueue)) mirrors.push(MAINTENANCE_NAME);
    }
  } catch (error) {
    throw temporalFailure(error, 'list-schedules');
  }
  return mirrors.sort();
}

export interface ApplyOptions {
  /** Decides, and changes nothing. */
  readonly dryRun: boolean;
  readonly takeOver: boolean;
}

/**
 * Makes the schedule what the configuration wants. Whether it is paused stays as it is.
 * @throws RetlError `temporal.connect`; `config.schedule` where the server refuses the times.
 */
export async function applySchedule(
  temporal: TemporalClient,
  mirror: string,
  settings: ScheduleSettings,
  options: ApplyOptions,
): Promise<ScheduleChange> {
  for (let tries = 1; ; tries += 1) {
    const found = await readSchedule(temporal, mirror);
    const { taskQueue } = temporal;
    const change = changeFor(mirror, settings, found, { taskQueue, takeOver: options.takeOver });
    if (options.dryRun) return change;
    try {
      if (change.kind === 'create') await create(temporal, mirror, settings);
      if (change.kind === 'update') await update(temporal, mirror, settings);
      return change;
    } catch (error) {
      if (!isOvertaken(error) || tries === TRIES) throw applyFailure(error, mirror);
    }
  }
}

const TRIES = 3;

/** Somebody was faster, or has taken it away: what is there now decides. */
function isOvertaken(error: unknown): boolean {
  return error instanceof ScheduleAlreadyRunning || error instanceof ScheduleNotFoundError;
}

function applyFailure(error: unknown, mirror: string): unknown {
  if (isOvertaken(error)) return new RetlError('temporal.connect', { call: 'apply-schedule' });
  // The SDK's form of the server's refusal.
  if (error instanceof TypeError) return new RetlError('config.schedule', { mirror });
  return temporalFailure(error, 'apply-schedule');
}

async function create(temporal: TemporalClient, mirror: string, settings: ScheduleSettings): Promise<void> {
  await temporal.client.schedule.create({
    scheduleId: scheduleId(mirror, temporal.taskQueue),
    ...definitionOf(temporal, mirror, settings),
    memo: MANAGED_MEMO,
    state: { note: managedNote(mirror) },
  });
}

async function update(temporal: TemporalClient, mirror: string, settings: ScheduleSettings): Promise<void> {
  const definition = definitionOf(temporal, mirror, settings);
  await temporal.client.schedule.getHandle(scheduleId(mirror, temporal.taskQueue)).update(({ state }) => ({
    ...definition,
    state: { paused: state.paused, note: state.paused ? (state.note ?? '') : managedNote(mirror) },
  }));
}

function definitionOf(
  { taskQueue }: TemporalClient,
  mirror: string,
  settings: ScheduleSettings,
): Pick<ScheduleOptions, 'spec' | 'action' | 'policies'> {
  const { workflowType, workflowId, input } = scheduledWork(mirror, taskQueue);
  const isMaintenance = mirror === MAINTENANCE_NAME;
  return {
    spec: specOf(settings),
    policies: {
      overlap: settings.overlap === 'skip' ? 'SKIP' : 'BUFFER_ONE',
      catchupWindow: settings.catchUpMs,
      pauseOnFailure: settings.pauseOnFailure,
    },
    action: {
      type: 'startWorkflow',
      workflowType,
      workflowId,
      taskQueue,
      args: [input],
      staticSummary: isMaintenance ? 'Maintenance' : `Mirror ${mirror}`,
      staticDetails: isMaintenance ? MAINTENANCE_DETAILS : workflowDetails(mirror),
      // A schedule's own memo cannot be changed later; that of its action can.
      memo: { [FINGERPRINT_KEY]: fingerprintOf(wantedForm(mirror, settings, taskQueue)) },
    },
  };
}

/** False where it is gone already. A run that it has started goes on. */
export async function deleteSchedule(
  { client, taskQueue }: TemporalClient,
  mirror: string,
): Promise<boolean> {
  return patched('delete-schedule', () => client.schedule.getHandle(scheduleId(mirror, taskQueue)).delete());
}

/** False where it is gone. */
export async function pauseSchedule({ client, taskQueue }: TemporalClient, mirror: string): Promise<boolean> {
  return patched('pause-schedule', () =>
    client.schedule.getHandle(scheduleId(mirror, taskQueue)).pause(pausedNote(mirror)),
  );
}

/** False where it is gone. */
export async function resumeSchedule(
  { client, taskQueue }: TemporalClient,
  mirror: string,
): Promise<boolean> {
  return patched('resume-schedule', () =>
    client.schedule.getHandle(scheduleId(mirror, taskQueue)).unpause(managedNote(mirror)),
  );
}

async function patched(call: string, patch: () => Promise<void>): Promise<boolean> {
  try {
    await patch();
    return true;
  } catch (error) {
    if (error instanceof ScheduleNotFoundError) return false;
    throw temporalFailure(error, call);
  }
}
