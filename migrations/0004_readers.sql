-- People who look: who may see what the journal knows of one member, and who may see values (design.md sections 3 and 5).
--
--   retl_inspector  runs, batches, receipts' counts, codes, hashes and positions: what `status`, `runs`, `explain` and
--                   `rejections` show. No payload, identity, source key, receipt, provider's word or operator's text; and
--                   no list of identity hashes either, for a list of hashed addresses can be guessed through: a member is
--                   found by one who knows its identity, one at a time, through the functions below.
--   retl_reader     all of that, and every value: it may select from every table, those of later runs included.
--   retl_approver   what retl_inspector sees, and the answer to what the guard asks; nothing else may it change.
--
-- The first two may change nothing. All are groups without a login, for people; workers have retl_runtime.

do $$
declare
  v_role text;
begin
  foreach v_role in array array['retl_inspector', 'retl_reader', 'retl_approver'] loop
    begin
      if not exists (select from pg_roles where rolname = v_role) then
        execute format('create role %I nologin', v_role);
      end if;
    exception
      when insufficient_privilege then
        raise exception 'role % does not exist and the owner may not create it', v_role using errcode = 'RM010';
      when duplicate_object or unique_violation then
        null; -- another installer, in another database of this server, was faster
    end;
  end loop;
end
$$;

grant usage on schema retl to retl_inspector, retl_reader, retl_approver;

grant select on all tables in schema retl to retl_reader;
-- The tables of each run, generation and target, which functions of the owner will create.
alter default privileges in schema retl grant select on tables to retl_reader;

-- Tables that hold no values.
grant select on retl.migration, retl.journal, retl.mirror, retl.run, retl.attempt, retl.generation, retl.log_head,
  retl.log_entry to retl_inspector, retl_approver;
-- Of the others, the columns that hold none: a column that is added later is not among them by itself.
grant select (revision_id, mirror_id, digest, created_at) on retl.revision to retl_inspector, retl_approver;
grant select (target_id, target_key, mirror_id, baseline, baseline_proof, baseline_at, held, longest_removal, identity_form, created_at)
  on retl.target to retl_inspector, retl_approver;
grant select (batch_id, run_id, action, operations, sending, resends, retry_of, state, request_hash, request_bytes, reason,
    divisible, prepared_epoch, sent_epoch, settled_epoch, prepared_at, sent_at, send_deadline, retry_at, next_poll_at, staged_at, polls, to_add,
    to_change, accepted, rejected, added, changed, position, folded, settled_at)
  on retl.batch to retl_inspector, retl_approver;
grant select (sequence, run_id, batch_id, code, recorded_at) on retl.rejection to retl_inspector, retl_approver;
grant select (sequence, run_id, change, held_sequence) on retl.exception to retl_inspector, retl_approver;
grant select (approval_id, run_id, generation_digest, removals, removal_digest, shown, verdict, via, decided_at)
  on retl.approval to retl_inspector, retl_approver;

-- Whole requests that were refused are few among many; a list of them must not read the many.
create index batch_refused on retl.batch (run_id) where state = 'refused';
-- The earlier sendings of one operation; its last is in the index of the exclusion constraint.
create index batch_unapplied on retl.batch using gist (operations) where state = 'not-applied';

-- One operation by its key, in a range of a run's operations that stands in the order of that key: halving finds it by some
-- twenty look-ups of the primary key. p_key is the text of a hash or of a row number.
create function retl.search_operation(p_run bigint, p_column text, p_key text, p_first bigint, p_last bigint,
    out found_sequence bigint, out found_change text, out found_payload bytea)
  language plpgsql stable set search_path = pg_catalog, pg_temp as $$
begin
  if p_first > p_last then
    return;
  end if;
  execute format('with recursive s(lo, hi) as (
      select $1, $2 + 1
      union all
      select case when o.%2$I < %3$L then o.sequence + 1 else s.lo end, case when o.%2$I < %3$L then s.hi else o.sequence end
      from s join retl.operation_%1$s o on o.sequence = s.lo + (s.hi - s.lo) / 2
      where s.lo < s.hi)
    select o.sequence, o.change::text, o.payload_hash
    from s join retl.operation_%1$s o on o.sequence = s.lo and o.%2$I = %3$L where s.lo = s.hi and s.lo <= $2',
    p_run, p_column, p_key) into found_sequence, found_change, found_payload using p_first, p_last;
end
$$;

-- What a run had planned for an identity. Upserts stand in order of the identity hash where they hold their own bytes, else
-- in that of the generation's rows; removals always in that of the identity hash.
create function retl.find_operation(r retl.run, p_generation bigint, p_identity bytea,
    out found_sequence bigint, out found_change text, out found_payload bytea)
  language plpgsql stable set search_path = pg_catalog, pg_temp as $$
