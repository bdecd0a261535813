/**
 * What an attempt leaves behind in the journal where it could not go on: why, of which batch, and when it looks again by itself.
 * Whoever asks the journal alone (`retl status`, `retl runs`, metrics) is then told what the run shows of itself in Temporal.
 */

import type { WaitNote } from '../journal/open-state.ts';
import type { StepResult } from './results.ts';

/** `'kept'`: what was noted before still says it. A parked run has its question in the journal, and an ending its code. */
export function noteOf(result: unknown): WaitNote | 'none' | 'kept' {
  if (!isStep(result)) return 'kept';
  switch (result.kind) {
    case 'wait':
      return { kind: 'waiting', code: result.code, batch: result.batch, ms: result.ms };
    case 'pending':
      return { kind: 'pending', code: result.code, batch: result.batch, ms: result.ms };
    case 'blocked':
      return { kind: 'blocked', code: result.code, batch: result.batch, ms: result.ms ?? null };
    // A run that is being ended waits until the settings are mended; any other one is let go.
    case 'misconfigured':
      return { kind: 'blocked', code: result.code, batch: null, ms: null };
    case 'done':
    case 'more':
      return 'none';
    default:
      return 'kept';
  }
}

function isStep(result: unknown): result is StepResult {
  return typeof result === 'object' && result !== null && 'kind' in result && 'counts' in result;
}
