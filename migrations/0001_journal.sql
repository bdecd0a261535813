-- The journal: tables, constraints, and who may touch them (design.md section 5).
--
-- The runtime role reads these tables and calls the functions of 0002; it may write to none of them directly. So the
-- numbered rules of design.md section 4 hold against a careless caller as well: each is enforced by a constraint here
-- or by the one function that can make the change.
--
-- Rows live in tables of their own, named by number and created by functions of the owner:
--   retl.generation_<generation id>  the sealed desired rows of one run (immutable: nobody but the owner can write them)
--   retl.operation_<run id>          the planned operations of one run, in a dense sequence that is never reused
--   retl.membership_<target id>      what the target is known to hold, folded from accepted operations
-- Membership is a meaning, not that last table alone: it is the folded table plus the accepted, unfolded batches.

do $$
begin
  if not exists (select from pg_roles where rolname = 'retl_runtime') then
    create role retl_runtime nologin;
  end if;
exception
  when insufficient_privilege then
    -- RM010 is known to src/journal/migrate.ts, which has the remedy.
    raise exception 'role retl_runtime does not exist and the owner may not create it' using errcode = 'RM010';
  when duplicate_object then
    null; -- another installer, in another database of this server, was faster
end
$$;

revoke all on schema retl from public;
grant usage on schema retl to retl_runtime;

-- A hash carries its algorithm's name: this domain is it.
create domain retl.sha256 as bytea check (octet_length(value) = 32);

-- A stable, value-free word: what may be shown and logged. Nobody's data fits into it by accident.
create domain retl.code as text check (value ~ '^[a-zA-Z0-9][a-zA-Z0-9._:-]{0,79}$');

-- Fencing tokens: strictly increasing over the whole journal, so that a destination can compare those of two runs.
create sequence retl.epoch as bigint;

-- The log's identity.
create table retl.journal (
  only_row boolean primary key default true check (only_row),
  log_id uuid not null default gen_random_uuid(),
  created_at timestamptz not null default now()
);
insert into retl.journal default values;

create table retl.mirror (
  mirror_id bigint generated always as identity primary key,
  name text not null unique check (name ~ '^[a-z0-9][a-z0-9-]{0,62}$'),
  strategy text not null check (strategy in ('snapshot-diff', 'native-replace')),
  created_at timestamptz not null default now()
);

-- Configuration revisions: canonical text, secrets by reference only.
create table retl.revision (
  revision_id bigint generated always as identity primary key,
  mirror_id bigint not null references retl.mirror,
  digest retl.sha256 not null,
  settings text not null,
  created_at timestamptz not null default now(),
  unique (mirror_id, digest)
);

-- A target belongs to one mirror. Its key comes from the adapter, never from a connection's name.
create table retl.target (
  target_id bigint generated always as identity primary key,
  target_key text not null unique,
  mirror_id bigint not null references retl.mirror,
  baseline text check (baseline in ('new-empty', 'tracked', 'replace')),
  baseline_proof text check (baseline_proof in ('verified', 'attested', 'unknown')), -- unknown: of what is to be replaced
  baseline_note text,
  baseline_at timestamptz,
  held bigint not null default 0 check (held >= 0), -- rows of retl.membership_<target id>
  longest_removal bigint not null default 0, -- bytes: no removal payload that was ever sealed for it is longer
  -- How identities were folded before they were hashed, newest way first: 'case,nfc' and the like, '' for not at all. Whoever
  -- holds a stored identity against its hash tries each.
  identity_foldings text[] not null default '{}' check (array_position(identity_foldings, null) is null),
  -- Names of mirrors that it was taken from, since they had sent nothing (retl.take_target): a fence in one's name means nothing.
  former_owners text[] not null default '{}' check (array_position(former_owners, null) is null),
  -- What decides where requests arrive, and is no part of the key: by which credentials, and where removals go. Hashes of the
  -- settings of the last run that the guard let through, secrets by reference; null: its adapter has nothing to say.
  credentials retl.sha256,
  removal_route retl.sha256,
  -- The adapter's word for what an identity means there (its fields, and the columns they stand in), as of the members that are
  -- held; null: identities speak for themselves, or no run has said.
  identity_form text,
  created_at timestamptz not null default now(),
  check (num_nulls(baseline, baseline_proof, baseline_at) in (0, 3)),
  check (baseline_proof <> 'unknown' or baseline = 'replace')
);

