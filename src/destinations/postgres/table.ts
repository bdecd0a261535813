/** What the server's catalogs say about the target table, as far as writing to it is concerned. */

import type { PoolClient } from 'pg';
import { z } from 'zod';
import type { QualifiedName } from './identifier.ts';

const columnSchema = z.object({
  name: z.string(),
  /** The declared type with its length or scale, names outside pg_catalog qualified and quoted. */
  type: z.string(),
  /** Type under any domains: name for built-in types, `enum` for enums, else `other`. */
  base: z.string(),
  /** The domain's or the column's length or scale is set. */
  sized: z.boolean(),
  notNull: z.boolean(),
  hasDefault: z.boolean(),
  generated: z.boolean(),
  identityAlways: z.boolean(),
  /** A default that draws from a sequence which this role may not use. */
  sequenceBarred: z.boolean(),
  /** Qualified and quoted name of a collation for which different texts can be equal; `null` otherwise. */
  foldingCollation: z.string().nullable(),
  mayInsert: z.boolean(),
  mayUpdate: z.boolean(),
  maySelect: z.boolean(),
});

const indexSchema = z.object({
  columns: z.array(z.string()),
  /** Valid, immediate, not partial, not on expressions, in the columns' own collations. */
  usable: z.boolean(),
});

const tableSchema = z.object({
  kind: z.string(),
  persistence: z.string(),
  rowSecurity: z.boolean(),
  rewriteRules: z.boolean(),
  foreignPartition: z.boolean(),
  mayDelete: z.boolean(),
  mayUseSchema: z.boolean(),
  readOnly: z.boolean(),
  columns: z.array(columnSchema),
  uniqueIndexes: z.array(indexSchema),
  /** Qualified names of tables whose rows a removal here would delete or change. */
  cascadesTo: z.array(z.string()),
});

export type TableColumn = z.infer<typeof columnSchema>;
export type Table = z.infer<typeof tableSchema>;

/** Kinds that the adapter writes to: ordinary and partitioned tables. */
export const WRITABLE_KINDS: readonly string[] = ['r', 'p'];

const COLUMNS = `
  SELECT pg_catalog.json_agg(pg_catalog.json_build_object(
    'name', a.attname,
    'type', pg_catalog.format_type(a.atttypid, a.atttypmod),
    'base', CASE WHEN b.typtype = 'e' THEN 'enum'
                 WHEN b.typnamespace = 'pg_catalog'::pg_catalog.regnamespace THEN b.typname
                 WHEN b.typname = 'citext' THEN 'citext'
                 ELSE 'other' END,
    'sized', b.typmod >= 0,
    'notNull', a.attnotnull OR b.required,
    'hasDefault', a.atthasdef OR a.attidentity <> '' OR b.hasdefault,
    'generated', a.attgenerated <> '',
    'identityAlways', a.attidentity = 'a',
    'sequenceBarred', a.attidentity = '' AND EXISTS (
      SELECT FROM pg_catalog.pg_attrdef d
        JOIN pg_catalog.pg_depend p ON p.classid = 'pg_catalog.pg_attrdef'::pg_catalog.regclass AND p.objid = d.oid
        JOIN pg_catalog.pg_class s
          ON p.refclassid = 'pg_catalog.pg_class'::pg_catalog.regclass AND s.oid = p.refobjid
       WHERE d.adrelid = a.attrelid AND d.adnum = a.attnum
         -- CASE keeps the planner from asking this of relations that are no sequences, which is an error.
         AND CASE s.relkind WHEN 'S' THEN NOT (pg_catalog.has_sequence_privilege(s.oid, 'USAGE')
                                            OR pg_catalog.has_sequence_privilege(s.oid, 'UPDATE')) END),
    'foldingCollation', (
      SELECT pg_catalog.format('%I.%I', n.nspname, c.collname)
        FROM pg_catalog.pg_collation c JOIN pg_catalog.pg_namespace n ON n.oid = c.collnamespace
       WHERE c.oid = a.attcollation AND NOT c.collisdeterministic),
    'mayInsert', pg_catalog.has_column_privilege(a.attrelid, a.attnum, 'INSERT'),
    'mayUpdate', pg_catalog.has_column_privilege(a.attrelid, a.attnum, 'UPDATE'),
    'maySelect', pg_catalog.has_column_privilege(a.attrelid, a.attnum, 'SELECT')
  ) ORDER BY a.attnum)
  FROM pg_catalog.pg_attribute a
  CROSS JOIN LATERAL (
    WITH RECURSIVE base (oid, typmod, required, hasdefault) AS (
      SELECT a.atttypid, a.atttypmod, false, false
      UNION ALL
      SELECT t.typbasetype, t.typtypmod, base.required OR t.typnotnull, base.hasdefault OR t.typdefault IS NOT NULL
        FROM base JOIN pg_catalog.pg_type t ON t.oid = base.oid WHERE t.typtype = 'd'
    )
    SELECT t.typname, t.typtype, t.typnamespace, base.typmod, base.required, base.hasdefault
      FROM base JOIN pg_catalog.pg_type t ON t.oid = base.oid WHERE t.typtype <> 'd'
  ) b
  WHERE a.attrelid = r.oid AND a.attnum > 0 AND NOT a.attisdropped`;

