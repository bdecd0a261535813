-- Log snapshots and retention (design.md section 5). A log snapshot is what replaying the log up to a boundary gives: every
-- member of every target, since when it is held, and the run, operation and position of its last acceptance. Once it is
-- complete, `earliest` is the position after its boundary, and rows that only served older entries may go.
--
-- Entries themselves are kept for good: one narrow row for a whole batch is what the chain of hashes is made of, and what a
-- checkpoint at any position is held against.
--
-- Every function here makes one bounded step in one transaction. Whoever is killed has lost that step, and anybody goes on.
--   retl.snapshot_<id>           the rows of a log snapshot
--   retl.kept_<run>_<snapshot>   operations of a run that something still refers to, with their bytes

create table retl.log_snapshot (
  snapshot_id bigint generated always as identity primary key,
  boundary bigint not null references retl.log_entry,
  boundary_hash retl.sha256 not null, -- the entry hash at the boundary
  base_id bigint references retl.log_snapshot, -- the one it goes on from; null: from the beginning
  state text not null check (state in ('copying', 'applying', 'digesting', 'complete', 'superseded')),
  applied bigint not null check (applied between 0 and boundary),
  -- How far the step that is under way has come, in order of target and identity hash.
  at_target bigint not null default 0,
  at_identity bytea not null default '',
  members bigint not null default 0 check (members >= 0), -- digested so far
  rolling retl.sha256,
  digest retl.sha256,
  linked_at bigint, -- the head when it was completed: the entry after it carries the digest in its link
  swept_to bigint not null default 0, -- the last run that was looked at for rows to drop
  rows_present boolean not null default true,
  started_at timestamptz not null default clock_timestamp(),
  completed_at timestamptz,
  superseded_at timestamptz,
  check ((state in ('complete', 'superseded')) = (digest is not null)),
  check (num_nulls(digest, linked_at, completed_at) in (0, 3))
);
create unique index log_snapshot_building on retl.log_snapshot ((true)) where state in ('copying', 'applying', 'digesting');
create unique index log_snapshot_complete on retl.log_snapshot ((true)) where state = 'complete';

-- How many rows of a snapshot refer to operations of a run.
create table retl.log_snapshot_run (
  snapshot_id bigint not null references retl.log_snapshot,
  run_id bigint not null references retl.run,
  members bigint not null,
  primary key (snapshot_id, run_id)
);

-- Runs whose operations are being copied to a table of their own (next_sequence), and tables that wait to be dropped until
-- whoever may still read them has gone (unused_since).
create table retl.leftover (
  run_id bigint primary key references retl.run,
  snapshot_id bigint not null references retl.log_snapshot,
  next_sequence bigint not null,
  operations text not null, -- the table that is replaced
  generation_id bigint,
  unused_since timestamptz
);

-- An index that needs the effects after a position: compaction goes no further than that.
create table retl.compaction_hold (
  index_name text primary key check (length(index_name) between 1 and 200),
  position bigint not null check (position >= 0),
  held_at timestamptz not null default clock_timestamp()
);

grant select on retl.log_snapshot, retl.log_snapshot_run, retl.leftover, retl.compaction_hold to retl_runtime, retl_inspector, retl_approver;
create index run_receipts on retl.run (closed_at) where closing is not null and not receipts_pruned;

-- One at a time begins, holds back, or completes.
create function retl.lock_compaction() returns void
  language sql set search_path = pg_catalog, pg_temp as $$
  select pg_advisory_xact_lock(hashtextextended('retl.compaction', 0))
$$;

create function retl.require_bound(p_rows integer) returns void
  language plpgsql set search_path = pg_catalog, pg_temp as $$
begin
  if p_rows is null or p_rows not between 1 and 1000000 then
    raise exception 'a step is of 1 to 1000000 rows' using errcode = 'RM003';
  end if;
end
$$;

-- Begins a log snapshot of everything up to p_boundary, or less where an index holds it back.
--
-- Returns jsonb: {kind: begun | building, snapshot, boundary} where one is being built (now or already),
--   {kind: nothing, earliest} where the boundary lies before what can be read, {kind: held, by, position, earliest}
create function retl.begin_compaction(p_boundary bigint) returns jsonb
  language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
  s retl.log_snapshot;
  h retl.log_head;
  c retl.compaction_hold;
