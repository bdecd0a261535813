/** Whether an index could be built in a database, and kept: its role's rights, looked up without changing anything. */

import type pg from 'pg';
import { RetlError } from '../../domain/errors.ts';
import { inTransaction, query } from './database.ts';

/** `has_…_privilege` throws where the thing is not there: each is asked only where it is. */
const RIGHTS = `
  select pg_is_in_recovery() or current_setting('default_transaction_read_only') = 'on' as read_only,
    s.oid is not null as has_schema,
    case when s.oid is null then has_database_privilege(current_database(), 'create')
      else has_schema_privilege(s.oid, 'usage') and has_schema_privilege(s.oid, 'create') end as may_create,
    b.oid is null or (has_table_privilege(b.oid, 'select') and has_table_privilege(b.oid, 'insert') and has_table_privilege(b.oid, 'update')) as may_write,
    has_database_privilege(current_database(), 'temporary') as may_make_temporary,
    v.oid is null or pg_has_role(v.relowner, 'usage') as owns_view,
    v.oid is null or v.relkind = 'v' as is_view
  from (select) one
  left join pg_namespace s on s.nspname = $1
  left join pg_class b on b.relnamespace = s.oid and b.relname = 'index_build'
  left join pg_class v on v.relnamespace = s.oid and v.relname = $2`;

/** @param schema not quoted. @throws RetlError `index.unavailable`, `index.misconfigured` with a rule */
export async function lookAt(pool: pg.Pool, schema: string, name: string): Promise<void> {
  const rule = await inTransaction(pool, async (client) => {
    await query(client, 'set transaction read only');
    const [row] = await query(client, RIGHTS, [schema, name]);
    if (row?.read_only !== false) return 'read-only';
    if (row.may_create !== true)
      return row.has_schema === true ? 'may-not-create-in-schema' : 'may-not-create-schema';
    if (row.may_write !== true) return 'may-not-write';
    if (row.may_make_temporary !== true) return 'may-not-make-temporary';
    if (row.is_view !== true) return 'name-taken';
    return row.owns_view === true ? null : 'other-owner';
  });
  if (rule !== null) throw new RetlError('index.misconfigured', { system: 'postgres', rule, schema });
}