declare
  v_row bigint;
begin
  if r.operations_hold_bytes then
    select * into found_sequence, found_change, found_payload
      from retl.search_operation(r.run_id, 'identity_hash', p_identity::text, r.first_sequence, r.additions_end);
  elsif r.additions_end >= r.first_sequence and p_generation is not null then
    execute format('select row_no from retl.generation_%s where kind = 1 and identity_hash = $1', p_generation)
      into v_row using p_identity;
    if v_row is not null then
      select * into found_sequence, found_change, found_payload
        from retl.search_operation(r.run_id, 'row_no', v_row::text, r.first_sequence, r.additions_end);
    end if;
  end if;
  if found_sequence is null then
    select * into found_sequence, found_change, found_payload
      from retl.search_operation(r.run_id, 'identity_hash', p_identity::text, r.additions_end + 1, r.removals_end);
  end if;
end
$$;

-- The sealed rows of a run, while they are there; null where they are not.
create function retl.readable_generation(p_run bigint) returns bigint
  language sql stable set search_path = pg_catalog, pg_temp as $$
  select generation_id from retl.generation
  where run_id = p_run and state not in ('loaded', 'discarded') and rows_present
    and to_regclass(format('retl.generation_%s', generation_id)) is not null
$$;

-- The operation by which a target holds an identity, folded or not, and the payload's hash; nulls: it does not hold it.
create function retl.held_by(p_target bigint, p_identity bytea, out sequence bigint, out payload_hash bytea)
  language plpgsql stable security definer set search_path = pg_catalog, pg_temp as $$
declare
  r retl.run;
  o record;
begin
  for r in
    select x.* from retl.run x where x.target_id = p_target and x.run_id in (
      select b.run_id from retl.batch b where b.state = 'settled' and not b.folded and b.accepted > 0)
    order by x.run_id desc
  loop
    select * into o from retl.find_operation(r, retl.readable_generation(r.run_id), p_identity);
    if exists (select from retl.batch b where b.run_id = r.run_id and b.operations @> o.found_sequence
                 and b.state = 'settled' and not b.folded)
       and not exists (select from retl.rejection x where x.sequence = o.found_sequence) then
      if o.found_change <> 'r' then
        sequence := o.found_sequence;
        payload_hash := o.found_payload;
      end if;
      return;
    end if;
  end loop;
  if to_regclass(format('retl.membership_%s', p_target)) is not null then
    execute format('select m.sequence, m.payload_hash from retl.membership_%s m where m.identity_hash = $1', p_target)
      into sequence, payload_hash using p_identity;
  end if;
end
$$;

-- The runs of a target before p_before (null: all), newest first, at most p_limit and never more than 1,000; for each, what
-- its snapshot and its plan say of one identity. Only rows that are still there can say anything:
--   snapshot, plan: present; gone (there was one); none (there never was one)
--   desired_hash: of the payload that the snapshot gives the identity; null: it does not give it, or is not there
--   sequence, change (a, c, u, r), payload_hash: of the planned operation, if there is one
create function retl.trace_member(p_target bigint, p_identity bytea, p_before bigint, p_limit integer)
  returns table (run_id bigint, snapshot text, desired_hash bytea, plan text, sequence bigint, change text,
    payload_hash bytea)
  language plpgsql stable security definer set search_path = pg_catalog, pg_temp as $$
declare
  r retl.run;
  v_generation bigint;
begin
  for r in
    select x.* from retl.run x where x.target_id = p_target and (p_before is null or x.run_id < p_before)
    order by x.run_id desc limit least(greatest(coalesce(p_limit, 0), 0), 1000)
  loop
    run_id := r.run_id;
    v_generation := retl.readable_generation(r.run_id);
    snapshot := case when v_generation is not null then 'present' when r.sealed_at is not null then 'gone' else 'none' end;
    desired_hash := null;
    sequence := null;
    change := null;
    payload_hash := null;
    if v_generation is not null then
      execute format('select g.payload_hash from retl.generation_%s g where g.kind = 1 and g.identity_hash = $1',
        v_generation) into desired_hash using p_identity;
    end if;
    plan := case when r.first_sequence is null then 'none'
      when r.rows_kept is not null or to_regclass(format('retl.operation_%s', r.run_id)) is null then 'gone'
      else 'present' end;
    if plan = 'present' then
      select f.found_sequence, f.found_change, f.found_payload into sequence, change, payload_hash
        from retl.find_operation(r, v_generation, p_identity) f;
    end if;
    return next;
  end loop;
end
$$;

