-- Baselines (design.md section 4, "Strategies"). An imported one: the complete membership of a target that was managed by other means
-- before, told by a person. It enters as a run of its own, which sends nothing: its members become accepted operations with
-- log entries, and so everything that follows the log or the membership needs to know nothing else.
--
-- All of it is one transaction of the caller: open, load and seal as ever (0002), plan, accept. Whoever dies has imported nothing.

create table retl.import (
  run_id bigint primary key references retl.run,
  listed boolean not null, -- by the destination itself, and not by a person's file
  imported_by text not null check (length(imported_by) between 1 and 200), -- people's words, as is the next: for retl_reader
  because text not null check (length(because) between 1 and 20000),
  imported_at timestamptz not null default clock_timestamp()
);
create trigger append_only before update or delete or truncate on retl.import
  for each statement execute function retl.refuse_change();
grant select on retl.import to retl_runtime;
grant select (run_id, listed, imported_at) on retl.import to retl_inspector;

-- Opens the run of an import. Where it is refused the caller rolls back: what was looked at is left as it was.
--
-- Returns jsonb: {kind: opened, run, epoch}, or {kind: refused, code: strategy-changed | target-owned | identity-moved | open-run | baseline-known}.
create function retl.open_import(p_mirror text, p_target_key text, p_settings text, p_settings_digest bytea,
    p_max_batch_rows integer, p_max_request_bytes bigint, p_by text, p_because text, p_listed boolean,
    p_credentials bytea default null, p_removal_route bytea default null,
    p_identity_form text default null) returns jsonb
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
    '-infinity', p_identity_form => p_identity_form);
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
  insert into retl.import (run_id, listed, imported_by, because) values (r.run_id, p_listed, p_by, p_because);
  -- A run may have been admitted before, and have sent nothing.
  update retl.target set credentials = p_credentials, removal_route = p_removal_route where target_id = r.target_id;
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
  update retl.target set baseline = 'tracked', baseline_at = clock_timestamp(), baseline_note = i.because,
    baseline_proof = case when i.listed then 'verified' else 'attested' end
    from retl.import i where i.run_id = p_run and target_id = r.target_id and baseline is null and held = 0;
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

-- An operator's word that a target was new and empty, where its adapter cannot look (`new-empty`). It is of one target, by its
-- key: another target of the same mirror needs a word of its own.
create table retl.attestation (
  target_id bigint primary key references retl.target,
  attested_by text not null check (length(attested_by) between 1 and 200), -- people's words, as is the next: for retl_reader
  because text not null check (length(because) between 1 and 20000),
  attested_at timestamptz not null default clock_timestamp()
);
create trigger append_only before update or delete or truncate on retl.attestation
  for each statement execute function retl.refuse_change();
grant select on retl.attestation to retl_runtime;
grant select (target_id, attested_at) on retl.attestation to retl_inspector;

-- Makes the baseline of a target known by an operator's word, before its first run or while that one has sent nothing. Where
-- it is refused the caller rolls back.
--
-- Returns jsonb: {kind: attested}, or {kind: refused, code: strategy-changed | target-owned | baseline-known, strategy, owner}.
create function retl.attest_empty(p_mirror text, p_target_key text, p_by text, p_because text) returns jsonb
  language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
  m retl.mirror;
  t retl.target;
begin
  perform retl.require_writer();
  if num_nulls(p_mirror, p_target_key) > 0 or coalesce(p_by, '') = '' or coalesce(p_because, '') = '' then
    raise exception 'what is attested, by whom, or why, is missing' using errcode = 'RM003';
  end if;
  -- In the order of retl.admit.
  insert into retl.mirror (name, strategy) values (p_mirror, 'snapshot-diff') on conflict (name) do nothing;
  select * into strict m from retl.mirror where name = p_mirror for no key update;
  if m.strategy <> 'snapshot-diff' then
    return jsonb_build_object('kind', 'refused', 'code', 'strategy-changed', 'strategy', m.strategy);
  end if;
  insert into retl.target (target_key, mirror_id) values (p_target_key, m.mirror_id) on conflict (target_key) do nothing;
  select * into strict t from retl.target where target_key = p_target_key for no key update;
  if t.mirror_id <> m.mirror_id and not retl.is_unowned(t.target_id) then
    return jsonb_build_object('kind', 'refused', 'code', 'target-owned',
      'owner', (select name from retl.mirror where mirror_id = t.mirror_id));
  end if;
  perform retl.take_target(t, m.mirror_id);
  select * into strict t from retl.target where target_id = t.target_id;
  if t.baseline is not null or t.held > 0 then
    return jsonb_build_object('kind', 'refused', 'code', 'baseline-known');
  end if;
  update retl.target set baseline = 'new-empty', baseline_proof = 'attested', baseline_note = p_because,
    baseline_at = clock_timestamp() where target_id = t.target_id;
  perform retl.require_membership(t.target_id);
  insert into retl.attestation (target_id, attested_by, because) values (t.target_id, p_by, p_because);
  return jsonb_build_object('kind', 'attested');
end
$$;

revoke all on function retl.open_import, retl.accept_import, retl.attest_empty from public;
grant execute on function retl.open_import, retl.accept_import, retl.attest_empty to retl_runtime;
-- Whoever looks how a mirror stands before a run asks it, too.
grant execute on function retl.is_unowned, retl.holds_members to retl_inspector, retl_reader, retl_approver, retl_runtime;
