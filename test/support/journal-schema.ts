/**
 * The schema that the migrations result in, as text: what a reviewer compares. Made from the catalog, so that it needs no
 * program beside the server; bodies of functions stand for themselves in the migrations and as a hash here.
 */

import type pg from 'pg';

const HEADER = `-- The journal's schema as the migrations leave it; \`npm run schema\` writes it, a test keeps it current.
-- To be read, not run: functions stand here with the sha256 of their body.
`;

/** What a group has been granted, on the schema, tables, columns and functions, and on tables still to come. */
function mayOf(role: string): readonly [title: string, query: string] {
  return [
    `What ${role} may`,
    `select line from (
       select 1 as n, format('grant %s on schema retl to ${role};', lower(a.privilege_type)) as line
       from pg_namespace s cross join lateral aclexplode(s.nspacl) a
       where s.nspname = 'retl' and a.grantee = '${role}'::regrole
       union all
       select 2, format('grant %s on %s to ${role};',
         lower(string_agg(a.privilege_type, ', ' order by a.privilege_type)), c.oid::regclass)
       from pg_class c cross join lateral aclexplode(c.relacl) a
       where c.relnamespace = 'retl'::regnamespace and a.grantee = '${role}'::regrole group by c.oid
       union all
       select 3, format('grant %s (%s) on %s to ${role};', lower(a.privilege_type),
         string_agg(k.attname, ', ' order by k.attnum), c.oid::regclass)
       from pg_class c join pg_attribute k on k.attrelid = c.oid cross join lateral aclexplode(k.attacl) a
       where c.relnamespace = 'retl'::regnamespace and a.grantee = '${role}'::regrole group by c.oid, a.privilege_type
       union all
       select 4, format('grant execute on function %s to ${role};', p.oid::regprocedure)
       from pg_proc p cross join lateral aclexplode(p.proacl) a
       where p.pronamespace = 'retl'::regnamespace and a.grantee = '${role}'::regrole
       union all
       select 5, format('grant %s on every later table of the owner to ${role};', lower(a.privilege_type))
       from pg_default_acl d cross join lateral aclexplode(d.defaclacl) a
       where d.defaclnamespace = 'retl'::regnamespace and a.grantee = '${role}'::regrole) g order by n, line`,
  ];
}

const SECTIONS: readonly (readonly [title: string, query: string])[] = [
  [
    'Domains',
    `select format('create domain retl.%I as %s %s;', t.typname, format_type(t.typbasetype, t.typtypmod),
        (select string_agg(pg_get_constraintdef(c.oid), ' ' order by c.conname)
         from pg_constraint c where c.contypid = t.oid)) as line
     from pg_type t where t.typnamespace = 'retl'::regnamespace and t.typtype = 'd' order by t.typname`,
  ],
  [
    'Sequences',
    `select format('create sequence retl.%I as %s;', c.relname, format_type(s.seqtypid, null)) as line
     from pg_sequence s join pg_class c on c.oid = s.seqrelid
     where c.relnamespace = 'retl'::regnamespace
       and not exists (select from pg_depend d where d.objid = c.oid and d.deptype = 'i') order by c.relname`,
  ],
  [
    'Tables',
    `select format(E'create table retl.%I (\\n%s\\n);', c.relname, string_agg(d.part, E',\\n' order by d.section, d.n, d.part))
       as line
     from pg_class c cross join lateral (
       select 1 as section, a.attnum::int as n, format('  %I %s%s%s%s', a.attname, format_type(a.atttypid, a.atttypmod),
           case when a.attidentity <> '' then ' generated always as identity' else '' end,
           case when a.attnotnull then ' not null' else '' end,
           coalesce(' default ' || pg_get_expr(v.adbin, v.adrelid), '')) as part
       from pg_attribute a left join pg_attrdef v on v.adrelid = a.attrelid and v.adnum = a.attnum
       where a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped
       union all
       select 2, 0, format('  constraint %I %s', k.conname, pg_get_constraintdef(k.oid))
       from pg_constraint k where k.conrelid = c.oid and k.contype <> 'n') d
     where c.relnamespace = 'retl'::regnamespace and c.relkind = 'r' group by c.relname order by c.relname`,
  ],
  [
    'Indexes that are no constraint',
    `select pg_get_indexdef(i.indexrelid) || ';' as line
     from pg_index i join pg_class c on c.oid = i.indexrelid
     where c.relnamespace = 'retl'::regnamespace and not exists (select from pg_constraint k where k.conindid = i.indexrelid)
     order by c.relname`,
  ],
  [
    'Triggers',
    `select pg_get_triggerdef(t.oid) || ';' as line from pg_trigger t join pg_class c on c.oid = t.tgrelid
     where c.relnamespace = 'retl'::regnamespace and not t.tgisinternal order by c.relname, t.tgname`,
  ],
  [
    'Functions',
    `select format(E'function retl.%I(%s)\\n  returns %s, language %s%s%s, body sha256:%s', p.proname,
        pg_get_function_arguments(p.oid), pg_get_function_result(p.oid), l.lanname,
        case p.provolatile when 'i' then ', immutable' when 's' then ', stable' else '' end,
        case when p.prosecdef then ', security definer' else '' end,
        encode(sha256(convert_to(p.prosrc, 'UTF8')), 'hex')) as line
     from pg_proc p join pg_language l on l.oid = p.prolang
     where p.pronamespace = 'retl'::regnamespace order by p.proname, pg_get_function_arguments(p.oid)`,
  ],
  ...['retl_runtime', 'retl_inspector', 'retl_reader', 'retl_approver'].map((role) => mayOf(role)),
];

/** The text of migrations/schema.sql for a database that has just been migrated. */
export async function describeSchema(db: pg.Pool): Promise<string> {
  const parts = [HEADER];
  for (const [title, query] of SECTIONS) {
    const { rows } = await db.query<{ line: string }>(query);
    parts.push(`\n-- ${title}\n\n${rows.map((row) => row.line).join('\n')}\n`);
  }
  return parts.join('');
}
