/**
 * The row that a TypeScript mapping sees: built once from the columns' exact JSON, frozen, and held against the mapping's
 * schema. A schema may refuse a row, never alter it; it may leave columns out.
 */

import { canonicalString } from './canonical-json.ts';
import { cell, jsonOf } from './columns.ts';
import type { MirrorProjection } from './member.ts';
import { RowFailure } from './row-failure.ts';
import type { Column, RawRow, SourceRow } from './source-row.ts';

/** One parse of one text: also right for columns named like members of Object.prototype. */
export function rowBuilder(columns: readonly Column[]): (raw: RawRow) => SourceRow {
  const labels = columns.map((column, index) => `${index === 0 ? '' : ','}${canonicalString(column.name)}:`);
  return (raw) => {
    let json = '{';
    columns.forEach((column, index) => {
      const value = cell(raw, index);
      json += labels[index] + (value === null ? 'null' : jsonOf(column, value));
    });
    return frozen(JSON.parse(`${json}}`));
  };
}

/** What a mapping changes in a row, its second run would see. */
function frozen<T>(value: T): T {
  if (typeof value === 'object' && value !== null) {
    for (const part of Object.values(value)) frozen(part);
    Object.freeze(value);
  }
  return value;
}

/** @throws RowFailure naming the columns that the schema refuses, where it says so. */
export function validate(rowType: MirrorProjection['rowType'], row: SourceRow): void {
  const result = parsed(rowType, row);
  if (!result.success) {
    const columns = refusedColumns(result, row);
    throw new RowFailure('data.invalid-row', { rule: 'row-schema', ...(columns.length > 0 && { columns }) });
  }
  if (!isPartOf(result.data, row)) throw new RowFailure('data.invalid-row', { rule: 'schema-alters-row' });
}

function parsed(
  rowType: MirrorProjection['rowType'],
  row: SourceRow,
): ReturnType<MirrorProjection['rowType']['safeParse']> {
  try {
    return rowType.safeParse(row);
  } catch {
    throw new RowFailure('data.invalid-row', { rule: 'row-schema-threw' });
  }
}

/** Names out of zod's issues, and only names of columns: deeper paths can be made of values. */
function refusedColumns(result: object, row: SourceRow): readonly string[] {
  const issues = property(property(result, 'error'), 'issues');
  if (!Array.isArray(issues)) return [];
  const refused = new Set(issues.map((issue) => property(property(issue, 'path'), '0')));
  return Object.keys(row).filter((column) => refused.has(column));
}

function property(value: unknown, name: string): unknown {
  return typeof value === 'object' && value !== null ? Reflect.get(value, name) : undefined;
}

/** Whether the schema's output holds nothing that the row does not hold, at any depth. */
function isPartOf(output: unknown, row: unknown): boolean {
  if (typeof output !== 'object' || output === null) return Object.is(output, row);
  if (typeof row !== 'object' || row === null || Array.isArray(output) !== Array.isArray(row)) return false;
  if (Array.isArray(output) && Array.isArray(row) && output.length !== row.length) return false;
  return Object.entries(output).every(([name, value]) => isPartOf(value, property(row, name)));
}