begin
  perform retl.require_writer();
  if p_boundary is null then
    raise exception 'the boundary is missing' using errcode = 'RM003';
  end if;
  perform retl.lock_compaction();
  select * into s from retl.log_snapshot where state in ('copying', 'applying', 'digesting');
  if found then
    return jsonb_build_object('kind', 'building', 'snapshot', s.snapshot_id::text, 'boundary', s.boundary::text);
  end if;
  select * into strict h from retl.log_head;
  p_boundary := least(p_boundary, h.position);
  if p_boundary < h.earliest then
    return jsonb_build_object('kind', 'nothing', 'earliest', h.earliest::text);
  end if;
  select * into c from retl.compaction_hold order by position limit 1;
  if c.position < h.earliest then
    return jsonb_build_object('kind', 'held', 'by', c.index_name, 'position', c.position::text, 'earliest', h.earliest::text);
  end if;
  p_boundary := least(p_boundary, c.position);
  insert into retl.log_snapshot (boundary, boundary_hash, base_id, state, applied)
    select p_boundary, e.entry_hash, b.snapshot_id, case when b.snapshot_id is null then 'applying' else 'copying' end,
      coalesce(b.boundary, 0)
    from retl.log_entry e left join retl.log_snapshot b on b.state = 'complete' where e.position = p_boundary
    returning * into strict s;
  execute format('create table retl.snapshot_%s (target_id bigint not null, identity_hash bytea not null,
    payload_hash bytea not null, removal_hash bytea, sequence bigint not null, since bigint not null, position bigint not null,
    primary key (target_id, identity_hash))', s.snapshot_id);
  execute format('grant select on retl.snapshot_%s to retl_runtime', s.snapshot_id);
  return jsonb_build_object('kind', 'begun', 'snapshot', s.snapshot_id::text, 'boundary', s.boundary::text);
end
$$;

-- Copies the next p_rows rows of the snapshot that this one goes on from.
create function retl.copy_snapshot(s retl.log_snapshot, p_rows integer) returns void
  language plpgsql set search_path = pg_catalog, pg_temp as $$
declare
  v_last record;
begin
  execute format('with page as (
      select * from retl.snapshot_%1$s where (target_id, identity_hash) > ($1, $2)
      order by target_id, identity_hash limit $3),
    copied as (insert into retl.snapshot_%2$s select * from page)
    select count(*) over () as rows, target_id, identity_hash from page
      order by target_id desc, identity_hash desc limit 1', s.base_id, s.snapshot_id)
    into v_last using s.at_target, s.at_identity, p_rows;
  if coalesce(v_last.rows, 0) < p_rows then
    update retl.log_snapshot set state = 'applying', at_target = 0, at_identity = '' where snapshot_id = s.snapshot_id;
  else
    update retl.log_snapshot set at_target = v_last.target_id, at_identity = v_last.identity_hash
      where snapshot_id = s.snapshot_id;
  end if;
end
$$;

-- Replays the next entries, about p_rows effects of them. Neighbours of one run and kind are applied by one statement: an
-- identity is in one of their operations only (rule 4).
create function retl.apply_entries(s retl.log_snapshot, p_rows integer) returns void
  language plpgsql set search_path = pg_catalog, pg_temp as $$
declare
  i record;
  v_rows bigint;
  v_applied bigint := s.applied;