-- What the snapshots of the same runs say of one source key: given is `excluded` (on purpose, rule 7), `member`, `absent`, or
-- null where the rows are not there. identity_hash: of the first member that the row gives.
create function retl.trace_key(p_target bigint, p_key text, p_before bigint, p_limit integer)
  returns table (run_id bigint, snapshot text, given text, identity_hash bytea)
  language plpgsql stable security definer set search_path = pg_catalog, pg_temp as $$
declare
  r retl.run;
  v_generation bigint;
  v_kind smallint;
begin
  for r in
    select x.* from retl.run x where x.target_id = p_target and (p_before is null or x.run_id < p_before)
    order by x.run_id desc limit least(greatest(coalesce(p_limit, 0), 0), 1000)
  loop
    run_id := r.run_id;
    v_generation := retl.readable_generation(r.run_id);
    snapshot := case when v_generation is not null then 'present' when r.sealed_at is not null then 'gone' else 'none' end;
    given := null;
    identity_hash := null;
    if v_generation is not null then
      execute format('select g.kind, g.identity_hash from retl.generation_%s g where g.member_no = 0 and g.source_key = $1',
        v_generation) into v_kind, identity_hash using p_key;
      given := case when v_kind is null then 'absent' when v_kind = 0 then 'excluded' else 'member' end;
    end if;
    return next;
  end loop;
end
$$;

-- The identity hashes of operations that the destination rejected, and of no others.
create function retl.rejected_identities(p_sequences bigint[]) returns table (sequence bigint, identity_hash bytea)
  language plpgsql stable security definer set search_path = pg_catalog, pg_temp as $$
declare
  v_table text;
  v_of_run bigint[];
begin
  for v_table, v_of_run in
    select retl.operation_table(r), array_agg(x.sequence) from retl.rejection x join retl.run r using (run_id)
    where x.sequence = any(p_sequences) group by retl.operation_table(r)
  loop
    if to_regclass(v_table) is not null then
      return query execute format('select o.sequence, o.identity_hash from %s o where o.sequence = any($1)', v_table)
        using v_of_run;
    end if;
  end loop;
end
$$;

-- What became of operations that the destination rejected: of each, the next run of the target that says something of its
-- identity. Looked at are the hundred runs that follow, the first of them to complete (which says something in every case),
-- however many have ended otherwise before it, and the newest.
--   accepted, rejected, pending  it was planned again, and that came of it so far
--   settled                      that run completed and had nothing to send for it: what is held is what the source gives
create function retl.rejections_since(p_sequences bigint[]) returns table (sequence bigint, later_run bigint, became text)
  language plpgsql stable security definer set search_path = pg_catalog, pg_temp as $$
declare
  i record;
  r retl.run;
  v_found bigint;
begin
  for i in
    select s.sequence, s.identity_hash, x.run_id, o.target_id from retl.rejected_identities(p_sequences) s
      join retl.rejection x on x.sequence = s.sequence join retl.run o on o.run_id = x.run_id
  loop
    for r in
      with later as (
        select n.run_id, n.closing from retl.run n where n.target_id = i.target_id and n.run_id > i.run_id
          and n.first_sequence is not null and n.rows_kept is null
          and to_regclass(format('retl.operation_%s', n.run_id)) is not null)
      select n.* from retl.run n where n.run_id in (
        (select l.run_id from later l order by l.run_id limit 100)
        union all (select l.run_id from later l where l.closing = 'completed' order by l.run_id limit 1)
        union all (select l.run_id from later l order by l.run_id desc limit 1))
      order by n.run_id
    loop
      select f.found_sequence into v_found
        from retl.find_operation(r, retl.readable_generation(r.run_id), i.identity_hash) f;
      became := case
        when v_found is null then case when r.closing = 'completed' then 'settled' end
        when exists (select from retl.rejection x where x.sequence = v_found) then 'rejected'
        else (select case when b.state in ('settled', 'uploaded') then 'accepted' when b.state = 'refused' then 'rejected'
            when r.closing is null then 'pending' end
          from (select min(x.state) as state from retl.batch x
            where x.run_id = r.run_id and x.operations @> v_found and x.state not in ('not-applied', 'parted')) b)
        end;
      if became is not null then
        sequence := i.sequence;
        later_run := r.run_id;
        return next;
        exit;
      end if;
    end loop;
  end loop;
end
$$;

grant execute on function retl.shown_digest to retl_inspector, retl_reader, retl_approver, retl_runtime;
revoke all on function retl.search_operation, retl.find_operation, retl.readable_generation, retl.held_by, retl.trace_member,
  retl.trace_key, retl.rejected_identities, retl.rejections_since from public;
grant execute on function retl.held_by, retl.trace_member, retl.trace_key, retl.rejected_identities, retl.rejections_since
  to retl_inspector, retl_reader, retl_approver, retl_runtime;
grant execute on function retl.decide to retl_approver;
