/**
 * Whether a success status without configured `outcomes` may be trusted with the whole request. One rule: every part of
 * the reply must be understood, and agree. An empty body agrees. A list, a count that is not the number sent, a named
 * failure or anything unfamiliar does not: such an API needs `outcomes`, and until then nothing is accepted.
 */

const FLAGS = new Set(['ok', 'success', 'succeeded', 'accepted', 'applied', 'done', 'complete', 'completed']);
const STATES = new Set(['status', 'state', 'result', 'message', 'outcome']);
const STATE_WORDS = new Set([
  'ok',
  'success',
  'successful',
  'succeeded',
  'complete',
  'completed',
  'done',
  'applied',
  'created',
  'updated',
  'deleted',
  'removed',
]);
/** Each must equal the number of operations sent. */
const COUNTS = new Set([
  'accepted',
  'added',
  'affected',
  'applied',
  'count',
  'created',
  'deleted',
  'inserted',
  'processed',
  'received',
  'removed',
  'rows',
  'succeeded',
  'success',
  'total',
  'updated',
  'upserted',
]);
/** Each must be nothing at all. */
const FAILURES = new Set([
  'duplicates',
  'dropped',
  'error',
  'errors',
  'failed',
  'failure',
  'failures',
  'ignored',
  'invalid',
  'missing',
  'not_found',
  'rejected',
  'skipped',
  'unmatched',
  'warnings',
]);
/** Say nothing about what was done. */
const NEUTRAL = new Set([
  'id',
  'request_id',
  'requestid',
  'trace_id',
  'timestamp',
  'took',
  'took_ms',
  'duration_ms',
]);

/** `rows`: the number of operations sent; `null`: the request held none (a finish). */
export function agrees(reply: unknown, rows: number | null): boolean {
  if (reply === true || reply === null) return true;
  if (typeof reply === 'string') return isSuccessWord(reply);
  if (typeof reply !== 'object' || Array.isArray(reply)) return false;
  return Object.entries(reply).every(([name, value]) => memberAgrees(name.toLowerCase(), value, rows));
}

function memberAgrees(name: string, value: unknown, rows: number | null): boolean {
  if (FAILURES.has(name)) return isNothing(value);
  if (FLAGS.has(name) && value === true) return true;
  if (STATES.has(name) && typeof value === 'string') return isSuccessWord(value);
  if (COUNTS.has(name) && typeof value === 'number') return rows !== null && value === rows;
  return NEUTRAL.has(name) && (typeof value === 'string' || typeof value === 'number');
}

function isSuccessWord(text: string): boolean {
  return STATE_WORDS.has(text.trim().toLowerCase());
}

function isNothing(value: unknown): boolean {
  if (value === null || value === false || value === 0 || value === '') return true;
  return typeof value === 'object' && Object.keys(value).length === 0;
}
