-- Runs: admission, holder and take-over, attempts, extraction, seal, plan and guard (design.md section 4).
--
-- Every function here runs as the owner and is the only way to make its change. Errors use these SQLSTATEs, and carry
-- rules, counts and hashes only:
--   RM001 fenced: a newer attempt has begun, or the run is closed      RM004 no such run, batch or generation
--   RM002 not the holder of the run                                    RM006 an outcome would change (rule 6)
--   RM003 a numbered rule of design.md forbids it

-- What every writer is held to, whatever its session says. READ COMMITTED: a statement that waited for a lock must see
-- what was committed meanwhile, or an older snapshot hides another transaction's batches. A durable commit: what is
-- `sending` is no longer provably unsent, not even after a crash (rule 3).
create function retl.require_writer() returns void
  language plpgsql set search_path = pg_catalog, pg_temp as $$
begin
  if current_setting('transaction_isolation') <> 'read committed' then
    raise exception 'rule 9: the journal is written in READ COMMITTED transactions only' using errcode = 'RM003';
  end if;
  if current_setting('synchronous_commit') = 'off' then
    perform set_config('synchronous_commit', 'on', true);
  end if;
end
$$;

-- Rule 9: takes the run's row and checks the epoch, in the caller's transaction. An older attempt gets no further.
create function retl.lock_run(p_run bigint, p_epoch bigint) returns retl.run
  language plpgsql set search_path = pg_catalog, pg_temp as $$
declare
  r retl.run;
begin
  perform retl.require_writer();
  select * into r from retl.run where run_id = p_run for no key update;
  if not found then
    raise exception 'no such run' using errcode = 'RM004';
  end if;
  if r.epoch is distinct from p_epoch or r.closing is not null then
    raise exception 'rule 9: this attempt has been superseded' using errcode = 'RM001';
  end if;
  return r;
end
$$;

create function retl.require_phase(r retl.run, p_phase text) returns void
  language plpgsql set search_path = pg_catalog, pg_temp as $$
begin
  if r.phase is distinct from p_phase then
    raise exception 'rule 1: phase is %, this needs %', r.phase, p_phase using errcode = 'RM003';
  end if;
end
$$;

-- True while anything of the run is neither accepted nor absent.
create function retl.has_unresolved(p_run bigint) returns boolean
  language sql stable set search_path = pg_catalog, pg_temp as $$
  select exists (select from retl.batch where run_id = p_run and state in ('sending', 'unknown', 'staged'))
$$;

-- What a person answers to, in one token: the sealed set, and how many members it removes, and which.
create function retl.shown_of(p_generation bytea, p_removals bigint, p_removed bytea) returns bytea
  language sql immutable set search_path = pg_catalog, pg_temp as $$
  select sha256(convert_to('retl-mirror/shown/1', 'UTF8') || '\x00'::bytea || p_generation || int8send(p_removals) || p_removed)
$$;

-- What the guard shows of a run; null before it is planned, and once its snapshot is discarded.
create function retl.shown_digest(p_run bigint) returns bytea
  language sql stable security definer set search_path = pg_catalog, pg_temp as $$
  select retl.shown_of(g.digest, r.planned_removed, r.removal_digest)
  from retl.run r join retl.generation g on g.run_id = r.run_id and g.state <> 'discarded' where r.run_id = p_run
$$;

-- What was answered to exactly what the guard shows of a run: approved, rejected, or null.
create function retl.verdict(r retl.run) returns text
  language sql stable set search_path = pg_catalog, pg_temp as $$
  select a.verdict from retl.approval a join retl.generation g on g.run_id = a.run_id and g.state <> 'discarded'
  where a.run_id = r.run_id and a.generation_digest = g.digest and a.removals = r.planned_removed
    and a.removal_digest = r.removal_digest
$$;

-- Milliseconds that are left to answer, 0 or less: the deadline has passed. Null where the guard asks nothing.
create function retl.approval_left(r retl.run) returns bigint
  language sql stable set search_path = pg_catalog, pg_temp as $$
  select ceil(r.approval_deadline_ms - extract(epoch from clock_timestamp() - r.parked_at) * 1000)::bigint
$$;

-- How an open run goes on in the hands of whoever holds it now. Until the holder has begun an attempt the answer to its
-- admission may have been lost, and an admission that is asked for again is answered as the first time.
create function retl.resume_of(r retl.run, p_resume_after timestamptz) returns text
  language plpgsql stable set search_path = pg_catalog, pg_temp as $$
declare
  -- An operator's word on a batch raises the epoch, too, whoever holds the run.
  v_steps text[] := array(select step::text from retl.attempt where run_id = r.run_id and step <> 'resolve'
    order by epoch desc limit 2);
begin
  return case
    when v_steps[1] <> 'admit' then 'held'
    when cardinality(v_steps) = 1 then 'fresh'
    when r.phase in ('init', 'extract', 'seal') then 'discard'
    when r.parked_at is not null and retl.verdict(r) = 'rejected' then 'guard-rejected'
    when r.parked_at is not null and retl.verdict(r) is null and retl.approval_left(r) <= 0 then 'guard-expired'
    -- Rule 10: a finish that was started is resolved, however old the generation is.
    when r.sealed_at < p_resume_after and r.phase not in ('finish', 'promote') then 'expired'
    else 'sealed'
  end;
end
$$;

-- A target's own table of what is held there, empty where it is new.
create function retl.require_membership(p_target bigint) returns void
  language plpgsql set search_path = pg_catalog, pg_temp as $$
begin
  if to_regclass(format('retl.membership_%s', p_target)) is null then
    execute format('create table retl.membership_%s (identity_hash bytea primary key, payload_hash bytea not null, '
      'sequence bigint not null)', p_target);
    execute format('grant select on retl.membership_%s to retl_runtime', p_target);
  end if;
end
$$;

-- Whether no mirror owns a target, whichever is named in its row: no run of it is open, none has ever sent a member or begun a
-- finish, no members were imported, and nobody has given a word for it (0009). One snapshot answers: a run that is seen closed
-- is seen with all that it has sent. Whoever acts on it holds the target's row, as does whoever opens a run.
create function retl.is_unowned(p_target bigint) returns boolean
  language plpgsql stable security definer set search_path = pg_catalog, pg_temp as $$
