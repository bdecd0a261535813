-- Delivery: batches, receipts, the log, removals, finish, promotion and closing (design.md sections 4 to 6).

-- The row of a batch, locked, of a run whose epoch is the caller's (rule 9).
create function retl.lock_batch(p_run bigint, p_epoch bigint, p_batch bytea) returns retl.batch
  language plpgsql set search_path = pg_catalog, pg_temp as $$
declare
  b retl.batch;
begin
  perform retl.lock_run(p_run, p_epoch);
  select * into b from retl.batch where batch_id = p_batch and run_id = p_run for update;
  if not found then
    raise exception 'no such batch' using errcode = 'RM004';
  end if;
  return b;
end
$$;

create function retl.refuse_state(b retl.batch, p_wanted text) returns void
  language plpgsql set search_path = pg_catalog, pg_temp as $$
begin
  if b.state in ('settled', 'refused', 'uploaded', 'parted') then
    raise exception 'rule 6: the batch is % and cannot become %', b.state, p_wanted using errcode = 'RM006';
  end if;
  raise exception 'rule 3: the batch is % and cannot become %', b.state, p_wanted using errcode = 'RM003';
end
$$;

-- Inserts batches that follow one another without a gap. The caller has checked what the range may be.
create function retl.insert_batches(r retl.run, p_action text, p_from bigint, p_ids bytea[], p_last bigint[],
    p_hashes bytea[], p_bytes bigint[], p_sending integer, p_retry_of bytea) returns bigint
  language plpgsql set search_path = pg_catalog, pg_temp as $$
declare
  v_from bigint := p_from;
  v_add integer;
  v_change integer;
  v_rows bigint;