const UNIQUE_INDEXES = `
  SELECT pg_catalog.json_agg(pg_catalog.json_build_object(
    'columns', (
      SELECT coalesce(pg_catalog.json_agg(a.attname), '[]')
        FROM pg_catalog.unnest(i.indkey::int2[]) WITH ORDINALITY k (attnum, n)
        JOIN pg_catalog.pg_attribute a ON a.attrelid = r.oid AND a.attnum = k.attnum
       WHERE k.n <= i.indnkeyatts),
    'usable', i.indisvalid AND i.indisready AND i.indislive AND i.indimmediate
      AND i.indpred IS NULL AND i.indexprs IS NULL
      AND NOT EXISTS (
        SELECT FROM ROWS FROM (pg_catalog.unnest(i.indkey::int2[]), pg_catalog.unnest(i.indcollation::oid[])) AS k (attnum, coll)
          JOIN pg_catalog.pg_attribute a ON a.attrelid = r.oid AND a.attnum = k.attnum
         WHERE k.coll <> 0 AND k.coll <> a.attcollation)
  ))
  FROM pg_catalog.pg_index i WHERE i.indrelid = r.oid AND i.indisunique`;

const CASCADES = `
  SELECT pg_catalog.json_agg(DISTINCT pg_catalog.format('%I.%I', n.nspname, c.relname))
    FROM pg_catalog.pg_constraint f
    JOIN pg_catalog.pg_class c ON c.oid = f.conrelid
    JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
   WHERE f.contype = 'f' AND f.confrelid = r.oid AND f.confdeltype IN ('c', 'n', 'd')`;

const DESCRIBE = `
  SELECT pg_catalog.json_build_object(
    'kind', r.relkind,
    'persistence', r.relpersistence,
    'rowSecurity', pg_catalog.row_security_active(r.oid),
    'rewriteRules', EXISTS (
      SELECT FROM pg_catalog.pg_rewrite w WHERE w.ev_class = r.oid AND w.ev_type <> '1' AND w.ev_enabled <> 'D'),
    'foreignPartition', r.relkind = 'p' AND EXISTS (
      SELECT FROM pg_catalog.pg_partition_tree(r.oid) p
        JOIN pg_catalog.pg_class c ON c.oid = p.relid WHERE c.relkind = 'f'),
    'mayDelete', pg_catalog.has_table_privilege(r.oid, 'DELETE'),
    'mayUseSchema', pg_catalog.has_schema_privilege(s.oid, 'USAGE'),
    'readOnly', pg_catalog.pg_is_in_recovery() OR pg_catalog.current_setting('transaction_read_only')::bool,
    'columns', coalesce((${COLUMNS}), '[]'),
    'uniqueIndexes', coalesce((${UNIQUE_INDEXES}), '[]'),
    'cascadesTo', coalesce((${CASCADES}), '[]')
  ) AS described
  FROM pg_catalog.pg_class r JOIN pg_catalog.pg_namespace s ON s.oid = r.relnamespace
  WHERE s.nspname = $1 AND r.relname = $2`;

/** Reads the catalogs within the client's transaction; `null` where there is no such table. */
export async function describeTable(client: PoolClient, table: QualifiedName): Promise<Table | null> {
  // Only with an empty path does format_type write every name so that it means the same under any other path.
  const before = await client.query("SELECT pg_catalog.current_setting('search_path') AS path");
  await client.query("SELECT pg_catalog.set_config('search_path', '', true)");
  const { rows } = await client.query(DESCRIBE, [table.schema, table.name]);
  const { path } = z.object({ path: z.string() }).parse(before.rows[0]);
  await client.query("SELECT pg_catalog.set_config('search_path', $1, true)", [path]);
  return rows[0] === undefined ? null : z.object({ described: tableSchema }).parse(rows[0]).described;
}

export function columnNamed(table: Table, name: string): TableColumn | undefined {
  return table.columns.find((column) => column.name === name);
}