create table retl.run (
  -- Its operations are numbered from run_id * 2^32 + 1: a sequence number names its run, and no run waits for another's.
  run_id bigint generated always as identity primary key check (run_id between 1 and 2147483647),
  mirror_id bigint not null references retl.mirror,
  target_id bigint not null references retl.target,
  revision_id bigint not null references retl.revision,
  strategy text not null check (strategy in ('snapshot-diff', 'native-replace')),
  phase text not null default 'init' check (phase in
    ('init', 'extract', 'seal', 'guard', 'additions', 'removals', 'finish', 'promote', 'complete')),
  closing text check (closing in
    ('completed', 'rejected', 'aborted', 'guard-rejected', 'guard-expired', 'invalid', 'discarded', 'expired', 'imported')),
  reason retl.code,
  epoch bigint not null default 0,

  holder_namespace text not null,
  holder_cluster text not null,
  holder_workflow_id text not null,
  holder_first_run_id text not null,
  released text check (released in ('cancelled', 'failed', 'blocked')),

  -- what the revision allows, kept here so that functions can hold the run to it
  max_removal_share numeric check (max_removal_share between 0 and 1), -- a decimal: no binary fraction is 29 %
  max_removals bigint check (max_removals >= 0),
  empty_snapshot text not null check (empty_snapshot in ('hold', 'allow')),
  approval_deadline_ms bigint not null check (approval_deadline_ms between 0 and 31622400000), -- how long it waits, parked
  max_batch_rows integer not null check (max_batch_rows between 1 and 100000),
  max_request_bytes bigint not null check (max_request_bytes >= 1),
  may_resend boolean not null, -- the same request twice equals once (rule 3): its adapter has declared so
  -- and what is said of each operation of the last copy is so whichever copy did it, with none to come after it
  last_copy_decides boolean not null default false check (last_copy_decides <= may_resend),
  -- rule 5: whether a rejection stops it, and how many members may be rejected before it holds
  on_rejection text not null default 'stop' check (on_rejection in ('stop', 'continue', 'tolerate')),
  max_rejections bigint check (max_rejections >= 0),
  max_rejection_share numeric check (max_rejection_share between 0 and 1), -- of the members it desires or removes
  refresh_after_ms bigint check (refresh_after_ms > 0), -- unchanged members accepted longer ago are sent again
  max_remove_bytes bigint check (max_remove_bytes >= 0), -- of one removal payload alone; known from the seal on
  -- what besides a payload decides how it arrives: its hashes are sha256(write_form || E'\n' || upsert), or sha256(upsert)
  -- where this is empty; known from the loading on
  write_form text not null default '',

  -- the plan: filled by retl.plan from the sealed generation and the membership
  held_before bigint,
  planned_added bigint,
  planned_changed bigint,
  planned_removed bigint,
  planned_unchanged bigint, -- those that are sent again among them
  planned_refreshed bigint not null default 0,
  removal_digest retl.sha256,
  oversized_removals bigint not null default 0, -- of the planned ones: over the byte limit of one operation
  first_sequence bigint, -- of this run's operations
  additions_end bigint,  -- last sequence number of the additions; first_sequence - 1 where there are none
  removals_end bigint,   -- last sequence number of the removals; null until they are planned (rule 1)
  operations_hold_bytes boolean, -- false: the payloads stay in the generation, which must then be kept

  -- while the guard asks about the removals above: since when, and which limit they are beyond; null: it asks nothing
  parked_at timestamptz,
  parked_code text check (parked_code in ('unknown-baseline', 'credentials-changed', 'removals-moved', 'route-changed',
    'empty-snapshot', 'max-removals', 'max-removal-share')),

  credentials retl.sha256, -- as of retl.target, of its own revision
  removal_route retl.sha256,
  moved text check (moved in ('credentials-changed', 'removals-moved', 'route-changed')), -- against its target's, since the plan

  -- why the newest attempt could not go on, in its own words, since when, and when it looks again by itself (null: not before
  -- somebody comes); of a blocked run it holds until an attempt says otherwise, else until the next begins
  wait_kind text check (wait_kind in ('waiting', 'pending', 'blocked')),
  wait_code retl.code,
  wait_batch retl.sha256,
  wait_since timestamptz,
  wait_until timestamptz,
  wait_epoch bigint,

  -- native replacement only
  at_finish boolean not null default false, -- an accepted upload is evidence for the finish, and becomes true with it
  replacement_status text check (replacement_status in ('accepted')),
  replaces_unknown boolean not null default false, -- the first of a target of which nobody knows what it holds

  -- after a compaction (0007): how many of its operations are left, in a table of their own; null: all are where they were
  rows_kept bigint check (rows_kept >= 0),
  kept_in bigint, -- the log snapshot that names that table: retl.kept_<run>_<kept_in>
  receipts_pruned boolean not null default false,

  opened_at timestamptz not null default now(),
  sealed_at timestamptz,
  closed_at timestamptz,
  check (num_nulls(rows_kept, kept_in) in (0, 2)),
  check (first_sequence = (run_id << 32) + 1),
  check (additions_end >> 32 = run_id),
  check (removals_end >> 32 = run_id and removals_end >= additions_end),
  check (num_nulls(parked_at, parked_code) in (0, 2)),
  check (num_nulls(wait_kind, wait_code, wait_since, wait_epoch) in (0, 4)),
  check (wait_kind is not null or num_nonnulls(wait_batch, wait_until) = 0),
  check ((closing is null) = (closed_at is null)),
  check ((closing = 'completed') = (phase = 'complete')),
  check (closing is null or released is null),
  check (strategy = 'native-replace' or (not at_finish and replacement_status is null)),
  check (num_nonnulls(max_rejections, max_rejection_share) = (on_rejection = 'tolerate')::integer),
  -- Rule 5: a replacement drops at its finish whatever was not uploaded.
  check (strategy = 'snapshot-diff' or on_rejection = 'stop')
);
-- One open run per mirror and per target, however it was started.
create unique index run_open_mirror on retl.run (mirror_id) where closing is null;
create unique index run_open_target on retl.run (target_id) where closing is null;
create index run_mirror on retl.run (mirror_id, run_id);
create index run_target on retl.run (target_id, run_id);

