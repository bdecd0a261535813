/**
 * Where retrying is decided, once: an error becomes Temporal's failure with its type and retryability. Nothing but this
 * project's own words leaves: a driver's or vendor's text may hold values and stays in the worker.
 */

import { ApplicationFailure } from '@temporalio/common';
import { RetlError } from '../domain/errors.ts';
import { JournalError } from '../journal/errors.ts';

/** Types of the failures of activities. */
export type ActivityFailureType =
  | 'invalid' // configuration or data: final until somebody mends it
  | 'unavailable' // a database or a provider is away: retried
  | 'fenced' // another attempt or execution has the run
  | 'defect'; // a bug, or a state that the rules forbid

/** Runs the body of an activity and turns whatever it throws. @throws ApplicationFailure */
export async function failing<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    throw toFailure(error);
  }
}

export function toFailure(error: unknown): ApplicationFailure {
  if (error instanceof ApplicationFailure) return error;
  if (error instanceof RetlError) {
    const type: ActivityFailureType = error.recourse === 'retry' ? 'unavailable' : 'invalid';
    return failure(type, error.message, error.recourse !== 'retry', { code: error.code });
  }
  if (error instanceof JournalError) {
    switch (error.kind) {
      case 'unavailable':
        return failure('unavailable', error.message, false, { code: 'journal.unavailable' });
      case 'fenced':
        return failure('fenced', error.message, true, { code: 'run.fenced' });
      default:
        return failure('defect', error.message, true, { code: 'journal.refused' });
    }
  }
  // An error that nobody foresaw: its name says where to look, its message may say too much.
  const name = error instanceof Error ? error.name : typeof error;
  return failure('defect', `an unforeseen ${name}; the worker's log has its stack`, true, { code: 'defect' });
}

function failure(
  type: ActivityFailureType,
  message: string,
  nonRetryable: boolean,
  details: { readonly code: string },
): ApplicationFailure {
  return ApplicationFailure.create({ type, message, nonRetryable, details: [details] });
}
