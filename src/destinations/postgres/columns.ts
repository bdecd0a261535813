/**
 * How a JSON value becomes a column's value without a change on the way (but a column of a smaller scale, precision or
 * float rounds, as every INSERT does), and for which identity columns the text that was sent can be proven to be the
 * only text of its value.
 *
 * That proof matters: `01` and `1` are two identities but one integer, `0.10` and `0.1` one numeric. If both were
 * accepted, removing one would remove the other. An identity that is not written as the column itself writes it is
 * therefore rejected, and `identityFits` lists the types for which "as the column writes it" is decided. JSON's types are no
 * part of that text: 1 and "1" are one row, and one member (`identityFolding` of the adapter).
 */

import { quoteName } from './identifier.ts';
import type { TableColumn } from './table.ts';

/** Reading of one field from the recordset `j`. */
export interface FieldReader {
  /** Type under which the recordset reads the field. */
  readonly readAs: string;
  /** Expression of the column's value. */
  readonly value: string;
}

/**
 * A payload field. The recordset reads it by the column type's own input function: numbers and texts keep every
 * digit, arrays keep nesting and nulls, json and jsonb take the embedded value. Bytes arrive as base64.
 */
export function payloadReader(field: string, column: TableColumn): FieldReader {
  const name = `j.${quoteName(field)}`;
  if (column.base === 'bytea') {
    return { readAs: 'text', value: `pg_catalog.decode(${name}, 'base64')::${column.type}` };
  }
  return { readAs: column.type, value: name };
}

/** Why a column cannot be filled without a change on the way, and what to do instead. */
const UNFIT: Readonly<Record<string, { readonly why: string; readonly remedy: string }>> = {
  _bytea: {
    why: 'is an array of bytea, which base64 texts would not fill with their bytes',
    remedy: 'Use text[], or one bytea column for each element.',
  },
  _json: jsonArray('json'),
  _jsonb: jsonArray('jsonb'),
};

/** `{"[1,2]"}` and `{{1,2}}` are one JSON text, and so are an element that is JSON's null and one that is NULL. */
function jsonArray(type: string): { readonly why: string; readonly remedy: string } {
  return {
    why: `is an array of ${type}, whose elements cannot be told from nested arrays and NULLs`,
    remedy: `Use one ${type} column for the whole array.`,
  };
}

/** `null`: the column takes every value as it was sent. */
export function unfitness(column: TableColumn): { readonly why: string; readonly remedy: string } | null {
  return Object.hasOwn(UNFIT, column.base) ? (UNFIT[column.base] ?? null) : null;
}

/** Expression of the one text that stands for a value, by base type; `v` is the value. */
const CANONICAL: Readonly<Record<string, (v: string, column: TableColumn) => string>> = {
  text: asText,
  varchar: asText,
  bpchar: asText,
  name: asText,
  enum: asText,
  citext: asText,
  int2: asText,
  int4: asText,
  int8: asText,
  uuid: asText,
  bool: asText,
  date: asText,
  numeric: (v, column) => asText(column.sized ? v : `pg_catalog.trim_scale(${v})`),
  bytea: (v) => `pg_catalog.replace(pg_catalog.encode(${v}, 'base64'), pg_catalog.chr(10), '')`,
  timestamp: isoTime,
  timestamptz: isoTime,
};

function asText(v: string): string {
  return `(${v})::pg_catalog.text`;
}

/** ISO 8601: T between date and time, no trailing zeros, Z where the type has a zone (transactions are in UTC). */
function isoTime(v: string): string {
  return `pg_catalog.replace(pg_catalog.to_json(${v}) #>> '{}', '+00:00', 'Z')`;
}

/** Expression of the one text that stands for a value of an identity column. */
export function canonicalText(value: string, column: TableColumn): string {
  return (CANONICAL[column.base] ?? asText)(value, column);
}

/** Whether identities can be kept in a column of this type. */
export function identityFits(column: TableColumn): boolean {
  return Object.hasOwn(CANONICAL, column.base);
}

export interface IdentityReader extends FieldReader {
  /** Expression: the text that was sent is the value's only text. */
  readonly exact: string;
}

/** An identity field: read as text, so that what was sent can be compared with what the column makes of it. */
export function identityReader(field: string, column: TableColumn): IdentityReader {
  const sent = `j.${quoteName(field)}`;
  const value =
    column.base === 'bytea'
      ? `pg_catalog.decode(${sent}, 'base64')::${column.type}`
      : `${sent}::${column.type}`;
  return { readAs: 'pg_catalog.text', value, exact: `${canonicalText(value, column)} = ${sent} COLLATE "C"` };
}
