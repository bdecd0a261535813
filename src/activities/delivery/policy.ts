/** The numbers of delivery, in one place. */

import { type Capabilities, type Receipt, UNBOUNDED_MS } from '../../destinations/port.ts';

const LEAST_DEADLINE_MS = 300_000;

/**
 * How long after the commit of `sending` a request may still be handed to the adapter, in ms: measured, and nothing is sent
 * past it. So a request is over before the deadline, which lies this much beyond the longest one.
 */
export const SEND_MARGIN_MS = 60_000;

/** How long after `sending` a request may still reach the destination, in ms (rule 3); a day at most. */
export function sendDeadlineMs({ longestRequestMs }: Pick<Capabilities, 'longestRequestMs'>): number {
  return Math.min(UNBOUNDED_MS, Math.max(LEAST_DEADLINE_MS, longestRequestMs + SEND_MARGIN_MS));
}

/** Batches staged at once where the adapter has no bound: what one round of polls can ask about. */
const MAX_STAGED = 1_000;

/** How many batches may be staged at once; no bound where none ever is. */
export function mostStaged({
  batchDelivery,
  maxStaged = MAX_STAGED,
}: Pick<Capabilities, 'batchDelivery' | 'maxStaged'>): number {
  return batchDelivery === 'asynchronous' ? Math.max(1, maxStaged) : Infinity;
}

/** Receipts waiting for the journal, at most, for each request in flight. */
export const UNRECORDED = 4;

/** Bytes of payload that one page of operations should hold: bounds the worker's memory. */
export const PAGE_BYTES = 8 * 1024 * 1024;
export const FIRST_PAGE_ROWS = 256;

export const BACKOFF_FIRST_MS = 1_000;
export const BACKOFF_MAX_MS = 60_000;

/** Wait before the next sending of the same operations, in ms, where the provider gave none. */
export function backoffMs(sendings: number): number {
  return Math.min(BACKOFF_MAX_MS, BACKOFF_FIRST_MS * 2 ** Math.max(0, sendings - 1));
}

/** Pause before a look-up that got no answer is made again, in ms. */
export const UNANSWERED_MS = 30_000;

const MAX_RECEIPT = 64 * 1024;

/** A receipt as the journal stores it: well-formed JSON text (NUL and lone surrogates escaped), bounded. */
export function receiptText(receipt: Receipt): string {
  const text = JSON.stringify(receipt) ?? '{}';
  return text.length <= MAX_RECEIPT ? text : JSON.stringify({ truncated: true, bytes: text.length });
}

/** Begins the code of a batch that is to be halved before it is sent again. */
export const TOO_LARGE = 'too-large';
/** The same, where the halves are to show which member it was refused for. */
export const DIVIDED = 'divided';

/** Whether a batch that was not applied goes again in halves. */
export function isHalved(reason: string | null): boolean {
  return reason !== null && (reason.startsWith(TOO_LARGE) || reason.startsWith(DIVIDED));
}
