/** Answers a parked run through Temporal alone, for machines that do not reach the journal. */

import {
  ApplicationFailure,
  WorkflowNotFoundError,
  WorkflowUpdateFailedError,
  WorkflowUpdateRPCTimeoutOrCancelledError,
} from '@temporalio/client';
import type { Decision, UpdateName } from '../domain/messages.ts';
import type { TemporalClient } from './connect.ts';
import { temporalFailure } from './failure.ts';
import { findRun } from './find-run.ts';

export type AnswerResult =
  /** The journal has the answer; also where the same one stood already. */
  | { readonly kind: 'answered'; readonly workflowId: string }
  /**
   * Nothing was changed. `why` is stable: `not-parked`, `stale` (another set is asked about now), `expired`, `answered` (the
   * other answer stands), `closed`, or another word of a later version; `message` holds no values.
   */
  | { readonly kind: 'refused'; readonly workflowId: string; readonly why: string; readonly message: string }
  | { readonly kind: 'not-running'; readonly workflowId: string }
  /** What runs is another environment's or project's, in the same namespace: it was left alone. */
  | { readonly kind: 'other-queue'; readonly workflowId: string; readonly taskQueue: string }
  /** No worker has taken it up in time: it may still be answered. */
  | { readonly kind: 'no-answer'; readonly workflowId: string };

const ANSWER_WITHIN_MS = 30_000;

/**
 * @param decision binds the answer to what was looked at: `parked.shown` of the query `progress`.
 * @param known the workflow's id, where it is known; else it is looked for.
 * @throws RetlError `temporal.connect`
 */
export async function answerParked(
  temporal: TemporalClient,
  mirror: string,
  answer: UpdateName,
  decision: Decision,
  known?: string,
): Promise<AnswerResult> {
  const { client } = temporal;
  const found = await findRun(temporal, mirror, known);
  if (found.kind === 'other-queue') return found;
  const { kind, workflowId } = found;
  if (kind === 'none') return { kind: 'not-running', workflowId };
  const handle = client.workflow.getHandle(workflowId);
  try {
    await client.connection.withDeadline(Date.now() + ANSWER_WITHIN_MS, () =>
      handle.executeUpdate<void, [Decision]>(answer, { args: [decision] }),
    );
    return { kind: 'answered', workflowId };
  } catch (error) {
    if (error instanceof WorkflowNotFoundError) return { kind: 'not-running', workflowId };
    if (error instanceof WorkflowUpdateRPCTimeoutOrCancelledError) return { kind: 'no-answer', workflowId };
    if (error instanceof WorkflowUpdateFailedError && error.cause instanceof ApplicationFailure) {
      const { type, message } = error.cause;
      return { kind: 'refused', workflowId, why: type ?? 'refused', message };
    }
    throw temporalFailure(error, answer);
  }
}