begin
  return not exists (select from retl.run r where r.target_id = p_target and (r.closing is null
      or exists (select from retl.batch b where b.run_id = r.run_id and b.action <> 'init'
        and (b.sent_at is not null or b.state = 'settled'))))
    and not exists (select from retl.attestation where target_id = p_target);
end
$$;

-- Gives an unowned target to another mirror. What was found out about it for the former one is found out anew.
create function retl.take_target(t retl.target, p_mirror bigint) returns void
  language plpgsql set search_path = pg_catalog, pg_temp as $$
begin
  if t.mirror_id = p_mirror then
    return;
  end if;
  delete from retl.store where target_id = t.target_id;
  update retl.target set mirror_id = p_mirror, baseline = null, baseline_proof = null, baseline_note = null,
    baseline_at = null, longest_removal = 0, identity_foldings = '{}', identity_form = null, credentials = null,
    removal_route = null,
    -- One that owns another target may reach this very place by another key, and hold its fence with good reason.
    former_owners = former_owners || array(select m.name from retl.mirror m where m.mirror_id = t.mirror_id
      and m.name <> all (former_owners) and not exists (select from retl.target o where o.mirror_id = m.mirror_id
        and o.target_id <> t.target_id and not retl.is_unowned(o.target_id)))
    where target_id = t.target_id;
end
$$;

-- Whether a target holds anybody, or may: what closed runs had accepted need not be folded into its membership yet.
create function retl.holds_members(p_target bigint) returns boolean
  language sql stable security definer set search_path = pg_catalog, pg_temp as $$
  select exists (select from retl.target where target_id = p_target and held > 0)
    or exists (select from retl.run r join retl.batch b using (run_id)
      where r.target_id = p_target and b.state = 'settled' and not b.folded and b.action in ('upsert', 'remove'))
$$;

-- Opens a run, finds the caller's own, or takes over one whose holder is closed or has let go.
--
-- Returns jsonb, one of
--   {kind: admitted, run, resume: fresh | held | sealed | discard | expired | guard-rejected | guard-expired}
--   {kind: busy, namespace, cluster, workflow, first_run}    somebody holds the open run
--   {kind: refused, code: strategy-changed, strategy}        the one that the mirror keeps
--   {kind: refused, code: target-owned, owner}               the mirror that the target belongs to
--   {kind: refused, code: baseline-missing}              nobody has imported what the target holds, and p_tracked
--   {kind: refused, code: identity-moved}                what it holds was accepted under another identity form
-- p_closed_holder is the first run id of a holder that Temporal says is closed. A sealed generation that was sealed
-- before p_resume_after is not resumed: it comes back as `expired`, to be closed by the caller once what is unresolved in
-- it has been resolved. So does one whose removals were rejected, or about which nobody answered in time. An exact repeat
-- is answered in the same way, and changes nothing. p_tracked: no run is opened for a target whose members nobody has imported.
create function retl.admit(
  p_mirror text, p_strategy text, p_target_key text, p_settings text, p_settings_digest bytea,
  p_max_removal_share numeric, p_max_removals bigint, p_empty_snapshot text, p_approval_deadline_ms bigint,
  p_max_batch_rows integer, p_max_request_bytes bigint, p_may_resend boolean,
  p_namespace text, p_cluster text, p_workflow_id text, p_first_run_id text,
  p_closed_holder text, p_resume_after timestamptz, p_at_finish boolean default false,
  p_on_rejection text default 'stop', p_max_rejections bigint default null, p_max_rejection_share numeric default null,
  p_refresh_after_ms bigint default null, p_tracked boolean default false, p_last_copy_decides boolean default false,
  p_credentials bytea default null, p_removal_route bytea default null,
  p_identity_form text default null, p_removes_from text[] default '{}'
) returns jsonb
  language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
  m retl.mirror;
  t retl.target;
  r retl.run;
  v_revision bigint;
  v_refused text;
  v_rival bigint;
  v_own boolean;
