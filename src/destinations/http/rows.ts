/**
 * Per-row results, matched by id and never by position. A reply that lacks, repeats or adds ids accepts nothing
 * (design.md section 9).
 */

import { canonicalString } from '../../domain/canonical-json.ts';
import { type Folding, foldIdentity } from '../../domain/folding.ts';
import type { Operation, OperationOutcome } from '../port.ts';
import { at, field } from './json-pointer.ts';
import type { PerRow } from './option-parts.ts';

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

/** One row of a reply: which operation it speaks of, and what it says. */
export interface ListedRow {
  /** As it stands in the reply. */
  readonly id: unknown;
  /** `null`: neither yes nor no. */
  readonly outcome: OperationOutcome | null;
}

/** `words` cleans the provider's reason before it is kept. */
export function readRows(
  reply: unknown,
  rows: Omit<PerRow, 'statuses'>,
  operations: readonly Operation[],
  folding: readonly Folding[],
  words: (text: string) => string,
): RowsResult {
  const list = listRows(reply, rows, words);
  return list === null ? unknown('reply-lacks-ids') : attributeRows(list, rows.match, operations, folding);
}

/** `null` where the reply has no such list. */
export function listRows(
  reply: unknown,
  rows: Omit<PerRow, 'statuses'>,
  words: (text: string) => string,
): readonly ListedRow[] | null {
  const list = at(reply, rows.list);
  if (!Array.isArray(list)) return null;
  return list.map((row) => ({ id: field(row, rows.id), outcome: rowOutcome(row, rows, words) }));
}

/** Each operation must be spoken of once, and nothing else. */
export function attributeRows(
  list: readonly ListedRow[],
  match: string,
  operations: readonly Operation[],
  folding: readonly Folding[],
): RowsResult {
  const byId = new Map<string, OperationOutcome>();
  for (const row of list) {
    const id = idText(row.id, folding);
    if (id === null) return unknown('reply-malformed-id');
    if (byId.has(id)) return unknown('reply-repeats-ids');
    if (row.outcome === null) return unknown('reply-undecided-row');
    byId.set(id, row.outcome);
  }
  return attribute(byId, match, operations, folding);
}

function attribute(
  byId: ReadonlyMap<string, OperationOutcome>,
  match: string,
  operations: readonly Operation[],
  folding: readonly Folding[],
): RowsResult {
  const outcomes: OperationOutcome[] = [];
  const seen = new Set<string>();
  for (const operation of operations) {
    const id = idText(matchValue(operation, match), folding);
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
function rowOutcome(
  row: unknown,
  rows: Omit<PerRow, 'statuses'>,
  words: (text: string) => string,
): OperationOutcome | null {
  const value = field(row, rows.ok.field);
  if (typeof value !== 'string' && typeof value !== 'number' && typeof value !== 'boolean') return null;
  if (rows.ok.values.includes(value)) return { kind: 'accepted' };
  const no = rows.ok.rejected === undefined ? !isUndecided(value) : rows.ok.rejected.includes(value);
  return no
    ? { kind: 'rejected', code: 'row-rejected', reason: words(reasonText(row, rows.reason, value)) }
    : null;
}

function isUndecided(value: string | number | boolean): boolean {
  const text = String(value).trim().toLowerCase();
  const status = /^\d{3}$/.test(text) ? Number(text) : 0;
  return UNDECIDED.has(text) || status === 202 || status === 408 || status >= 500;
}

/** The provider's words; `value` stands for them where the row has none. */
export function reasonText(row: unknown, name: string | undefined, value: string | number | boolean): string {
  const reason = name === undefined ? undefined : field(row, name);
  if (typeof reason === 'string') return reason;
  return reason === undefined || reason === null ? String(value) : JSON.stringify(reason);
}

/** Does any listed row claim success? Under a status that says "nothing applied" that is a contradiction. */
export function claimsAcceptance(reply: unknown, rows: Omit<PerRow, 'statuses'>): boolean {
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
