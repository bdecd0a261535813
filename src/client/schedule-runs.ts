/** What a schedule has started: how its last run ended, and a start out of turn. */

import { setTimeout as sleep } from 'node:timers/promises';
import type { FailureType, Outcome } from '../domain/messages.ts';
import { scheduleId } from '../domain/schedule.ts';
import type { TemporalClient } from './connect.ts';
import { describeHolder } from './describe.ts';
import { endingFrom, endingOf, temporalFailure } from './failure.ts';
import { readSchedule, type Schedule, type ScheduledStart } from './schedules.ts';

export type ScheduledOutcome =
  | Outcome
  | FailureType
  | 'running'
  | 'unexpected'
  | 'terminated'
  | 'timed-out'
  /** Temporal has forgotten the workflow: its retention has passed. */
  | 'forgotten';

/** @throws RetlError `temporal.connect` */
export async function outcomeOf(
  temporal: TemporalClient,
  mirror: string,
  { workflowId, runId }: ScheduledStart,
): Promise<ScheduledOutcome> {
  const holder = await describeHolder(temporal, mirror, workflowId);
  if (holder.kind === 'open') return 'running';
  if (holder.kind === 'none') return 'forgotten';
  const ending = await temporal.client.workflow
    .getHandle(workflowId, runId)
    .result()
    .then(endingFrom, (error: unknown) => endingOf(error) ?? lost(error));
  if (ending.kind === 'result') return ending.result.outcome;
  return ending.kind === 'failed' ? ending.type : ending.kind;
}

function lost(error: unknown): never {
  throw temporalFailure(error, 'result');
}

export type TriggerResult =
  | { readonly kind: 'started'; readonly workflowId: string }
  /** It starts as soon as the run before has ended. */
  | { readonly kind: 'waits' }
  /** A run that the schedule has started is under way, and nothing is started beside it. */
  | { readonly kind: 'busy' }
  /** Temporal has taken the wish, and has not yet said what became of it. */
  | { readonly kind: 'asked' }
  | { readonly kind: 'gone' };

const SEEN_WITHIN_MS = 10_000;
const LOOK_EVERY_MS = 200;

/**
 * Starts a run out of turn, under the schedule's own overlap policy: never two at once.
 * @throws RetlError `temporal.connect`
 */
export async function triggerSchedule(temporal: TemporalClient, before: Schedule): Promise<TriggerResult> {
  const { mirror, running } = before;
  const waits = before.form.overlap === 'buffer_one';
  if (running.length > 0 && !waits) return { kind: 'busy' };
  try {
    await temporal.client.schedule
      .getHandle(scheduleId(mirror, temporal.taskQueue))
      .trigger(waits ? 'BUFFER_ONE' : 'SKIP');
  } catch (error) {
    throw temporalFailure(error, 'trigger-schedule');
  }
  if (running.length > 0) return { kind: 'waits' };
  return seen(temporal, before);
}

async function seen(temporal: TemporalClient, before: Schedule): Promise<TriggerResult> {
  const until = Date.now() + SEEN_WITHIN_MS;
  while (Date.now() < until) {
    await sleep(LOOK_EVERY_MS);
    const now = await readSchedule(temporal, before.mirror);
    if (now === null) return { kind: 'gone' };
    if (now.lastStart !== null && now.lastStart.runId !== before.lastStart?.runId)
      return { kind: 'started', workflowId: now.lastStart.workflowId };
    if (now.counts.skipped > before.counts.skipped) return { kind: 'busy' };
  }
  return { kind: 'asked' };
}