begin
  perform retl.require_writer();
  if num_nulls(p_mirror, p_strategy, p_target_key, p_settings, p_settings_digest, p_namespace, p_cluster, p_workflow_id,
       p_first_run_id, p_resume_after, p_at_finish, p_on_rejection, p_tracked) > 0 then
    raise exception 'an argument is missing' using errcode = 'RM003';
  end if;
  if p_at_finish and p_strategy <> 'native-replace' then
    raise exception 'uploads that count only once they are finished cannot be diffed' using errcode = 'RM003';
  end if;
  if p_strategy = 'native-replace' and p_on_rejection <> 'stop' then
    raise exception 'rule 5: a rejection always stops a native replacement' using errcode = 'RM003';
  end if;
  if p_settings_digest <> sha256(convert_to(p_settings, 'UTF8')) then
    raise exception 'the digest is not that of the settings' using errcode = 'RM003';
  end if;

  -- A newcomer that can only be refused waits for no lock: a seal may hold the run for minutes.
  select o.* into r from retl.run o join retl.mirror n using (mirror_id)
    where n.name = p_mirror and n.strategy = p_strategy and o.closing is null;
  if found and r.released is null and r.holder_first_run_id <> p_first_run_id
     and r.holder_first_run_id is distinct from p_closed_holder then
    return jsonb_build_object('kind', 'busy', 'namespace', r.holder_namespace, 'cluster', r.holder_cluster,
      'workflow', r.holder_workflow_id, 'first_run', r.holder_first_run_id);
  end if;

  -- NO KEY: an attempt that holds its run and appends to the log checks foreign keys on these rows; a stronger lock here
  -- would wait for the run and make it wait, too.
  insert into retl.mirror (name, strategy) values (p_mirror, p_strategy) on conflict (name) do nothing;
  select * into strict m from retl.mirror where name = p_mirror for no key update;
  if m.strategy <> p_strategy then
    return jsonb_build_object('kind', 'refused', 'code', 'strategy-changed', 'strategy', m.strategy);
  end if;

  select * into r from retl.run where mirror_id = m.mirror_id and closing is null for no key update;
  if found then
    v_own := r.holder_namespace = p_namespace and r.holder_cluster = p_cluster
      and r.holder_workflow_id = p_workflow_id and r.holder_first_run_id = p_first_run_id and r.released is null;
    if not v_own and r.released is null and r.holder_first_run_id is distinct from p_closed_holder then
      return jsonb_build_object('kind', 'busy', 'namespace', r.holder_namespace, 'cluster', r.holder_cluster,
        'workflow', r.holder_workflow_id, 'first_run', r.holder_first_run_id);
    end if;
    if not v_own then
      -- The new epoch fences the former holder at once, whatever it still believes.
      update retl.run set holder_namespace = p_namespace, holder_cluster = p_cluster,
        holder_workflow_id = p_workflow_id, holder_first_run_id = p_first_run_id,
        released = null, reason = null, epoch = nextval('retl.epoch')
        where run_id = r.run_id returning * into r;
      insert into retl.attempt (epoch, run_id, step) values (r.epoch, r.run_id, 'admit');
    end if;
    return jsonb_build_object('kind', 'admitted', 'run', r.run_id::text, 'resume', retl.resume_of(r, p_resume_after));
  end if;

  insert into retl.target (target_key, mirror_id, credentials, removal_route)
    values (p_target_key, m.mirror_id, p_credentials, p_removal_route) on conflict (target_key) do nothing;
  select * into strict t from retl.target where target_key = p_target_key for no key update;
  select o.mirror_id into v_rival from retl.target o where o.target_key = any (p_removes_from)
    and o.mirror_id <> m.mirror_id and not retl.is_unowned(o.target_id) limit 1;
  v_refused := case when t.mirror_id <> m.mirror_id and not retl.is_unowned(t.target_id) then 'target-owned'
    when v_rival is not null then 'removes-elsewhere'
    when p_tracked and (t.baseline is null or t.mirror_id <> m.mirror_id) then 'baseline-missing'
    when t.identity_form <> p_identity_form and retl.holds_members(t.target_id) then 'identity-moved' end;
  if v_refused is not null then
    -- Nothing is left of a refusal: neither a target that nobody has run into, nor a strategy of a name that has never run.
    delete from retl.target where target_id = t.target_id and mirror_id = m.mirror_id
      and not exists (select from retl.run where target_id = t.target_id);
    delete from retl.mirror where mirror_id = m.mirror_id
      and not exists (select from retl.target where mirror_id = m.mirror_id)
      and not exists (select from retl.run where mirror_id = m.mirror_id);
    return jsonb_build_object('kind', 'refused', 'code', v_refused,
      'owner', (select name from retl.mirror
        where mirror_id = case v_refused when 'removes-elsewhere' then v_rival else t.mirror_id end));
  end if;
  perform retl.take_target(t, m.mirror_id);
  perform retl.require_membership(t.target_id);
  update retl.target set identity_form = p_identity_form
    where target_id = t.target_id and identity_form is distinct from p_identity_form and p_identity_form is not null;

  insert into retl.revision (mirror_id, digest, settings) values (m.mirror_id, p_settings_digest, p_settings)
    on conflict (mirror_id, digest) do nothing;
  select revision_id into strict v_revision from retl.revision
    where mirror_id = m.mirror_id and digest = p_settings_digest;
  insert into retl.run (mirror_id, target_id, revision_id, strategy, epoch,
      holder_namespace, holder_cluster, holder_workflow_id, holder_first_run_id,
      max_removal_share, max_removals, empty_snapshot, approval_deadline_ms, max_batch_rows, max_request_bytes, may_resend,
      at_finish, on_rejection, max_rejections, max_rejection_share, refresh_after_ms, last_copy_decides,
      credentials, removal_route)
    values (m.mirror_id, t.target_id, v_revision, p_strategy, nextval('retl.epoch'),
      p_namespace, p_cluster, p_workflow_id, p_first_run_id,
      p_max_removal_share, p_max_removals, p_empty_snapshot, p_approval_deadline_ms, p_max_batch_rows,
      p_max_request_bytes, p_may_resend, p_at_finish, p_on_rejection, p_max_rejections, p_max_rejection_share,
      p_refresh_after_ms, p_last_copy_decides, p_credentials, p_removal_route)
    returning * into r;
  insert into retl.attempt (epoch, run_id, step) values (r.epoch, r.run_id, 'admit');
  return jsonb_build_object('kind', 'admitted', 'run', r.run_id::text, 'resume', 'fresh');
end
$$;

-- Rule 9: begins an attempt. From here on every older attempt of the run is refused, and what it left in `sending` is
-- unknown (rule 3): its answer, if it ever comes, can no longer be written.
create function retl.begin_attempt(p_run bigint, p_namespace text, p_cluster text, p_workflow_id text,
    p_first_run_id text, p_step text) returns bigint
  language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
  r retl.run;
  v_epoch bigint;
begin
  perform retl.require_writer();
  select * into r from retl.run where run_id = p_run for no key update;
  if not found then
    raise exception 'no such run' using errcode = 'RM004';
  end if;
  if r.closing is not null then
    raise exception 'the run is closed' using errcode = 'RM001';
  end if;
  if r.released is not null or (r.holder_namespace, r.holder_cluster, r.holder_workflow_id, r.holder_first_run_id)
       is distinct from (p_namespace, p_cluster, p_workflow_id, p_first_run_id) then
    raise exception 'another workflow execution holds this run' using errcode = 'RM002';
  end if;
  v_epoch := nextval('retl.epoch');
  update retl.run set epoch = v_epoch where run_id = p_run;
  update retl.batch set state = 'unknown', reason = 'found-sending' where run_id = p_run and state = 'sending';
  insert into retl.attempt (epoch, run_id, step) values (v_epoch, p_run, p_step);
  return v_epoch;
end
$$;

-- Why this attempt could not go on, so that whoever looks at the journal is told without asking anybody: an attempt ends by it.
-- p_ms: after so long it looks again by itself; null: not before somebody comes. p_kind 'none': nothing is waited for any more.
-- The time since when is kept while it is the same that is waited for.
create function retl.note_wait(p_run bigint, p_epoch bigint, p_kind text, p_code text, p_batch bytea, p_ms bigint) returns void
  language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
  r retl.run := retl.lock_run(p_run, p_epoch);
  v_kind text := nullif(p_kind, 'none');
  v_since timestamptz;
