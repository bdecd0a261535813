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
  /** A person is waited for; `ms`: other batches are asked about again after that, whoever has come. */
  | { readonly kind: 'blocked'; readonly code: string; readonly batch: BatchId; readonly ms?: number }
  /** `ms`: what is still unresolved is asked about again after that. */
  | { readonly kind: 'rejected'; readonly code: string; readonly ms?: number }
  | { readonly kind: 'misconfigured'; readonly code: string };

const GRAVITY: Readonly<Record<WindowEnd['kind'], number>> = {
  done: 0,
  more: 1,
  stopped: 2,
  wait: 3,
  // What is staged comes first in the next attempt, whatever else there is to do.
  pending: 4,
  misconfigured: 5,
  rejected: 6,
  blocked: 7,
};

/**
 * The graver of two ends. Of two waits the longer counts, since waking for the shorter would only find the other. Of two staged
 * batches the older is named. Whatever is asked about again is so in its own time, also where another batch needs a person, or was
 * rejected.
 */
export function graver(now: WindowEnd | null, end: WindowEnd): WindowEnd {
  if (now === null) return end;
  const [grave, other] = GRAVITY[end.kind] > GRAVITY[now.kind] ? [end, now] : [now, end];
  switch (grave.kind) {
    case 'wait':
      return other.kind === 'wait' && other.ms > grave.ms ? other : grave;
    case 'pending': {
      const named = other.kind === 'pending' && other.ageMs > grave.ageMs ? other : grave;
      return { ...named, ...sooner(grave, other) };
    }
    case 'blocked':
    case 'rejected':
      return { ...grave, ...sooner(grave, other) };
    default:
      return grave;
  }
}

/** When one of the two is asked about again; neither may be. */
function sooner(...ends: readonly WindowEnd[]): { readonly ms?: number } {
  const waits = ends.flatMap((end) => ('ms' in end && end.ms !== undefined ? [end.ms] : []));
  return waits.length === 0 ? {} : { ms: Math.min(...waits) };
}
