/** The types of a query's columns, read from the catalogue once, in the snapshot's own transaction. */

import type { ClientBase, FieldDef } from 'pg';
import type { Column } from '../../domain/source-row.ts';
import { arrayCodec, builtinCodec, type Codec, TEXT } from './values.ts';

interface TypeRow {
  readonly oid: number;
  readonly name: string;
  readonly builtin: boolean;
  /** A range, a multirange, a composite type or an anonymous record. */
  readonly compound: boolean;
  /** Element type of a true array, else 0. */
  readonly element: number;
  /** Base type of a domain, else 0. */
  readonly base: number;
  /** What stands between the elements in the text of an array of this type. */
  readonly delimiter: string;
}

/**
 * The named types, what arrays among them are made of, and what domains among them stand for, at any depth.
 * `array_in` tells true arrays from the fixed ones (`point`, `name`, `int2vector`), which are printed otherwise.
 */
const TYPES = `
WITH RECURSIVE wanted(oid) AS (
  SELECT pg_catalog.unnest($1::pg_catalog.oid[])
  UNION
  SELECT inner_type.oid
  FROM wanted
  JOIN pg_catalog.pg_type AS t ON t.oid = wanted.oid
  CROSS JOIN LATERAL (VALUES
    (CASE WHEN t.typinput = 'pg_catalog.array_in'::pg_catalog.regproc THEN t.typelem END),
    (CASE WHEN t.typtype = 'd' THEN t.typbasetype END)) AS inner_type(oid)
  WHERE inner_type.oid IS NOT NULL
)
SELECT t.oid,
       t.typname AS name,
       t.typnamespace = 'pg_catalog'::pg_catalog.regnamespace AS builtin,
       t.typtype IN ('r', 'm', 'c') OR t.typinput = 'pg_catalog.record_in'::pg_catalog.regproc AS compound,
       CASE WHEN t.typinput = 'pg_catalog.array_in'::pg_catalog.regproc THEN t.typelem ELSE 0 END AS element,
       CASE WHEN t.typtype = 'd' THEN t.typbasetype ELSE 0 END AS base,
       t.typdelim AS delimiter
FROM wanted JOIN pg_catalog.pg_type AS t ON t.oid = wanted.oid`;

interface ResolvedType {
  readonly name: string;
  readonly codec: Codec;
  /** An array, or a compound: printed from parts, each as its own type prints it. */
  readonly printedInParts: boolean;
}

/** Columns of the described query, ready to convert values. */
export async function resolveColumns(client: ClientBase, fields: readonly FieldDef[]): Promise<Column[]> {
  const oids = [...new Set(fields.map((field) => field.dataTypeID))];
  const { rows } = await client.query<TypeRow>(TYPES, [oids]);
  const byOid = new Map(rows.map((row) => [row.oid, row]));
  return fields.map((field) => {
    const { name, codec, printedInParts } = resolve(field.dataTypeID, byOid);
    const noKey = printedInParts ? { noKey: true } : {};
    return { name: field.name, typeName: name, ...noKey, json: codec.json, text: codec.text };
  });
}

/** A domain is its base type, an array is made from its elements' type. The catalogue has no cycles. */
function resolve(oid: number, types: ReadonlyMap<number, TypeRow>): ResolvedType {
  const type = types.get(oid);
  if (type === undefined) return { name: 'unknown', codec: TEXT, printedInParts: false };
  if (type.base !== 0) return resolve(type.base, types);
  if (type.element !== 0) {
    const element = resolve(type.element, types);
    const delimiter = types.get(type.element)?.delimiter ?? ',';
    const codec = arrayCodec(element.codec, delimiter);
    return { name: `${element.name}[]`, codec, printedInParts: true };
  }
  const codec = type.builtin ? builtinCodec(type.name) : TEXT;
  return { name: type.name, codec, printedInParts: type.compound };
}