begin
  if p_kind is null then
    raise exception 'what is waited for is null' using errcode = 'RM003';
  end if;
  if v_kind is not null then
    v_since := case when (r.wait_kind, r.wait_batch) is not distinct from (p_kind, p_batch) then r.wait_since
      when p_kind = 'pending' then (select staged_at from retl.batch where batch_id = p_batch and run_id = p_run) end;
    v_since := coalesce(v_since, clock_timestamp());
  end if;
  update retl.run set wait_kind = v_kind, wait_code = p_code, wait_batch = p_batch, wait_since = v_since,
    wait_until = clock_timestamp() + p_ms * interval '1 ms', wait_epoch = case when v_kind is not null then p_epoch end
    where run_id = p_run;
end
$$;

-- Notes how it is known that the target holds nothing else. Without it nothing can be prepared. False, with nothing noted: the
-- words that vouch have vouched for another target of the mirror; they say nothing about this one.
create function retl.record_baseline(p_run bigint, p_epoch bigint, p_baseline text, p_proof text, p_note text)
  returns boolean
  language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
  r retl.run := retl.lock_run(p_run, p_epoch);
begin
  perform retl.require_phase(r, 'init');
  if p_baseline is null or p_proof is null or (p_baseline = 'replace') <> (r.strategy = 'native-replace') then
    raise exception 'not a baseline of this strategy' using errcode = 'RM003';
  end if;
  if p_proof = 'attested' and exists (
      select from retl.target where mirror_id = r.mirror_id and target_id <> r.target_id and baseline = p_baseline
        and baseline_proof = p_proof and baseline_note = p_note) then
    return false;
  end if;
  update retl.target set baseline = p_baseline, baseline_proof = p_proof, baseline_note = p_note, baseline_at = now()
    where target_id = r.target_id and (baseline is null or baseline_proof = 'unknown' and p_proof = 'attested');
  return true;
end
$$;

-- Nothing is sent to a target of which it is not known what it holds, or not in the way that the strategy needs.
create function retl.require_baseline(r retl.run) returns void
  language plpgsql set search_path = pg_catalog, pg_temp as $$
declare
  v_baseline text := (select baseline from retl.target where target_id = r.target_id);
begin
  if v_baseline is null then
    raise exception 'the baseline of the target is not known' using errcode = 'RM003';
  end if;
  if (v_baseline = 'replace') <> (r.strategy = 'native-replace') then
    raise exception 'the baseline of the target is not one of this strategy' using errcode = 'RM003';
  end if;
end
$$;

-- Creates the table that this attempt, in this same transaction, fills by COPY. It takes no lock on the run: a source
-- may be slow, and a newcomer must be able to fence this attempt meanwhile. retl.loaded is what checks the epoch.
create function retl.create_candidate(p_run bigint, p_epoch bigint) returns bigint
  language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
  v_id bigint;
begin
  if not exists (select from retl.run where run_id = p_run and epoch = p_epoch and closing is null and phase = 'extract')
  then
    raise exception 'rule 9: this attempt has been superseded' using errcode = 'RM001';
  end if;
  v_id := nextval('retl.generation_number');
  -- row_no: the order of loading; kind: 1 a member, 0 a row excluded on purpose, 2 a member collapsed into an identical one of another row
  -- removal_hash: of the bytes that its removal will send (remove, or else identity); null: they hash to identity_hash
  execute format($ddl$
    create table retl.generation_%s (
      row_no bigint not null,
      kind smallint not null,
      member_no smallint not null,
      source_key text collate "C" not null,
      identity_hash bytea,
      payload_hash bytea,
      removal_hash bytea,
      identity text,
      upsert text,
      remove text
    )$ddl$, v_id);
  execute format('grant select, insert on retl.generation_%s to retl_runtime', v_id);
  return v_id;
end
$$;

-- Ends the loading: nobody can add a row any more. Rule 8: the table must have been created in this very transaction, so
-- that a generation is what one attempt read in one go, or nothing.
create function retl.loaded(p_run bigint, p_epoch bigint, p_generation bigint, p_key_types text, p_rows bigint,
    p_write_form text default '', p_identity_folding text default '')
  returns void
  language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
  r retl.run := retl.lock_run(p_run, p_epoch);
begin
  perform retl.require_phase(r, 'extract');
  if not exists (select from pg_class where oid = to_regclass(format('retl.generation_%s', p_generation))
                 and xmin = pg_current_xact_id()::xid) then
    raise exception 'rule 8: the candidate was not loaded in this transaction' using errcode = 'RM003';
  end if;
  execute format('revoke insert on retl.generation_%s from retl_runtime', p_generation);
  insert into retl.generation (generation_id, run_id, target_id, state, key_types, source_rows, loaded_at)
    values (p_generation, p_run, r.target_id, 'loaded', p_key_types, p_rows, clock_timestamp());
  update retl.run set phase = 'seal', write_form = p_write_form where run_id = p_run;
  update retl.target
    set identity_foldings = array_prepend(p_identity_folding, array_remove(identity_foldings, p_identity_folding))
    where target_id = r.target_id and identity_foldings[1] is distinct from p_identity_folding;
end
$$;

-- Digest of a loaded generation: sha256 over the sha256 of each of 256 slices of (identity hash, payload hash) in
-- order of the identity hash. Independent of the order of the rows; memory is bounded by a slice.
create function retl.generation_digest(p_generation bigint) returns bytea
  language plpgsql set search_path = pg_catalog, pg_temp as $$
declare
  v_all bytea := '';
  v_slice bytea;
begin
  for i in 0..255 loop
    execute format('select sha256(coalesce(string_agg(identity_hash || payload_hash, ''''::bytea order by identity_hash), '
      || ''''') ) from retl.generation_%s where kind = 1 and identity_hash >= $1 and ($2 is null or identity_hash < $2)',
      p_generation)
      into v_slice
      using set_byte(decode('00', 'hex'), 0, i), case when i < 255 then set_byte(decode('00', 'hex'), 0, i + 1) end;
    v_all := v_all || v_slice;
  end loop;
  return sha256(v_all);
end
$$;

