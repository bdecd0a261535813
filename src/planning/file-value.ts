/**
 * A value of a file as the raw text that the source would print for it: only then is the member that is mapped from it the very
 * one that a row of the query gives. Where a type has several texts for one value, the one that is printed is asked for.
 */

import { RowFailure } from '../domain/row-failure.ts';
import type { Column } from '../domain/source-row.ts';

const INTEGER = /^(0|-?[1-9]\d*)$/;
const PRINTED: { readonly [type: string]: RegExp } = {
  int2: INTEGER,
  int4: INTEGER,
  int8: INTEGER,
  oid: INTEGER,
  numeric: /^-?(0|[1-9]\d*)(\.\d+)?$/,
  bool: /^[tf]$/,
  uuid: /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/,
  bytea: /^\\x([0-9a-f]{2})*$/,
  date: /^\d{4,}-\d\d-\d\d( BC)?$/,
  timestamp: /^\d{4,}-\d\d-\d\d \d\d:\d\d:\d\d(\.\d{0,5}[1-9])?( BC)?$/,
  timestamptz: /^\d{4,}-\d\d-\d\d \d\d:\d\d:\d\d(\.\d{0,5}[1-9])?\+00( BC)?$/,
};

/** @throws RowFailure `data.invalid-row`, naming rule and column */
export function rawOf(column: Column, value: unknown): string | null {
  if (value === null) return null;
  const raw = textOf(column, value);
  const printed = PRINTED[column.typeName];
  if (printed !== undefined && !printed.test(raw)) throw refused('not-as-the-source-prints-it', column);
  return raw;
}

function textOf(column: Column, value: unknown): string {
  switch (typeof value) {
    case 'string':
      return column.typeName === 'bool' && (value === 'true' || value === 'false') ? value.charAt(0) : value;
    case 'boolean':
      return column.typeName === 'bool' ? String(value).charAt(0) : String(value);
    case 'number':
      return String(value);
    default:
      if (column.typeName !== 'json' && column.typeName !== 'jsonb') throw refused('not-a-text', column);
      return JSON.stringify(value);
  }
}

function refused(rule: string, column: Column): RowFailure {
  return new RowFailure('data.invalid-row', { rule, column: column.name, type: column.typeName });
}
