-- Where indexes live unless they are given a place of their own (docs/indexes.md). What stands in it can be made anew from the
-- log at any time; the worker's role makes and owns it, and has no such right anywhere else in this database.
--
-- What a page changes is staged in a temporary table, and a check makes its scratch copy in one.
--
-- Whoever may not create schemas, or not grant the right to temporary tables, has an administrator do it; the journal works without.
do $$
begin
  if to_regnamespace('retl_index') is null and has_database_privilege(current_user, current_database(), 'create') then
    create schema retl_index;
    comment on schema retl_index is 'Indexes of retl-mirror: derived from the log, and made anew from it.';
    grant usage, create on schema retl_index to retl_runtime;
    grant usage on schema retl_index to retl_reader;
  end if;
  if has_database_privilege(current_user, current_database(), 'temporary with grant option') then
    execute format('grant temporary on database %I to retl_runtime', current_database());
  end if;
end
$$;
