/** The columns of a query by name, and the values of a row by column; failures name the column, never the value. */

import { RetlError } from './errors.ts';
import { named, RowFailure } from './row-failure.ts';
import type { Column, RawRow } from './source-row.ts';

/** A column and where it stands in a row. */
export interface Place {
  readonly index: number;
  readonly column: Column;
}

/** Looks columns up by name. @throws RetlError `data.unknown-column` with the names there are. */
export function columnFinder(columns: readonly Column[]): (name: string) => Place {
  const places = new Map(columns.map((column, index) => [column.name, { index, column }]));
  return (name) => {
    const place = places.get(name);
    if (place === undefined) {
      throw new RetlError('data.unknown-column', { column: name, available: columns.map((c) => c.name) });
    }
    return place;
  };
}

/** The raw value of a column. A row that lacks it must never pass for one that holds NULL. */
export function cell(row: RawRow, index: number): string | null {
  const raw = row[index];
  if (raw === undefined) throw new RowFailure('data.invalid-row', { rule: 'missing-value' });
  return raw;
}

/** Refuses a row with another number of values than there are columns, before anything is read from it. */
export function checkLength(row: RawRow, columns: number): void {
  if (row.length !== columns) {
    throw new RowFailure('data.invalid-row', { rule: 'row-length', columns, values: row.length });
  }
}

/** {@link Column.text}, a broken value named by its column. */
export function textOf(column: Column, raw: string): string {
  try {
    return column.text(raw);
  } catch (error) {
    throw named(error, { column: column.name });
  }
}

/** {@link Column.json}, a broken value named by its column. */
export function jsonOf(column: Column, raw: string): string {
  try {
    return column.json(raw);
  } catch (error) {
    throw named(error, { column: column.name });
  }
}
