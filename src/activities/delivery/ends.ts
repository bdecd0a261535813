/** Why a window ends, and which reason counts where several requests in flight have one. */

import type { BatchId } from '../../domain/ids.ts';

export type WindowEnd =
  | { readonly kind: 'done' }
  | { readonly kind: 'more' }
  | { readonly kind: 'stopped' }
  | { readonly kind: 'wait'; readonly code: string; readonly ms: number; readonly batch: BatchId }
  | { readonly kind: 'blocked'; readonly code: string; readonly batch: BatchId }
  | { readonly kind: 'rejected'; readonly code: string }
  | { readonly kind: 'misconfigured'; readonly code: string };

const GRAVITY: Readonly<Record<WindowEnd['kind'], number>> = {
  done: 0,
  more: 1,
  stopped: 2,
  wait: 3,
  misconfigured: 4,
  rejected: 5,
  blocked: 6,
};

/** The graver of two ends; of two waits the longer, since waking for the shorter would only find the other. */
export function graver(now: WindowEnd | null, end: WindowEnd): WindowEnd {
  if (now === null || GRAVITY[end.kind] > GRAVITY[now.kind]) return end;
  return now.kind === 'wait' && end.kind === 'wait' && end.ms > now.ms ? end : now;
}
