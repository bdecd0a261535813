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
import { describeHolder } from './describe.ts';
import { temporalFailure } from './failure.ts';

/** The workflow's id is taken by another environment's or project's index, in the same namespace: it is left alone. */
export interface ForeignIndex {
  readonly kind: 'other-queue';
  readonly workflowId: string;
  readonly taskQueue: string;
}

/** Starts it where it does not run, and has it look at once where it does. @throws RetlError `temporal.connect` */
export async function runIndex(
  temporal: TemporalClient,
  index: string,
): Promise<{ readonly kind: 'follows'; readonly workflowId: string } | ForeignIndex> {
  const workflowId = indexWorkflowId(index);
  const found = await lookFor(temporal, index);
  if (found.kind === 'other-queue') return found;
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
    return { kind: 'follows', workflowId };
  } catch (error) {
    throw temporalFailure(error, 'start');
  }
}

/** @throws RetlError `temporal.connect` */
export async function signalIndex(
  temporal: TemporalClient,
  index: string,
  signal: IndexSignal,
): Promise<{ readonly kind: 'sent' | 'not-running' } | ForeignIndex> {
  const found = await lookFor(temporal, index);
  if (found.kind !== 'running') return found;
  try {
    await temporal.client.workflow.getHandle(indexWorkflowId(index)).signal(signal);
    return { kind: 'sent' };
  } catch (error) {
    if (error instanceof WorkflowNotFoundError) return { kind: 'not-running' };
    throw temporalFailure(error, 'signal');
  }
}

/**
 * What its workflow is about.
 * @param withinMs is waited for Temporal's answer, and for the worker's after it.
 * @throws RetlError `temporal.connect`
 */
export async function indexProgress(
  temporal: TemporalClient,
  index: string,
  withinMs = 5_000,
): Promise<
  | { readonly kind: 'running'; readonly progress: IndexProgress }
  /** It runs, and no worker answers for it. */
  | { readonly kind: 'not-running' | 'no-answer' }
  | ForeignIndex
> {
  const { workflow, connection } = temporal.client;
  const within = <T>(ask: () => Promise<T>) => connection.withDeadline(Date.now() + withinMs, ask);
  const found = await within(() => lookFor(temporal, index));
  if (found.kind !== 'running') return found;
  try {
    const handle = workflow.getHandle(indexWorkflowId(index));
    return { kind: 'running', progress: await within(() => handle.query<IndexProgress>(PROGRESS_QUERY)) };
  } catch (error) {
    // No worker, one that is busy, or the moment between two executions: all of them are no answer.
    return { kind: error instanceof WorkflowNotFoundError ? 'not-running' : 'no-answer' };
  }
}

async function lookFor(
  temporal: TemporalClient,
  index: string,
): Promise<{ readonly kind: 'running' } | { readonly kind: 'not-running' } | ForeignIndex> {
  const workflowId = indexWorkflowId(index);
  const found = await describeHolder(temporal, index, workflowId);
  if (found.kind !== 'open') return { kind: 'not-running' };
  const { taskQueue } = found;
  return taskQueue === temporal.taskQueue
    ? { kind: 'running' }
    : { kind: 'other-queue', workflowId, taskQueue };
}
