-- Abandoned candidates (design.md section 5, retention): open runs that nobody goes on with, and whose snapshot is too old to be
-- resumed. Maintenance does with them what the next run of the mirror would do if there were one: it takes the run over, has the
-- adapter abort its session, and closes it. Accepted operations stay (retl.close_run).

-- Old enough, and neither unresolved nor at its finish (rule 10). How long ago somebody took the run up counts, too. That its
-- holder is gone is not known here.
create function retl.is_abandoned(r retl.run, p_age_ms bigint) returns boolean
  language sql stable set search_path = pg_catalog, pg_temp as $$
  select r.closing is null and r.phase not in ('finish', 'promote') and not retl.has_unresolved(r.run_id)
    and exists (select from retl.generation g where g.run_id = r.run_id and g.state in ('loaded', 'sealed'))
    and coalesce(r.sealed_at, r.opened_at) < clock_timestamp() - p_age_ms * interval '1 ms'
    and not exists (select from retl.attempt a where a.run_id = r.run_id and a.step = 'admit'
      and a.started_at >= clock_timestamp() - p_age_ms * interval '1 ms')
$$;

create function retl.require_a_day(p_age_ms bigint) returns void
  language plpgsql set search_path = pg_catalog, pg_temp as $$
begin
  if p_age_ms is null or p_age_ms < 86400000 then
    raise exception 'what a run leaves is kept for a day at least' using errcode = 'RM003';
  end if;
end
$$;

-- Open runs after p_after that may be abandoned, with who holds them, in order; released: they have let go.
create function retl.abandoned_runs(p_age_ms bigint, p_after bigint, p_limit integer)
  returns table (run_id bigint, released boolean, namespace text, cluster text, workflow_id text, first_run_id text)
  language plpgsql stable security definer set search_path = pg_catalog, pg_temp as $$
begin
  perform retl.require_a_day(p_age_ms);
  return query select r.run_id, r.released is not null, r.holder_namespace, r.holder_cluster, r.holder_workflow_id,
      r.holder_first_run_id
    from retl.run r where r.closing is null and r.run_id > p_after and retl.is_abandoned(r, p_age_ms)
    order by r.run_id limit p_limit;
end
$$;

-- Takes an abandoned run over, to close it: its former holder is fenced (rule 9). p_closed_holder: the first run id of a holder
-- that Temporal says is closed. False, without a change: it is not abandoned, somebody holds it, or is at it this moment.
create function retl.adopt_abandoned(p_run bigint, p_age_ms bigint, p_closed_holder text, p_namespace text, p_cluster text,
    p_workflow_id text, p_first_run_id text) returns boolean
  language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
  r retl.run;
begin
  perform retl.require_writer();
  perform retl.require_a_day(p_age_ms);
  if num_nulls(p_run, p_namespace, p_cluster, p_workflow_id, p_first_run_id) > 0 then
    raise exception 'an argument is missing' using errcode = 'RM003';
  end if;
  select * into r from retl.run where run_id = p_run for no key update skip locked;
  if not found or not retl.is_abandoned(r, p_age_ms) then
    return false;
  end if;
  if r.released is null and r.holder_first_run_id is distinct from p_closed_holder
     and (r.holder_namespace, r.holder_cluster, r.holder_workflow_id, r.holder_first_run_id)
       is distinct from (p_namespace, p_cluster, p_workflow_id, p_first_run_id) then
    return false;
  end if;
  update retl.run set holder_namespace = p_namespace, holder_cluster = p_cluster, holder_workflow_id = p_workflow_id,
    holder_first_run_id = p_first_run_id, released = null, reason = null, epoch = nextval('retl.epoch')
    where run_id = p_run returning epoch into r.epoch;
  insert into retl.attempt (epoch, run_id, step) values (r.epoch, p_run, 'abandon');
  return true;
end
$$;

revoke all on function retl.is_abandoned, retl.require_a_day, retl.abandoned_runs, retl.adopt_abandoned from public;
grant execute on function retl.adopt_abandoned to retl_runtime;
grant execute on function retl.abandoned_runs to retl_runtime, retl_inspector, retl_reader, retl_approver;
