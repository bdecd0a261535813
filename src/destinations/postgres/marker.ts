/**
 * The marker: one row per target, beside its fence, that says which finish was the last to be swapped in. It is written in
 * the transaction of the swap, so that a finish whose answer was lost is found by it (rule 10). `init` makes the table
 * where the role may; else by hand, as the problem that `preflight` reports says.
 */

import type { PoolClient } from 'pg';
import { type QualifiedName, quoteQualified } from './identifier.ts';

export class Marker {
  private readonly name: string;

  /** Stands in the schema of the fence table. */
  constructor(
    fence: QualifiedName,
    private readonly target: QualifiedName,
  ) {
    this.table = { schema: fence.schema, name: 'retl_swaps' };
    this.name = quoteQualified(this.table);
  }

  readonly table: QualifiedName;

  get ddl(): string {
    return (
      `CREATE TABLE IF NOT EXISTS ${this.name} (target_schema text NOT NULL, target_table text NOT NULL, ` +
      'finish text NOT NULL, generation text NOT NULL, members bigint NOT NULL, ' +
      'swapped_at timestamptz NOT NULL DEFAULT pg_catalog.now(), PRIMARY KEY (target_schema, target_table))'
    );
  }

  /** What lets a role use the table. */
  grant(role: string): string {
    return `GRANT SELECT, INSERT, UPDATE ON ${this.name} TO ${role}`;
  }

  async look(client: PoolClient): Promise<'ready' | 'barred' | 'missing'> {
    const { rows } = await client.query(
      `SELECT pg_catalog.bool_and(pg_catalog.has_table_privilege(c.oid, p)) AS usable
         FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace,
              pg_catalog.unnest(ARRAY['SELECT', 'INSERT', 'UPDATE']) AS p
        WHERE n.nspname = $1 AND c.relname = $2`,
      [this.table.schema, this.table.name],
    );
    const usable: unknown = rows[0]?.usable ?? null;
    if (usable === null) return 'missing';
    return usable === true ? 'ready' : 'barred';
  }

  async create(client: PoolClient): Promise<void> {
    if ((await this.look(client)) !== 'missing') return;
    // Two mirrors of one schema may begin at once: the second then finds the table.
    await client.query('SELECT pg_catalog.pg_advisory_xact_lock(pg_catalog.hashtextextended($1, 0))', [
      this.name,
    ]);
    await client.query(this.ddl);
  }

  /** Whether this very finish was the last one to be swapped in. */
  async says(client: PoolClient, finish: string): Promise<boolean> {
    const { rows } = await client.query(
      `SELECT FROM ${this.name} WHERE target_schema = $1 AND target_table = $2 AND finish = $3`,
      [this.target.schema, this.target.name, finish],
    );
    return rows.length > 0;
  }

  async write(client: PoolClient, finish: string, generation: string, members: number): Promise<void> {
    await client.query(
      `INSERT INTO ${this.name} AS m (target_schema, target_table, finish, generation, members)
       VALUES ($1, $2, $3, $4, $5)
       ON CONFLICT (target_schema, target_table) DO UPDATE SET finish = EXCLUDED.finish,
         generation = EXCLUDED.generation, members = EXCLUDED.members, swapped_at = pg_catalog.now()`,
      [this.target.schema, this.target.name, finish, generation, members],
    );
  }
}