begin
  for i in
    with next as (
      select e.*, sum(e.effects) over (order by e.position) - e.effects as before from retl.log_entry e
      where e.position > s.applied and e.position <= s.boundary order by e.position limit 1000),
    placed as (
      select n.*, n.position - row_number() over (partition by run_id, kind order by position) as island
      from next n where before < p_rows)
    select run_id, target_id, kind, min(position) as first, max(position) as last, sum(effects) as effects
    from placed group by run_id, target_id, kind, island order by min(position)
  loop
    v_applied := i.last;
    continue when i.kind = 'finish';
    if i.kind = 'additions' then
      execute format('insert into retl.snapshot_%s as m (target_id, identity_hash, payload_hash, removal_hash, sequence, since, position)
          select $3, o.identity_hash, o.payload_hash, o.removal_hash, o.sequence, e.position, e.position
          from retl.log_entry e join retl.operation_%s o on o.sequence between e.first_sequence and e.last_sequence
          where e.position between $1 and $2
            and not exists (select from retl.rejection x where x.sequence = o.sequence) order by o.identity_hash
          on conflict (target_id, identity_hash) do update
            set payload_hash = excluded.payload_hash, removal_hash = excluded.removal_hash, sequence = excluded.sequence,
              position = excluded.position',
        s.snapshot_id, i.run_id) using i.first, i.last, i.target_id;
      get diagnostics v_rows = row_count;
    else
      execute format('with gone as (
            select o.identity_hash
            from retl.log_entry e join retl.operation_%2$s o on o.sequence between e.first_sequence and e.last_sequence
            where e.position between $1 and $2
              and not exists (select from retl.rejection x where x.sequence = o.sequence)),
          deleted as (delete from retl.snapshot_%1$s m using gone g where m.target_id = $3
            and m.identity_hash = g.identity_hash)
          select count(*) from gone', s.snapshot_id, i.run_id) into v_rows using i.first, i.last, i.target_id;
    end if;
    if v_rows <> i.effects then
      raise exception 'effects of log positions % to % are missing', i.first, i.last using errcode = 'RM003';
    end if;
  end loop;
  if v_applied = s.boundary then
    execute format('analyze retl.snapshot_%s', s.snapshot_id);
  end if;
  update retl.log_snapshot set applied = v_applied,
    state = case when v_applied = s.boundary then 'digesting' else 'applying' end,
    rolling = case when v_applied = s.boundary then retl.snapshot_header(s.boundary, s.boundary_hash) end
    where snapshot_id = s.snapshot_id;
end
$$;

-- What a snapshot's digest begins with: which log, and up to which entry of it.
create function retl.snapshot_header(p_boundary bigint, p_hash bytea) returns bytea
  language sql stable set search_path = pg_catalog, pg_temp as $$
  select sha256(convert_to('retl-mirror/log-snapshot/1', 'UTF8') || '\x00'::bytea || uuid_send(log_id) || int8send(p_boundary)
    || p_hash) from retl.journal
$$;

-- Digests the next slices: the rows of one target whose identity hashes begin with one byte. Memory is bounded by a slice.
-- Returns whether there is none left.
create function retl.digest_snapshot(s retl.log_snapshot, p_rows integer) returns boolean
  language plpgsql set search_path = pg_catalog, pg_temp as $$
declare
  n record;
  v_rows bigint;
  v_hash bytea;
  v_end bytea;
  v_done bigint := 0;
