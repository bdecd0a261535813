/** Configured HTTP headers: well formed, and none that would change how a request is framed or judged. */

import { validateHeaderName, validateHeaderValue } from 'node:http';
import { z } from 'zod';

/** Set by the adapter or by HTTP itself. */
const RESERVED_HEADERS = new Set([
  'accept-encoding',
  'connection',
  'content-encoding',
  'content-length',
  'expect',
  'host',
  'keep-alive',
  'proxy-connection',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
]);

export function holds(check: () => void): boolean {
  try {
    check();
    return true;
  } catch {
    return false;
  }
}

export const headerName = z
  .string()
  .refine((name) => holds(() => validateHeaderName(name)), 'not a valid header name')
  .refine((name) => !RESERVED_HEADERS.has(name.toLowerCase()), 'this header is set by the adapter itself');
const headerValue = z
  .string()
  .refine((value) => holds(() => validateHeaderValue('x', value)), 'not a valid header value');
export const headers = z.record(headerName, headerValue);
