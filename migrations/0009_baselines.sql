-- Imported baselines (design.md section 4, "Strategies"): the complete membership of a target that was managed by other means
-- before, told by a person. It enters as a run of its own, which sends nothing: its members become accepted operations with
-- log entries, and so everything that follows the log or the membership needs to know nothing else.
--
-- All of it is one transaction of the caller: open, load and seal as ever (0002), plan, accept. Whoever dies has imported nothing.

create table retl.import (
  run_id bigint primary key references retl.run,
  imported_by text not null check (length(imported_by) between 1 and 200), -- people's words, as is the next: for retl_reader
  because text not null check (length(because) between 1 and 20000),
  imported_at timestamptz not null default clock_timestamp()
);
create trigger append_only before update or delete or truncate on retl.import
  for each statement execute function retl.refuse_change();
grant select on retl.import to retl_runtime;
grant select (run_id, imported_at) on retl.import to retl_inspector;

-- Opens the run of an import. Where it is refused the caller rolls back: what was looked at is left as it was.
--
-- Returns jsonb: {kind: opened, run, epoch}, or {kind: refused, code: strategy-changed | target-owned | open-run | baseline-known}.
create function retl.open_import(p_mirror text, p_target_key text, p_settings text, p_settings_digest bytea,
    p_max_batch_rows integer, p_max_request_bytes bigint, p_by text, p_because text) returns jsonb
  language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
  v_answer jsonb;
  t retl.target;
  r retl.run;
begin
  if coalesce(p_by, '') = '' or coalesce(p_because, '') = '' then
    raise exception 'who imports, or why, is missing' using errcode = 'RM003';
  end if;
  v_answer := retl.admit(p_mirror, 'snapshot-diff', p_target_key, p_settings, p_settings_digest, null, null, 'hold', 0,
    p_max_batch_rows, p_max_request_bytes, false, 'retl', '', 'baseline/' || p_mirror, gen_random_uuid()::text, null,
    '-infinity');
  if v_answer ->> 'kind' = 'refused' then
    return v_answer;
  end if;
  -- An open run diffs, or has diffed, against a membership without these members.
  if v_answer ->> 'kind' = 'busy' or v_answer ->> 'resume' <> 'fresh' then
    return jsonb_build_object('kind', 'refused', 'code', 'open-run');
  end if;
  select * into strict r from retl.run where run_id = (v_answer ->> 'run')::bigint;
  select * into strict t from retl.target where target_id = r.target_id for no key update;
  if t.baseline is not null or t.held > 0 then
    return jsonb_build_object('kind', 'refused', 'code', 'baseline-known');
  end if;
  insert into retl.import (run_id, imported_by, because) values (r.run_id, p_by, p_because);
  update retl.run set phase = 'extract' where run_id = r.run_id;
  return jsonb_build_object('kind', 'opened', 'run', r.run_id::text, 'epoch', r.epoch::text);
end
$$;

-- Makes the planned members of an import true: batches that were never sent, each with its log entry, that cover all of them. The
-- baseline of the target is known by it, and the run is closed. Rule 6: nothing of it is changed or imported again.
create function retl.accept_import(p_run bigint, p_epoch bigint, p_ids bytea[], p_last bigint[]) returns void
  language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
  r retl.run := retl.lock_run(p_run, p_epoch);
begin
  perform retl.require_phase(r, 'guard');
  if not exists (select from retl.import where run_id = p_run) then
    raise exception 'rule 2: not an import: nothing is accepted unless it was sent' using errcode = 'RM003';
  end if;
  if r.first_sequence is null or r.held_before <> 0 or r.planned_added < 1 then
    raise exception 'an import adds members to a target that holds none' using errcode = 'RM003';
  end if;
  if coalesce(cardinality(p_ids), 0) = 0 or cardinality(p_ids) <> cardinality(p_last) then
    raise exception 'the arrays of batches differ in length' using errcode = 'RM003';
  end if;
  update retl.target set baseline = 'tracked', baseline_proof = 'attested', baseline_at = clock_timestamp(),
    baseline_note = (select because from retl.import where run_id = p_run)
    where target_id = r.target_id and baseline is null and held = 0;
  if not found then
    raise exception 'the baseline of the target is known already' using errcode = 'RM003';
  end if;
  update retl.generation set state = 'kept' where run_id = p_run and state = 'sealed';
  update retl.run set phase = 'additions', closing = 'imported', closed_at = clock_timestamp() where run_id = p_run;
  if retl.record_unsent(r, 'upsert', r.first_sequence, r.additions_end, p_ids, p_last, '{"imported":true}') - 1
     <> r.additions_end then
    raise exception 'rule 4: the batches do not cover the import' using errcode = 'RM003';
  end if;
end
$$;

revoke all on function retl.open_import, retl.accept_import from public;
grant execute on function retl.open_import, retl.accept_import to retl_runtime;
