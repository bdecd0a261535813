/** Starts a run of a mirror. At most one workflow of its id runs; the journal has the last word on exclusivity. */

import { WorkflowExecutionAlreadyStartedError } from '@temporalio/client';
import { MIRROR_WORKFLOW, type MirrorInput, mirrorWorkflowId } from '../domain/messages.ts';
import { workflowDetails } from '../domain/workflow-details.ts';
import type { TemporalClient } from './connect.ts';
import { describeHolder } from './describe.ts';
import { temporalFailure } from './failure.ts';

/** One execution of the workflow `mirror`; `runId` is Temporal's, of its first execution. */
export interface Execution {
  readonly workflowId: string;
  readonly runId: string;
}

export type StartResult =
  | ({ readonly kind: 'started' } & Execution)
  /** A run of this mirror is under way. */
  | { readonly kind: 'busy'; readonly workflowId: string }
  /** The workflow's id is taken by another environment's or project's run, in the same namespace. */
  | { readonly kind: 'other-queue'; readonly workflowId: string; readonly taskQueue: string };

/** What whoever starts a run may say about its removals; each is left out where nothing is said. */
export type StartOptions = Pick<MirrorInput, 'approveUpTo' | 'plan'>;

/** @throws RetlError `temporal.connect` */
export async function startMirror(
  temporal: TemporalClient,
  mirror: string,
  { approveUpTo, plan }: StartOptions = {},
): Promise<StartResult> {
  const { client, taskQueue } = temporal;
  const workflowId = mirrorWorkflowId(mirror);
  // A worker refuses a key that it does not know: what is not wished for is not in the input at all.
  const input: MirrorInput = {
    mirror,
    ...(approveUpTo === undefined ? {} : { approveUpTo }),
    ...(plan === undefined ? {} : { plan }),
  };
  try {
    const handle = await client.workflow.start(MIRROR_WORKFLOW, {
      workflowId,
      taskQueue,
      args: [input],
      workflowIdConflictPolicy: 'FAIL',
      workflowIdReusePolicy: 'ALLOW_DUPLICATE',
      staticSummary: `Mirror ${mirror}`,
      staticDetails: workflowDetails(mirror),
    });
    return { kind: 'started', workflowId, runId: handle.firstExecutionRunId };
  } catch (error) {
    if (!(error instanceof WorkflowExecutionAlreadyStartedError)) throw temporalFailure(error, 'start');
  }
  const found = await describeHolder(temporal, mirror, workflowId);
  if (found.kind !== 'open' || found.taskQueue === taskQueue) return { kind: 'busy', workflowId };
  return { kind: 'other-queue', workflowId, taskQueue: found.taskQueue };
}
