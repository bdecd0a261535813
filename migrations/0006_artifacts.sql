-- Artifacts, and what indexes are held to: their definitions, builds and checkpoints (design.md section 7). All of it is kept
-- for good, for audit and rollback; nothing of it is ever changed.
--
-- An artifact is found by the hash of its type and bytes. It may hold values of members, so people see it by retl_reader alone.
create table retl.artifact (
  reference retl.sha256 primary key, -- retl.artifact_reference(type, bytes)
  type text not null check (type ~ '^[a-z][a-z0-9]*([.-][a-z0-9]+)*$' and octet_length(type) <= 64),
  bytes bytea not null check (octet_length(bytes) <= 16777216),
  stored_at timestamptz not null default clock_timestamp()
);

-- Name and schema version say what an index looks like; the fingerprint is that of the definition which took the pair first.
create table retl.index_definition (
  index_name text not null check (index_name ~ '^[a-z0-9][a-z0-9-]{0,62}$'),
  schema_version bigint not null check (schema_version between 0 and 4294967295),
  fingerprint retl.sha256 not null,
  defined_at timestamptz not null default clock_timestamp(),
  primary key (index_name, schema_version)
);

-- One construction of an index, of this journal's log: from its first entry, or from a log snapshot as it was then.
create table retl.index_build (
  build_id bigint generated always as identity primary key,
  index_name text not null,
  schema_version bigint not null,
  log_id uuid not null,
  snapshot_id bigint check (snapshot_id >= 1),
  snapshot_boundary bigint check (snapshot_boundary >= 1),
  snapshot_digest retl.sha256,
  begun_at timestamptz not null default clock_timestamp(),
  foreign key (index_name, schema_version) references retl.index_definition,
  check (num_nulls(snapshot_id, snapshot_boundary, snapshot_digest) in (0, 3))
);
create index index_build_name on retl.index_build (index_name, build_id);

-- The checkpoints of a build are a chain: each names the one before, no two the same one, and positions grow along it. The
-- artifact may stand in another store than this database, so that no foreign key leads to it.
create table retl.checkpoint (
  build_id bigint not null references retl.index_build,
  position bigint not null check (position >= 0),
  reference retl.sha256 not null,
  previous retl.sha256, -- null: the build's first
  entry_hash retl.sha256 not null, -- of the log entry at the position; 0 where that is 0
  recorded_at timestamptz not null default clock_timestamp(),
  primary key (build_id, position),
  unique (build_id, reference),
  unique nulls not distinct (build_id, previous),
  foreign key (build_id, previous) references retl.checkpoint (build_id, reference)
);
create index checkpoint_reference on retl.checkpoint (reference);

create trigger append_only before update or delete or truncate on retl.artifact
  for each statement execute function retl.refuse_change();
create trigger append_only before update or delete or truncate on retl.index_definition
  for each statement execute function retl.refuse_change();
create trigger append_only before update or delete or truncate on retl.index_build
  for each statement execute function retl.refuse_change();
create trigger append_only before update or delete or truncate on retl.checkpoint
  for each statement execute function retl.refuse_change();

grant select on retl.artifact, retl.index_definition, retl.index_build, retl.checkpoint to retl_runtime;
grant select on retl.index_definition, retl.index_build, retl.checkpoint to retl_inspector, retl_approver;
grant select (reference, type, stored_at) on retl.artifact to retl_inspector, retl_approver;

-- docs/checkpoint-format.md: the domain, the type, each after its length, then the bytes.
create function retl.artifact_reference(p_type text, p_bytes bytea) returns bytea
  language sql immutable set search_path = pg_catalog, pg_temp as $$
  select sha256(int4send(15) || 'retl.artifact.1'::bytea || int4send(octet_length(p_type)) || convert_to(p_type, 'UTF8')
    || p_bytes)
$$;

-- Stores an artifact, unless it is there already.
--
-- Returns jsonb, {kind: stored | present | corrupt}; corrupt: something else stands under its reference, and stays.
create function retl.put_artifact(p_reference bytea, p_type text, p_bytes bytea) returns jsonb
  language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
begin
  perform retl.require_writer();
  if p_reference is distinct from retl.artifact_reference(p_type, p_bytes) then
    raise exception 'the reference is not that of the artifact' using errcode = 'RM003';
  end if;
  insert into retl.artifact (reference, type, bytes) values (p_reference, p_type, p_bytes) on conflict do nothing;
  if found then
    return jsonb_build_object('kind', 'stored');
  end if;
  -- Another statement: it sees the row that the insert has waited for.
  if exists (select from retl.artifact where reference = p_reference and type = p_type and bytes = p_bytes) then
    return jsonb_build_object('kind', 'present');
  end if;
  return jsonb_build_object('kind', 'corrupt');
end
$$;

