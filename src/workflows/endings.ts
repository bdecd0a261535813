/** How a run's workflow ends when it does not complete: as a failure with a type, or stopped on purpose. */

import { ActivityFailure, ApplicationFailure } from '@temporalio/workflow';
import type { ActivityFailureType } from '../activities/failures.ts';
import type { FailureType } from '../domain/messages.ts';

/** Thrown inside the workflow to leave the phases; mirror.ts turns each into its ending. */
export class Ending extends Error {
  override readonly name = 'Ending';
  constructor(
    readonly how: 'cancel' | 'abort' | 'rejected' | 'guard-held' | 'invalid' | 'misconfigured',
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
}

/** What failed in an activity, in this project's own words. */
export function causeOf(error: unknown): Cause {
  const cause = error instanceof ActivityFailure ? error.cause : error;
  if (!(cause instanceof ApplicationFailure)) {
    // A worker that was lost, a time-out: nothing is known but that it can be tried again.
    return { type: 'unavailable', code: 'worker.lost', message: 'no worker finished the activity in time' };
  }
  const type = TYPES.find((t) => t === cause.type) ?? 'defect';
  const [details] = (cause.details ?? []) as readonly { readonly code?: string }[];
  return { type, code: details?.code ?? type, message: cause.message };
}

const TYPES: readonly ActivityFailureType[] = ['invalid', 'unavailable', 'fenced', 'defect'];

export function fail(type: FailureType, code: string, message: string): ApplicationFailure {
  return ApplicationFailure.create({ type, message, nonRetryable: true, details: [{ code }] });
}
