/** Talks to the workflow that holds a mirror: signals, and the question whether there is one. */

import { WorkflowNotFoundError } from '@temporalio/client';
import { mirrorWorkflowId, type SignalName } from '../domain/messages.ts';
import type { TemporalClient } from './connect.ts';
import { temporalFailure } from './failure.ts';

export type SignalResult =
  | { readonly kind: 'sent'; readonly workflowId: string }
  | { readonly kind: 'not-running'; readonly workflowId: string };

/**
 * Sends a signal without arguments: an operator's words go to the journal, not through Temporal.
 * @param workflowId where the journal names a holder with another id (a schedule's run, one started in the UI).
 * @throws RetlError `temporal.connect`
 */
export async function signalMirror(
  { client }: TemporalClient,
  mirror: string,
  signal: SignalName,
  workflowId: string = mirrorWorkflowId(mirror),
): Promise<SignalResult> {
  try {
    await client.workflow.getHandle(workflowId).signal(signal);
    return { kind: 'sent', workflowId };
  } catch (error) {
    if (error instanceof WorkflowNotFoundError) return { kind: 'not-running', workflowId };
    throw temporalFailure(error, 'signal');
  }
}

export type HolderDescription =
  | { readonly kind: 'open'; readonly workflowId: string; readonly runId: string; readonly startedAt: Date }
  /** `status` is Temporal's word: COMPLETED, FAILED, CANCELLED, TERMINATED, TIMED_OUT. */
  | {
      readonly kind: 'closed';
      readonly workflowId: string;
      readonly status: string;
      readonly closedAt: Date | null;
    }
  | { readonly kind: 'none'; readonly workflowId: string };

/** @throws RetlError `temporal.connect` */
export async function describeHolder(
  { client }: TemporalClient,
  mirror: string,
  workflowId: string = mirrorWorkflowId(mirror),
): Promise<HolderDescription> {
  try {
    const found = await client.workflow.getHandle(workflowId).describe();
    if (found.status.name === 'RUNNING' || found.status.name === 'PAUSED')
      return { kind: 'open', workflowId, runId: found.runId, startedAt: found.startTime };
    return { kind: 'closed', workflowId, status: found.status.name, closedAt: found.closeTime ?? null };
  } catch (error) {
    if (error instanceof WorkflowNotFoundError) return { kind: 'none', workflowId };
    throw temporalFailure(error, 'describe');
  }
}