-- Begins a build of an index. The log's id and the snapshot (null: none, from the first entry) are what its builder is going
-- to read; retl.log_snapshot is made by 0007.
--
-- Returns jsonb: {kind: begun, build}, {kind: definition-changed}: another definition has name and version, {kind: other-log},
--   {kind: no-such-snapshot}: none that is complete and the newest, {kind: compacted}: the first entry can no longer be read
create function retl.begin_index_build(p_index text, p_schema_version bigint, p_fingerprint bytea, p_log uuid,
    p_snapshot bigint) returns jsonb
  language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
  v_build bigint;
  v_boundary bigint;
  v_digest bytea;
begin
  perform retl.require_writer();
  if num_nulls(p_index, p_schema_version, p_fingerprint, p_log) > 0 then
    raise exception 'an argument is missing' using errcode = 'RM003';
  end if;
  if not exists (select from retl.journal where log_id = p_log) then
    return jsonb_build_object('kind', 'other-log');
  end if;
  if p_snapshot is not null then
    select boundary, digest into v_boundary, v_digest from retl.log_snapshot
      where snapshot_id = p_snapshot and state = 'complete';
    if not found then
      return jsonb_build_object('kind', 'no-such-snapshot');
    end if;
  elsif exists (select from retl.log_head where earliest > 1) then
    return jsonb_build_object('kind', 'compacted');
  end if;
  insert into retl.index_definition (index_name, schema_version, fingerprint)
    values (p_index, p_schema_version, p_fingerprint) on conflict do nothing;
  if not exists (select from retl.index_definition
                 where index_name = p_index and schema_version = p_schema_version and fingerprint = p_fingerprint) then
    return jsonb_build_object('kind', 'definition-changed');
  end if;
  insert into retl.index_build (index_name, schema_version, log_id, snapshot_id, snapshot_boundary, snapshot_digest)
    values (p_index, p_schema_version, p_log, p_snapshot, v_boundary, v_digest) returning build_id into v_build;
  return jsonb_build_object('kind', 'begun', 'build', v_build::text);
end
$$;

-- Records a checkpoint of a build, by compare-and-set: p_previous is the newest one that its builder knows of (null: none).
--
-- Returns jsonb: {kind: recorded}, {kind: repeated}: it is the newest already, exactly so;
--   {kind: raced, position, reference}: the newest is another one, for another builder was faster, or the caller's index has
--     been set back: also where this one was recorded before the newest, for what follows it is not the caller's any more;
--   {kind: not-later, position}: of the newest, which this one is not past;
--   {kind: other-log | diverged | ahead, head}: the log is not the one that the builder has read; {kind: no-such-build}
create function retl.put_checkpoint(p_build bigint, p_position bigint, p_reference bytea, p_previous bytea, p_log uuid,
    p_entry_hash bytea) returns jsonb
  language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
  b retl.index_build;
  c retl.checkpoint;
  h retl.log_head;
  v_hash bytea := decode(repeat('00', 32), 'hex');
begin
  perform retl.require_writer();
  if num_nulls(p_build, p_position, p_reference, p_log, p_entry_hash) > 0 then
    raise exception 'an argument is missing' using errcode = 'RM003';
  end if;
  -- Builders of one build wait for each other here.
  select * into b from retl.index_build where build_id = p_build for no key update;
  if not found then
    return jsonb_build_object('kind', 'no-such-build');
  end if;
  if p_position < coalesce(b.snapshot_boundary, 0) then
    raise exception 'a checkpoint stands before the boundary of its build''s log snapshot' using errcode = 'RM003';
  end if;
  select * into strict h from retl.log_head;
  select e.entry_hash into v_hash from retl.log_entry e where e.position = p_position
    union all select v_hash where p_position = 0;
  if p_log <> b.log_id or not exists (select from retl.journal where log_id = p_log) then
    return jsonb_build_object('kind', 'other-log', 'head', h.position::text);
  elsif p_position > h.position then
    return jsonb_build_object('kind', 'ahead', 'head', h.position::text);
  elsif p_entry_hash is distinct from v_hash then
    return jsonb_build_object('kind', 'diverged', 'head', h.position::text);
  end if;

  select * into c from retl.checkpoint where build_id = p_build order by position desc limit 1;
  if c.position = p_position and c.reference = p_reference and c.previous is not distinct from p_previous then
    return jsonb_build_object('kind', 'repeated');
  elsif c.reference is distinct from p_previous then
    return jsonb_build_object('kind', 'raced', 'position', c.position::text, 'reference', encode(c.reference, 'hex'));
  elsif c.position >= p_position then
    return jsonb_build_object('kind', 'not-later', 'position', c.position::text);
  end if;
  insert into retl.checkpoint (build_id, position, reference, previous, entry_hash)
    values (p_build, p_position, p_reference, p_previous, p_entry_hash);
  return jsonb_build_object('kind', 'recorded');
end
$$;

revoke all on function retl.artifact_reference, retl.put_artifact, retl.begin_index_build, retl.put_checkpoint from public;
grant execute on function retl.put_artifact, retl.begin_index_build, retl.put_checkpoint to retl_runtime;
