/** Starts the workflow `maintenance`, follows it, and tells how the last one went. Two at once would do no harm; one is enough. */

import { WorkflowExecutionAlreadyStartedError, WorkflowNotFoundError } from '@temporalio/client';
import {
  MAINTENANCE_WORKFLOW,
  type MaintenanceCounts,
  type MaintenanceInput,
  type MaintenanceProgress,
  type MaintenanceResult,
  maintenanceWorkflowId,
} from '../domain/maintenance.ts';
import { PROGRESS_QUERY } from '../domain/messages.ts';
import { MAINTENANCE_NAME } from '../domain/schedule.ts';
import { MAINTENANCE_DETAILS } from '../domain/workflow-details.ts';
import type { TemporalClient } from './connect.ts';
import { type Ending, endingFrom, endingOf, temporalFailure } from './failure.ts';
import { readSchedule, type Schedule } from './schedules.ts';

/** @returns whether it was started now; one that is under way is followed as well. @throws RetlError `temporal.connect` */
export async function startMaintenance(
  { client, taskQueue }: TemporalClient,
  { only }: Pick<MaintenanceInput, 'only'>,
): Promise<{ readonly workflowId: string; readonly started: boolean }> {
  const workflowId = maintenanceWorkflowId(taskQueue);
  const input: MaintenanceInput = only === undefined ? {} : { only };
  try {
    await client.workflow.start(MAINTENANCE_WORKFLOW, {
      workflowId,
      taskQueue,
      args: [input],
      workflowIdConflictPolicy: 'FAIL',
      workflowIdReusePolicy: 'ALLOW_DUPLICATE',
      staticSummary: 'Maintenance',
      staticDetails: MAINTENANCE_DETAILS,
    });
    return { workflowId, started: true };
  } catch (error) {
    if (error instanceof WorkflowExecutionAlreadyStartedError) return { workflowId, started: false };
    throw temporalFailure(error, 'start');
  }
}

/** How a maintenance stands. */
export type MaintenanceState =
  | { readonly kind: 'running'; readonly workflowId: string; readonly startedAt: Date }
  | {
      readonly kind: 'ended';
      readonly workflowId: string;
      readonly endedAt: Date | null;
      /** `completed`, `failed`, `cancelled`, `terminated`, `timed-out`. */
      readonly how: string;
      /** `null` where it did not complete. */
      readonly counts: MaintenanceCounts | null;
      /** In this project's own words; `null` where there are none. */
      readonly message: string | null;
    }
  | { readonly kind: 'none' };

/** @throws RetlError `temporal.connect` */
export async function maintenanceState(
  { client }: TemporalClient,
  workflowId: string,
): Promise<MaintenanceState> {
  const handle = client.workflow.getHandle(workflowId);
  try {
    const { status, startTime, closeTime, runId } = await handle.describe();
    if (status.name === 'RUNNING' || status.name === 'PAUSED')
      return { kind: 'running', workflowId, startedAt: startTime };
    const ended = await outcomeOf(() => client.workflow.getHandle(workflowId, runId).result());
    return { kind: 'ended', workflowId, endedAt: closeTime ?? null, ...ended };
  } catch (error) {
    if (error instanceof WorkflowNotFoundError) return { kind: 'none' };
    throw temporalFailure(error, 'describe');
  }
}

/** Waits for the end. @throws RetlError `temporal.connect` */
export async function maintenanceEnd(
  { client }: TemporalClient,
  workflowId: string,
): Promise<Extract<MaintenanceState, { kind: 'ended' }>> {
  const ended = await outcomeOf(() => client.workflow.getHandle(workflowId).result());
  return { kind: 'ended', workflowId, endedAt: null, ...ended };
}

type Ended = Pick<Extract<MaintenanceState, { kind: 'ended' }>, 'how' | 'counts' | 'message'>;

async function outcomeOf(result: () => Promise<unknown>): Promise<Ended> {
  let ending: Ending;
  try {
    const found = await result();
    ending = endingFrom(found);
    if (ending.kind === 'result')
      return { how: 'completed', counts: (found as MaintenanceResult).counts, message: null };
  } catch (error) {
    const found = endingOf(error);
    if (found === null) throw temporalFailure(error, 'result');
    ending = found;
  }
  return { how: ending.kind, counts: null, message: ending.kind === 'failed' ? ending.message : null };
}

/** `null`: nobody answers. */
export async function maintenanceProgress(
  { client }: TemporalClient,
  workflowId: string,
): Promise<MaintenanceProgress | null> {
  return client.workflow
    .getHandle(workflowId)
    .query<MaintenanceProgress>(PROGRESS_QUERY)
    .catch(() => null);
}

/** The newest that there is, started by hand or by its schedule, and that schedule. @throws RetlError `temporal.connect` */
export async function newestMaintenance(
  temporal: TemporalClient,
): Promise<{ readonly state: MaintenanceState; readonly schedule: Schedule | null }> {
  const schedule = await readSchedule(temporal, MAINTENANCE_NAME);
  const ids = [maintenanceWorkflowId(temporal.taskQueue), schedule?.lastStart?.workflowId];
  const found: MaintenanceState[] = [];
  for (const id of ids) if (id !== undefined) found.push(await maintenanceState(temporal, id));
  const running = found.find(({ kind }) => kind === 'running');
  if (running !== undefined) return { state: running, schedule };
  const at = (state: MaintenanceState) => (state.kind === 'ended' ? (state.endedAt?.getTime() ?? 0) : -1);
  const [newest] = found.sort((a, b) => at(b) - at(a));
  return { state: newest ?? { kind: 'none' }, schedule };
}
