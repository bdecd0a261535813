/**
 * What a source hands to the mapping. A value stays the source's own exact text until a mapping asks for it, so that
 * int8, numeric and microsecond timestamps never pass through a double.
 */

/** One row: the exact text of each column, in column order; `null` is SQL NULL and is never the empty string. */
export type RawRow = readonly (string | null)[];

/** What the mapping may know of one column. Both functions are pure and throw {@link InvalidValue} only. */
export interface Column {
  /** Unique within a query. */
  readonly name: string;
  /** The source's own name of the type, e.g. `int8`, `timestamptz`, `text[]`. */
  readonly typeName: string;
  /** True where a value's text follows no rule of its own parts (arrays, ranges, composites): no source key is made of it. */
  readonly noKey?: boolean;
  /** Canonical JSON (RFC 8785) of a non-null value. */
  json(raw: string): string;
  /** The value's exact text, what keys, normalisation and hashing work on. */
  text(raw: string): string;
}

/** Rules that a single value can break. The value itself is never part of the error. */
export type InvalidValueRule =
  | 'not-finite' // NaN or an infinity, in any numeric, date or time type
  | 'nul-character' // U+0000
  | 'lone-surrogate' // half of a UTF-16 surrogate pair
  | 'inexact-number' // a JSON number that a double cannot hold exactly
  | 'too-deep' // JSON nested deeper than MAX_JSON_DEPTH
  | 'malformed'; // text that is not of the column's type

/** A value that has no exact representation in a request. Fails the row, and with it the run; never an exclusion. */
export class InvalidValue extends Error {
  override readonly name = 'InvalidValue';
  constructor(readonly rule: InvalidValueRule) {
    super(`a value breaks the rule "${rule}"`);
  }
}

/** A value as a TypeScript mapping sees it: int8 and numeric are strings, so that nothing is rounded. */
export type SourceValue =
  | null
  | boolean
  | number
  | string
  | readonly SourceValue[]
  | { readonly [key: string]: SourceValue };

/** A row as a TypeScript mapping sees it. */
export type SourceRow = { readonly [column: string]: SourceValue };
