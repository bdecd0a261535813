/** Why a window ends, and which reason counts where several requests in flight have one. */

import type { BatchId } from '../../domain/ids.ts';

export type WindowEnd =
  | { readonly kind: 'done' }
  | { readonly kind: 'more' }
  | { readonly kind: 'stopped' }
  /** Staged, and asked about again in `ms`; `ageMs`: since it was staged. */
  | {
      readonly kind: 'pending';
      readonly code: string;
      readonly ms: number;
      readonly batch: BatchId;
      readonly ageMs: number;
    }
  | { readonly kind: 'wait'; readonly code: string; readonly ms: number; readonly batch: BatchId }
  | { readonly kind: 'blocked'; readonly code: string; readonly batch: BatchId }
  | { readonly kind: 'rejected'; readonly code: string }
  | { readonly kind: 'misconfigured'; readonly code: string };

const GRAVITY: Readonly<Record<WindowEnd['kind'], number>> = {
  done: 0,
  more: 1,
  // What is staged comes first in the next attempt, whatever else there is to do.
  pending: 2,
  stopped: 3,
  wait: 4,
  misconfigured: 5,
  rejected: 6,
  blocked: 7,
};

/**
 * The graver of two ends; of two waits the longer, since waking for the shorter would only find the other. Of two staged
 * batches the older is named, and the sooner poll is waited for.
 */
export function graver(now: WindowEnd | null, end: WindowEnd): WindowEnd {
  if (now === null || GRAVITY[end.kind] > GRAVITY[now.kind]) return end;
  if (now.kind === 'pending' && end.kind === 'pending') {
    return { ...(end.ageMs > now.ageMs ? end : now), ms: Math.min(now.ms, end.ms) };
  }
  return now.kind === 'wait' && end.kind === 'wait' && end.ms > now.ms ? end : now;
}
