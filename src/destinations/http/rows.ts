/**
 * Per-row results, matched by id and never by position. A reply that lacks, repeats or adds ids accepts nothing
 * (design.md section 9).
 */

import { canonicalString } from '../../domain/canonical-json.ts';
import { type Folding, foldIdentity } from '../../domain/folding.ts';
import type { Operation, OperationOutcome } from '../port.ts';
import { at, field } from './json-pointer.ts';
import type { PerRow } from './options.ts';

export type RowsResult =
  /** One outcome per operation, in the order of the request. */
  | { readonly kind: 'settled'; readonly outcomes: readonly OperationOutcome[] }
  | { readonly kind: 'unknown'; readonly code: string };

/** States in between, in any API: such a row is neither accepted nor rejected. */
const UNDECIDED = new Set([
  'accepted_for_processing',
  'deferred',
  'in_progress',
  'pending',
  'processing',
  'queued',
  'running',
  'scheduled',
  'submitted',
  'unknown',
]);

/** `words` cleans the provider's reason before it is kept. */
export function readRows(
  reply: unknown,
  rows: PerRow,
  operations: readonly Operation[],
  folding: readonly Folding[],
  words: (text: string) => string,
): RowsResult {
  const list = at(reply, rows.list);
  if (!Array.isArray(list)) return unknown('reply-lacks-ids');
  const byId = new Map<string, OperationOutcome>();
  for (const row of list) {
    const id = idText(field(row, rows.id), folding);
    if (id === null) return unknown('reply-malformed-id');
    if (byId.has(id)) return unknown('reply-repeats-ids');
    const outcome = rowOutcome(row, rows, words);
    if (outcome === null) return unknown('reply-undecided-row');
    byId.set(id, outcome);
  }
  return attribute(byId, rows, operations, folding);
}

function attribute(
  byId: ReadonlyMap<string, OperationOutcome>,
  rows: PerRow,
  operations: readonly Operation[],
  folding: readonly Folding[],
): RowsResult {
  const outcomes: OperationOutcome[] = [];
  const seen = new Set<string>();
  for (const operation of operations) {
    const id = idText(matchValue(operation, rows.match), folding);
    const outcome = id === null ? undefined : byId.get(id);
    if (id === null || outcome === undefined) return unknown('reply-lacks-ids');
    // Two operations with one id: the reply cannot tell them apart.
    if (seen.has(id)) return unknown('reply-ambiguous-ids');
    seen.add(id);
    outcomes.push(outcome);
  }
  if (byId.size !== operations.length) return unknown('reply-adds-ids');
  return { kind: 'settled', outcomes };
}

function unknown(code: string): RowsResult {
  return { kind: 'unknown', code };
}

function matchValue(operation: Operation, match: string): unknown {
  if (match === 'operation_id') return operation.id;
  return field(JSON.parse(operation.identity), match);
}

/**
 * The id as text, folded as the target folds; `null` where it is none. A number past 2^53 has lost digits in parsing
 * and could be taken for its neighbour.
 */
function idText(value: unknown, folding: readonly Folding[]): string | null {
  if (typeof value === 'number') return Number.isSafeInteger(value) ? canonicalString(String(value)) : null;
  if (typeof value === 'boolean') return canonicalString(String(value));
  // No identity holds NUL or half a pair, so no reply can mean one by such an id.
  if (typeof value !== 'string' || value.includes('\0') || !value.isWellFormed()) return null;
  return foldIdentity(canonicalString(value), folding);
}

/** `null`: the row says neither yes nor no. */
function rowOutcome(row: unknown, rows: PerRow, words: (text: string) => string): OperationOutcome | null {
  const value = field(row, rows.ok.field);
  if (typeof value !== 'string' && typeof value !== 'number' && typeof value !== 'boolean') return null;
  if (rows.ok.values.includes(value)) return { kind: 'accepted' };
  const no = rows.ok.rejected === undefined ? !isUndecided(value) : rows.ok.rejected.includes(value);
  return no ? { kind: 'rejected', code: 'row-rejected', reason: words(reasonText(row, rows, value)) } : null;
}

function isUndecided(value: string | number | boolean): boolean {
  const text = String(value).trim().toLowerCase();
  const status = /^\d{3}$/.test(text) ? Number(text) : 0;
  return UNDECIDED.has(text) || status === 202 || status === 408 || status >= 500;
}

function reasonText(row: unknown, rows: PerRow, value: string | number | boolean): string {
  const reason = rows.reason === undefined ? undefined : field(row, rows.reason);
  if (typeof reason === 'string') return reason;
  return reason === undefined || reason === null ? String(value) : JSON.stringify(reason);
}

/** Does any listed row claim success? Under a status that says "nothing applied" that is a contradiction. */
export function claimsAcceptance(reply: unknown, rows: PerRow): boolean {
  const list = at(reply, rows.list);
  if (!Array.isArray(list)) return false;
  return list.some((row) => {
    const value = field(row, rows.ok.field);
    return (
      (typeof value === 'string' || typeof value === 'number' || typeof value === 'boolean') &&
      rows.ok.values.includes(value)
    );
  });
}
