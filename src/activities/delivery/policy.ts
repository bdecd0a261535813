/** The numbers of delivery, in one place. */

import type { Receipt } from '../../destinations/port.ts';

/** How long after `sending` a request may still reach the destination, in ms (rule 3). */
export const SEND_DEADLINE_MS = 300_000;

/** Bytes of payload that one page of operations should hold: bounds the worker's memory. */
export const PAGE_BYTES = 8 * 1024 * 1024;
export const FIRST_PAGE_ROWS = 256;

export const BACKOFF_FIRST_MS = 1_000;
export const BACKOFF_MAX_MS = 60_000;

/** Wait before the next sending of the same operations, in ms, where the provider gave none. */
export function backoffMs(sendings: number): number {
  return Math.min(BACKOFF_MAX_MS, BACKOFF_FIRST_MS * 2 ** Math.max(0, sendings - 1));
}

const MAX_RECEIPT = 64 * 1024;

/** A receipt as the journal stores it: well-formed JSON text (NUL and lone surrogates escaped), bounded. */
export function receiptText(receipt: Receipt): string {
  const text = JSON.stringify(receipt) ?? '{}';
  return text.length <= MAX_RECEIPT ? text : JSON.stringify({ truncated: true, bytes: text.length });
}

/** Begins the code of a batch that is to be halved before it is sent again. */
export const TOO_LARGE = 'too-large';