begin
  if cardinality(p_ids) is distinct from cardinality(p_last) or cardinality(p_ids) is distinct from cardinality(p_hashes)
     or cardinality(p_ids) is distinct from cardinality(p_bytes) or coalesce(cardinality(p_ids), 0) = 0 then
    raise exception 'the arrays of batches differ in length' using errcode = 'RM003';
  end if;
  for i in 1..cardinality(p_ids) loop
    -- `is not true`: a null in an array is outside every limit.
    if (p_last[i] >= v_from and p_last[i] - v_from < r.max_batch_rows and p_bytes[i] between 1 and r.max_request_bytes)
       is not true then
      raise exception 'a batch is outside the limits of the run' using errcode = 'RM003';
    end if;
    execute format('select count(*), count(*) filter (where change = ''a''), count(*) filter (where change = ''c'')
      from retl.operation_%s where sequence between $1 and $2', r.run_id)
      into v_rows, v_add, v_change using v_from, p_last[i];
    if v_rows <> p_last[i] - v_from + 1 then
      raise exception 'rule 4: the batch names operations that are not planned' using errcode = 'RM003';
    end if;
    insert into retl.batch (batch_id, run_id, action, operations, sending, retry_of, state, request_hash, request_bytes,
        prepared_epoch, to_add, to_change)
      values (p_ids[i], r.run_id, p_action, int8range(v_from, p_last[i], '[]'), p_sending, p_retry_of, 'prepared',
        p_hashes[i], p_bytes[i], r.epoch, v_add, v_change);
    v_from := p_last[i] + 1;
  end loop;
  return v_from - 1;
end
$$;

-- Rule 5: what the destination has rejected in a run, for good.
--   members    one by one, or with a whole request of which one member was to blame and was not found
--   stops      the run sends nothing more
--   tolerated  nothing was rejected, or no more than the run tolerates: `accepted` then means accepted, or rejected (rule 1).
--              Its share is of the members that the run desires or removes, whether or not they had to be sent: else one
--              member that is rejected in every run would be all of a quiet run.
create function retl.rejected_in(r retl.run, out members bigint, out stops boolean, out tolerated boolean)
  language sql stable security definer set search_path = pg_catalog, pg_temp as $$
  with found as (
    select coalesce(sum(case when b.divisible then upper(b.operations) - lower(b.operations) else b.rejected end), 0)::bigint
        as members,
      count(*) filter (where b.state = 'refused' and not b.divisible) > 0 as refused
    from retl.batch b where b.run_id = r.run_id and (b.state = 'refused' or b.rejected > 0))
  select f.members, f.refused or (f.members > 0 and r.on_rejection = 'stop'),
    not f.refused and (f.members = 0 or (r.on_rejection = 'tolerate' and (f.members <= r.max_rejections or f.members
      <= r.max_rejection_share * (r.planned_added + r.planned_changed + r.planned_unchanged + r.planned_removed)) is true))
  from found f
$$;

-- Rule 5: nothing new is planned while an earlier attempt's requests are open, nor after a rejection that stops the run.
create function retl.require_clear(r retl.run) returns void
  language plpgsql set search_path = pg_catalog, pg_temp as $$
begin
  if exists (select from retl.batch where run_id = r.run_id
             and (state = 'unknown' or (state in ('prepared', 'sending', 'staged') and prepared_epoch < r.epoch))) then
    raise exception 'rule 5: an earlier request is unresolved' using errcode = 'RM003';
  end if;
  if (select stops from retl.rejected_in(r)) then
    raise exception 'rule 5: a rejection stops the run' using errcode = 'RM003';
  end if;
end
$$;

-- Rules 1, 2 and 4: makes batches durable before they are sent. They take up the planned operations in order, from
-- where the run's batches end: there is no cursor to trust, and no way to name an operation twice or to skip one.
create function retl.prepare_batches(p_run bigint, p_epoch bigint, p_action text, p_ids bytea[], p_last bigint[],
    p_hashes bytea[], p_bytes bigint[]) returns void
  language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
  r retl.run := retl.lock_run(p_run, p_epoch);
  v_from bigint;
  v_end bigint;
begin
  if p_action is null or p_action not in ('upsert', 'remove') then
    raise exception 'not an action of members' using errcode = 'RM003';
  end if;
  perform retl.require_phase(r, case p_action when 'upsert' then 'additions' else 'removals' end);
  if p_action = 'remove' and r.strategy = 'native-replace' then
    raise exception 'rule 1: a native replacement has no removals' using errcode = 'RM003';
  end if;
  perform retl.require_baseline(r);
  perform retl.require_clear(r);
  select coalesce(max(upper(operations)), case p_action when 'upsert' then r.first_sequence else r.additions_end + 1 end)
    into v_from from retl.batch where run_id = p_run and action = p_action;
  v_end := retl.insert_batches(r, p_action, v_from, p_ids, p_last, p_hashes, p_bytes, 1, null);
  if v_end > (case p_action when 'upsert' then r.additions_end else r.removals_end end) then
    raise exception 'rule 1: additions and removals do not share a batch' using errcode = 'RM003';
  end if;
end
$$;

-- Rule 4: prepares again what was proven not to have been applied, whole or in pieces, once.
create function retl.retry_batch(p_run bigint, p_epoch bigint, p_batch bytea, p_ids bytea[], p_last bigint[],
    p_hashes bytea[], p_bytes bigint[]) returns void
  language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
  r retl.run := retl.lock_run(p_run, p_epoch);
  b retl.batch;
  v_end bigint;
begin
  select * into b from retl.batch where batch_id = p_batch and run_id = p_run for update;
  if not found then
    raise exception 'no such batch' using errcode = 'RM004';
  end if;
  if b.state <> 'not-applied' then
    perform retl.refuse_state(b, 'prepared');
  end if;
  if b.operations is null or exists (select from retl.batch where retry_of = p_batch) then
    raise exception 'rule 4: these operations are prepared already' using errcode = 'RM003';
  end if;
  perform retl.require_phase(r, case b.action when 'upsert' then 'additions' else 'removals' end);
  perform retl.require_clear(r);
  v_end := retl.insert_batches(r, b.action, lower(b.operations), p_ids, p_last, p_hashes, p_bytes, b.sending + 1, p_batch);
  if v_end <> upper(b.operations) - 1 then
    raise exception 'rule 4: the pieces do not cover the batch' using errcode = 'RM003';
  end if;
end
$$;

-- A native replacement drops at its finish whatever was not uploaded: no finish before every member of the sealed snapshot
-- has an accepted upload in this very run.
create function retl.require_uploads(r retl.run) returns void
  language plpgsql set search_path = pg_catalog, pg_temp as $$
declare
  v_members bigint;
  v_accepted bigint;
begin
  select members into v_members from retl.generation where run_id = r.run_id and state = 'sealed';
  if not found then
    raise exception 'rule 1: no sealed generation to finish' using errcode = 'RM003';
  end if;
  select coalesce(sum(accepted), 0) into v_accepted from retl.batch
    where run_id = r.run_id and action = 'upsert' and state in ('settled', 'uploaded') and rejected = 0;
  if v_accepted <> v_members then
    raise exception 'rule 1: % of % members have an accepted upload', v_accepted, v_members using errcode = 'RM003';
  end if;
end
$$;

-- Journals the session's opening or the finish like a batch.
create function retl.prepare_step(p_run bigint, p_epoch bigint, p_action text, p_batch bytea, p_hash bytea,
    p_bytes bigint) returns void
  language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
  r retl.run := retl.lock_run(p_run, p_epoch);
begin
  if p_action is null or p_action not in ('init', 'finish') then
    raise exception 'not a step' using errcode = 'RM003';
  end if;
  perform retl.require_phase(r, p_action);
  perform retl.require_baseline(r);
  if p_action = 'finish' and r.strategy = 'native-replace' then
    perform retl.require_uploads(r);
  end if;
  insert into retl.batch (batch_id, run_id, action, sending, state, request_hash, request_bytes, prepared_epoch)
    values (p_batch, p_run, p_action,
      (select count(*) + 1 from retl.batch where run_id = p_run and action = p_action),
      'prepared', p_hash, p_bytes, p_epoch);
end
$$;

-- When a request that is sent now can no longer reach the destination, at the latest.
create function retl.deadline(p_ms bigint) returns timestamptz
  language plpgsql set search_path = pg_catalog, pg_temp as $$
begin
  if p_ms is null or p_ms not between 1 and 86400000 then
    raise exception 'rule 3: a send deadline lies between a millisecond and a day ahead' using errcode = 'RM003';
  end if;
  return clock_timestamp() + p_ms * interval '1 ms';
end
$$;

-- Rule 3: the epoch-checked commit just before the first byte. p_deadline_ms: from now on, how long the request may
-- still reach the destination; before then an answer of "not found" proves nothing.
-- Rule 5: an attempt that finds a rejection sends nothing that was left prepared. (Within the attempt that met it,
-- requests that are being launched at that very moment are in flight already.)
create function retl.mark_sending(p_run bigint, p_epoch bigint, p_batch bytea, p_deadline_ms bigint) returns void
  language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
  b retl.batch := retl.lock_batch(p_run, p_epoch, p_batch);
begin
  if b.state <> 'prepared' then
    perform retl.refuse_state(b, 'sending');
  end if;
  if exists (select from retl.batch x join retl.run o using (run_id) where x.run_id = p_run and x.settled_epoch < p_epoch
             and case o.on_rejection when 'stop' then x.state = 'refused' or x.rejected > 0
               else x.state = 'refused' and not x.divisible end) then
    raise exception 'rule 5: a rejection stops the run' using errcode = 'RM003';
  end if;
  update retl.batch set state = 'sending', sent_epoch = p_epoch, sent_at = clock_timestamp(),
    send_deadline = retl.deadline(p_deadline_ms) where batch_id = p_batch;
end
$$;

-- Rule 3: sends an unknown batch again, with the same bytes and key, where the adapter is idempotent.
create function retl.mark_resending(p_run bigint, p_epoch bigint, p_batch bytea, p_deadline_ms bigint) returns void
  language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
  b retl.batch := retl.lock_batch(p_run, p_epoch, p_batch);
begin
  if b.state <> 'unknown' then
    perform retl.refuse_state(b, 'sending');
  end if;
  if not (select may_resend from retl.run where run_id = p_run) then
    raise exception 'rule 3: an unknown request of this destination is never sent again' using errcode = 'RM003';
  end if;
  update retl.batch set state = 'sending', sent_epoch = p_epoch, resends = resends + 1,
    send_deadline = greatest(send_deadline, retl.deadline(p_deadline_ms)) where batch_id = p_batch;
end
$$;

create function retl.mark_unknown(p_run bigint, p_epoch bigint, p_batch bytea, p_code text) returns void
  language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
  b retl.batch := retl.lock_batch(p_run, p_epoch, p_batch);
begin
  if b.state not in ('sending', 'unknown') then
    perform retl.refuse_state(b, 'unknown');
  end if;
  update retl.batch set state = 'unknown', reason = p_code where batch_id = p_batch;
end
$$;

-- Rule 3: an answer to a copy that was sent again says nothing about the first. Only its code is kept; the batch is as
-- unknown as it was, until every operation of it is accepted or somebody decides.
create function retl.doubt(p_batch bytea, p_code text, p_retry_ms bigint) returns void
  language sql set search_path = pg_catalog, pg_temp as $$
  update retl.batch set state = 'unknown', reason = p_code,
    retry_at = clock_timestamp() + greatest(p_retry_ms, 0) * interval '1 ms' where batch_id = p_batch
$$;

-- Proven not applied: the destination said so in a way that its adapter declares a proof. p_retry_ms: earliest next try.
-- Rule 5: a code that begins with `divided:` has the request sent again in halves, to find the member that it was refused for: only
-- where the run goes on after rejections, and a hundred times in a run.
create function retl.mark_not_applied(p_run bigint, p_epoch bigint, p_batch bytea, p_code text, p_retry_ms bigint)
  returns void
  language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
  b retl.batch := retl.lock_batch(p_run, p_epoch, p_batch);
begin
  if b.reason = p_code and (b.state = 'not-applied' or (b.state = 'unknown' and b.resends > 0 and b.retry_at is not null))
  then
    return; -- an exact repeat
  end if;
  if b.state not in ('sending', 'unknown', 'staged') then
    perform retl.refuse_state(b, 'not-applied');
  end if;
  if b.state = 'unknown' and clock_timestamp() < b.send_deadline then
    raise exception 'rule 3: absence proves nothing before the send deadline' using errcode = 'RM003';
  end if;
  if p_code like 'divided:%' and (upper(b.operations) - lower(b.operations) > 1
       and (select on_rejection <> 'stop' from retl.run where run_id = p_run)
       and (select count(*) from retl.batch x where x.run_id = p_run and x.state = 'not-applied' and x.reason like 'divided:%')
         < 100) is not true then
    raise exception 'rule 5: the request may not be divided' using errcode = 'RM003';
  end if;
  if b.state in ('sending', 'staged') and b.resends > 0 then
    -- The answer is about the copy that was sent last. An earlier one may have been applied: the batch must not go
    -- again under a new key, so it is as unknown as it was.
    perform retl.doubt(p_batch, p_code, p_retry_ms);
    return;
  end if;
  update retl.batch set state = 'not-applied', reason = p_code,
    retry_at = clock_timestamp() + greatest(p_retry_ms, 0) * interval '1 ms' where batch_id = p_batch;
end
$$;

-- Proven not applied, and never to be: the run is stopped (rule 5). Of a copy that was sent again it proves nothing about
-- the first (rule 3): the batch stays unknown, with the provider's words for whoever decides it.
-- p_divisible: one member may be to blame, and the run goes on where it may (rule 5); all of them count as rejected.
create function retl.mark_refused(p_run bigint, p_epoch bigint, p_batch bytea, p_code text, p_words text,
    p_divisible boolean default false) returns void
  language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
  b retl.batch := retl.lock_batch(p_run, p_epoch, p_batch);
begin
  if b.reason = p_code and b.refusal = p_words
     and (b.state = 'refused' or (b.state = 'unknown' and b.resends > 0 and b.retry_at is not null)) then
    return; -- an exact repeat
  end if;
  if b.state not in ('sending', 'unknown', 'staged') then
    perform retl.refuse_state(b, 'refused');
  end if;
  if b.resends > 0 then
    perform retl.doubt(p_batch, p_code, 0);
    update retl.batch set refusal = p_words where batch_id = p_batch;
    return;
  end if;
  if b.state = 'unknown' and clock_timestamp() < b.send_deadline then
    raise exception 'rule 3: a refusal proves nothing before the send deadline' using errcode = 'RM003';
  end if;
  update retl.batch set state = 'refused', reason = p_code, refusal = p_words, settled_epoch = p_epoch,
    divisible = p_divisible where batch_id = p_batch;
end
$$;

-- Rule 5: taken for asynchronous work. Not an acceptance: nothing becomes true but the job ids. Of a staged batch: a poll has
-- found its jobs under way still.
create function retl.mark_staged(p_run bigint, p_epoch bigint, p_batch bytea, p_job_ids text[], p_receipt text,
    p_next_poll_ms bigint, p_store_keys text[] default null, p_store_values text[] default null) returns void
  language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
  b retl.batch := retl.lock_batch(p_run, p_epoch, p_batch);
begin
  if b.state not in ('sending', 'unknown', 'staged') then
    perform retl.refuse_state(b, 'staged');
  end if;
  if b.state = 'staged' and b.job_ids is distinct from p_job_ids then
    raise exception 'rule 6: the jobs of a batch do not change' using errcode = 'RM006';
  end if;
  perform retl.write_store((select target_id from retl.run where run_id = p_run), p_store_keys, p_store_values);
  update retl.batch set state = 'staged', job_ids = p_job_ids, receipt = p_receipt, reason = null,
    staged_at = coalesce(b.staged_at, clock_timestamp()), polls = b.polls + (b.state = 'staged')::integer,
    next_poll_at = retl.next_poll(p_next_poll_ms) where batch_id = p_batch;
end
$$;

create function retl.next_poll(p_ms bigint) returns timestamptz
  language plpgsql set search_path = pg_catalog, pg_temp as $$
begin
  if p_ms is null or p_ms not between 0 and 604800000 then
    raise exception 'a next poll lies between now and a week ahead' using errcode = 'RM003';
  end if;
  return clock_timestamp() + p_ms * interval '1 ms';
end
$$;

-- A poll that was not answered, or not in a way that says what became of the jobs: the batch stays staged, and shows why.
create function retl.note_poll(p_run bigint, p_epoch bigint, p_batch bytea, p_code text, p_next_poll_ms bigint) returns void
  language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
  b retl.batch := retl.lock_batch(p_run, p_epoch, p_batch);
begin
  if b.state <> 'staged' then
    perform retl.refuse_state(b, 'polled');
  end if;
  update retl.batch set reason = p_code, polls = b.polls + 1, next_poll_at = retl.next_poll(p_next_poll_ms)
    where batch_id = p_batch;
end
$$;

-- Commits at once what an adapter must find again between the steps of one request.
create function retl.record_progress(p_run bigint, p_epoch bigint, p_batch bytea, p_value text) returns void
  language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
  b retl.batch := retl.lock_batch(p_run, p_epoch, p_batch);
begin
  if b.state <> 'sending' then
    perform retl.refuse_state(b, 'in progress');
  end if;
  update retl.batch set progress = p_value where batch_id = p_batch;
end
$$;

-- The bytes that an entry's hash covers: fixed-width big-endian integers, a length before each text.
create function retl.entry_bytes(e retl.log_entry) returns bytea
  language sql immutable set search_path = pg_catalog, pg_temp as $$
  select e.previous_hash || int8send(e.position) || int4send(octet_length(e.kind)) || convert_to(e.kind, 'UTF8')
    || int8send(e.mirror_id) || int8send(e.target_id) || int8send(e.run_id) || e.batch_id
    || int8send(coalesce(e.first_sequence, 0)) || int8send(coalesce(e.last_sequence, 0)) || int4send(e.effects)
    || e.effects_hash || int8send((extract(epoch from e.recorded_at) * 1000000)::bigint)
$$;

-- Appends to the log. The last statement of the caller's transaction: the head's row lock is what makes positions
-- gapless and ordered by commit, and it is held no longer than the commit takes.
create function retl.append_entry(r retl.run, b retl.batch, p_kind text, p_effects integer, p_left_out bigint[])
  returns bigint
  language plpgsql set search_path = pg_catalog, pg_temp as $$
declare
  e retl.log_entry;
begin
  e.kind := p_kind;
  e.mirror_id := r.mirror_id;
  e.target_id := r.target_id;
  e.run_id := r.run_id;
  e.batch_id := b.batch_id;
  e.first_sequence := lower(b.operations);
  e.last_sequence := upper(b.operations) - 1;
  e.effects := p_effects;
  e.effects_hash := sha256(coalesce((select string_agg(int8send(s), ''::bytea order by s) from unnest(p_left_out) s), ''));
  select h.position + 1, h.link into strict e.position, e.previous_hash from retl.log_head h for update;
  -- The head is locked from here to the commit, for the whole journal: a caller who falls asleep is cut off.
  perform set_config('idle_in_transaction_session_timeout', '10s', true);
  e.recorded_at := clock_timestamp();
  e.entry_hash := sha256(retl.entry_bytes(e));
  insert into retl.log_entry values (e.*);
  update retl.log_head set position = e.position, entry_hash = e.entry_hash, link = e.entry_hash;
  return e.position;
end
$$;

-- The adapter's buffered store writes; a null value deletes.
create function retl.write_store(p_target bigint, p_keys text[], p_values text[]) returns void
  language plpgsql set search_path = pg_catalog, pg_temp as $$
begin
  -- A value that is missing by accident would delete.
  if coalesce(cardinality(p_keys), 0) <> coalesce(cardinality(p_values), 0) or array_position(p_keys, null) is not null
     or (select count(distinct k) from unnest(p_keys) k) <> coalesce(cardinality(p_keys), 0) then
    raise exception 'the keys and values of the store do not match' using errcode = 'RM003';
  end if;
  delete from retl.store s using unnest(p_keys, p_values) w(key, value)
    where s.target_id = p_target and s.key = w.key and w.value is null;
  insert into retl.store (target_id, key, value)
    select p_target, w.key, w.value from unnest(p_keys, p_values) w(key, value) where w.value is not null
    on conflict (target_id, key) do update set value = excluded.value;
end
$$;

-- Rule 2: the receipt, the membership and the log entry it proves become true together. Rule 6: an exact repeat changes
-- nothing, anything else about a settled batch is refused. Returns the log position (0 where nothing was accepted, where
-- rejections of a copy that was sent again leave the batch unknown, or where an upload is evidence for a finish only).
create function retl.settle_batch(p_run bigint, p_epoch bigint, p_batch bytea, p_receipt text,
    p_rejected bigint[], p_codes text[], p_reasons text[], p_store_keys text[], p_store_values text[]) returns bigint
  language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
  b retl.batch := retl.lock_batch(p_run, p_epoch, p_batch);
  r retl.run;
  v_total integer;
  v_rejected integer := coalesce(cardinality(p_rejected), 0);
  v_add integer := 0;
  v_change integer := 0;
  v_position bigint;
begin
  if b.operations is null then
    raise exception 'not a batch of members' using errcode = 'RM003';
  end if;
  if b.state in ('settled', 'uploaded') and b.receipt = p_receipt
     and coalesce((select array_agg(s order by s) from unnest(p_rejected) s), '{}') = coalesce((
       select array_agg(sequence order by sequence) from retl.rejection where batch_id = p_batch), '{}') then
    return coalesce(b.position, 0);
  end if;
  if b.state not in ('sending', 'unknown', 'staged') then
    perform retl.refuse_state(b, 'settled');
  end if;
  select * into strict r from retl.run where run_id = p_run;
  v_total := upper(b.operations) - lower(b.operations);
  if v_rejected > 0 then
    if v_rejected <> (select count(distinct s) from unnest(p_rejected) s where b.operations @> s) then
      raise exception 'a rejection names an operation outside its batch' using errcode = 'RM003';
    end if;
    if v_rejected is distinct from cardinality(p_codes) or v_rejected is distinct from cardinality(p_reasons)
       or array_position(p_codes, null) is not null or array_position(p_reasons, null) is not null then
      raise exception 'each rejection needs a code and a reason' using errcode = 'RM003';
    end if;
    -- Rule 3: what the destination rejects of a second copy it may have accepted of the first. Unlike a whole acceptance,
    -- this settles nothing, but where its adapter has seen to it that the last copy speaks for all.
    if b.resends > 0 and not r.last_copy_decides then
      if b.state <> 'unknown' or b.reason is distinct from p_codes[array_lower(p_codes, 1)] or b.retry_at is null then
        perform retl.doubt(p_batch, p_codes[array_lower(p_codes, 1)], 0);
      end if;
      return 0;
    end if;
    insert into retl.rejection (sequence, run_id, batch_id, code, reason)
      select s, p_run, p_batch, c, w from unnest(p_rejected, p_codes, p_reasons) as x(s, c, w);
    execute format('select count(*) filter (where change = ''a''), count(*) filter (where change = ''c'')
      from retl.operation_%s where sequence = any($1)', p_run) into v_add, v_change using p_rejected;
  end if;
  perform retl.write_store(r.target_id, p_store_keys, p_store_values);
  if r.at_finish and b.action = 'upsert' then
    -- Evidence for the finish, and nothing more: retl.apply_uploads makes it true once that is accepted.
    update retl.batch set state = 'uploaded', receipt = p_receipt, reason = null, accepted = v_total - v_rejected,
      rejected = v_rejected, added = b.to_add - v_add, changed = b.to_change - v_change, settled_epoch = p_epoch
      where batch_id = p_batch;
    return 0;
  end if;
  if v_total > v_rejected then
    v_position := retl.append_entry(r, b, case b.action when 'upsert' then 'additions' else 'removals' end,
      v_total - v_rejected, p_rejected);
  end if;
  update retl.batch set state = 'settled', receipt = p_receipt, reason = null, accepted = v_total - v_rejected,
    rejected = v_rejected, added = b.to_add - v_add, changed = b.to_change - v_change,
    position = v_position, settled_at = clock_timestamp(), settled_epoch = p_epoch, folded = (v_total = v_rejected)
    where batch_id = p_batch;
  return coalesce(v_position, 0);
end
$$;

-- Rule 4: the destination has proven of single operations of a request that it has not applied them, and has told what became of
-- the others. The request is parted there: what was told of is settled, under the same answer, and what was not applied may be
-- prepared again, by itself. The pieces follow one another without a gap; p_applied says of each which it is. A piece is a batch
-- like any other, named by its operations. p_retry_ms: earliest next try.
-- Bounded: operations that were sent five times are told of as rejected instead, and so is what lies in more than 100 pieces.
create function retl.settle_parts(p_run bigint, p_epoch bigint, p_batch bytea, p_receipt text, p_code text, p_retry_ms bigint,
    p_ids bytea[], p_last bigint[], p_hashes bytea[], p_bytes bigint[], p_applied boolean[],
    p_rejected bigint[], p_codes text[], p_reasons text[], p_store_keys text[], p_store_values text[]) returns void
  language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
  b retl.batch := retl.lock_batch(p_run, p_epoch, p_batch);
  r retl.run;
  x record;
begin
  if b.state = 'parted' and b.receipt = p_receipt and p_ids = (
      select array_agg(p.batch_id::bytea order by lower(p.operations)) from retl.batch p where p.retry_of = p_batch) then
    return; -- an exact repeat
  end if;
  if b.operations is null or b.state not in ('sending', 'unknown', 'staged') then
    perform retl.refuse_state(b, 'parted');
  end if;
  if cardinality(p_applied) is distinct from cardinality(p_ids) or array_position(p_applied, null) is not null
     or not (true = any(p_applied) and false = any(p_applied)) or cardinality(p_ids) > 100 then
    raise exception 'rule 4: a request is parted into 2 to 100 pieces, of which some were applied and some were not'
      using errcode = 'RM003';
  end if;
  if b.sending >= 5 then
    raise exception 'rule 4: these operations were sent five times' using errcode = 'RM003';
  end if;
  if b.state = 'unknown' and clock_timestamp() < b.send_deadline then
    raise exception 'rule 3: absence proves nothing before the send deadline' using errcode = 'RM003';
  end if;
  -- Rule 3: what a second copy has not applied the first may have.
  if b.resends > 0 then
    perform retl.doubt(p_batch, p_code, p_retry_ms);
    return;
  end if;
  select * into strict r from retl.run where run_id = p_run;
  if r.at_finish then
    raise exception 'an upload is accepted as it was sent' using errcode = 'RM003';
  end if;
  update retl.batch set state = 'parted', receipt = p_receipt, reason = p_code where batch_id = p_batch;
  if retl.insert_batches(r, b.action, lower(b.operations), p_ids, p_last, p_hashes, p_bytes, b.sending, p_batch)
     <> upper(b.operations) - 1 then
    raise exception 'rule 4: the pieces do not cover the batch' using errcode = 'RM003';
  end if;
  update retl.batch p set prepared_epoch = b.prepared_epoch, prepared_at = b.prepared_at, sent_epoch = b.sent_epoch,
    sent_at = b.sent_at, send_deadline = b.send_deadline, job_ids = b.job_ids, staged_at = b.staged_at,
    state = case when a.applied then 'sending' else 'not-applied' end, reason = case when not a.applied then p_code end,
    retry_at = case when not a.applied then clock_timestamp() + greatest(p_retry_ms, 0) * interval '1 ms' end
    from unnest(p_ids, p_applied) a(id, applied) where p.batch_id = a.id;
  if exists (select from unnest(p_rejected) s where not exists (
      select from retl.batch p where p.retry_of = p_batch and p.state = 'sending' and p.operations @> s)) then
    raise exception 'a rejection names an operation that was not applied, or is outside its batch' using errcode = 'RM003';
  end if;
  perform retl.write_store(r.target_id, p_store_keys, p_store_values);
  for x in
    select p.batch_id, array_agg(j.s) filter (where j.s is not null) as rejected, array_agg(j.c) filter (where j.s is not null) as codes,
      array_agg(j.w) filter (where j.s is not null) as reasons
    from retl.batch p left join unnest(p_rejected, p_codes, p_reasons) as j(s, c, w) on p.operations @> j.s
    where p.retry_of = p_batch and p.state = 'sending' group by p.batch_id, p.operations order by p.operations
  loop
    perform retl.settle_batch(p_run, p_epoch, x.batch_id, p_receipt, x.rejected, x.codes, x.reasons, null, null);
  end loop;
end
$$;

-- The receipt of the session's opening or of the finish. Rule 10: a finish becomes accepted here and nowhere else.
create function retl.settle_step(p_run bigint, p_epoch bigint, p_batch bytea, p_receipt text, p_store_keys text[],
    p_store_values text[]) returns bigint
  language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
  b retl.batch := retl.lock_batch(p_run, p_epoch, p_batch);
  r retl.run;
  v_position bigint;
begin
  if b.operations is not null then
    raise exception 'not a step' using errcode = 'RM003';
  end if;
  if b.state = 'settled' and b.receipt = p_receipt then
    return coalesce(b.position, 0);
  end if;
  if b.state not in ('sending', 'unknown', 'staged') then
    perform retl.refuse_state(b, 'settled');
  end if;
  select * into strict r from retl.run where run_id = p_run;
  perform retl.require_phase(r, b.action);
  perform retl.write_store(r.target_id, p_store_keys, p_store_values);
  update retl.run set phase = case b.action when 'init' then 'extract' else 'promote' end where run_id = p_run;
  if b.action = 'finish' then
    v_position := retl.append_entry(r, b, 'finish', 0, null);
  end if;
  update retl.batch set state = 'settled', receipt = p_receipt, reason = null, position = v_position,
    settled_at = clock_timestamp(), settled_epoch = p_epoch, folded = true where batch_id = p_batch;
  return coalesce(v_position, 0);
end
$$;

-- How many operations of an action are durably accepted, and whether anything of it is still open. Within what the run
-- tolerates, a rejected one is as good (rule 1).
create function retl.require_all_accepted(r retl.run, p_action text, p_planned bigint) returns void
  language plpgsql set search_path = pg_catalog, pg_temp as $$
declare
  v_accepted bigint;
begin
  select coalesce(sum(b.accepted), 0)
      + case when j.tolerated then coalesce(sum(b.rejected), 0)
          + coalesce(sum(upper(b.operations) - lower(b.operations)) filter (where b.divisible), 0) else 0 end
    into v_accepted from retl.batch b, retl.rejected_in(r) j
    where b.run_id = r.run_id and b.action = p_action and b.state in ('settled', 'uploaded', 'refused') group by j.tolerated;
  v_accepted := coalesce(v_accepted, 0); -- no batch, no row
  if v_accepted <> p_planned or exists (select from retl.batch where run_id = r.run_id
       and state in ('prepared', 'sending', 'unknown', 'staged')) then
    raise exception 'rule 1: % of % planned % operations are accepted', v_accepted, p_planned, p_action
      using errcode = 'RM003';
  end if;
end
$$;

-- Holds a set of removals against the guard once more, before it is made or finished: what was approved is one set and no
-- other. Null: go on. Else what retl.judge says, and the phase stays.
--
-- The set can only differ from the planned one where something other than the journal's functions has written its tables:
-- one run at a time has the target, and folds nothing before its finish. Where what there is now is beyond the limits, it is
-- a new question, with a deadline of its own. Where it is within them nobody need be asked, but it is not gone on with: a
-- smaller set would leave members behind that the destination has, and one of the same size is of other members. The run
-- stops as a defect, with no one removed; once it is aborted, the next plans anew from what is there.
create function retl.recheck(r retl.run, p_members bigint, p_digest bytea) returns jsonb
  language plpgsql set search_path = pg_catalog, pg_temp as $$
begin
  if p_members <> r.planned_removed or p_digest <> r.removal_digest then
    r.planned_removed := p_members;
    if retl.beyond(r) is null then
      raise exception 'the removals are not those that the guard saw' using errcode = 'RM003';
    end if;
    update retl.run set planned_removed = p_members, removal_digest = p_digest, parked_at = null, parked_code = null
      where run_id = r.run_id;
  end if;
  return retl.judge(r.run_id);
end
$$;

-- Rule 1: plans the removals, once every addition is accepted. What was shown to the guard is what is removed: else it
-- answers as the guard does.
create function retl.begin_removals(p_run bigint, p_epoch bigint, p_max_remove bigint) returns jsonb
  language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
  r retl.run := retl.lock_run(p_run, p_epoch);
  v_generation bigint;
  s record;
  v_answer jsonb;
  v_too_large bigint := 0;
begin
  perform retl.require_phase(r, 'additions');
  if p_max_remove is null then
    raise exception 'rule 8: the byte limit of a removal is missing' using errcode = 'RM003';
  end if;
  p_max_remove := least(p_max_remove, r.max_request_bytes);
  perform retl.require_clear(r);
  perform retl.require_all_accepted(r, 'upsert', r.additions_end - r.first_sequence + 1);
  -- Where no removal is planned none is made. But a native replacement drops at its finish whatever was not uploaded.
  if r.planned_removed > 0 or r.strategy = 'native-replace' then
    select * into s from retl.unwanted(p_run);
    v_answer := retl.recheck(r, s.members, s.digest);
    if v_answer is not null then
      return v_answer;
    end if;
  end if;
  if r.strategy = 'native-replace' then
    update retl.run set phase = 'removals', removals_end = r.additions_end where run_id = p_run;
    return jsonb_build_object('kind', 'planned', 'removals', 0);
  end if;
  if r.planned_removed > 0 then
    select generation_id into strict v_generation from retl.generation where run_id = p_run and state = 'sealed';
    if retl.collect_removals(p_run, r.target_id, v_generation) <> r.planned_removed then
      raise exception 'the removal bytes of some members are not there' using errcode = 'RM003';
    end if;
    execute format('insert into retl.operation_%1$s (sequence, change, identity_hash, removal_hash, identity, remove)
      select %2$s + row_number() over (order by identity_hash), ''r'', identity_hash, removal_hash, identity, remove
      from retl.removal_%1$s', p_run, r.additions_end);
    execute format('drop table retl.removal_%s', p_run);
    execute format('select count(*) from retl.operation_%s where change = ''r'' and octet_length(remove) > $1', p_run)
      into v_too_large using p_max_remove;
    if v_too_large > 0 then
      raise exception 'rule 8: % removals are over the byte limit', v_too_large using errcode = 'RM003';
    end if;
    execute format('analyze retl.operation_%s', p_run);
  end if;
  update retl.run set phase = 'removals', removals_end = r.additions_end + r.planned_removed where run_id = p_run;
  return jsonb_build_object('kind', 'planned', 'removals', r.planned_removed);
end
$$;

-- The removal set of an open run, against the membership before the run: additions accepted since are all desired, so
-- they are in the generation and never in this set.
create function retl.unwanted(p_run bigint, out members bigint, out digest bytea)
  language plpgsql stable set search_path = pg_catalog, pg_temp as $$
declare
  v_target bigint;
  v_generation bigint;
begin
  select r.target_id, g.generation_id into strict v_target, v_generation
    from retl.run r join retl.generation g on g.run_id = r.run_id and g.state = 'sealed' where r.run_id = p_run;
  select s.members, s.digest into members, digest from retl.removal_set(v_target, v_generation) s;
end
$$;

-- Rule 1: no finish before every removal is accepted. The removals are held against the guard once more: those that were
-- made, and for a native replacement those that its finish is about to make.
create function retl.begin_finish(p_run bigint, p_epoch bigint) returns jsonb
  language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
  r retl.run := retl.lock_run(p_run, p_epoch);
  v_members bigint;
  v_digest bytea;
  v_answer jsonb;
begin
  perform retl.require_phase(r, 'removals');
  perform retl.require_clear(r);
  perform retl.require_all_accepted(r, 'remove', r.removals_end - r.additions_end);
  if r.strategy = 'native-replace' then
    select s.members, s.digest into v_members, v_digest from retl.unwanted(p_run) s;
  else
    execute format('select count(*), sha256(coalesce(string_agg(identity_hash, ''''::bytea order by identity_hash), ''''))
      from retl.operation_%s where sequence between $1 and $2', p_run)
      into v_members, v_digest using r.additions_end + 1, r.removals_end;
    -- No approval helps where they are not the planned ones: it comes after the deed.
    if v_members <> r.planned_removed or v_digest <> r.removal_digest then
      raise exception 'rule 1: the removals that were made are not those that were planned' using errcode = 'RM003';
    end if;
  end if;
  v_answer := retl.recheck(r, v_members, v_digest);
  if v_answer is not null then
    return v_answer;
  end if;
  update retl.run set phase = 'finish' where run_id = p_run;
  return jsonb_build_object('kind', 'passed');
end
$$;

-- Fills an empty membership table in one go and indexes it afterwards: a first mirror's membership, for a third of the
-- cost of keeping an index in step. Returns whether it applied: everything unfolded is additions of one run, within a bound.
create function retl.fold_first(p_target bigint) returns boolean
  language plpgsql set search_path = pg_catalog, pg_temp as $$
declare
  u record;
  v_rows bigint;
  v_empty boolean;
begin
  select count(*) as batches, count(distinct b.run_id) as runs, bool_and(b.action = 'upsert') as upserts,
      min(b.run_id) as run_id, min(lower(b.operations)) as first, max(upper(b.operations)) - 1 as last,
      sum(b.accepted) as accepted, sum(b.rejected) as rejected, sum(b.to_add) as to_add, array_agg(b.batch_id::bytea) as ids
    into u from retl.batch b join retl.run o using (run_id)
    where o.target_id = p_target and b.state = 'settled' and not b.folded and b.action in ('upsert', 'remove');
  if u.batches not between 10 and 5000 or u.runs <> 1 or not u.upserts or u.rejected > 0
     or u.accepted <> u.last - u.first + 1 then
    return false;
  end if;
  execute format('select not exists (select from retl.membership_%s)', p_target) into v_empty;
  if not v_empty then
    return false;
  end if;
  execute format('alter table retl.membership_%1$s drop constraint membership_%1$s_pkey', p_target);
  execute format('insert into retl.membership_%s (identity_hash, payload_hash, sequence)
    select identity_hash, payload_hash, sequence from retl.operation_%s where sequence between $1 and $2 order by sequence',
    p_target, u.run_id) using u.first, u.last;
  get diagnostics v_rows = row_count;
  execute format('alter table retl.membership_%1$s add constraint membership_%1$s_pkey primary key (identity_hash)', p_target);
  update retl.batch set folded = true where batch_id = any(u.ids);
  update retl.target set held = v_rows where target_id = p_target;
  return true;
end
$$;

-- Folds accepted operations into the membership table, in the order of the log, a bounded number of batches at a time.
-- The meaning of the membership does not change by it. Returns how many batches are left.
create function retl.fold(p_run bigint, p_epoch bigint, p_batches integer) returns bigint
  language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
  r retl.run := retl.lock_run(p_run, p_epoch);
  s record;
  v_left_out text;
  v_rows bigint;
  v_held bigint := 0;
begin
  if p_batches is null or p_batches < 1 then
    raise exception 'at least one batch is folded at a time' using errcode = 'RM003';
  end if;
  if retl.fold_first(r.target_id) then
    return 0;
  end if;
  -- Batches that are neighbours fold in one statement. Within one action of one run the order is free: an identity is in
  -- one operation only (rule 4). Between them the log's order holds.
  for s in
    with next as (
      select b.* from retl.batch b join retl.run o using (run_id)
      where o.target_id = r.target_id and b.state = 'settled' and not b.folded and b.action in ('upsert', 'remove')
      order by b.position limit p_batches),
    placed as (
      -- The same for neighbours, whatever their sizes, and larger after each gap.
      select n.*, upper(operations) - sum(upper(operations) - lower(operations))
        over (partition by run_id, action order by lower(operations)) as island from next n)
    select run_id, action, min(lower(operations)) as first, max(upper(operations)) - 1 as last, array_agg(batch_id::bytea) as ids,
      sum(accepted) as accepted, sum(rejected) as rejected, sum(added) as added, min(position) as position
    from placed group by run_id, action, island order by run_id, action desc, min(position)
  loop
    v_left_out := case when s.rejected > 0
      then 'and not exists (select from retl.rejection x where x.sequence = o.sequence)' else '' end;
    if s.action = 'upsert' then
      execute format('insert into retl.membership_%s as m (identity_hash, payload_hash, sequence)
          select o.identity_hash, o.payload_hash, o.sequence from retl.operation_%s o
          where o.sequence between $1 and $2 %s order by o.identity_hash
          on conflict (identity_hash) do update
            set payload_hash = excluded.payload_hash, sequence = excluded.sequence', r.target_id, s.run_id, v_left_out)
        using s.first, s.last;
      get diagnostics v_rows = row_count;
      if v_rows <> s.accepted then
        raise exception 'rule 6: % operations were accepted, and % would be held', s.accepted, v_rows using errcode = 'RM003';
      end if;
      v_held := v_held + s.added;
    else
      execute format('delete from retl.membership_%s m using retl.operation_%s o
          where o.sequence between $1 and $2 and m.identity_hash = o.identity_hash %s', r.target_id, s.run_id, v_left_out)
        using s.first, s.last;
      get diagnostics v_rows = row_count;
      v_held := v_held - v_rows;
    end if;
    update retl.batch set folded = true where batch_id = any(s.ids);
  end loop;
  update retl.target set held = held + v_held where target_id = r.target_id;
  return (select count(*) from retl.batch f join retl.run o using (run_id)
    where o.target_id = r.target_id and f.state = 'settled' and not f.folded and f.action in ('upsert', 'remove'));
end
$$;

-- The finish of a native replacement is accepted. In this order, each step by itself, and each repeated by recovery until it
-- is done: the status; the accepted uploads, where they become true with the finish; the members that the destination has
-- dropped; the promotion. The last two enter the log, after the finish: indexes follow them like any other effect.

-- Confirms the replacement, and plans what is to be recorded as removed: held before, and not in the sealed snapshot. The
-- removal bytes are those that were stored when each was accepted, though no request will send them.
create function retl.confirm_replacement(p_run bigint, p_epoch bigint) returns void
  language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
  r retl.run := retl.lock_run(p_run, p_epoch);
  v_generation bigint;
  v_removed bigint;
begin
  perform retl.require_phase(r, 'promote');
  if r.strategy <> 'native-replace' then
    raise exception 'rule 1: nothing was replaced' using errcode = 'RM003';
  end if;
  if r.replacement_status is not null then
    return; -- an exact repeat
  end if;
  select generation_id into strict v_generation from retl.generation where run_id = p_run and state = 'sealed';
  v_removed := retl.collect_removals(p_run, r.target_id, v_generation);
  execute format('insert into retl.operation_%1$s (sequence, change, identity_hash, removal_hash, identity, remove)
    select %2$s + row_number() over (order by identity_hash), ''r'', identity_hash, removal_hash, identity, remove
    from retl.removal_%1$s', p_run, r.additions_end);
  execute format('drop table retl.removal_%s', p_run);
  update retl.run set replacement_status = 'accepted', removals_end = r.additions_end + v_removed where run_id = p_run;
end
$$;

create function retl.require_replaced(r retl.run) returns void
  language plpgsql set search_path = pg_catalog, pg_temp as $$
begin
  perform retl.require_phase(r, 'promote');
  if r.replacement_status is null then
    raise exception 'rule 10: the replacement is not confirmed' using errcode = 'RM003';
  end if;
end
$$;

-- Makes at most p_batches uploads true, in order. Returns how many are left.
create function retl.apply_uploads(p_run bigint, p_epoch bigint, p_batches integer) returns bigint
  language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
  r retl.run := retl.lock_run(p_run, p_epoch);
  b retl.batch;
  v_position bigint;
begin
  perform retl.require_replaced(r);
  if p_batches is null or p_batches < 1 then
    raise exception 'at least one upload is applied at a time' using errcode = 'RM003';
  end if;
  for b in
    select * from retl.batch where run_id = p_run and state = 'uploaded' order by lower(operations) limit p_batches
  loop
    v_position := retl.append_entry(r, b, 'additions', b.accepted, null);
    update retl.batch set state = 'settled', position = v_position, settled_at = clock_timestamp()
      where batch_id = b.batch_id;
  end loop;
  return (select count(*) from retl.batch where run_id = p_run and state = 'uploaded');
end
$$;

-- Writes down, as settled batches with their log entries, planned operations from p_from to p_end at most that have become true
-- without a request of their own; p_receipt says by what. Returns the first operation that is left. The caller has checked that
-- they may become true.
create function retl.record_unsent(r retl.run, p_action text, p_from bigint, p_end bigint, p_ids bytea[], p_last bigint[],
    p_receipt text) returns bigint
  language plpgsql set search_path = pg_catalog, pg_temp as $$
declare
  b retl.batch;
  v_from bigint := p_from;
  v_rows integer;
  v_added integer;
  v_position bigint;
begin
  for i in 1..cardinality(p_ids) loop
    if (p_last[i] between v_from and p_end and p_last[i] - v_from < 100000) is not true then
      raise exception 'rule 4: the batch names % that are not planned',
        case p_action when 'remove' then 'removals' else 'members' end using errcode = 'RM003';
    end if;
    b.batch_id := p_ids[i];
    b.operations := int8range(v_from, p_last[i], '[]');
    v_rows := p_last[i] - v_from + 1;
    v_added := case p_action when 'remove' then 0 else v_rows end;
    v_position := retl.append_entry(r, b, case p_action when 'remove' then 'removals' else 'additions' end, v_rows, null);
    insert into retl.batch (batch_id, run_id, action, operations, sending, state, request_hash, request_bytes,
        prepared_epoch, settled_epoch, receipt, to_add, accepted, rejected, added, changed, position, settled_at)
      values (p_ids[i], r.run_id, p_action, b.operations, 1, 'settled', sha256(''), 0,
        r.epoch, r.epoch, p_receipt, v_added, v_rows, 0, v_added, 0, v_position, clock_timestamp());
    v_from := p_last[i] + 1;
  end loop;
  return v_from;
end
$$;

-- Records the next of the planned removals as made by the finish. They are no requests: nothing is sent for them.
create function retl.record_replaced(p_run bigint, p_epoch bigint, p_ids bytea[], p_last bigint[]) returns void
  language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
  r retl.run := retl.lock_run(p_run, p_epoch);
  v_from bigint;
begin
  perform retl.require_replaced(r);
  if coalesce(cardinality(p_ids), 0) = 0 or cardinality(p_ids) <> cardinality(p_last) then
    raise exception 'the arrays of batches differ in length' using errcode = 'RM003';
  end if;
  if exists (select from retl.batch where run_id = p_run and state = 'uploaded') then
    raise exception 'rule 10: an upload has not become true yet' using errcode = 'RM003';
  end if;
  select coalesce(max(upper(operations)), r.additions_end + 1) into v_from from retl.batch
    where run_id = p_run and action = 'remove';
  perform retl.record_unsent(r, 'remove', v_from, r.removals_end, p_ids, p_last, '{"replaced":true}');
end
$$;

-- Rule 5: writes down what the run has tolerated, and what the target still holds of it. Everything accepted is folded.
create function retl.record_exceptions(r retl.run) returns void
  language plpgsql set search_path = pg_catalog, pg_temp as $$
begin
  if (select members from retl.rejected_in(r)) = 0 then
    return;
  end if;
  execute format('insert into retl.exception (sequence, run_id, identity_hash, change, held_sequence, held_payload_hash)
    select o.sequence, $1, o.identity_hash, o.change, m.sequence, m.payload_hash
    from retl.operation_%1$s o left join retl.membership_%2$s m on m.identity_hash = o.identity_hash
    where o.sequence = any(array(
      select x.sequence from retl.rejection x where x.run_id = $1
      union all
      select generate_series(lower(b.operations), upper(b.operations) - 1) from retl.batch b
        where b.run_id = $1 and b.divisible))', r.run_id, r.target_id) using r.run_id;
end
$$;

-- Finish is accepted: the run's state and the promotion commit together.
create function retl.promote(p_run bigint, p_epoch bigint) returns void
  language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
  r retl.run := retl.lock_run(p_run, p_epoch);
begin
  perform retl.require_phase(r, 'promote');
  if exists (select from retl.batch where run_id = p_run and not folded and state not in ('not-applied', 'parted')
             and not divisible) then
    raise exception 'rule 1: something of the run is still open' using errcode = 'RM003';
  end if;
  if r.strategy = 'native-replace' then
    perform retl.require_replaced(r);
    perform retl.require_all_accepted(r, 'remove', r.removals_end - r.additions_end);
  end if;
  update retl.generation set state = 'superseded' where target_id = r.target_id and state = 'promoted';
  update retl.generation set state = 'promoted' where run_id = p_run and state = 'sealed';
  if not found then
    raise exception 'no sealed generation' using errcode = 'RM004';
  end if;
  perform retl.record_exceptions(r);
  if (r.planned_added + r.planned_changed + r.planned_removed) * 10 > r.held_before then
    execute format('analyze retl.membership_%s', r.target_id);
  end if;
  update retl.run set phase = 'complete', closing = 'completed', closed_at = clock_timestamp() where run_id = p_run;
end
$$;

-- Ends a logical run otherwise than by completing it. Rule 6: what was accepted stays accepted, and so does what the
-- log needs to tell it. Rule 10: a finish that was started is resolved first, and an accepted one completes the run.
create function retl.close_run(p_run bigint, p_epoch bigint, p_closing text, p_reason text) returns void
  language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
  r retl.run := retl.lock_run(p_run, p_epoch);
  g retl.generation;
  v_accepted boolean;
begin
  if p_closing is null then
    raise exception 'how the run is closed is missing' using errcode = 'RM003';
  end if;
  if p_closing = 'completed' then
    raise exception 'rule 1: a run completes by its promotion only' using errcode = 'RM003';
  end if;
  if p_closing = 'imported' then
    raise exception 'rule 2: an import is closed by what accepts it' using errcode = 'RM003';
  end if;
  if retl.has_unresolved(p_run) then
    raise exception 'rule 10: a request of the run is unresolved' using errcode = 'RM003';
  end if;
  if r.phase = 'promote' then
    raise exception 'rule 10: the finish has been accepted' using errcode = 'RM003';
  end if;
  if p_closing in ('discarded', 'invalid') and r.phase not in ('init', 'extract', 'seal', 'guard') then
    raise exception 'rule 8: a run that has sent members is not discarded' using errcode = 'RM003';
  end if;
  if p_closing = 'guard-rejected' and (r.parked_at is null or retl.verdict(r) is distinct from 'rejected') then
    raise exception 'nobody has rejected what the guard asks' using errcode = 'RM003';
  end if;
  if p_closing = 'guard-expired' and (r.parked_at is null or retl.verdict(r) is not null or retl.approval_left(r) > 0) then
    raise exception 'what the guard asks is answered, or the deadline has not passed' using errcode = 'RM003';
  end if;
  update retl.batch set state = 'not-applied', reason = 'closed', retry_at = clock_timestamp()
    where run_id = p_run and state = 'prepared';
  -- Rejections and refused requests are evidence, too: their operations say who was meant.
  v_accepted := exists (select from retl.batch where run_id = p_run and operations is not null
    and (state in ('settled', 'refused') or rejected > 0));
  for g in select * from retl.generation where run_id = p_run and state <> 'discarded' loop
    if v_accepted and not r.operations_hold_bytes then
      update retl.generation set state = 'kept' where generation_id = g.generation_id;
    else
      execute format('drop table if exists retl.generation_%s', g.generation_id);
      update retl.generation set state = case when v_accepted then 'kept' else 'discarded' end, rows_present = false
        where generation_id = g.generation_id;
    end if;
  end loop;
  if not v_accepted then
    execute format('drop table if exists retl.operation_%s', p_run);
  end if;
  update retl.run set closing = p_closing, reason = p_reason, closed_at = clock_timestamp(), released = null
    where run_id = p_run;
end
$$;

-- Lets an open run go, so that the next execution can take it over without asking Temporal. The attempt that says so
-- has written its last: it is fenced as by a newer one.
create function retl.release_run(p_run bigint, p_epoch bigint, p_how text, p_reason text) returns void
  language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
  v_epoch bigint;
begin
  perform retl.lock_run(p_run, p_epoch);
  if p_how is null then
    raise exception 'how the run is let go is missing' using errcode = 'RM003';
  end if;
  update retl.run set released = p_how, reason = p_reason, epoch = nextval('retl.epoch') where run_id = p_run
    returning epoch into v_epoch;
  insert into retl.attempt (epoch, run_id, step) values (v_epoch, p_run, 'release');
end
$$;

-- Superseded generations whose rows are still there are few, however many there have been.
create index generation_superseded on retl.generation (target_id, generation_id)
  where state in ('superseded', 'kept') and rows_present;

-- Drops the rows of superseded generations that neither a membership row nor a log entry refers to: those whose run
-- changed nothing, or whose operations hold their own bytes. Of one target, or of all (null); at most p_limit at a time. What
-- somebody reads stays for the next time. Returns how many it dropped.
create function retl.prune_generations(p_target bigint, p_limit integer) returns integer
  language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
  v_id bigint;
  v_dropped integer := 0;
begin
  perform retl.require_bound(p_limit);
  for v_id in
    select g.generation_id from retl.generation g join retl.run r using (run_id)
    where (p_target is null or g.target_id = p_target) and g.state in ('superseded', 'kept') and g.rows_present
      and (r.operations_hold_bytes or r.additions_end < r.first_sequence)
    order by 1 limit p_limit for update of g skip locked
  loop
    continue when not retl.drop_unused(array[format('retl.generation_%s', v_id)]);
    update retl.generation set rows_present = false where generation_id = v_id;
    v_dropped := v_dropped + 1;
  end loop;
  -- A candidate that was committed without retl.loaded is nobody's: one that is still loading is not visible here.
  for v_id in
    select substr(c.relname, 12)::bigint from pg_class c
    where c.relnamespace = 'retl'::regnamespace and c.relkind = 'r' and c.relname ~ '^generation_[0-9]+$'
      and not exists (select from retl.generation g where g.generation_id = substr(c.relname, 12)::bigint)
    limit p_limit - v_dropped
  loop
    continue when not retl.drop_unused(array[format('retl.generation_%s', v_id)]);
    v_dropped := v_dropped + 1;
  end loop;
  return v_dropped;
end
$$;

-- The same for the target of a run.
create function retl.prune(p_run bigint, p_limit integer) returns integer
  language sql security definer set search_path = pg_catalog, pg_temp as $$
  select retl.prune_generations(target_id, p_limit) from retl.run where run_id = p_run
$$;

-- The border: the runtime role may call these and nothing else.
revoke all on all functions in schema retl from public;
grant execute on function
  retl.admit, retl.begin_attempt, retl.note_wait, retl.record_baseline, retl.create_candidate, retl.loaded, retl.seal, retl.plan,
  retl.guard, retl.decide, retl.rejected_in, retl.prepare_batches, retl.retry_batch, retl.prepare_step, retl.mark_sending, retl.mark_resending,
  retl.mark_unknown, retl.mark_not_applied, retl.mark_refused, retl.mark_staged, retl.note_poll, retl.record_progress,
  retl.settle_batch, retl.settle_parts, retl.settle_step, retl.begin_removals, retl.begin_finish, retl.confirm_replacement,
  retl.apply_uploads, retl.record_replaced, retl.fold, retl.promote,
  retl.close_run, retl.release_run, retl.prune, retl.prune_generations
  to retl_runtime;

-- An operator's word on an unknown batch, or on a staged one whose jobs tell nothing any more (design.md section 6). It fences whatever attempt
-- there may be, and is recorded with its reason. Rule 3: "not applied" is not believed before the send deadline. A request
-- that is on its way keeps its attempt: fenced, that could no longer write down an answer that would settle it.
create function retl.resolve_batch(p_batch bytea, p_verdict text, p_because text) returns void
  language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
  b retl.batch;
  r retl.run;
begin
  perform retl.require_writer();
  if p_verdict is null or p_verdict not in ('accepted', 'not-applied') then
    raise exception 'the verdict is accepted or not-applied' using errcode = 'RM003';
  end if;
  select * into b from retl.batch where batch_id = p_batch;
  if not found then
    raise exception 'no such batch' using errcode = 'RM004';
  end if;
  select * into strict r from retl.run where run_id = b.run_id for no key update;
  select * into strict b from retl.batch where batch_id = p_batch for update;
  if b.state not in ('unknown', 'staged') or r.closing is not null then
    perform retl.refuse_state(b, p_verdict);
  end if;
  if coalesce(p_because, '') = '' then
    raise exception 'a reason is needed' using errcode = 'RM003';
  end if;
  if exists (select from retl.batch where run_id = r.run_id and state = 'sending' and sent_epoch = r.epoch
             and send_deadline > clock_timestamp()) then
    raise exception 'a request is under way; try again when the run waits' using errcode = 'RM003';
  end if;
  r.epoch := nextval('retl.epoch');
  update retl.run set epoch = r.epoch where run_id = r.run_id;
  insert into retl.attempt (epoch, run_id, step) values (r.epoch, r.run_id, 'resolve');
  -- What became of jobs that nobody can ask about is as unknown as any other outcome.
  update retl.batch set resolved_because = p_because, state = 'unknown' where batch_id = p_batch;
  if p_verdict = 'not-applied' then
    perform retl.mark_not_applied(r.run_id, r.epoch, p_batch, 'resolved-by-operator', 0);
  elsif b.operations is null then
    perform retl.settle_step(r.run_id, r.epoch, p_batch, '{"resolved":"accepted"}', null, null);
  else
    perform retl.settle_batch(r.run_id, r.epoch, p_batch, '{"resolved":"accepted"}', null, null, null, null, null);
  end if;
end
$$;
revoke all on function retl.resolve_batch from public;
grant execute on function retl.resolve_batch to retl_runtime;