-- Seals the loaded generation, or says which rule it breaks; nothing has been sent yet (rule 1). Asked again after it said
-- so, it says the same: nothing but the indexes is written before everything is known to be right.
--
-- Returns jsonb: {kind: sealed, rows, members, excluded, collapsed, digest}
--   or {kind: invalid, code, count, keys: [first few key hashes]}.
create function retl.seal(p_run bigint, p_epoch bigint, p_max_upsert bigint, p_max_remove bigint) returns jsonb
  language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
  r retl.run := retl.lock_run(p_run, p_epoch);
  g retl.generation;
  c record;
  v_table text;
  v_count bigint;
  v_keys jsonb;
  v_collapsed bigint := 0;
  v_digest bytea;
begin
  perform retl.require_phase(r, 'seal');
  if p_max_upsert is null or p_max_remove is null then
    raise exception 'rule 8: the byte limits of an operation are missing' using errcode = 'RM003';
  end if;
  p_max_upsert := least(p_max_upsert, r.max_request_bytes);
  p_max_remove := least(p_max_remove, r.max_request_bytes);
  select * into strict g from retl.generation where run_id = p_run and state = 'loaded';
  v_table := format('retl.generation_%s', g.generation_id);

  execute format('select count(*) filter (where kind = 1) as members, count(*) filter (where kind = 0) as excluded,
      count(*) filter (where member_no = 0) as rows, count(*) filter (where member_no > 0) as further,
      count(*) filter (where not case kind
        when 1 then octet_length(identity_hash) = 32 and octet_length(payload_hash) = 32
                    and coalesce(octet_length(removal_hash), 32) = 32 and identity is not null and upsert is not null and member_no >= 0
        when 0 then identity_hash is null and payload_hash is null and member_no = 0
        else false end is true) as malformed,
      count(*) filter (where kind = 1
        and (octet_length(upsert) > $1 or octet_length(coalesce(remove, identity)) > $2)) as too_large,
      coalesce(bool_or(kind = 1 and removal_hash is not null), false) as has_removals,
      coalesce(max(octet_length(coalesce(remove, identity))) filter (where kind = 1), 0) as longest_removal
    from %s', v_table) into c using p_max_upsert, p_max_remove;
  -- What only a wrong loader could have written.
  v_count := c.malformed;
  if v_count = 0 and c.further > 0 then
    -- The members of a row are numbered from 0 without a gap, and an excluded row has none.
    execute format('select count(*) from (
        select source_key from %1$s x where member_no > 0 group by source_key
        having count(*) <> max(member_no) or count(distinct member_no) <> count(*)
          or not exists (select from %1$s z where z.source_key = x.source_key and z.member_no = 0 and z.kind = 1)) d',
      v_table) into v_count;
  end if;
  if v_count > 0 then
    return jsonb_build_object('kind', 'invalid', 'code', 'data.invalid-row', 'count', v_count, 'keys', '[]'::jsonb);
  end if;
  if c.rows <> g.source_rows then
    raise exception 'rule 8: % rows were read but % are loaded', g.source_rows, c.rows using errcode = 'RM003';
  end if;
  if exists (select from retl.generation p where p.target_id = g.target_id and p.state = 'promoted'
             and p.key_types <> g.key_types) then
    return jsonb_build_object('kind', 'invalid', 'code', 'data.key-type-changed', 'count', c.rows, 'keys', '[]'::jsonb);
  end if;

  begin
    execute format('create unique index if not exists generation_%s_key on %s (source_key) where member_no = 0',
      g.generation_id, v_table);
  exception when unique_violation then
    execute format('select count(*), (jsonb_agg(key order by key) filter (where n <= 10)) from (
        select encode(sha256(convert_to(source_key, ''UTF8'')), ''hex'') as key, row_number() over () as n
        from %s where member_no = 0 group by source_key having count(*) > 1) d', v_table) into v_count, v_keys;
    return jsonb_build_object('kind', 'invalid', 'code', 'data.duplicate-key', 'count', v_count, 'keys', v_keys);
  end;

  if c.too_large > 0 then
    execute format('select jsonb_agg(key) from (select encode(sha256(convert_to(source_key, ''UTF8'')), ''hex'') as key
        from %s where kind = 1 and (octet_length(upsert) > $1 or octet_length(coalesce(remove, identity)) > $2) limit 10) d',
      v_table) into v_keys using p_max_upsert, p_max_remove;
    return jsonb_build_object('kind', 'invalid', 'code', 'data.operation-too-large', 'count', c.too_large, 'keys', v_keys);
  end if;

  begin
    execute format('create unique index generation_%s_identity on %s (identity_hash) include (payload_hash) where kind = 1',
      g.generation_id, v_table);
  exception when unique_violation then
    -- Several rows give one identity: identical payloads collapse into one member, different ones are a conflict.
    execute format('select count(*), (jsonb_agg(key order by key) filter (where n <= 10)) from (
        select encode(identity_hash, ''hex'') as key, row_number() over () as n from %s where kind = 1
        group by identity_hash
        having count(distinct payload_hash) > 1 or count(distinct coalesce(remove, identity)) > 1) d', v_table)
      into v_count, v_keys;
    if v_count > 0 then
      return jsonb_build_object('kind', 'invalid', 'code', 'data.conflicting-payloads', 'count', v_count, 'keys', v_keys);
    end if;
    execute format('update %1$s u set kind = 2 from (
        select ctid as row, row_number() over (partition by identity_hash order by source_key, member_no) as n
        from %1$s where kind = 1) d
      where u.ctid = d.row and d.n > 1', v_table);
    get diagnostics v_collapsed = row_count;
    execute format('create unique index generation_%s_identity on %s (identity_hash) include (payload_hash) where kind = 1',
      g.generation_id, v_table);
  end;

  -- Two members that the same bytes remove would not survive each other. Where a removal hash is null, those bytes hash to the
  -- identity hash; of such members no two are alike.
  if r.strategy = 'snapshot-diff' and c.has_removals then
    execute format('select count(*), (jsonb_agg(key order by key) filter (where n <= 10)) from (
        select encode(d.identity_hash, ''hex'') as key, row_number() over () as n from %1$s d
        where d.kind = 1 and d.removal_hash is not null and (
          exists (select from %1$s o where o.kind = 1 and o.identity_hash = d.removal_hash and o.removal_hash is null)
          or d.removal_hash in (select s.removal_hash from %1$s s where s.kind = 1 and s.removal_hash is not null
            group by s.removal_hash having count(*) > 1))) k', v_table) into v_count, v_keys;
    if v_count > 0 then
      return jsonb_build_object('kind', 'invalid', 'code', 'data.shared-removal', 'count', v_count, 'keys', v_keys);
    end if;
  end if;

  execute format('analyze %s', v_table);
  v_digest := retl.generation_digest(g.generation_id);
  update retl.generation set state = 'sealed', members = c.members - v_collapsed, excluded = c.excluded,
    collapsed = v_collapsed, digest = v_digest, sealed_at = clock_timestamp() where generation_id = g.generation_id;
  update retl.target set longest_removal = greatest(longest_removal, c.longest_removal) where target_id = g.target_id;
  update retl.run set phase = 'guard', sealed_at = clock_timestamp(), max_remove_bytes = p_max_remove where run_id = p_run;
  return jsonb_build_object('kind', 'sealed', 'rows', c.rows, 'members', c.members - v_collapsed,
    'excluded', c.excluded, 'collapsed', v_collapsed, 'digest', encode(v_digest, 'hex'));