-- Attempts: who raised the epoch, when and for what.
create table retl.attempt (
  epoch bigint primary key,
  run_id bigint not null references retl.run,
  step retl.code not null,
  started_at timestamptz not null default now()
);
create index attempt_run on retl.attempt (run_id);

create sequence retl.generation_number as bigint;

create table retl.generation (
  generation_id bigint primary key check (generation_id >= 1), -- from retl.generation_number
  run_id bigint not null references retl.run,
  target_id bigint not null references retl.target,
  state text not null check (state in ('loaded', 'sealed', 'promoted', 'superseded', 'kept', 'discarded')),
  rows_present boolean not null default true, -- false once retl.generation_<id> has been dropped
  key_types text not null, -- canonical JSON array of the key columns' types
  source_rows bigint not null,
  members bigint,
  excluded bigint,
  collapsed bigint,
  digest retl.sha256,
  loaded_at timestamptz not null,
  sealed_at timestamptz,
  check ((state in ('sealed', 'promoted', 'superseded')) <= (digest is not null))
);
create unique index generation_run on retl.generation (run_id) where state <> 'discarded';
create unique index generation_promoted on retl.generation (target_id) where state = 'promoted';
create index generation_target on retl.generation (target_id, generation_id);

create table retl.log_head (
  only_row boolean primary key default true check (only_row),
  position bigint not null default 0 check (position >= 0),
  entry_hash retl.sha256 not null default decode(repeat('00', 32), 'hex'),
  -- What the next entry carries as the hash before its own: entry_hash, or, where a log snapshot was completed since, a hash
  -- over it and the snapshot's digest. So the chain holds the snapshots, too (0007).
  link retl.sha256 not null default decode(repeat('00', 32), 'hex'),
  earliest bigint not null default 1 check (earliest >= 1)
);
insert into retl.log_head default values;

-- The one append-only list of what was accepted. Positions are gapless and in commit order: the number is taken under
-- the row lock of retl.log_head, last in the committing transaction (retl.append_entry).
create table retl.log_entry (
  position bigint primary key check (position >= 1),
  kind text not null check (kind in ('additions', 'removals', 'finish')),
  mirror_id bigint not null references retl.mirror,
  target_id bigint not null references retl.target,
  run_id bigint not null references retl.run,
  batch_id retl.sha256 not null unique,
  first_sequence bigint,
  last_sequence bigint,
  effects integer not null check (effects between 0 and 100000),
  effects_hash retl.sha256 not null, -- over the sequence numbers left out as rejected
  previous_hash retl.sha256 not null,
  entry_hash retl.sha256 not null unique,
  recorded_at timestamptz not null,
  check ((kind = 'finish') = (first_sequence is null)),
  check ((first_sequence is null) = (last_sequence is null))
);
create index log_entry_run on retl.log_entry (run_id);
create index log_entry_sequence on retl.log_entry (first_sequence) where first_sequence is not null;