begin
  loop
    execute format('select target_id, substr(identity_hash, 1, 1) as slice from retl.snapshot_%s
      where (target_id, identity_hash) >= ($1, $2) order by target_id, identity_hash limit 1', s.snapshot_id)
      into n using s.at_target, s.at_identity;
    exit when n.target_id is null or v_done >= p_rows;
    v_end := case when n.slice < '\xff'::bytea then set_byte(n.slice, 0, get_byte(n.slice, 0) + 1) end;
    execute format('select count(*), sha256(string_agg(identity_hash || payload_hash || coalesce(removal_hash, identity_hash)
        || int8send(sequence) || int8send(since) || int8send(position), ''''::bytea order by identity_hash)) from retl.snapshot_%s
      where target_id = $1 and identity_hash >= $2 and ($3 is null or identity_hash < $3)', s.snapshot_id)
      into v_rows, v_hash using n.target_id, n.slice, v_end;
    execute format('insert into retl.log_snapshot_run as x (snapshot_id, run_id, members)
      select %1$s, sequence >> 32, count(*) from retl.snapshot_%1$s
      where target_id = $1 and identity_hash >= $2 and ($3 is null or identity_hash < $3) group by 2
      on conflict (snapshot_id, run_id) do update set members = x.members + excluded.members', s.snapshot_id)
      using n.target_id, n.slice, v_end;
    s.rolling := sha256(s.rolling || int8send(n.target_id) || n.slice || int8send(v_rows) || v_hash);
    s.members := s.members + v_rows;
    s.at_target := case when v_end is null then n.target_id + 1 else n.target_id end;
    s.at_identity := coalesce(v_end, '');
    v_done := v_done + v_rows;
  end loop;
  update retl.log_snapshot set at_target = s.at_target, at_identity = s.at_identity, members = s.members, rolling = s.rolling
    where snapshot_id = s.snapshot_id;
  return n.target_id is null;
end
$$;

-- The next step of the log snapshot that is being built: about p_rows rows. The last one makes it the beginning of the log,
-- unless an index has come to need what lies before its boundary.
--
-- Returns jsonb: {kind: idle}, {kind: building, snapshot, state, applied, boundary}, {kind: held, by, position, boundary},
--   {kind: complete, snapshot, boundary, members, digest}
create function retl.compact_step(p_rows integer) returns jsonb
  language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
  s retl.log_snapshot;
  c retl.compaction_hold;
begin
  perform retl.require_writer();
  perform retl.require_bound(p_rows);
  select * into s from retl.log_snapshot where state in ('copying', 'applying', 'digesting') for update;
  if not found then
    return jsonb_build_object('kind', 'idle');
  elsif s.state = 'copying' then
    perform retl.copy_snapshot(s, p_rows);
  elsif s.state = 'applying' then
    perform retl.apply_entries(s, p_rows);
  elsif retl.digest_snapshot(s, p_rows) then
    perform retl.lock_compaction();
    select * into c from retl.compaction_hold where position < s.boundary order by position limit 1;
    if found then
      return jsonb_build_object('kind', 'held', 'by', c.index_name, 'position', c.position::text,
        'boundary', s.boundary::text);
    end if;
    return retl.complete_snapshot(s.snapshot_id);
  end if;
  select * into strict s from retl.log_snapshot where snapshot_id = s.snapshot_id;
  return jsonb_build_object('kind', 'building', 'snapshot', s.snapshot_id::text, 'state', s.state,
    'applied', s.applied::text, 'boundary', s.boundary::text);
end
$$;

-- The head is locked last, as by every writer, and no longer than the commit takes.
create function retl.complete_snapshot(p_snapshot bigint) returns jsonb
  language plpgsql set search_path = pg_catalog, pg_temp as $$
declare
  s retl.log_snapshot;
  h retl.log_head;
begin
  update retl.log_snapshot set state = 'superseded', superseded_at = clock_timestamp() where state = 'complete';
  select * into strict h from retl.log_head for update;
  perform set_config('idle_in_transaction_session_timeout', '10s', true);
  update retl.log_snapshot set state = 'complete', digest = sha256(rolling || int8send(members)), linked_at = h.position,
    completed_at = clock_timestamp() where snapshot_id = p_snapshot returning * into s;
  update retl.log_head set earliest = s.boundary + 1, link = sha256(h.link || s.digest);
  return jsonb_build_object('kind', 'complete', 'snapshot', s.snapshot_id::text, 'boundary', s.boundary::text,
    'members', s.members::text, 'digest', encode(s.digest, 'hex'));
end
$$;

-- An index says that it needs the effects after p_position; a later call moves that. Returns jsonb: {kind: held}, or
-- {kind: compacted, earliest} without a change where some of them can no longer be read.
create function retl.hold_compaction(p_index text, p_position bigint) returns jsonb
  language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
  v_earliest bigint;
begin
  perform retl.require_writer();
  perform retl.lock_compaction();
  select earliest into strict v_earliest from retl.log_head;
  if p_position + 1 < v_earliest then
    return jsonb_build_object('kind', 'compacted', 'earliest', v_earliest::text);
  end if;
  insert into retl.compaction_hold (index_name, position) values (p_index, p_position)
    on conflict (index_name) do update set position = excluded.position, held_at = clock_timestamp();
  return jsonb_build_object('kind', 'held');
end
$$;

create function retl.release_compaction(p_index text) returns void
  language sql security definer set search_path = pg_catalog, pg_temp as $$
  delete from retl.compaction_hold where index_name = p_index
$$;

-- Retention -----------------------------------------------------------------------------------------------------------

-- The operations of a run that something still refers to, when all of its entries lie before the beginning of the log: rows
-- of the snapshot, rejections, and requests that were refused whole. No membership row refers to others, for what was
-- accepted up to the boundary is folded (retl.next_sweep waits for that). `offset 0` keeps each a look-up: hashed, a step would
-- read the whole snapshot.
create function retl.kept_operations(r retl.run, p_snapshot bigint) returns text
  language sql immutable set search_path = pg_catalog, pg_temp as $$
  select format('(exists (select from retl.snapshot_%s s where s.target_id = %s and s.identity_hash = o.identity_hash
        and s.sequence = o.sequence offset 0)
      or exists (select from retl.rejection x where x.sequence = o.sequence offset 0)
      or exists (select from retl.batch f where f.run_id = %s and f.state = ''refused'' and f.operations @> o.sequence))',
    p_snapshot, r.target_id, r.run_id)
$$;

-- The next run whose rows may go: null where none is left to look at. Never one that is open, that has the promoted generation,
-- or of which an entry can still be read.
create function retl.next_sweep(s retl.log_snapshot) returns retl.run
  language sql stable set search_path = pg_catalog, pg_temp as $$
  select r.* from retl.run r
  where r.run_id > s.swept_to and r.closing is not null and r.first_sequence is not null and r.rows_kept is distinct from 0
    and exists (select from retl.log_entry e where e.run_id = r.run_id)
    and not exists (select from retl.log_entry e where e.run_id = r.run_id and e.position > s.boundary)
    and not exists (select from retl.generation g where g.run_id = r.run_id and g.state in ('loaded', 'sealed', 'promoted'))
    and not exists (select from retl.batch b join retl.run o using (run_id) where o.target_id = r.target_id
      and b.state = 'settled' and not b.folded and b.accepted > 0 and b.position <= s.boundary)
  order by r.run_id limit 1
$$;

-- Drops the tables that a run no longer needs; false where somebody reads them still.
create function retl.drop_unused(p_tables text[]) returns boolean
  language plpgsql set search_path = pg_catalog, pg_temp as $$
declare
  v_table text;
begin
  perform set_config('lock_timeout', '2s', true);
  foreach v_table in array p_tables loop
    execute format('drop table if exists %s', v_table);
  end loop;
  return true;
exception
  when lock_not_available then
    return false;
end
$$;

-- Copies the next operations of a run that is being thinned; the last step puts the copy in the place of its tables.
create function retl.thin_step(l retl.leftover, p_rows integer) returns void
  language plpgsql set search_path = pg_catalog, pg_temp as $$
declare
  r retl.run;
  v_end bigint;
  v_rows bigint;
begin
  select * into strict r from retl.run where run_id = l.run_id;
  v_end := coalesce(r.removals_end, r.additions_end);
  execute format('insert into retl.kept_%1$s_%2$s select o.sequence, o.change, o.identity_hash, o.payload_hash, o.removal_hash, null,
      coalesce(o.identity, g.identity), coalesce(o.upsert, g.upsert), coalesce(o.remove, g.remove)
    from %3$s o left join %4$s g on g.row_no = o.row_no and o.identity is null
      and g.row_no between (select min(row_no) from %3$s where sequence >= $1 and sequence < $2)
        and (select max(row_no) from %3$s where sequence >= $1 and sequence < $2)
    where o.sequence >= $1 and o.sequence < $2 and %5$s order by o.sequence',
    l.run_id, l.snapshot_id, l.operations,
    -- Without additions nothing stands in the generation, which may have gone already (retl.prune_generations).
    case when r.operations_hold_bytes or r.additions_end < r.first_sequence then '(select null::bigint as row_no, null::text as identity, null::text as upsert,
      null::text as remove where false)' else format('retl.generation_%s', l.generation_id) end,
    retl.kept_operations(r, l.snapshot_id)) using l.next_sequence, l.next_sequence + p_rows;
  if l.next_sequence + p_rows <= v_end then
    update retl.leftover set next_sequence = l.next_sequence + p_rows where run_id = l.run_id;
    return;
  end if;
  execute format('select count(*) from retl.kept_%s_%s', l.run_id, l.snapshot_id) into v_rows;
  if v_rows = 0 then
    execute format('drop table retl.kept_%s_%s', l.run_id, l.snapshot_id);
  else
    execute format('alter table retl.kept_%1$s_%2$s add primary key (sequence)', l.run_id, l.snapshot_id);
    execute format('analyze retl.kept_%1$s_%2$s', l.run_id, l.snapshot_id);
  end if;
  update retl.run set rows_kept = v_rows, kept_in = l.snapshot_id, operations_hold_bytes = true where run_id = l.run_id;
  update retl.generation set rows_present = false where run_id = l.run_id and rows_present;
  update retl.leftover set unused_since = clock_timestamp() where run_id = l.run_id;
end
$$;

-- Begins to thin a run where at least half of its rows would go, and passes over it otherwise.
create function retl.begin_thinning(s retl.log_snapshot, r retl.run) returns boolean
  language plpgsql set search_path = pg_catalog, pg_temp as $$
declare
  g retl.generation;
  v_rows bigint := coalesce(r.rows_kept, coalesce(r.removals_end, r.additions_end) - r.first_sequence + 1);
  v_kept bigint;
begin
  select coalesce((select members from retl.log_snapshot_run where snapshot_id = s.snapshot_id and run_id = r.run_id), 0)
    + (select count(*) from retl.rejection where run_id = r.run_id)
    + (select coalesce(sum(upper(operations) - lower(operations)), 0) from retl.batch
       where run_id = r.run_id and state = 'refused' and operations is not null) into v_kept;
  select * into g from retl.generation where run_id = r.run_id and rows_present and state <> 'discarded';
  if found and not r.operations_hold_bytes then
    v_rows := greatest(v_rows, g.source_rows);
  end if;
  if v_kept * 2 > v_rows then
    return false;
  end if;
  insert into retl.leftover (run_id, snapshot_id, next_sequence, operations, generation_id)
    values (r.run_id, s.snapshot_id, r.first_sequence, retl.operation_table(r), g.generation_id);
  execute format('create table retl.kept_%s_%s (sequence bigint, change "char", identity_hash bytea, payload_hash bytea,
    removal_hash bytea, row_no bigint, identity text, upsert text, remove text)', r.run_id, s.snapshot_id);
  execute format('grant select on retl.kept_%s_%s to retl_runtime', r.run_id, s.snapshot_id);
  return true;
end
$$;

-- The next step of dropping what only served entries before the beginning of the log. What is replaced is dropped no sooner
-- than p_grace_ms later, so that whoever began to read before reads on. Returns jsonb: {kind: swept, run}, {kind: dropped},
-- {kind: idle, waiting} with the number of tables that wait for their time, or for their last reader.
create function retl.sweep_step(p_rows integer, p_grace_ms bigint) returns jsonb
  language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
  s retl.log_snapshot;
  l retl.leftover;
  r retl.run;
  v_before timestamptz := clock_timestamp() - greatest(coalesce(p_grace_ms, 0), 0) * interval '1 ms';
begin
  perform retl.require_writer();
  perform retl.require_bound(p_rows);
  perform retl.lock_compaction();
  for s in select * from retl.log_snapshot where state = 'superseded' and rows_present and superseded_at <= v_before
      and not exists (select from retl.leftover x where x.snapshot_id = log_snapshot.snapshot_id and x.unused_since is null)
  loop
    if retl.drop_unused(array[format('retl.snapshot_%s', s.snapshot_id)]) then
      update retl.log_snapshot set rows_present = false where snapshot_id = s.snapshot_id;
      delete from retl.log_snapshot_run where snapshot_id = s.snapshot_id;
      return jsonb_build_object('kind', 'dropped');
    end if;
  end loop;
  for l in select * from retl.leftover where unused_since <= v_before order by run_id loop
    if retl.drop_unused(array[l.operations] || coalesce(array[format('retl.generation_%s', l.generation_id)], '{}')) then
      delete from retl.leftover where run_id = l.run_id;
      return jsonb_build_object('kind', 'dropped');
    end if;
  end loop;
  select * into l from retl.leftover where unused_since is null;
  if found then
    perform retl.thin_step(l, p_rows);
    return jsonb_build_object('kind', 'swept', 'run', l.run_id::text);
  end if;
  select * into s from retl.log_snapshot where state = 'complete';
  if found then
    r := retl.next_sweep(s);
    if r.run_id is not null then
      update retl.log_snapshot set swept_to = r.run_id where snapshot_id = s.snapshot_id;
      if not exists (select from retl.leftover where run_id = r.run_id) then
        perform retl.begin_thinning(s, r);
      end if;
      return jsonb_build_object('kind', 'swept', 'run', r.run_id::text);
    end if;
  end if;
  return jsonb_build_object('kind', 'idle', 'waiting', (select count(*) from retl.leftover)
    + (select count(*) from retl.log_snapshot where state = 'superseded' and rows_present));
end
$$;

-- Takes away what nobody needs of the oldest runs that were closed more than p_age_ms ago, never less than a day: providers'
-- answers, and who attempted what. An operator's word, and which attempt it was, stays. At most about p_rows rows. Returns
-- jsonb {runs, more}: how many runs it has done with, and whether there may be more to do.
create function retl.prune_closed(p_age_ms bigint, p_rows integer) returns jsonb
  language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
  v_run bigint;
  v_left integer := p_rows;
  v_rows integer;
  v_runs integer := 0;
begin
  perform retl.require_writer();
  perform retl.require_bound(p_rows);
  if p_age_ms is null or p_age_ms < 86400000 then
    raise exception 'receipts are kept for a day at least' using errcode = 'RM003';
  end if;
  for v_run in
    select run_id from retl.run where closing is not null and not receipts_pruned
      and closed_at < clock_timestamp() - p_age_ms * interval '1 ms'
    order by closed_at limit p_rows for no key update skip locked
  loop
    update retl.batch set receipt = retl.pruned_receipt(), progress = null where batch_id in (
      select batch_id from retl.batch where run_id = v_run and state in ('settled', 'uploaded', 'parted')
        and receipt <> retl.pruned_receipt() limit v_left);
    get diagnostics v_rows = row_count;
    v_left := v_left - v_rows;
    exit when v_left <= 0;
    delete from retl.attempt where epoch in (
      select epoch from retl.attempt a where a.run_id = v_run and a.step not in ('resolve', 'release')
        and not exists (select from retl.release x where x.epoch = a.epoch)
        -- When a request was refused as a whole is when its attempt began.
        and not exists (select from retl.batch b where b.run_id = v_run and b.state = 'refused' and b.settled_epoch = a.epoch)
      limit v_left);
    get diagnostics v_rows = row_count;
    v_left := v_left - v_rows;
    exit when v_left <= 0;
    update retl.run set receipts_pruned = true where run_id = v_run;
    v_runs := v_runs + 1;
  end loop;
  return jsonb_build_object('runs', v_runs, 'more', v_left <= 0 or v_runs = p_rows);
end
$$;

revoke all on function retl.lock_compaction, retl.require_bound, retl.begin_compaction, retl.copy_snapshot, retl.apply_entries,
  retl.snapshot_header, retl.digest_snapshot, retl.compact_step, retl.complete_snapshot, retl.hold_compaction,
  retl.release_compaction, retl.kept_operations, retl.next_sweep, retl.drop_unused, retl.thin_step, retl.begin_thinning,
  retl.sweep_step, retl.prune_closed from public;
grant execute on function retl.begin_compaction, retl.compact_step, retl.hold_compaction, retl.release_compaction,
  retl.sweep_step, retl.prune_closed to retl_runtime;