end
$$;

-- The held members that no row of the run's sealed snapshot produces, in order of the identity hash: how many they are,
-- and the sha256 of their hashes. What an approval is bound to.
create function retl.removal_set(p_target bigint, p_generation bigint, out members bigint, out digest bytea)
  language plpgsql stable set search_path = pg_catalog, pg_temp as $$
begin
  execute format('select count(*), sha256(coalesce(string_agg(m.identity_hash, ''''::bytea order by m.identity_hash), ''''))
    from retl.membership_%s m
    where not exists (select from retl.generation_%s g where g.kind = 1 and g.identity_hash = m.identity_hash)',
    p_target, p_generation) into members, digest;
end
$$;

-- Where the operations of a run are: whole, or after a compaction those that something still refers to.
create function retl.operation_table(r retl.run) returns text
  language sql immutable set search_path = pg_catalog, pg_temp as $$
  select case when r.kept_in is null then format('retl.operation_%s', r.run_id)
    else format('retl.kept_%s_%s', r.run_id, r.kept_in) end
$$;

-- Collects the removals of a run into the table retl.removal_<run id>: held members that no row of its generation gives, with
-- the removal bytes that were stored when each was accepted, in the run that its sequence number names. Returns how many.
create function retl.collect_removals(p_run bigint, p_target bigint, p_generation bigint) returns bigint
  language plpgsql set search_path = pg_catalog, pg_temp as $$
declare
  o record;
  v_run bigint;
  v_rows bigint;
  v_total bigint := 0;
begin
  execute format('create unlogged table retl.unwanted_%s as select m.identity_hash, m.sequence from retl.membership_%s m
    where not exists (select from retl.generation_%s g where g.kind = 1 and g.identity_hash = m.identity_hash)',
    p_run, p_target, p_generation);
  execute format('analyze retl.unwanted_%s', p_run);
  execute format('create unlogged table retl.removal_%s (identity_hash bytea, removal_hash bytea, identity text, remove text)', p_run);
  for v_run in execute format('select distinct sequence >> 32 from retl.unwanted_%s', p_run) loop
    select u.operations_hold_bytes, g.generation_id, retl.operation_table(u) as operations into strict o
      from retl.run u join retl.generation g on g.run_id = u.run_id and g.state <> 'discarded' where u.run_id = v_run;
    execute format('insert into retl.removal_%s select d.identity_hash, b.removal_hash, b.identity, coalesce(b.remove, b.identity)
      from retl.unwanted_%s d, %s and d.sequence >> 32 = %s', p_run, p_run,
      case when o.operations_hold_bytes
        then format('%s b where b.sequence = d.sequence', o.operations)
        else format('retl.generation_%s b where b.kind = 1 and b.identity_hash = d.identity_hash', o.generation_id) end,
      v_run);
    get diagnostics v_rows = row_count;
    v_total := v_total + v_rows;
  end loop;
  execute format('drop table retl.unwanted_%s', p_run);
  return v_total;
end
$$;

-- The operations of the run's target that were accepted longer ago than it leaves an unchanged member alone; null: none. The
-- time of an acceptance is that of its log entry.
create function retl.accepted_before(r retl.run) returns int8multirange
  language sql stable set search_path = pg_catalog, pg_temp as $$
  select range_agg(int8range(e.first_sequence, e.last_sequence, '[]')) from retl.log_entry e
  where e.target_id = r.target_id and e.kind = 'additions'
    and e.recorded_at < clock_timestamp() - r.refresh_after_ms * interval '1 ms'
$$;

-- What decides where the run's requests arrive, and is not as the last run had it that was let through into this target. Where
-- members are held, a person is asked: what the journal knows to be there may be somewhere else.
create function retl.moved(t retl.target, r retl.run) returns text
  language sql immutable set search_path = pg_catalog, pg_temp as $$
  select case
    when t.credentials <> r.credentials and t.removal_route <> r.removal_route then 'route-changed'
    when t.credentials <> r.credentials then 'credentials-changed'
    when t.removal_route <> r.removal_route then 'removals-moved'
  end
$$;

-- Diffs the sealed generation against the membership and writes the additions as a dense sequence. Removals are counted, not planned (rule 1). Called again, it returns the plan there is.
create function retl.plan(p_run bigint, p_epoch bigint) returns jsonb
  language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
  r retl.run := retl.lock_run(p_run, p_epoch);
  g retl.generation;
  t retl.target;
  v_held bigint;
  v_first bigint;
  v_added bigint;
  v_changed bigint;
  v_refreshed bigint;
  v_stale int8multirange;
  v_removed bigint;
  v_digest bytea;
  v_bytes boolean;
  v_longest bigint;
  v_too_large bigint := 0;
