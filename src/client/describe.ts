/** What Temporal says of the workflow of a mirror: whether it is under way, where, and how it ended. */

import { WorkflowNotFoundError } from '@temporalio/client';
import { mirrorWorkflowId } from '../domain/messages.ts';
import type { TemporalClient } from './connect.ts';
import { temporalFailure } from './failure.ts';

export type HolderDescription =
  | {
      readonly kind: 'open';
      readonly workflowId: string;
      readonly runId: string;
      readonly startedAt: Date;
      /** Whose workers work on it: another one than the client's is another environment's or project's. */
      readonly taskQueue: string;
    }
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
      return {
        kind: 'open',
        workflowId,
        runId: found.runId,
        startedAt: found.startTime,
        taskQueue: found.taskQueue,
      };
    return { kind: 'closed', workflowId, status: found.status.name, closedAt: found.closeTime ?? null };
  } catch (error) {
    if (error instanceof WorkflowNotFoundError) return { kind: 'none', workflowId };
    throw temporalFailure(error, 'describe');
  }
}
