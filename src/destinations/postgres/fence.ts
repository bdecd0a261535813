/**
 * The fence (design.md, rule 9): one row per target table in the target's own database, with the owner that writes to
 * it (a journal and a mirror) and the epoch of the newest attempt.
 *
 * `init` and `attach` raise the epoch. Every transaction that writes first locks the row for sharing and compares both
 * values: requests of one attempt run side by side, while a takeover waits for those under way and shuts out all later
 * ones of the older attempt. A worker that was frozen and wakes up can change nothing. The table, `retl_fence` in the
 * target's schema unless configured otherwise, is made by `init` where the role may; else by hand:
 *
 *   CREATE TABLE <schema>.retl_fence (
 *     target_schema text NOT NULL, target_table text NOT NULL, owner text NOT NULL, epoch bigint NOT NULL,
 *     taken_at timestamptz NOT NULL DEFAULT now(), PRIMARY KEY (target_schema, target_table));
 *   GRANT SELECT, INSERT, UPDATE ON <schema>.retl_fence TO <role>;
 *
 * A target whose mirror is gone for good is freed by deleting its row. All that write to one table must name one fence.
 */

import type { PoolClient } from 'pg';
import { z } from 'zod';
import { type QualifiedName, quoteQualified } from './identifier.ts';

export interface FenceHolder {
  readonly owner: string;
  /** Whoever of them still has the row has sent nothing: it may be taken. */
  readonly formerOwners?: readonly string[];
  readonly epoch: bigint;
}

export type FenceState =
  | { readonly kind: 'held' }
  /** The target belongs to another mirror or another journal. */
  | { readonly kind: 'target-owned' }
  /** A newer attempt has taken the fence. */
  | { readonly kind: 'fenced' }
  /** No attempt, or only older ones, have taken it. */
  | { readonly kind: 'not-taken' };

export class Fence {
  private readonly name: string;

  constructor(
    private readonly table: QualifiedName,
    private readonly target: QualifiedName,
    private readonly holder: FenceHolder,
  ) {
    this.name = quoteQualified(table);
  }

  /** Does the table exist, and may this role use it, or else create it? */
  async look(client: PoolClient): Promise<'ready' | 'barred' | 'creatable' | 'missing'> {
    const { rows } = await client.query(
      `SELECT (SELECT pg_catalog.bool_and(pg_catalog.has_table_privilege(c.oid, p))
                 FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace,
                      pg_catalog.unnest(ARRAY['SELECT', 'INSERT', 'UPDATE']) AS p
                WHERE n.nspname = $1 AND c.relname = $2) AS usable,
              (SELECT pg_catalog.has_schema_privilege(oid, 'USAGE') AND pg_catalog.has_schema_privilege(oid, 'CREATE')
                 FROM pg_catalog.pg_namespace WHERE nspname = $1) AS creatable`,
      [this.table.schema, this.table.name],
    );
    const look = z
      .object({ usable: z.boolean().nullable(), creatable: z.boolean().nullable() })
      .parse(rows[0]);
    if (look.usable !== null) return look.usable ? 'ready' : 'barred';
    return look.creatable === true ? 'creatable' : 'missing';
  }

  /** The statement that makes the table. */
  get ddl(): string {
    return (
      `CREATE TABLE ${this.name} (target_schema text NOT NULL, target_table text NOT NULL, ` +
      'owner text NOT NULL, epoch bigint NOT NULL, taken_at timestamptz NOT NULL DEFAULT pg_catalog.now(), ' +
      'PRIMARY KEY (target_schema, target_table))'
    );
  }

  /** What lets this role use the table. */
  grant(role: string): string {
    return `GRANT SELECT, INSERT, UPDATE ON ${this.name} TO ${role}`;
  }

  async create(client: PoolClient): Promise<void> {
    // Two mirrors of one schema may begin at once: the second then finds the table.
    await client.query('SELECT pg_catalog.pg_advisory_xact_lock(pg_catalog.hashtextextended($1, 0))', [
      this.name,
    ]);
    if (!(await this.exists(client))) await client.query(this.ddl);
  }

  async exists(client: PoolClient): Promise<boolean> {
    return ['ready', 'barred'].includes(await this.look(client));
  }

  /** Takes the fence for this attempt; `mayBegin` also where no attempt has ever held it. */
  async take(client: PoolClient, mayBegin: boolean): Promise<FenceState> {
    if (mayBegin) {
      await client.query(
        `INSERT INTO ${this.name} (target_schema, target_table, owner, epoch) VALUES ($1, $2, $3, $4)
         ON CONFLICT (target_schema, target_table) DO NOTHING`,
        this.parameters,
      );
    }
    const { rowCount } = await client.query(
      `UPDATE ${this.name} SET owner = $3, epoch = $4, taken_at = pg_catalog.now()
        WHERE target_schema = $1 AND target_table = $2 AND (owner = $3 OR owner = ANY ($5::text[])) AND epoch <= $4`,
      [...this.parameters, mayBegin ? (this.holder.formerOwners ?? []) : []],
    );
    return rowCount === 1 ? { kind: 'held' } : this.state(client);
  }

  /** Locks the row until the transaction ends and says whether this attempt holds the fence. */
  async check(client: PoolClient): Promise<FenceState> {
    return this.state(client, 'FOR SHARE');
  }

  private async state(client: PoolClient, lock = ''): Promise<FenceState> {
    const { rows } = await client.query(
      `SELECT owner = $3 AS ours, pg_catalog.sign(epoch - $4::bigint)::int AS ahead
         FROM ${this.name} WHERE target_schema = $1 AND target_table = $2 ${lock}`,
      this.parameters,
    );
    if (rows[0] === undefined) return { kind: 'not-taken' };
    const { ours, ahead } = z.object({ ours: z.boolean(), ahead: z.int() }).parse(rows[0]);
    if (!ours) return { kind: 'target-owned' };
    if (ahead === 0) return { kind: 'held' };
    return { kind: ahead > 0 ? 'fenced' : 'not-taken' };
  }

  private get parameters(): string[] {
    return [this.target.schema, this.target.name, this.holder.owner, String(this.holder.epoch)];
  }
}
