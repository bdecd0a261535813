/** How a run ended, and what a failed call to Temporal becomes. */

import {
  ApplicationFailure,
  CancelledFailure,
  ServerFailure,
  ServiceError,
  TerminatedFailure,
  TimeoutFailure,
  WorkflowFailedError,
} from '@temporalio/client';
import { RetlError } from '../domain/errors.ts';
import type { FailureType, MirrorResult, Outcome } from '../domain/messages.ts';

export type Ending =
  | { readonly kind: 'result'; readonly result: MirrorResult }
  /** `message` is the project's own words, value-free. */
  | { readonly kind: 'failed'; readonly type: FailureType; readonly message: string }
  /** A failure that no part of this project foresaw; only its type is safe to show. */
  | { readonly kind: 'unexpected'; readonly type: string }
  | { readonly kind: 'cancelled' | 'terminated' | 'timed-out' };

/** `null` where the error says nothing about the run itself (Temporal could not be asked). */
export function endingOf(error: unknown): Ending | null {
  if (!(error instanceof WorkflowFailedError)) return null;
  const chain = causes(error.cause);
  for (const failure of chain) {
    const type = failure instanceof ApplicationFailure ? knownType(failure.type) : null;
    if (type !== null) return { kind: 'failed', type, message: failure.message };
  }
  const [outermost] = chain;
  if (outermost instanceof CancelledFailure) return { kind: 'cancelled' };
  if (outermost instanceof TerminatedFailure) return { kind: 'terminated' };
  if (outermost instanceof TimeoutFailure) return { kind: 'timed-out' };
  const innermost = chain.at(-1);
  const type = innermost instanceof ApplicationFailure ? innermost.type : innermost?.name;
  return {
    kind: 'unexpected',
    type: innermost instanceof ServerFailure ? 'ServerFailure' : (type ?? 'Error'),
  };
}

function causes(error: unknown): readonly Error[] {
  return error instanceof Error ? [error, ...causes(error.cause)] : [];
}

/** Total, so that a new type of failure cannot be forgotten here. */
const KNOWN_TYPES: { readonly [T in FailureType]: T } = {
  refused: 'refused',
  'guard-held': 'guard-held',
  rejected: 'rejected',
  invalid: 'invalid',
  blocked: 'blocked',
  unavailable: 'unavailable',
};

function knownType(type: string | null | undefined): FailureType | null {
  return Object.values(KNOWN_TYPES).find((known) => known === type) ?? null;
}

const OUTCOMES: { readonly [O in Outcome]: O } = {
  completed: 'completed',
  cancelled: 'cancelled',
  aborted: 'aborted',
};

/** Decodes the workflow's result. */
export function endingFrom(result: unknown): Ending {
  const outcome: unknown =
    typeof result === 'object' && result !== null ? Reflect.get(result, 'outcome') : null;
  const isOurs = Object.values(OUTCOMES).some((known) => known === outcome);
  return isOurs ? { kind: 'result', result: result as MirrorResult } : { kind: 'unexpected', type: 'Result' };
}

/** Lost infrastructure, in our words: a gRPC error may quote the server's. Anything else is a bug, and stays what it is. */
export function temporalFailure(error: unknown, call: string): unknown {
  return error instanceof ServiceError ? new RetlError('temporal.connect', { call }) : error;
}
