/**
 * `when`: which rows give a member. A row that fails a condition is excluded on purpose (rule 7); a condition that
 * cannot be decided fails the row instead.
 *
 * `null` / `not_null`, and `empty` / `not_empty` are complements; NULL and '' are empty, white space is not. NULL is
 * neither true nor false, and equals nothing. Texts are compared exactly, as the source writes them.
 */

import { assertNever } from './assert-never.ts';
import { cell, jsonOf, type Place, textOf } from './columns.ts';
import { RowFailure } from './row-failure.ts';
import type { Condition } from './settings.ts';
import type { RawRow } from './source-row.ts';

export type Predicate = (row: RawRow) => boolean;

/** All conditions hold; without conditions every row passes. */
export function compileConditions(
  conditions: readonly Condition[],
  find: (name: string) => Place,
): Predicate {
  const predicates = conditions.map((condition) => compileCondition(condition, find(condition.column)));
  return (row) => predicates.every((holds) => holds(row));
}

function compileCondition(condition: Condition, place: Place): Predicate {
  if ('equals' in condition) {
    const { equals } = condition;
    return onText(place, false, (text) => text === equals);
  }
  if ('in' in condition) {
    const wanted = new Set(condition.in);
    return onText(place, false, (text) => wanted.has(text));
  }
  const { index } = place;
  switch (condition.is) {
    case 'null':
      return (row) => cell(row, index) === null;
    case 'not_null':
      return (row) => cell(row, index) !== null;
    case 'empty':
      return onText(place, true, (text) => text === '');
    case 'not_empty':
      return onText(place, false, (text) => text !== '');
    case 'true':
      return isBoolean(place, 'true');
    case 'false':
      return isBoolean(place, 'false');
    default:
      return assertNever(condition.is);
  }
}

function onText({ index, column }: Place, ofNull: boolean, holds: (text: string) => boolean): Predicate {
  return (row) => {
    const raw = cell(row, index);
    return raw === null ? ofNull : holds(textOf(column, raw));
  };
}

/** A value that is no boolean would exclude its row by mistake: it fails the row. */
function isBoolean({ index, column }: Place, wanted: 'true' | 'false'): Predicate {
  return (row) => {
    const raw = cell(row, index);
    if (raw === null) return false;
    const json = jsonOf(column, raw);
    if (json === wanted) return true;
    if (json === 'true' || json === 'false') return false;
    throw new RowFailure('data.invalid-row', { rule: 'not-boolean', column: column.name });
  };
}
