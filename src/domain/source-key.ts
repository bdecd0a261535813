/**
 * The source key of a row: the canonical JSON array of its exact key texts, so that parts can
 * never run together and no two values share a key. Every row has one, excluded rows too (rule 7).
 */

import { canonicalString } from './canonical-json.ts';
import { cell, columnFinder, type Place, textOf } from './columns.ts';
import { RetlError } from './errors.ts';
import { named, RowFailure } from './row-failure.ts';
import type { Column, RawRow } from './source-row.ts';
import { utf8Length } from './utf8.ts';

/** Longest source key, in bytes of UTF-8. */
export const MAX_KEY_BYTES = 2000;

export interface SourceKey {
  /** @throws RowFailure for NULL or empty parts, broken values, and keys over {@link MAX_KEY_BYTES}. */
  text(row: RawRow): string;
  /** Named hash by which a person can find the row: of the key's text, NULL parts as null; `null` for ragged rows. */
  hash(row: RawRow): string | null;
}

/** @throws RetlError `data.unknown-column`, `data.invalid-value` (rule `key-type`), `config.invalid` */
export function compileSourceKey(
  key: readonly string[],
  columns: readonly Column[],
  sha256Hex: (text: string) => string,
): SourceKey {
  const parts = key.map(columnFinder(columns)).map(compilePart);
  const [only] = parts;
  if (only === undefined) throw new RetlError('config.invalid', { rule: 'no-key' });
  const join =
    parts.length === 1
      ? (row: RawRow) => `[${only.text(row)}]`
      : (row: RawRow) => `[${parts.map((part) => part.text(row)).join(',')}]`;
  return {
    text: (row) => checkedKey(join(row)),
    hash: (row) =>
      row.length === columns.length
        ? `sha256:${sha256Hex(JSON.stringify(parts.map((part) => part.shown(row))))}`
        : null,
  };
}

function checkedKey(text: string): string {
  const atMost = 3 * text.length;
  if (atMost > MAX_KEY_BYTES && utf8Length(text) > MAX_KEY_BYTES)
    throw new RowFailure('data.key-too-long', {});
  return text;
}

interface KeyPart {
  /** Canonical JSON string of the part. */
  text(row: RawRow): string;
  /** The part as far as it can be read; never throws. */
  shown(row: RawRow): string | null;
}

function compilePart({ index, column }: Place): KeyPart {
  if (column.noKey === true)
    throw new RetlError('data.invalid-value', {
      rule: 'key-type',
      column: column.name,
      type: column.typeName,
    });
  return {
    text(row) {
      const raw = cell(row, index);
      const text = raw === null ? '' : textOf(column, raw);
      if (text === '') throw new RowFailure('data.null-key', { column: column.name });
      return canonical(text, column);
    },
    shown(row) {
      const raw = row[index] ?? null;
      try {
        return raw === null ? null : column.text(raw);
      } catch {
        return raw;
      }
    },
  };
}

function canonical(text: string, column: Column): string {
  try {
    return canonicalString(text);
  } catch (error) {
    throw named(error, { column: column.name });
  }
}
