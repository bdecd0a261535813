/**
 * What another table in the target's place would not have, or what would be left without its table: everything that the
 * catalogs tie to the table itself and that `CREATE TABLE … LIKE … INCLUDING ALL` does not copy. Indexes keep their names and
 * the table its comment, and the sequences of serial columns move over (swap-rename.ts). Statistics targets of columns and the choice for CLUSTER are not looked at.
 */

import type { PoolClient } from 'pg';
import { z } from 'zod';
import type { QualifiedName } from './identifier.ts';
import { LOSSES, type LossKind } from './options.ts';

/** What would take data with it: never accepted. */
const BARRIERS = ['inheritance', 'row-type'] as const;

type Kind = LossKind | (typeof BARRIERS)[number];

export interface Loss {
  readonly kind: Kind;
  /** What is lost, by name: an object of the database, never a value. */
  readonly name: string;
}

const TARGET = `
  WITH t AS (
    SELECT c.* , c.oid AS id FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
     WHERE n.nspname = $1 AND c.relname = $2)`;

const KINDS: Readonly<Record<Kind, string>> = {
  'foreign-keys': `
    SELECT f.conname::text AS name FROM t JOIN pg_catalog.pg_constraint f ON t.id IN (f.conrelid, f.confrelid)
     WHERE f.contype = 'f'`,
  grants: `
    SELECT CASE g.grantee WHEN 0 THEN 'public' ELSE pg_catalog.pg_get_userbyid(g.grantee)::text END
      FROM t, pg_catalog.aclexplode(t.relacl) g WHERE g.grantee <> t.relowner
    UNION SELECT a.attname::text FROM t JOIN pg_catalog.pg_attribute a ON a.attrelid = t.id
     WHERE a.attacl IS NOT NULL AND NOT a.attisdropped`,
  inheritance: `
    SELECT c.relname::text FROM t JOIN pg_catalog.pg_inherits i ON t.id IN (i.inhparent, i.inhrelid)
      JOIN pg_catalog.pg_class c ON c.oid IN (i.inhparent, i.inhrelid) AND c.oid <> t.id`,
  owner: `
    SELECT pg_catalog.pg_get_userbyid(t.relowner)::text FROM t
     WHERE t.relowner <> (SELECT oid FROM pg_catalog.pg_roles WHERE rolname = current_user)`,
  policies: `
    SELECT p.polname::text FROM t JOIN pg_catalog.pg_policy p ON p.polrelid = t.id
    UNION SELECT 'row security' FROM t WHERE t.relrowsecurity`,
  publications: `
    SELECT p.pubname::text FROM t JOIN pg_catalog.pg_publication_rel r ON r.prrelid = t.id
      JOIN pg_catalog.pg_publication p ON p.oid = r.prpubid`,
  'replica-identity': `SELECT 'replica identity' FROM t WHERE t.relreplident <> 'd'`,
  'row-type': `
    SELECT pg_catalog.pg_describe_object(d.classid, d.objid, d.objsubid)
      FROM t JOIN pg_catalog.pg_type y ON y.oid = t.reltype
      JOIN pg_catalog.pg_depend d ON d.refclassid = 'pg_catalog.pg_type'::pg_catalog.regclass
       AND d.refobjid IN (y.oid, y.typarray) AND d.deptype = 'n'`,
  rules: `
    SELECT w.rulename::text FROM t JOIN pg_catalog.pg_rewrite w ON w.ev_class = t.id`,
  'security-labels': `
    SELECT s.provider FROM t JOIN pg_catalog.pg_seclabel s
      ON s.objoid = t.id AND s.classoid = 'pg_catalog.pg_class'::pg_catalog.regclass`,
  sequences: `
    SELECT s.relname::text FROM t
      JOIN pg_catalog.pg_depend d ON d.refclassid = 'pg_catalog.pg_class'::pg_catalog.regclass AND d.refobjid = t.id
       AND d.classid = 'pg_catalog.pg_class'::pg_catalog.regclass AND d.deptype = 'i'
      JOIN pg_catalog.pg_class s ON s.oid = d.objid AND s.relkind = 'S'`,
  'storage-parameters': `SELECT pg_catalog.unnest(t.reloptions) FROM t`,
  subscriptions: `
    SELECT 'subscription' FROM t JOIN pg_catalog.pg_subscription_rel r ON r.srrelid = t.id`,
  triggers: `
    SELECT g.tgname::text FROM t JOIN pg_catalog.pg_trigger g ON g.tgrelid = t.id WHERE NOT g.tgisinternal`,
  views: `
    SELECT pg_catalog.format('%I.%I', n.nspname, c.relname) FROM t
      JOIN pg_catalog.pg_depend d ON d.refclassid = 'pg_catalog.pg_class'::pg_catalog.regclass AND d.refobjid = t.id
       AND d.classid = 'pg_catalog.pg_rewrite'::pg_catalog.regclass
      JOIN pg_catalog.pg_rewrite w ON w.oid = d.objid
      JOIN pg_catalog.pg_class c ON c.oid = w.ev_class AND c.oid <> t.id
      JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace`,
};

/** Whether a mirror that accepts these kinds may lose it. */
export function isAccepted({ kind }: Loss, accepted: readonly LossKind[]): boolean {
  return accepted.some((one) => one === kind);
}

/** Everything that a rename would lose, whether accepted or not. */
export async function lossesOf(client: PoolClient, target: QualifiedName): Promise<readonly Loss[]> {
  const losses: Loss[] = [];
  for (const kind of [...LOSSES, ...BARRIERS]) {
    const { rows } = await client.query(
      `${TARGET} SELECT DISTINCT l.name FROM (${KINDS[kind]}) AS l (name) ORDER BY 1`,
      [target.schema, target.name],
    );
    for (const { name } of z.array(z.object({ name: z.string() })).parse(rows)) losses.push({ kind, name });
  }
  return losses;
}
