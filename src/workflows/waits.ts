/** What a run waits for, and for how long, when a step could not go on. */

import type { StepResult } from '../activities/results.ts';
import { assertNever } from '../domain/assert-never.ts';

/** Bounds what an adapter asks for; whoever waited that long only asks again. */
const LONGEST_WAIT_MS = 7 * 86_400_000;
const ASK_AGAIN_MS = 60_000;

export interface Wait {
  readonly kind: 'retry' | 'blocked' | 'pending';
  readonly code: string;
  /** `null`: until somebody says something. Of a blocked run: until others of its batches are asked about again. */
  readonly ms: number | null;
  readonly batch: string | null;
  /** Since when it has been so, in ms; `null`: not known. */
  readonly ageMs: number | null;
}

/** What a step asks to wait for. */
export function waitOf(step: Extract<StepResult, { kind: 'wait' | 'blocked' | 'pending' }>): Wait {
  const { code, batch } = step;
  if (step.kind === 'blocked' && step.ms === undefined) {
    return { kind: 'blocked', code, ms: null, batch, ageMs: null };
  }
  const ms = boundedMs(step.ms);
  if (step.kind === 'blocked') return { kind: 'blocked', code, ms, batch, ageMs: null };
  if (step.kind === 'pending') return { kind: 'pending', code, ms, batch, ageMs: step.ageMs };
  return { kind: 'retry', code, ms, batch, ageMs: null };
}

/** Not every number survives JSON. */
function boundedMs(ms: number | undefined): number {
  const asked = Number(ms ?? Number.NaN);
  return Number.isFinite(asked) ? Math.min(LONGEST_WAIT_MS, Math.max(0, asked)) : ASK_AGAIN_MS;
}

/** How long to wait before asking again where `step` has left something unresolved; `null`: not at all. */
export function unresolvedAfter(step: StepResult): Wait | null {
  switch (step.kind) {
    case 'wait':
    case 'pending':
    case 'blocked':
      return waitOf(step);
    case 'misconfigured':
      return { kind: 'blocked', code: step.code, ms: null, batch: null, ageMs: null };
    case 'more':
    case 'stopped':
      return null;
    case 'rejected':
      return { kind: 'retry', code: 'unresolved', ms: boundedMs(step.ms), batch: null, ageMs: null };
    case 'done':
    case 'held':
    case 'guard-rejected':
    case 'guard-expired':
      return { kind: 'retry', code: 'unresolved', ms: ASK_AGAIN_MS, batch: null, ageMs: null };
    default:
      return assertNever(step);
  }
}