-- One request: a batch of operations, or a step (init, finish) that is journaled like one.
create table retl.batch (
  batch_id retl.sha256 primary key,
  run_id bigint not null references retl.run,
  action text not null check (action in ('init', 'upsert', 'remove', 'finish')),
  operations int8range check (not isempty(operations) and lower_inc(operations) and not upper_inc(operations)),
  sending integer not null check (sending >= 1), -- ordinal of the attempt to send these operations
  resends integer not null default 0, -- of the same bytes under the same key, while unknown
  retry_of retl.sha256 references retl.batch,
  state text not null check (state in
    ('prepared', 'sending', 'unknown', 'staged', 'not-applied', 'parted', 'refused', 'uploaded', 'settled')),
  request_hash retl.sha256 not null,
  request_bytes bigint not null check (request_bytes >= 0),
  reason retl.code,
  refusal text,            -- the provider's own words about the whole request; shown by `retl rejections` only
  divisible boolean not null default false, -- refused for one operation, perhaps, that was not looked for to the end
  prepared_epoch bigint not null,
  sent_epoch bigint,
  settled_epoch bigint, -- of the attempt that settled or refused it
  prepared_at timestamptz not null default clock_timestamp(),
  sent_at timestamptz,
  send_deadline timestamptz,
  retry_at timestamptz,
  next_poll_at timestamptz,
  staged_at timestamptz,   -- when it was taken for asynchronous work
  polls integer not null default 0, -- how often its jobs were asked for since, in vain
  job_ids text[],
  progress text,           -- between the steps of a request that takes several
  receipt text,            -- JSON, the provider's answer; never shown or logged
  to_add integer not null default 0,
  to_change integer not null default 0,
  accepted integer,
  rejected integer,
  added integer,
  changed integer,
  position bigint references retl.log_entry deferrable initially deferred,
  folded boolean not null default false,
  settled_at timestamptz,
  resolved_because text,   -- an operator's reason, where one decided the outcome
  check ((action in ('upsert', 'remove')) = (operations is not null)),
  check ((state in ('sending', 'unknown', 'staged')) <= (sent_at is not null and send_deadline is not null)),
  -- A check that is null passes: so each of these says what it means by `is true`.
  check (state <> 'staged' or (cardinality(job_ids) >= 1 and array_position(job_ids, null) is null
         and array_position(job_ids, '') is null and staged_at is not null and next_poll_at is not null) is true),
  check ((state = 'settled') = (settled_at is not null)),
  check ((state in ('settled', 'refused', 'uploaded')) = (settled_epoch is not null)),
  check ((state in ('settled', 'uploaded')) <= (receipt is not null)),
  check (state <> 'uploaded' or action = 'upsert'),
  check (state <> 'parted' or (operations is not null and receipt is not null)),
  check (not divisible or (state = 'refused' and operations is not null)),
  check (state not in ('settled', 'uploaded') or action not in ('upsert', 'remove')
         or (accepted >= 0 and rejected >= 0 and accepted + rejected = upper(operations) - lower(operations)) is true),
  check (not upper_inf(operations) and not lower_inf(operations)),
  check ((state = 'settled' and action <> 'init' and (action = 'finish' or accepted > 0)) <= (position is not null)),
  check (folded <= (state = 'settled')),
  -- Rule 4: an operation is in one request only, unless that was proven not to have been applied, or stands in its parts.
  constraint batch_operation_once exclude using gist (operations with &&)
    where (operations is not null and state not in ('not-applied', 'parted'))
);
create unique index batch_step_once on retl.batch (run_id, action)
  where action in ('init', 'finish') and state <> 'not-applied';
create unique index batch_retried_once on retl.batch (retry_of, lower(operations)) where retry_of is not null;
create index batch_run on retl.batch (run_id, action, lower(operations));
create index batch_open on retl.batch (run_id) where state in ('prepared', 'sending', 'unknown', 'staged', 'not-applied');
create index batch_unfolded on retl.batch (run_id) where state = 'settled' and not folded;

