/**
 * \`swap: rename\`: the side table takes the target's place and name, and the former table is dropped, in one transaction. What hangs
 * on the former table is lost (losses.ts): it is looked for again under the lock, as it may have come since the run began.
 * Readers wait for as long as the transaction takes, which is not long: no row is moved.
 */

import type { PoolClient } from 'pg';
import { z } from 'zod';
import { type QualifiedName, quoteName, quoteQualified } from './identifier.ts';
import { isAccepted, type Loss, lossesOf } from './losses.ts';
import type { LossKind } from './options.ts';

/** Objects that refer to the former table, and go with it by CASCADE. */
const DEPENDENTS: readonly string[] = ['views', 'foreign-keys'];

/** Answers what would be lost and is not accepted; then nothing was changed. The caller commits or rolls back. */
export async function takePlace(
  client: PoolClient,
  target: QualifiedName,
  side: QualifiedName,
  accepted: readonly LossKind[],
): Promise<readonly Loss[]> {
  await client.query(`LOCK TABLE ${quoteQualified(target)} IN ACCESS EXCLUSIVE MODE`);
  const losses = await lossesOf(client, target);
  const barred = losses.filter((loss) => !isAccepted(loss, accepted));
  if (barred.length > 0) return barred;
  await copyComment(client, target, side);
  const names = pairs(await indexesOf(client, target), await indexesOf(client, side));
  const cascade = losses.some(({ kind }) => DEPENDENTS.includes(kind)) ? ' CASCADE' : '';
  await moveSequences(client, target, side);
  await client.query(`DROP TABLE ${quoteQualified(target)}${cascade}`);
  await client.query(`ALTER TABLE ${quoteQualified(side)} RENAME TO ${quoteName(target.name)}`);
  for (const [from, to] of names) {
    const index = quoteQualified({ schema: target.schema, name: from });
    await client.query(`ALTER INDEX ${index} RENAME TO ${quoteName(to)}`);
  }
  return [];
}

async function copyComment(client: PoolClient, from: QualifiedName, to: QualifiedName): Promise<void> {
  const { rows } = await client.query(
    `SELECT pg_catalog.obj_description($1::pg_catalog.regclass, 'pg_class') AS comment`,
    [quoteQualified(from)],
  );
  const { comment } = z.object({ comment: z.string().nullable() }).parse(rows[0]);
  if (comment === null) return;
  await client.query(`COMMENT ON TABLE ${quoteQualified(to)} IS ${client.escapeLiteral(comment)}`);
}

const SERIAL = `
  SELECT n.nspname AS schema, s.relname AS name, a.attname AS column
    FROM pg_catalog.pg_depend d
    JOIN pg_catalog.pg_class s ON s.oid = d.objid AND s.relkind = 'S'
    JOIN pg_catalog.pg_namespace n ON n.oid = s.relnamespace
    JOIN pg_catalog.pg_attribute a ON a.attrelid = d.refobjid AND a.attnum = d.refobjsubid
   WHERE d.classid = 'pg_catalog.pg_class'::pg_catalog.regclass AND d.deptype = 'a'
     AND d.refclassid = 'pg_catalog.pg_class'::pg_catalog.regclass AND d.refobjid = $1::pg_catalog.regclass`;

/** The copied defaults draw from the former table's sequences, which must not go with it. */
async function moveSequences(client: PoolClient, from: QualifiedName, to: QualifiedName): Promise<void> {
  const { rows } = await client.query(SERIAL, [quoteQualified(from)]);
  const owned = z.array(z.object({ schema: z.string(), name: z.string(), column: z.string() })).parse(rows);
  for (const sequence of owned) {
    const owner = `${quoteQualified(to)}.${quoteName(sequence.column)}`;
    await client.query(`ALTER SEQUENCE ${quoteQualified(sequence)} OWNED BY ${owner}`);
  }
}

interface Index {
  readonly name: string;
  /** Its definition without its name and its table's. */
  readonly form: string;
}

/** What is unique by a constraint and what by an index alone have one definition, and are told apart. */
const INDEXES = `
  SELECT c.relname AS name,
         pg_catalog.concat(i.indisprimary, k.contype, ' ',
           pg_catalog.replace(pg_catalog.pg_get_indexdef(i.indexrelid),
             pg_catalog.format(' INDEX %I ON %s ', c.relname, $1::pg_catalog.regclass), ' ')) AS form
    FROM pg_catalog.pg_index i JOIN pg_catalog.pg_class c ON c.oid = i.indexrelid
    LEFT JOIN pg_catalog.pg_constraint k ON k.conindid = i.indexrelid AND k.contype IN ('p', 'u', 'x')
   WHERE i.indrelid = $1::pg_catalog.regclass ORDER BY i.indexrelid`;

async function indexesOf(client: PoolClient, table: QualifiedName): Promise<readonly Index[]> {
  // Only with an empty path are tables written in one form, by their schema.
  await client.query("SELECT pg_catalog.set_config('search_path', '', true)");
  const { rows } = await client.query(INDEXES, [quoteQualified(table)]);
  return z.array(z.object({ name: z.string(), form: z.string() })).parse(rows);
}

/** Names of the new table's indexes, each with that of the former one like it. */
function pairs(
  before: readonly Index[],
  after: readonly Index[],
): readonly (readonly [from: string, to: string])[] {
  const left = [...before];
  return after.flatMap(({ name, form }) => {
    const at = left.findIndex((index) => index.form === form);
    const [like] = at < 0 ? [] : left.splice(at, 1);
    return like === undefined ? [] : [[name, like.name] as const];
  });
}
