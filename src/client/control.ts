/** Talks to the workflow that holds a mirror: signals. */

import { WorkflowNotFoundError } from '@temporalio/client';
import type { SignalName } from '../domain/messages.ts';
import type { TemporalClient } from './connect.ts';
import { temporalFailure } from './failure.ts';
import { findRun } from './find-run.ts';

export type SignalResult =
  | { readonly kind: 'sent'; readonly workflowId: string }
  | { readonly kind: 'not-running'; readonly workflowId: string }
  /** What runs is another environment's or project's, in the same namespace: it was left alone. */
  | { readonly kind: 'other-queue'; readonly workflowId: string; readonly taskQueue: string };

/**
 * Sends a signal without arguments: an operator's words go to the journal, not through Temporal.
 * @param known the workflow's id, where the journal names a holder; else it is looked for.
 * @throws RetlError `temporal.connect`
 */
export async function signalMirror(
  temporal: TemporalClient,
  mirror: string,
  signal: SignalName,
  known?: string,
): Promise<SignalResult> {
  const found = await findRun(temporal, mirror, known);
  if (found.kind === 'other-queue') return found;
  const { kind, workflowId } = found;
  if (kind === 'none') return { kind: 'not-running', workflowId };
  try {
    await temporal.client.workflow.getHandle(workflowId).signal(signal);
    return { kind: 'sent', workflowId };
  } catch (error) {
    if (error instanceof WorkflowNotFoundError) return { kind: 'not-running', workflowId };
    throw temporalFailure(error, 'signal');
  }
}
