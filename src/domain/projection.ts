/**
 * Mapping by a TypeScript function (design.md sections 4 and 9, rule 7): the row is built, validated, projected, and
 * what comes back is checked as strictly as if a stranger had written it. Nothing that the function throws or returns
 * reaches a message; nothing it does wrong excludes a row.
 */

import { canonicalJson } from './canonical-json.ts';
import { collapse } from './collapse.ts';
import { checkLength } from './columns.ts';
import type { Sha256Hex } from './mapping.ts';
import {
  type EncodedMember,
  type JsonObject,
  MAX_MEMBERS_PER_ROW,
  type MappedRow,
  type MirrorProjection,
} from './member.ts';
import { named, RowFailure, reporting } from './row-failure.ts';
import { rowBuilder, validate } from './row-schema.ts';
import { compileSourceKey } from './source-key.ts';
import { type Column, InvalidValue, type RawRow, type SourceRow } from './source-row.ts';

/** How many of the first rows are projected twice, to catch a clock or randomness before anything is sealed. */
const ROWS_PROJECTED_TWICE = 16;

/** As `compileMapping`, for a mapping in code. What it returns counts rows: compile it anew for each snapshot. */
export function compileProjection(
  projection: MirrorProjection,
  key: readonly string[],
  columns: readonly Column[],
  sha256Hex: Sha256Hex,
): (row: RawRow) => MappedRow {
  const sourceKey = compileSourceKey(key, columns, sha256Hex);
  const buildRow = rowBuilder(columns);
  let projectTwice = ROWS_PROJECTED_TWICE;
  const map = (raw: RawRow): MappedRow => {
    checkLength(raw, columns.length);
    const text = sourceKey.text(raw);
    const row = buildRow(raw);
    validate(projection.rowType, row);
    const members = membersOf(projection, row);
    if (projectTwice > 0) {
      projectTwice -= 1;
      checkSame(members, membersOf(projection, row));
    }
    return { sourceKey: text, members };
  };
  return reporting(map, sourceKey.hash);
}

function checkSame(first: readonly EncodedMember[], second: readonly EncodedMember[]): void {
  if (JSON.stringify(first) !== JSON.stringify(second)) throw invalid('not-deterministic');
}

function membersOf(projection: MirrorProjection, row: SourceRow): readonly EncodedMember[] {
  return foreign(() => {
    const result: unknown = projection.project(row);
    if (!Array.isArray(result)) throw invalid(isPromise(result) ? 'async-result' : 'not-a-list');
    if (result.length > MAX_MEMBERS_PER_ROW) {
      throw new RowFailure('data.invalid-row', { rule: 'too-many-members', limit: MAX_MEMBERS_PER_ROW });
    }
    // Array.from gives holes as undefined, which are then refused.
    return collapse(Array.from<unknown, EncodedMember>(result, encodeMember));
  });
}

/** Runs foreign code: whatever else it throws is told without its words, which may hold values. */
function foreign<T>(run: () => T): T {
  try {
    return run();
  } catch (error) {
    throw error instanceof RowFailure ? error : invalid('mapping-threw');
  }
}

/** An answer that comes later is refused, and may fail later without harm. */
function isPromise(result: unknown): boolean {
  if (!isObject(result) || typeof result.then !== 'function') return false;
  Promise.resolve(result).catch(() => undefined);
  return true;
}

/** A member as its canonical texts, checked as strictly as if a stranger had written it. @throws RowFailure */
export function encodeMember(member: unknown): EncodedMember {
  if (!isObject(member)) throw invalid('not-a-member');
  const identity = encodePart(member, 'identity');
  const upsert = encodePart(member, 'upsert');
  const remove = encodePart(member, 'remove');
  return { identity, upsert, remove: remove === identity ? null : remove };
}

function encodePart(member: JsonObject, part: 'identity' | 'upsert' | 'remove'): string {
  const value = member[part];
  if (!isObject(value)) throw new RowFailure('data.invalid-row', { rule: 'not-an-object', part });
  const text = canonicalPart(value, part);
  if (part === 'identity') checkIdentity(value);
  return text;
}

function canonicalPart(value: JsonObject, part: string): string {
  try {
    return canonicalJson(value);
  } catch (error) {
    throw error instanceof InvalidValue ? named(error, { part }) : error;
  }
}

/** No field of an identity, at any depth, may be null or '': the rows that lack it would all be one member. */
function checkIdentity(identity: JsonObject): void {
  const fields = Object.entries(identity);
  if (fields.length === 0) throw invalid('no-identity');
  for (const [field, value] of fields) {
    if (hasNothing(value)) throw new RowFailure('data.null-key', { field });
  }
}

function hasNothing(value: unknown): boolean {
  if (value === null || value === '') return true;
  return typeof value === 'object' && Object.values(value).some(hasNothing);
}

function isObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function invalid(rule: string): RowFailure {
  return new RowFailure('data.invalid-row', { rule });
}