-- Operations that the destination refused one by one.
create table retl.rejection (
  sequence bigint primary key,
  run_id bigint not null references retl.run,
  batch_id retl.sha256 not null references retl.batch,
  code retl.code not null,
  reason text not null, -- the provider's own words: shown by `retl rejections` only
  recorded_at timestamptz not null default now()
);
create index rejection_run on retl.rejection (run_id);

-- Rule 5: what a promoted run has tolerated. The target's membership of such an identity is its last accepted payload, or
-- none, until a later run has it accepted. The newest promotion's are those that stand.
create table retl.exception (
  sequence bigint primary key, -- of the operation that was rejected, alone or with its whole request
  run_id bigint not null references retl.run,
  identity_hash retl.sha256 not null,
  change "char" not null,
  held_sequence bigint, -- the operation by which the target holds the identity; null: it does not
  held_payload_hash retl.sha256,
  check ((held_sequence is null) = (held_payload_hash is null))
);
create index exception_run on retl.exception (run_id);

-- Answers to what the guard asked. Each is bound to the digest of what was shown, and answers no other set of removals. The
-- first answer to a question stands.
create table retl.approval (
  approval_id bigint generated always as identity primary key,
  run_id bigint not null references retl.run,
  generation_digest retl.sha256 not null,
  removals bigint not null check (removals >= 0),
  removal_digest retl.sha256 not null,
  shown retl.sha256 not null, -- of the three above: retl.shown_of in 0002
  verdict text not null check (verdict in ('approved', 'rejected')),
  decided_by text not null check (length(decided_by) between 1 and 200), -- people's words, as is the next: for retl_reader
  because text check (length(because) between 1 and 20000),
  via text not null check (via in ('cli', 'update', 'input', 'plan')),
  decided_at timestamptz not null default clock_timestamp(),
  unique (run_id, shown),
  check (verdict = 'approved' or via in ('cli', 'update'))
);

-- The adapters' small key-value store: what they need to find again, per target.
create table retl.store (
  target_id bigint not null references retl.target,
  key text not null,
  value text not null,
  primary key (target_id, key)
);

create function retl.refuse_change() returns trigger
  language plpgsql set search_path = pg_catalog, pg_temp as $$
begin
  raise exception 'rule 6: % is append-only', tg_table_name using errcode = 'RM006';
end
$$;
create trigger append_only before update or delete or truncate on retl.log_entry
  for each statement execute function retl.refuse_change();
create trigger append_only before update or delete or truncate on retl.approval
  for each statement execute function retl.refuse_change();
-- These may be pruned, but never rewritten.
create trigger append_only before update on retl.attempt for each statement execute function retl.refuse_change();
create trigger append_only before update on retl.rejection for each statement execute function retl.refuse_change();
create trigger append_only before update on retl.exception for each statement execute function retl.refuse_change();
create trigger append_only before update on retl.revision for each statement execute function retl.refuse_change();

-- What stands in the place of a provider's answer that nobody needs any more (retl.prune_closed in 0007).
create function retl.pruned_receipt() returns text
  language sql immutable set search_path = pg_catalog, pg_temp as $$ select '{"pruned":true}' $$;

-- Rule 6: a settled or refused receipt is never changed; only its folding into the membership is noted, and that it was pruned.
create function retl.keep_outcome() returns trigger
  language plpgsql set search_path = pg_catalog, pg_temp as $$
begin
  if new.receipt = retl.pruned_receipt() and old.state in ('settled', 'uploaded', 'parted') then
    old.receipt := new.receipt;
    old.progress := new.progress;
  end if;
  if old.state in ('settled', 'refused', 'parted') then
    new.folded := old.folded or new.folded;
    old.folded := new.folded;
    if new is distinct from old then
      raise exception 'rule 6: the outcome of a batch does not change' using errcode = 'RM006';
    end if;
  end if;
  -- An accepted upload becomes true with the finish, or never; what was answered to it stays.
  if old.state = 'uploaded' and (new.state not in ('uploaded', 'settled')
       or (new.accepted, new.rejected, new.added, new.changed, new.receipt, new.settled_epoch)
          is distinct from (old.accepted, old.rejected, old.added, old.changed, old.receipt, old.settled_epoch)) then
    raise exception 'rule 6: the outcome of an upload does not change' using errcode = 'RM006';
  end if;
  return new;
end
$$;
create trigger keep_outcome before update on retl.batch for each row execute function retl.keep_outcome();

grant select on all tables in schema retl to retl_runtime;
revoke all on all functions in schema retl from public;
