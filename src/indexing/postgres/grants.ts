/** Who may read an index besides the role that makes it. */

import { type IndexConnection, query } from './database.ts';

/** In the journal's own database, those who may see its values may see these too. */
export async function letRead(client: IndexConnection, schema: string, relation: string): Promise<void> {
  const [role] = await query(
    client,
    `select to_regrole('retl_reader') is not null and to_regclass('retl.journal') is not null as here,
      has_schema_privilege($1, 'usage with grant option') as may_grant`,
    [schema.slice(1, -1).replaceAll('""', '"')],
  );
  if (role?.here !== true) return;
  if (role.may_grant === true) await query(client, `grant usage on schema ${schema} to retl_reader`);
  await query(client, `grant select on ${relation} to retl_reader`);
}