begin
  perform retl.require_phase(r, 'guard');
  if r.first_sequence is null then
    select * into strict g from retl.generation where run_id = p_run and state = 'sealed';
    if exists (select from retl.batch b join retl.run o using (run_id)
               where o.target_id = r.target_id and b.state = 'settled' and not b.folded
                 and b.action in ('upsert', 'remove')) then
      raise exception 'the membership is not folded yet' using errcode = 'RM003';
    end if;
    select * into strict t from retl.target where target_id = r.target_id;
    v_held := t.held;
    v_longest := t.longest_removal;
    v_first := (p_run << 32) + 1;

    -- The first form is narrow, and in the order of the generation's rows: what is sent from them is then read in the
    -- order in which it lies on the disk. A native replacement uploads unchanged members too; otherwise one is sent again
    -- where it was accepted too long ago.
    if r.refresh_after_ms is not null and r.strategy = 'snapshot-diff' then
      v_stale := retl.accepted_before(r);
    end if;
    execute format('create table retl.operation_%1$s as
      select %2$s::bigint + row_number() over (order by g.row_no) - 1 as sequence,
        case when m.identity_hash is null then ''a'' when m.payload_hash <> g.payload_hash then ''c'' else ''u'' end::"char"
          as change,
        g.identity_hash, g.payload_hash, g.removal_hash, g.row_no
      from retl.generation_%3$s g left join retl.membership_%4$s m on m.identity_hash = g.identity_hash
      where g.kind = 1 and (%5$L or m.payload_hash is distinct from g.payload_hash%6$s)',
      p_run, v_first, g.generation_id, r.target_id, r.strategy = 'native-replace',
      case when v_stale is not null then format(' or m.sequence <@ %L::int8multirange', v_stale) end);
    execute format('select count(*) filter (where change = ''a''), count(*) filter (where change = ''c''),
      count(*) filter (where change = ''u'') from retl.operation_%s', p_run) into v_added, v_changed, v_refreshed;
    if r.strategy = 'native-replace' then
      v_refreshed := 0;
    end if;
    -- A small change keeps its own bytes, so that the whole generation can go once it is superseded; it then stands in
    -- order of the identity hash, and its row numbers lead nowhere.
    v_bytes := (v_added + v_changed + v_refreshed) * 4 <= g.members and r.strategy <> 'native-replace';
    if v_bytes then
      execute format('alter table retl.operation_%s rename to narrow_%s', p_run, p_run);
      execute format('create table retl.operation_%1$s as
        select %2$s::bigint + row_number() over (order by o.identity_hash) - 1 as sequence, o.change, o.identity_hash,
          o.payload_hash, o.removal_hash, null::bigint as row_no, g.identity, g.upsert, g.remove
        from retl.narrow_%1$s o join retl.generation_%3$s g on g.kind = 1 and g.identity_hash = o.identity_hash',
        p_run, v_first, g.generation_id);
      execute format('drop table retl.narrow_%s', p_run);
    else
      execute format('alter table retl.operation_%s add identity text, add upsert text, add remove text', p_run);
      execute format('create unique index if not exists generation_%1$s_row on retl.generation_%1$s (row_no)',
        g.generation_id);
    end if;
    execute format('alter table retl.operation_%1$s add primary key (sequence)', p_run);
    execute format('analyze retl.operation_%s', p_run);
    execute format('grant select on retl.operation_%s to retl_runtime', p_run);

    v_removed := v_held - (g.members - v_added);
    select s.members, s.digest into v_removed, v_digest from retl.removal_set(r.target_id, g.generation_id) s
      where v_removed <> 0;
    if v_removed is null then
      v_removed := 0;
      v_digest := sha256('');
    end if;
    if v_removed <> v_held - (g.members - v_added) then
      raise exception 'the membership does not hold as many members as were counted' using errcode = 'RM003';
    end if;

    -- The seal has measured the removals of this generation's members; those that leave were measured by earlier seals,
    -- perhaps against a larger limit.
    if v_removed > 0 and v_longest > r.max_remove_bytes and r.strategy <> 'native-replace' then
      perform retl.collect_removals(p_run, r.target_id, g.generation_id);
      execute format('select count(*) from retl.removal_%s where octet_length(remove) > $1', p_run)
        into v_too_large using r.max_remove_bytes;
      execute format('drop table retl.removal_%s', p_run);
    end if;

    update retl.run set held_before = v_held, planned_added = v_added, planned_changed = v_changed,
      planned_removed = v_removed, planned_unchanged = g.members - v_added - v_changed, planned_refreshed = v_refreshed,
      removal_digest = v_digest,
      oversized_removals = v_too_large,
      -- What is dropped then is nobody's number: the journal counts only what it has seen accepted.
      replaces_unknown = r.strategy = 'native-replace'
        and exists (select from retl.target where target_id = r.target_id and baseline_proof = 'unknown')
        and not exists (select from retl.generation where target_id = r.target_id and state in ('promoted', 'superseded')),
      moved = case when v_held > 0 then retl.moved(t, r) end,
      first_sequence = v_first, operations_hold_bytes = v_bytes,
      additions_end = v_first - 1 + v_added
        + case when r.strategy = 'native-replace' then g.members - v_added else v_changed + v_refreshed end
      where run_id = p_run
      returning * into r;
  end if;
  return jsonb_build_object('added', r.planned_added, 'changed', r.planned_changed, 'removed', r.planned_removed,
    'unchanged', r.planned_unchanged, 'held', r.held_before);
end
$$;

-- Which limit the removals of a run are beyond, or what else is asked first; null: nothing.
create function retl.beyond(r retl.run) returns text
  language sql immutable set search_path = pg_catalog, pg_temp as $$
  select case
    when r.replaces_unknown then 'unknown-baseline'
    when r.moved is not null then r.moved
    when r.held_before > 0 and r.planned_removed >= r.held_before
         and r.planned_added + r.planned_unchanged + r.planned_changed = 0 and r.empty_snapshot = 'hold' then 'empty-snapshot'
    when r.planned_removed > r.max_removals then 'max-removals'
    when r.planned_removed > r.max_removal_share * r.held_before then 'max-removal-share'
  end
$$;

-- What the guard says of the removals in the run's row. Null: they are within the limits, or approved, and the run is not
-- parked any more. Else the run is parked, since when it first was asked about this very set:
--   {kind: held, code, removals, held, shown, left_ms, deadline_ms}  it waits for an answer, until
--     this ms since the epoch by this clock
--   {kind: rejected | expired, code}                    it is to be closed
create function retl.judge(p_run bigint) returns jsonb
  language plpgsql set search_path = pg_catalog, pg_temp as $$
declare
  r retl.run;
  v_code text;
  v_verdict text;
begin
  select * into strict r from retl.run where run_id = p_run;
  v_code := retl.beyond(r);
  v_verdict := retl.verdict(r);
  if v_code is null or v_verdict = 'approved' then
    update retl.run set parked_at = null, parked_code = null where run_id = p_run and parked_at is not null;
    return null;
  end if;
  update retl.run set parked_at = coalesce(parked_at, clock_timestamp()), parked_code = v_code where run_id = p_run
    returning * into r;
  if v_verdict = 'rejected' then
    return jsonb_build_object('kind', 'rejected', 'code', v_code);
  end if;
  if retl.approval_left(r) <= 0 then
    return jsonb_build_object('kind', 'expired', 'code', v_code);
  end if;
  return jsonb_build_object('kind', 'held', 'code', v_code, 'removals', r.planned_removed, 'held', r.held_before,
    'shown', encode(retl.shown_digest(p_run), 'hex'), 'left_ms', retl.approval_left(r),
    'deadline_ms', floor(extract(epoch from r.parked_at) * 1000)::bigint + r.approval_deadline_ms);
end
$$;

-- Records an answer to what the guard shows of the run.
create function retl.answer(r retl.run, p_verdict text, p_by text, p_because text, p_via text) returns void
  language sql set search_path = pg_catalog, pg_temp as $$
  insert into retl.approval (run_id, generation_digest, removals, removal_digest, shown, verdict, decided_by, because, via)
    select r.run_id, g.digest, r.planned_removed, r.removal_digest,
      retl.shown_of(g.digest, r.planned_removed, r.removal_digest), p_verdict, p_by, p_because, p_via
    from retl.generation g where g.run_id = r.run_id and g.state <> 'discarded'
$$;

-- The guard: accidents empty audiences. Lets the run go on to its additions, or says why not; the run then stays where
-- it is, with nothing sent.
--
-- p_approve_up_to: whoever started the run has approved so many removals beforehand. p_plan_*: the saved plan that was looked
-- at; the run's own must be the same, and then it is approved. Neither overturns a rejection, or a deadline that has passed.
-- Besides what retl.judge says: {kind: passed}, {kind: stale} where the plan is not the run's, {kind: oversized, count}.
create function retl.guard(p_run bigint, p_epoch bigint, p_approve_up_to bigint default null,
    p_plan_generation bytea default null, p_plan_removals bigint default null, p_plan_digest bytea default null)
  returns jsonb
  language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
  r retl.run := retl.lock_run(p_run, p_epoch);
  v_planned boolean := p_plan_generation is not null;
  v_answer jsonb;
begin
  perform retl.require_phase(r, 'guard');
  if r.first_sequence is null then
    raise exception 'rule 1: nothing is planned yet' using errcode = 'RM003';
  end if;
  if num_nulls(p_plan_generation, p_plan_removals, p_plan_digest) not in (0, 3) then
    raise exception 'a part of the saved plan is missing' using errcode = 'RM003';
  end if;
  if r.oversized_removals > 0 then
    return jsonb_build_object('kind', 'oversized', 'count', r.oversized_removals);
  end if;
  if v_planned and retl.shown_digest(p_run) is distinct from retl.shown_of(p_plan_generation, p_plan_removals, p_plan_digest) then
    return jsonb_build_object('kind', 'stale');
  end if;
  if retl.beyond(r) is not null and retl.verdict(r) is null and (v_planned or r.planned_removed <= p_approve_up_to)
     -- neither a number nor a plan, which looks at no destination, speaks of strangers or of another place
     and not r.replaces_unknown and r.moved is null
     and (r.parked_at is null or retl.approval_left(r) > 0) then
    perform retl.answer(r, 'approved', 'temporal', null, case when v_planned then 'plan' else 'input' end);
  end if;
  v_answer := retl.judge(p_run);
  if v_answer is not null then
    return v_answer;
  end if;
  update retl.run set phase = 'additions' where run_id = p_run;
  update retl.target set credentials = r.credentials, removal_route = r.removal_route where target_id = r.target_id
    and (credentials, removal_route) is distinct from (r.credentials, r.removal_route);
  return jsonb_build_object('kind', 'passed');
end
$$;

-- A person's answer to what the guard asks. It comes from outside of any attempt and needs no epoch: it writes nothing but
-- its own row. p_shown is what the person was shown; an answer to anything else is refused.
--
-- Returns {kind: recorded}, or without a change {kind: repeated} where the same verdict stands already, or
--   {kind: no-such-run | not-parked | expired}, {kind: closed, closing}, {kind: stale, shown}, {kind: answered, verdict}.
create function retl.decide(p_run bigint, p_shown bytea, p_verdict text, p_by text, p_because text, p_via text)
  returns jsonb
  language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
  r retl.run;
  v_shown bytea;
  v_before text;
begin
  perform retl.require_writer();
  if p_verdict is null or p_verdict not in ('approved', 'rejected') or p_via is null or p_via not in ('cli', 'update') then
    raise exception 'the verdict is approved or rejected' using errcode = 'RM003';
  end if;
  if p_shown is null or coalesce(p_by, '') = '' then
    raise exception 'who answers, or what was shown, is missing' using errcode = 'RM003';
  end if;
  select * into r from retl.run where run_id = p_run for no key update;
  if not found then
    return jsonb_build_object('kind', 'no-such-run');
  end if;
  -- First of all: who asks again because the answer was lost gets it, however far the run has come since.
  select verdict into v_before from retl.approval where run_id = p_run and shown = p_shown;
  if v_before = p_verdict then
    return jsonb_build_object('kind', 'repeated');
  end if;
  if r.closing is not null then
    return jsonb_build_object('kind', 'closed', 'closing', r.closing);
  end if;
  if v_before is not null then
    return jsonb_build_object('kind', 'answered', 'verdict', v_before);
  end if;
  if r.parked_at is null then
    return jsonb_build_object('kind', 'not-parked');
  end if;
  v_shown := retl.shown_digest(p_run);
  if v_shown is distinct from p_shown then
    return jsonb_build_object('kind', 'stale', 'shown', encode(v_shown, 'hex'));
  end if;
  if retl.approval_left(r) <= 0 then
    return jsonb_build_object('kind', 'expired');
  end if;
  perform retl.answer(r, p_verdict, p_by, p_because, p_via);
  return jsonb_build_object('kind', 'recorded');
end
$$;

revoke all on all functions in schema retl from public;
