/**
 * An index is followed under its own id only, so that whoever stops, pauses or wakes it finds it there. Temporal appends the
 * time to the id of what a schedule starts, and people make ids up: an execution of another id has the right one go on.
 */

import { WorkflowExecutionAlreadyStartedError } from '@temporalio/common';
import {
  ChildWorkflowCancellationType,
  getExternalWorkflowHandle,
  ParentClosePolicy,
  startChild,
} from '@temporalio/workflow';
import {
  INDEX_WORKFLOW,
  type IndexInput,
  type IndexResult,
  type IndexSignal,
  indexWorkflowId,
} from '../domain/index-messages.ts';

/** Starts the workflow of the index's own id, or wakes it where it runs; it outlives this execution. */
export async function handOver(index: string): Promise<IndexResult> {
  const workflowId = indexWorkflowId(index);
  const input: IndexInput = { index };
  try {
    await startChild(INDEX_WORKFLOW, {
      workflowId,
      args: [input],
      parentClosePolicy: ParentClosePolicy.ABANDON,
      cancellationType: ChildWorkflowCancellationType.ABANDON,
      staticSummary: `Index ${index}`,
    });
    return { outcome: 'handed-over', workflowId, started: true };
  } catch (error) {
    if (!(error instanceof WorkflowExecutionAlreadyStartedError)) throw error;
  }
  // One that ends in this very moment was stopped by somebody; the next start begins it again.
  await getExternalWorkflowHandle(workflowId)
    .signal('wake' satisfies IndexSignal)
    .catch(() => undefined);
  return { outcome: 'handed-over', workflowId, started: false };
}
