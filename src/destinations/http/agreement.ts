/**
 * Whether a success status without configured `outcomes` may be trusted with the whole request. Two rules: every part of
 * the reply must be understood and agree, and at least one of them must say that the work was done: a word or flag of
 * success, a count of accepted (inserted, removed, …) operations that is the number sent, or a list of results that names
 * each operation sent exactly once and says yes to it. What was received, counted or processed may still have been
 * refused, so that such words can contradict and never prove; nor do an id, `null` or `{}`. An empty body leaves the word
 * to the status. Any other API needs `outcomes`, and until then nothing is accepted.
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
/** Each must equal the number of operations sent, and then proves that they were done. */
const DONE_COUNTS = new Set([
  'accepted',
  'added',
  'affected',
  'applied',
  'created',
  'deleted',
  'inserted',
  'removed',
  'succeeded',
  'success',
  'updated',
  'upserted',
]);
/** Each must equal the number of operations sent, and proves nothing: what was refused has been received too. */
const SEEN_COUNTS = new Set(['count', 'processed', 'received', 'rows', 'total']);
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
  if (reply === true) return true;
  if (typeof reply === 'string') return isSuccessWord(reply);
  if (typeof reply !== 'object' || reply === null || Array.isArray(reply)) return false;
  const parts = Object.entries(reply).map(([name, value]) => partSays(name.toLowerCase(), value, sent));
  return parts.includes('done') && !parts.includes('no');
}

/** What one part of a reply says: that the work was done, nothing of it, or that it was not (or nobody knows). */
type Says = 'done' | 'nothing' | 'no';

function partSays(name: string, value: unknown, sent: Sent): Says {
  if (FAILURES.has(name)) return isNothing(value) ? 'nothing' : 'no';
  if (FLAGS.has(name) && value === true) return 'done';
  if (STATES.has(name) && typeof value === 'string') return isSuccessWord(value) ? 'done' : 'no';
  if (typeof value === 'number' && (DONE_COUNTS.has(name) || SEEN_COUNTS.has(name))) {
    if (sent.rows === 0 || value !== sent.rows) return 'no';
    return DONE_COUNTS.has(name) ? 'done' : 'nothing';
  }
  if (LISTS.has(name) && Array.isArray(value)) return resultsAgree(value, sent) ? 'done' : 'no';
  return NEUTRAL.has(name) && (typeof value === 'string' || typeof value === 'number') ? 'nothing' : 'no';
}

/** Each operation named once by `id`, with a word or flag of success; no position, no foreign id, no second word. */
function resultsAgree(list: readonly unknown[], { rows, ids }: Sent): boolean {
  if (list.length !== rows || ids.size !== rows) return false;
  const missing = new Set(ids);
  return list.every((row) => {
    if (typeof row !== 'object' || row === null || !('id' in row)) return false;
    const { id, ...rest } = row;
    if (typeof id !== 'string' || !missing.delete(id)) return false;
    return agrees(rest, { rows: 1, ids: new Set() });
  });
}

function isSuccessWord(text: string): boolean {
  return STATE_WORDS.has(text.trim().toLowerCase());
}

function isNothing(value: unknown): boolean {
  if (value === null || value === false || value === 0 || value === '') return true;
  return typeof value === 'object' && Object.keys(value).length === 0;
}
