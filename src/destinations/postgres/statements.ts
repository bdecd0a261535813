/**
 * The statements that write. Each takes the whole body as one text parameter and answers how many of its rows now
 * stand as asked, so that a row which a trigger discards is never taken for accepted.
 */

import { identityReader, payloadReader } from './columns.ts';
import { type QualifiedName, quoteName, quoteQualified } from './identifier.ts';
import type { Table, TableColumn } from './table.ts';

/** A field with the column that it is written to. */
export interface Binding {
  readonly field: string;
  readonly column: TableColumn;
}

/** What a statement needs to know about its target. */
export interface Target {
  readonly name: QualifiedName;
  readonly table: Table;
  readonly identity: readonly Binding[];
  /** The identity columns fold: the spelling that is sent last is the one that is kept. */
  readonly folds: boolean;
}

export interface WriteStatement {
  /** `$1` is a JSON array; gives rows of one column, `applied`. */
  readonly write: string;
  /** Run after `write`, with the same parameter, where its own answer cannot tell; else `null`. */
  readonly verify: string | null;
  /** `$1` is a JSON array; gives `exact`: every identity is written as its column writes it. */
  readonly exact: string;
  /** `$1` is a JSON array; gives `applied`: how many of its rows stand as asked already. `null`: `verify` has told. */
  readonly stands: string | null;
}

/** Inserts or updates; columns that are not bound keep their value, or get their default in a new row. */
export function upsertStatement(target: Target, payload: readonly Binding[]): WriteStatement {
  const columns = [...target.identity, ...payload].map(({ column }) => quoteName(column.name));
  const keys = identityColumns(target);
  const updated = payload.length === 0 || target.folds ? columns : columns.slice(keys.length);
  const mark = markFor(columns);
  const input = readInput(target, payload, mark);
  return {
    write: `
      WITH x AS MATERIALIZED (${input}), w AS (
        INSERT INTO ${quoteQualified(target.name)} (${columns.join(', ')})
        SELECT ${columns.map((column) => `x.${column}`).join(', ')} FROM x WHERE x.${mark}
        ON CONFLICT (${keys.join(', ')}) DO UPDATE
          SET ${updated.map((column) => `${column} = EXCLUDED.${column}`).join(', ')}
        RETURNING ${keys.join(', ')}
      )
      SELECT pg_catalog.count(*)::int AS applied FROM w JOIN x ON ${joined('w', keys)} AND x.${mark}`,
    verify: null,
    exact: exactOf(input, mark),
    // As text: not every type can be compared.
    stands: `
      WITH x AS MATERIALIZED (${input})
      SELECT pg_catalog.count(*)::int AS applied FROM x JOIN ${quoteQualified(target.name)} AS t ON ${joined('t', keys)}
       WHERE x.${mark} AND ${columns.map((column) => `t.${column}::text IS NOT DISTINCT FROM x.${column}::text`).join(' AND ')}`,
  };
}

/** Deletes by identity. A row that is not there is as it should be. */
export function removeStatement(target: Target): WriteStatement {
  const keys = identityColumns(target);
  const mark = markFor(keys);
  const input = readInput(target, [], mark);
  // Rows of inheritance children are not the table's own; the rows of partitions are.
  const from = `${target.table.kind === 'p' ? '' : 'ONLY '}${quoteQualified(target.name)} AS t`;
  return {
    write: `
      WITH x AS MATERIALIZED (${input})
      DELETE FROM ${from} USING x WHERE x.${mark} AND ${joined('t', keys)}`,
    verify: `
      WITH x AS MATERIALIZED (${input})
      SELECT pg_catalog.count(*)::int AS applied FROM x
       WHERE x.${mark} AND NOT EXISTS (SELECT FROM ${from} WHERE ${joined('t', keys)})`,
    exact: exactOf(input, mark),
    stands: null,
  };
}

function identityColumns({ identity }: Target): readonly string[] {
  return identity.map(({ column }) => quoteName(column.name));
}

function joined(left: string, keys: readonly string[]): string {
  return keys.map((key) => `${left}.${key} = x.${key}`).join(' AND ');
}

/** Name of the column that says whether an identity is exact; no column of the target has it. */
function markFor(columns: readonly string[]): string {
  let name = 'exact';
  while (columns.includes(quoteName(name))) name += '_';
  return quoteName(name);
}

function exactOf(input: string, mark: string): string {
  return `SELECT pg_catalog.bool_and(x.${mark}) AS exact FROM (${input}) AS x`;
}

/** One row per operation, under the columns' names, and whether its identity is exact (columns.ts). */
function readInput(target: Target, payload: readonly Binding[], mark: string): string {
  const identity = target.identity.map(({ field, column }) => ({
    field,
    column,
    reader: identityReader(field, column),
  }));
  const rest = payload.map(({ field, column }) => ({ field, column, reader: payloadReader(field, column) }));
  const all = [...identity, ...rest];
  const values = all.map(({ column, reader }) => `${reader.value} AS ${quoteName(column.name)}`);
  const exact = identity.map(({ reader }) => `(${reader.exact})`).join(' AND ');
  const read = all.map(({ field, reader }) => `${quoteName(field)} ${reader.readAs}`);
  return `
    SELECT ${values.join(', ')}, ${exact} AS ${mark}
      FROM pg_catalog.json_to_recordset($1::json) AS j (${read.join(', ')})`;
}
