/**
 * Where retrying is decided, once: an error becomes Temporal's failure with its type and retryability. Nothing but this
 * project's own words leaves: a driver's or vendor's text may hold values and stays in the worker.
 */

import { ApplicationFailure, CancelledFailure } from '@temporalio/common';
import type { Logger } from '../destinations/port.ts';
import { RetlError } from '../domain/errors.ts';
import { JournalError } from '../journal/errors.ts';

/** Types of the failures of activities. */
export type ActivityFailureType =
  | 'invalid' // configuration or data: final until somebody mends it
  | 'unavailable' // a database or a provider is away: retried
  | 'fenced' // another attempt or execution has the run
  | 'defect'; // a bug, or a state that the rules forbid

/** What the workflow is told beside the error's code. */
export interface FailureDetails {
  readonly code: string;
  /** Of an admission: whether the search attributes are registered. */
  readonly searchAttributes?: boolean;
}

/** Runs the body of an activity and turns whatever it throws. @throws ApplicationFailure, CancelledFailure */
export async function failing<T>(
  logger: Logger,
  work: () => Promise<T>,
  more: Omit<FailureDetails, 'code'> = {},
): Promise<T> {
  try {
    return await work();
  } catch (error) {
    const failure = toFailure(error, more);
    if (failure instanceof ApplicationFailure && failure.type === 'defect')
      logger.warn(failure.message, { stack: framesOf(error) });
    throw failure;
  }
}

/** What the SDK says where it is the worker that stops, and nobody has asked for the activity's end. */
const WORKER_STOPS = 'WORKER_SHUTDOWN';

export function toFailure(
  error: unknown,
  more: Omit<FailureDetails, 'code'> = {},
): ApplicationFailure | CancelledFailure {
  const failure = (type: ActivityFailureType, message: string, nonRetryable: boolean, code: FailureDetails) =>
    failed(type, message, nonRetryable, { ...code, ...more });
  if (error instanceof ApplicationFailure) return error;
  if (error instanceof CancelledFailure) {
    if (error.message !== WORKER_STOPS) return error;
    return failure('unavailable', 'the worker stops; another one goes on', false, { code: 'worker.stops' });
  }
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

/** Where it happened: the frames of the stack, without the message above them, which may hold values. */
function framesOf(error: unknown): string {
  const stack = error instanceof Error ? (error.stack ?? '') : '';
  return stack
    .split('\n')
    .filter((line) => /^ +at /.test(line))
    .join('\n');
}

function failed(
  type: ActivityFailureType,
  message: string,
  nonRetryable: boolean,
  details: FailureDetails,
): ApplicationFailure {
  return ApplicationFailure.create({ type, message, nonRetryable, details: [details] });
}
