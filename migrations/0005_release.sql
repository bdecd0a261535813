-- Holders that a person has declared lost: their Temporal cluster is gone for good and can say nothing (design.md section 4,
-- "Who holds a run"). Who, and why, is kept; the reason is an operator's own text, for retl_reader alone.

create table retl.release (
  epoch bigint primary key references retl.attempt, -- what fences the lost holder
  run_id bigint not null references retl.run,
  holder_namespace text not null,
  holder_cluster text not null,
  holder_workflow_id text not null,
  holder_first_run_id text not null,
  released_by text not null check (length(released_by) between 1 and 200),
  because text not null check (length(because) between 1 and 20000),
  released_at timestamptz not null default clock_timestamp()
);
create index release_run on retl.release (run_id);
create trigger append_only before update or delete or truncate on retl.release
  for each statement execute function retl.refuse_change();
grant select on retl.release to retl_runtime;
grant select (epoch, run_id, holder_namespace, holder_cluster, holder_workflow_id, holder_first_run_id, released_at)
  on retl.release to retl_inspector, retl_approver;

-- Rule 9: lets an open run go without its holder, who is fenced by a new epoch. p_first_run_id is the holder that was looked
-- at: where another one holds the run by now, nothing is done.
--
-- Returns jsonb, {kind: released | no-such-run | closed | not-held | other-holder}.
create function retl.release_lost(p_run bigint, p_first_run_id text, p_by text, p_because text) returns jsonb
  language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
  r retl.run;
begin
  perform retl.require_writer();
  if p_first_run_id is null or coalesce(p_by, '') = '' or coalesce(p_because, '') = '' then
    raise exception 'which holder, who releases it, or why, is missing' using errcode = 'RM003';
  end if;
  select * into r from retl.run where run_id = p_run for no key update;
  if not found then
    return jsonb_build_object('kind', 'no-such-run');
  elsif r.closing is not null then
    return jsonb_build_object('kind', 'closed');
  elsif r.released is not null then
    return jsonb_build_object('kind', 'not-held');
  elsif r.holder_first_run_id <> p_first_run_id then
    return jsonb_build_object('kind', 'other-holder');
  end if;
  update retl.run set released = 'failed', reason = 'temporal-lost', epoch = nextval('retl.epoch')
    where run_id = p_run returning epoch into r.epoch;
  insert into retl.attempt (epoch, run_id, step) values (r.epoch, p_run, 'release');
  insert into retl.release (epoch, run_id, holder_namespace, holder_cluster, holder_workflow_id, holder_first_run_id,
      released_by, because)
    values (r.epoch, p_run, r.holder_namespace, r.holder_cluster, r.holder_workflow_id, r.holder_first_run_id, p_by,
      p_because);
  return jsonb_build_object('kind', 'released');
end
$$;
revoke all on function retl.release_lost from public;
grant execute on function retl.release_lost to retl_runtime;
