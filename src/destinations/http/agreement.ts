/**
 * Whether a success status without configured `outcomes` may be trusted with the whole request. One rule: every part of
 * the reply must be understood, and agree. An empty body agrees, and so does a list of results that names each operation
 * sent exactly once and says yes to it. A count that is not the number sent, a named failure or anything unfamiliar does
 * not: such an API needs `outcomes`, and until then nothing is accepted.
 */

import type { Operation } from '../port.ts';

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

const LISTS = new Set(['items', 'results', 'rows']);

/** What was sent, for the reply to agree with. */
export interface Sent {
  /** Number of operations; 0 for a request that holds none (a finish). */
  readonly rows: number;
  /** Ids by which a row of the reply may name its operation; empty where identities have several fields. */
  readonly ids: ReadonlySet<string>;
}

export function sentOf(operations: readonly Operation[]): Sent {
  const ids = new Set<string>();
  for (const { identity } of operations) {
    const [id, ...others] = Object.values(JSON.parse(identity));
    if (others.length === 0 && typeof id === 'string') ids.add(id);
  }
  return { rows: operations.length, ids };
}

export function agrees(reply: unknown, sent: Sent): boolean {
  if (reply === true || reply === null) return true;
  if (typeof reply === 'string') return isSuccessWord(reply);
  if (typeof reply !== 'object' || Array.isArray(reply)) return false;
  return Object.entries(reply).every(([name, value]) => memberAgrees(name.toLowerCase(), value, sent));
}

function memberAgrees(name: string, value: unknown, sent: Sent): boolean {
  if (FAILURES.has(name)) return isNothing(value);
  if (FLAGS.has(name) && value === true) return true;
  if (STATES.has(name) && typeof value === 'string') return isSuccessWord(value);
  if (COUNTS.has(name) && typeof value === 'number') return sent.rows > 0 && value === sent.rows;
  if (LISTS.has(name) && Array.isArray(value)) return resultsAgree(value, sent);
  return NEUTRAL.has(name) && (typeof value === 'string' || typeof value === 'number');
}

/** Each operation named once by `id`, with a word or flag of success; no position, no foreign id, no second word. */
function resultsAgree(list: readonly unknown[], { rows, ids }: Sent): boolean {
  if (list.length !== rows || ids.size !== rows) return false;
  const missing = new Set(ids);
  return list.every((row) => {
    if (typeof row !== 'object' || row === null || !('id' in row)) return false;
    const { id, ...rest } = row;
    if (typeof id !== 'string' || !missing.delete(id)) return false;
    const saysSo = Object.keys(rest).some((name) => FLAGS.has(name) || STATES.has(name));
    return saysSo && agrees(rest, { rows: 1, ids: new Set() });
  });
}

function isSuccessWord(text: string): boolean {
  return STATE_WORDS.has(text.trim().toLowerCase());
}

function isNothing(value: unknown): boolean {
  if (value === null || value === false || value === 0 || value === '') return true;
  return typeof value === 'object' && Object.keys(value).length === 0;
}
