/** How a run's workflow ends when it does not complete: as a failure with a type, or stopped on purpose. */

import { ActivityFailure, ApplicationFailure, ContinueAsNew, TemporalFailure } from '@temporalio/workflow';
import type { ActivityFailureType, FailureDetails } from '../activities/failures.ts';
import type { FailureType } from '../domain/messages.ts';

/** Thrown inside the workflow to leave the phases; mirror.ts turns each into its ending. */
export class Ending extends Error {
  override readonly name = 'Ending';
  constructor(
    readonly how:
      | 'cancel'
      | 'abort'
      | 'rejected'
      | 'guard-rejected'
      | 'guard-expired'
      | 'plan-stale'
      | 'invalid'
      | 'misconfigured',
    readonly code: string,
    message = code,
  ) {
    super(message);
  }
}

export interface Cause {
  readonly type: ActivityFailureType;
  readonly code: string;
  readonly message: string;
  /** Whether the worker says that the search attributes are registered. */
  readonly searchAttributes: boolean;
}

/** What failed in an activity, in this project's own words. */
export function causeOf(error: unknown): Cause {
  const cause = error instanceof ActivityFailure ? error.cause : error;
  if (!(cause instanceof ApplicationFailure)) {
    // A worker that was lost, a time-out: nothing is known but that it can be tried again.
    const message = 'no worker finished the activity in time';
    return { type: 'unavailable', code: 'worker.lost', message, searchAttributes: false };
  }
  const type = TYPES.find((t) => t === cause.type) ?? 'defect';
  const [details] = (cause.details ?? []) as readonly Partial<FailureDetails>[];
  const { code = type, searchAttributes = false } = details ?? {};
  return { type, code, message: cause.message, searchAttributes };
}

/** Whether an activity failed in a way that is worth another try. */
export function isUnavailable(error: unknown): boolean {
  return error instanceof ActivityFailure && causeOf(error).type === 'unavailable';
}

const TYPES: readonly ActivityFailureType[] = ['invalid', 'unavailable', 'fenced', 'defect'];

export function fail(type: FailureType, code: string, message: string): ApplicationFailure {
  return ApplicationFailure.create({ type, message, nonRetryable: true, details: [{ code }] });
}

/**
 * An error that nobody foresaw would fail the workflow task, and be tried again for ever, seen by nobody. The run's state
 * is in the journal, so that the execution may as well end, and say so.
 */
export function defect(error: unknown): Error {
  if (error instanceof TemporalFailure || error instanceof ContinueAsNew) return error;
  const name = error instanceof Error ? error.name : typeof error;
  return ApplicationFailure.create({
    type: 'invalid' satisfies FailureType,
    message: `a bug of the workflow (${name}): the run can be resumed once it is mended`,
    nonRetryable: true,
    details: [{ code: 'defect' }],
    ...(error instanceof Error ? { cause: error } : {}),
  });
}
