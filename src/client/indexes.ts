/** Starts the workflow of an index, and talks to it. At most one of its id runs; the index refuses a second builder anyway. */

import { WorkflowNotFoundError } from '@temporalio/client';
import {
  INDEX_WORKFLOW,
  type IndexInput,
  type IndexProgress,
  type IndexSignal,
  indexWorkflowId,
} from '../domain/index-messages.ts';
import { PROGRESS_QUERY } from '../domain/messages.ts';
import type { TemporalClient } from './connect.ts';
import { temporalFailure } from './failure.ts';

/** Starts it where it does not run, and has it look at once where it does. @throws RetlError `temporal.connect` */
export async function runIndex(temporal: TemporalClient, index: string): Promise<string> {
  const workflowId = indexWorkflowId(index);
  const input: IndexInput = { index };
  try {
    await temporal.client.workflow.signalWithStart(INDEX_WORKFLOW, {
      workflowId,
      taskQueue: temporal.taskQueue,
      args: [input],
      signal: 'wake' satisfies IndexSignal,
      workflowIdReusePolicy: 'ALLOW_DUPLICATE',
      staticSummary: `Index ${index}`,
    });
    return workflowId;
  } catch (error) {
    throw temporalFailure(error, 'start');
  }
}

/** @returns whether its workflow runs. @throws RetlError `temporal.connect` */
export async function signalIndex(
  temporal: TemporalClient,
  index: string,
  signal: IndexSignal,
): Promise<boolean> {
  try {
    await temporal.client.workflow.getHandle(indexWorkflowId(index)).signal(signal);
    return true;
  } catch (error) {
    if (error instanceof WorkflowNotFoundError) return false;
    throw temporalFailure(error, 'signal');
  }
}

/** `null`: its workflow does not run. @throws RetlError `temporal.connect` */
export async function indexProgress(temporal: TemporalClient, index: string): Promise<IndexProgress | null> {
  const handle = temporal.client.workflow.getHandle(indexWorkflowId(index));
  try {
    const { status } = await handle.describe();
    return status.name === 'RUNNING' ? await handle.query<IndexProgress>(PROGRESS_QUERY) : null;
  } catch (error) {
    if (error instanceof WorkflowNotFoundError) return null;
    throw temporalFailure(error, 'query');
  }
}
