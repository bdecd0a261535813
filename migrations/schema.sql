-- The journal's schema as the migrations leave it; `npm run schema` writes it, a test keeps it current.
-- To be read, not run: functions stand here with the sha256 of their body.

-- Domains

create domain retl.code as text CHECK ((VALUE ~ '^[a-zA-Z0-9][a-zA-Z0-9._:-]{0,79}$'::text));
create domain retl.sha256 as bytea CHECK ((octet_length(VALUE) = 32));

-- Sequences

create sequence retl.epoch as bigint;
create sequence retl.generation_number as bigint;

-- Tables

create table retl.approval (
  approval_id bigint generated always as identity not null,
  run_id bigint not null,
  generation_digest retl.sha256 not null,
  removals bigint not null,
  removal_digest retl.sha256 not null,
  shown retl.sha256 not null,
  verdict text not null,
  decided_by text not null,
  because text,
  via text not null,
  decided_at timestamp with time zone not null default clock_timestamp(),
  constraint approval_because_check CHECK (((length(because) >= 1) AND (length(because) <= 20000))),
  constraint approval_check CHECK (((verdict = 'approved'::text) OR (via = ANY (ARRAY['cli'::text, 'update'::text])))),
  constraint approval_decided_by_check CHECK (((length(decided_by) >= 1) AND (length(decided_by) <= 200))),
  constraint approval_pkey PRIMARY KEY (approval_id),
  constraint approval_removals_check CHECK ((removals >= 0)),
  constraint approval_run_id_fkey FOREIGN KEY (run_id) REFERENCES retl.run(run_id),
  constraint approval_run_id_shown_key UNIQUE (run_id, shown),
  constraint approval_verdict_check CHECK ((verdict = ANY (ARRAY['approved'::text, 'rejected'::text]))),
  constraint approval_via_check CHECK ((via = ANY (ARRAY['cli'::text, 'update'::text, 'input'::text, 'plan'::text])))
);
create table retl.artifact (
  reference retl.sha256 not null,
  type text not null,
  bytes bytea not null,
  stored_at timestamp with time zone not null default clock_timestamp(),
  constraint artifact_bytes_check CHECK ((octet_length(bytes) <= 16777216)),
  constraint artifact_pkey PRIMARY KEY (reference),
  constraint artifact_type_check CHECK (((type ~ '^[a-z][a-z0-9]*([.-][a-z0-9]+)*$'::text) AND (octet_length(type) <= 64)))
);
create table retl.attempt (
  epoch bigint not null,
  run_id bigint not null,
  step retl.code not null,
  started_at timestamp with time zone not null default now(),
  constraint attempt_pkey PRIMARY KEY (epoch),
  constraint attempt_run_id_fkey FOREIGN KEY (run_id) REFERENCES retl.run(run_id)
);
create table retl.attestation (
  target_id bigint not null,
  attested_by text not null,
  because text not null,
  attested_at timestamp with time zone not null default clock_timestamp(),
  constraint attestation_attested_by_check CHECK (((length(attested_by) >= 1) AND (length(attested_by) <= 200))),
  constraint attestation_because_check CHECK (((length(because) >= 1) AND (length(because) <= 20000))),
  constraint attestation_pkey PRIMARY KEY (target_id),
  constraint attestation_target_id_fkey FOREIGN KEY (target_id) REFERENCES retl.target(target_id)
);
create table retl.batch (
  batch_id retl.sha256 not null,
  run_id bigint not null,
  action text not null,
  operations int8range,
  sending integer not null,
  resends integer not null default 0,
  retry_of retl.sha256,
  state text not null,
  request_hash retl.sha256 not null,
  request_bytes bigint not null,
  reason retl.code,
  refusal text,
  divisible boolean not null default false,
  prepared_epoch bigint not null,
  sent_epoch bigint,
  settled_epoch bigint,
  prepared_at timestamp with time zone not null default clock_timestamp(),
  sent_at timestamp with time zone,
  send_deadline timestamp with time zone,
  retry_at timestamp with time zone,
  next_poll_at timestamp with time zone,
  staged_at timestamp with time zone,
  polls integer not null default 0,
  job_ids text[],
  progress text,
  receipt text,
  to_add integer not null default 0,
  to_change integer not null default 0,
  accepted integer,
  rejected integer,
  added integer,
  changed integer,
  "position" bigint,
  folded boolean not null default false,
  settled_at timestamp with time zone,
  resolved_because text,
  constraint batch_action_check CHECK ((action = ANY (ARRAY['init'::text, 'upsert'::text, 'remove'::text, 'finish'::text]))),
  constraint batch_check CHECK (((action = ANY (ARRAY['upsert'::text, 'remove'::text])) = (operations IS NOT NULL))),
  constraint batch_check1 CHECK (((state = ANY (ARRAY['sending'::text, 'unknown'::text, 'staged'::text])) <= ((sent_at IS NOT NULL) AND (send_deadline IS NOT NULL)))),
  constraint batch_check10 CHECK ((((state = 'settled'::text) AND (action <> 'init'::text) AND ((action = 'finish'::text) OR (accepted > 0))) <= ("position" IS NOT NULL))),
  constraint batch_check11 CHECK ((folded <= (state = 'settled'::text))),
  constraint batch_check2 CHECK (((state <> 'staged'::text) OR (((cardinality(job_ids) >= 1) AND (array_position(job_ids, NULL::text) IS NULL) AND (array_position(job_ids, ''::text) IS NULL) AND (staged_at IS NOT NULL) AND (next_poll_at IS NOT NULL)) IS TRUE))),
  constraint batch_check3 CHECK (((state = 'settled'::text) = (settled_at IS NOT NULL))),
  constraint batch_check4 CHECK (((state = ANY (ARRAY['settled'::text, 'refused'::text, 'uploaded'::text])) = (settled_epoch IS NOT NULL))),
  constraint batch_check5 CHECK (((state = ANY (ARRAY['settled'::text, 'uploaded'::text])) <= (receipt IS NOT NULL))),
  constraint batch_check6 CHECK (((state <> 'uploaded'::text) OR (action = 'upsert'::text))),
  constraint batch_check7 CHECK (((state <> 'parted'::text) OR ((operations IS NOT NULL) AND (receipt IS NOT NULL)))),
  constraint batch_check8 CHECK (((NOT divisible) OR ((state = 'refused'::text) AND (operations IS NOT NULL)))),
  constraint batch_check9 CHECK (((state <> ALL (ARRAY['settled'::text, 'uploaded'::text])) OR (action <> ALL (ARRAY['upsert'::text, 'remove'::text])) OR (((accepted >= 0) AND (rejected >= 0) AND ((accepted + rejected) = (upper(operations) - lower(operations)))) IS TRUE))),
  constraint batch_operation_once EXCLUDE USING gist (operations WITH &&) WHERE (((operations IS NOT NULL) AND (state <> ALL (ARRAY['not-applied'::text, 'parted'::text])))),
  constraint batch_operations_check CHECK (((NOT isempty(operations)) AND lower_inc(operations) AND (NOT upper_inc(operations)))),
  constraint batch_operations_check1 CHECK (((NOT upper_inf(operations)) AND (NOT lower_inf(operations)))),
  constraint batch_pkey PRIMARY KEY (batch_id),
  constraint batch_position_fkey FOREIGN KEY ("position") REFERENCES retl.log_entry("position") DEFERRABLE INITIALLY DEFERRED,
  constraint batch_request_bytes_check CHECK ((request_bytes >= 0)),
  constraint batch_retry_of_fkey FOREIGN KEY (retry_of) REFERENCES retl.batch(batch_id),
  constraint batch_run_id_fkey FOREIGN KEY (run_id) REFERENCES retl.run(run_id),
  constraint batch_sending_check CHECK ((sending >= 1)),
  constraint batch_state_check CHECK ((state = ANY (ARRAY['prepared'::text, 'sending'::text, 'unknown'::text, 'staged'::text, 'not-applied'::text, 'parted'::text, 'refused'::text, 'uploaded'::text, 'settled'::text])))
);
create table retl.checkpoint (
  build_id bigint not null,
  "position" bigint not null,
  reference retl.sha256 not null,
  previous retl.sha256,
  entry_hash retl.sha256 not null,
  recorded_at timestamp with time zone not null default clock_timestamp(),
  constraint checkpoint_build_id_fkey FOREIGN KEY (build_id) REFERENCES retl.index_build(build_id),
  constraint checkpoint_build_id_previous_fkey FOREIGN KEY (build_id, previous) REFERENCES retl.checkpoint(build_id, reference),
  constraint checkpoint_build_id_previous_key UNIQUE NULLS NOT DISTINCT (build_id, previous),
  constraint checkpoint_build_id_reference_key UNIQUE (build_id, reference),
  constraint checkpoint_pkey PRIMARY KEY (build_id, "position"),
  constraint checkpoint_position_check CHECK (("position" >= 0))
);
create table retl.compaction_hold (
  index_name text not null,
  "position" bigint not null,
  held_at timestamp with time zone not null default clock_timestamp(),
  constraint compaction_hold_index_name_check CHECK (((length(index_name) >= 1) AND (length(index_name) <= 200))),
  constraint compaction_hold_pkey PRIMARY KEY (index_name),
  constraint compaction_hold_position_check CHECK (("position" >= 0))
);
create table retl.exception (
  sequence bigint not null,
  run_id bigint not null,
  identity_hash retl.sha256 not null,
  change "char" not null,
  held_sequence bigint,
  held_payload_hash retl.sha256,
  constraint exception_check CHECK (((held_sequence IS NULL) = (held_payload_hash IS NULL))),
  constraint exception_pkey PRIMARY KEY (sequence),
  constraint exception_run_id_fkey FOREIGN KEY (run_id) REFERENCES retl.run(run_id)
);
create table retl.generation (
  generation_id bigint not null,
  run_id bigint not null,
  target_id bigint not null,
  state text not null,
  rows_present boolean not null default true,
  key_types text not null,
  source_rows bigint not null,
  members bigint,
  excluded bigint,
  collapsed bigint,
  digest retl.sha256,
  loaded_at timestamp with time zone not null,
  sealed_at timestamp with time zone,
  constraint generation_check CHECK (((state = ANY (ARRAY['sealed'::text, 'promoted'::text, 'superseded'::text])) <= (digest IS NOT NULL))),
  constraint generation_generation_id_check CHECK ((generation_id >= 1)),
  constraint generation_pkey PRIMARY KEY (generation_id),
  constraint generation_run_id_fkey FOREIGN KEY (run_id) REFERENCES retl.run(run_id),
  constraint generation_state_check CHECK ((state = ANY (ARRAY['loaded'::text, 'sealed'::text, 'promoted'::text, 'superseded'::text, 'kept'::text, 'discarded'::text]))),
  constraint generation_target_id_fkey FOREIGN KEY (target_id) REFERENCES retl.target(target_id)
);
create table retl.import (
  run_id bigint not null,
  listed boolean not null,
  imported_by text not null,
  because text not null,
  imported_at timestamp with time zone not null default clock_timestamp(),
  constraint import_because_check CHECK (((length(because) >= 1) AND (length(because) <= 20000))),
  constraint import_imported_by_check CHECK (((length(imported_by) >= 1) AND (length(imported_by) <= 200))),
  constraint import_pkey PRIMARY KEY (run_id),
  constraint import_run_id_fkey FOREIGN KEY (run_id) REFERENCES retl.run(run_id)
);
create table retl.index_build (
  build_id bigint generated always as identity not null,
  index_name text not null,
  schema_version bigint not null,
  log_id uuid not null,
  snapshot_id bigint,
  snapshot_boundary bigint,
  snapshot_digest retl.sha256,
  begun_at timestamp with time zone not null default clock_timestamp(),
  constraint index_build_check CHECK ((num_nulls(snapshot_id, snapshot_boundary, snapshot_digest) = ANY (ARRAY[0, 3]))),
  constraint index_build_index_name_schema_version_fkey FOREIGN KEY (index_name, schema_version) REFERENCES retl.index_definition(index_name, schema_version),
  constraint index_build_pkey PRIMARY KEY (build_id),
  constraint index_build_snapshot_boundary_check CHECK ((snapshot_boundary >= 1)),
  constraint index_build_snapshot_id_check CHECK ((snapshot_id >= 1))
);
create table retl.index_definition (
  index_name text not null,
  schema_version bigint not null,
  fingerprint retl.sha256 not null,
  defined_at timestamp with time zone not null default clock_timestamp(),
  constraint index_definition_index_name_check CHECK ((index_name ~ '^[a-z0-9][a-z0-9-]{0,62}$'::text)),
  constraint index_definition_pkey PRIMARY KEY (index_name, schema_version),
  constraint index_definition_schema_version_check CHECK (((schema_version >= 0) AND (schema_version <= '4294967295'::bigint)))
);
create table retl.journal (
  only_row boolean not null default true,
  log_id uuid not null default gen_random_uuid(),
  created_at timestamp with time zone not null default now(),
  constraint journal_only_row_check CHECK (only_row),
  constraint journal_pkey PRIMARY KEY (only_row)
);
create table retl.leftover (
  run_id bigint not null,
  snapshot_id bigint not null,
  next_sequence bigint not null,
  operations text not null,
  generation_id bigint,
  unused_since timestamp with time zone,
  constraint leftover_pkey PRIMARY KEY (run_id),
  constraint leftover_run_id_fkey FOREIGN KEY (run_id) REFERENCES retl.run(run_id),
  constraint leftover_snapshot_id_fkey FOREIGN KEY (snapshot_id) REFERENCES retl.log_snapshot(snapshot_id)
);
create table retl.log_entry (
  "position" bigint not null,
  kind text not null,
  mirror_id bigint not null,
  target_id bigint not null,
  run_id bigint not null,
  batch_id retl.sha256 not null,
  first_sequence bigint,
  last_sequence bigint,
  effects integer not null,
  effects_hash retl.sha256 not null,
  previous_hash retl.sha256 not null,
  entry_hash retl.sha256 not null,
  recorded_at timestamp with time zone not null,
  constraint log_entry_batch_id_key UNIQUE (batch_id),
  constraint log_entry_check CHECK (((kind = 'finish'::text) = (first_sequence IS NULL))),
  constraint log_entry_check1 CHECK (((first_sequence IS NULL) = (last_sequence IS NULL))),
  constraint log_entry_effects_check CHECK (((effects >= 0) AND (effects <= 100000))),
  constraint log_entry_entry_hash_key UNIQUE (entry_hash),
  constraint log_entry_kind_check CHECK ((kind = ANY (ARRAY['additions'::text, 'removals'::text, 'finish'::text]))),
  constraint log_entry_mirror_id_fkey FOREIGN KEY (mirror_id) REFERENCES retl.mirror(mirror_id),
  constraint log_entry_pkey PRIMARY KEY ("position"),
  constraint log_entry_position_check CHECK (("position" >= 1)),
  constraint log_entry_run_id_fkey FOREIGN KEY (run_id) REFERENCES retl.run(run_id),
  constraint log_entry_target_id_fkey FOREIGN KEY (target_id) REFERENCES retl.target(target_id)
);
create table retl.log_head (
  only_row boolean not null default true,
  "position" bigint not null default 0,
  entry_hash retl.sha256 not null default decode(repeat('00'::text, 32), 'hex'::text),
  link retl.sha256 not null default decode(repeat('00'::text, 32), 'hex'::text),
  earliest bigint not null default 1,
  constraint log_head_earliest_check CHECK ((earliest >= 1)),
  constraint log_head_only_row_check CHECK (only_row),
  constraint log_head_pkey PRIMARY KEY (only_row),
  constraint log_head_position_check CHECK (("position" >= 0))
);
create table retl.log_snapshot (
  snapshot_id bigint generated always as identity not null,
  boundary bigint not null,
  boundary_hash retl.sha256 not null,
  base_id bigint,
  state text not null,
  applied bigint not null,
  at_target bigint not null default 0,
  at_identity bytea not null default '\x'::bytea,
  members bigint not null default 0,
  rolling retl.sha256,
  digest retl.sha256,
  linked_at bigint,
  swept_to bigint not null default 0,
  rows_present boolean not null default true,
  started_at timestamp with time zone not null default clock_timestamp(),
  completed_at timestamp with time zone,
  superseded_at timestamp with time zone,
  constraint log_snapshot_base_id_fkey FOREIGN KEY (base_id) REFERENCES retl.log_snapshot(snapshot_id),
  constraint log_snapshot_boundary_fkey FOREIGN KEY (boundary) REFERENCES retl.log_entry("position"),
  constraint log_snapshot_check CHECK (((applied >= 0) AND (applied <= boundary))),
  constraint log_snapshot_check1 CHECK (((state = ANY (ARRAY['complete'::text, 'superseded'::text])) = (digest IS NOT NULL))),
  constraint log_snapshot_check2 CHECK ((num_nulls(digest, linked_at, completed_at) = ANY (ARRAY[0, 3]))),
  constraint log_snapshot_members_check CHECK ((members >= 0)),
  constraint log_snapshot_pkey PRIMARY KEY (snapshot_id),
  constraint log_snapshot_state_check CHECK ((state = ANY (ARRAY['copying'::text, 'applying'::text, 'digesting'::text, 'complete'::text, 'superseded'::text])))
);
create table retl.log_snapshot_run (
  snapshot_id bigint not null,
  run_id bigint not null,
  members bigint not null,
  constraint log_snapshot_run_pkey PRIMARY KEY (snapshot_id, run_id),
  constraint log_snapshot_run_run_id_fkey FOREIGN KEY (run_id) REFERENCES retl.run(run_id),
  constraint log_snapshot_run_snapshot_id_fkey FOREIGN KEY (snapshot_id) REFERENCES retl.log_snapshot(snapshot_id)
);
create table retl.migration (
  number integer not null,
  name text not null,
  sha256 text not null,
  applied_at timestamp with time zone not null default now(),
  constraint migration_pkey PRIMARY KEY (number)
);
create table retl.mirror (
  mirror_id bigint generated always as identity not null,
  name text not null,
  strategy text not null,
  created_at timestamp with time zone not null default now(),
  constraint mirror_name_check CHECK ((name ~ '^[a-z0-9][a-z0-9-]{0,62}$'::text)),
  constraint mirror_name_key UNIQUE (name),
  constraint mirror_pkey PRIMARY KEY (mirror_id),
  constraint mirror_strategy_check CHECK ((strategy = ANY (ARRAY['snapshot-diff'::text, 'native-replace'::text])))
);
create table retl.rejection (
  sequence bigint not null,
  run_id bigint not null,
  batch_id retl.sha256 not null,
  code retl.code not null,
  reason text not null,
  recorded_at timestamp with time zone not null default now(),
  constraint rejection_batch_id_fkey FOREIGN KEY (batch_id) REFERENCES retl.batch(batch_id),
  constraint rejection_pkey PRIMARY KEY (sequence),
  constraint rejection_run_id_fkey FOREIGN KEY (run_id) REFERENCES retl.run(run_id)
);
create table retl.release (
  epoch bigint not null,
  run_id bigint not null,
  holder_namespace text not null,
  holder_cluster text not null,
  holder_workflow_id text not null,
  holder_first_run_id text not null,
  released_by text not null,
  because text not null,
  released_at timestamp with time zone not null default clock_timestamp(),
  constraint release_because_check CHECK (((length(because) >= 1) AND (length(because) <= 20000))),
  constraint release_epoch_fkey FOREIGN KEY (epoch) REFERENCES retl.attempt(epoch),
  constraint release_pkey PRIMARY KEY (epoch),
  constraint release_released_by_check CHECK (((length(released_by) >= 1) AND (length(released_by) <= 200))),
  constraint release_run_id_fkey FOREIGN KEY (run_id) REFERENCES retl.run(run_id)
);
create table retl.revision (
  revision_id bigint generated always as identity not null,
  mirror_id bigint not null,
  digest retl.sha256 not null,
  settings text not null,
  created_at timestamp with time zone not null default now(),
  constraint revision_mirror_id_digest_key UNIQUE (mirror_id, digest),
  constraint revision_mirror_id_fkey FOREIGN KEY (mirror_id) REFERENCES retl.mirror(mirror_id),
  constraint revision_pkey PRIMARY KEY (revision_id)
);
create table retl.run (
  run_id bigint generated always as identity not null,
  mirror_id bigint not null,
  target_id bigint not null,
  revision_id bigint not null,
  strategy text not null,
  phase text not null default 'init'::text,
  closing text,
  reason retl.code,
  epoch bigint not null default 0,
  holder_namespace text not null,
  holder_cluster text not null,
  holder_workflow_id text not null,
  holder_first_run_id text not null,
  released text,
  max_removal_share numeric,
  max_removals bigint,
  empty_snapshot text not null,
  approval_deadline_ms bigint not null,
  max_batch_rows integer not null,
  max_request_bytes bigint not null,
  may_resend boolean not null,
  last_copy_decides boolean not null default false,
  on_rejection text not null default 'stop'::text,
  max_rejections bigint,
  max_rejection_share numeric,
  refresh_after_ms bigint,
  max_remove_bytes bigint,
  write_form text not null default ''::text,
  held_before bigint,
  planned_added bigint,
  planned_changed bigint,
  planned_removed bigint,
  planned_unchanged bigint,
  planned_refreshed bigint not null default 0,
  removal_digest retl.sha256,
  oversized_removals bigint not null default 0,
  first_sequence bigint,
  additions_end bigint,
  removals_end bigint,
  operations_hold_bytes boolean,
  parked_at timestamp with time zone,
  parked_code text,
  credentials retl.sha256,
  removal_route retl.sha256,
  moved text,
  wait_kind text,
  wait_code retl.code,
  wait_batch retl.sha256,
  wait_since timestamp with time zone,
  wait_until timestamp with time zone,
  wait_epoch bigint,
  at_finish boolean not null default false,
  replacement_status text,
  replaces_unknown boolean not null default false,
  rows_kept bigint,
  kept_in bigint,
  receipts_pruned boolean not null default false,
  opened_at timestamp with time zone not null default now(),
  sealed_at timestamp with time zone,
  closed_at timestamp with time zone,
  constraint run_approval_deadline_ms_check CHECK (((approval_deadline_ms >= 0) AND (approval_deadline_ms <= '31622400000'::bigint))),
  constraint run_check CHECK ((last_copy_decides <= may_resend)),
  constraint run_check1 CHECK ((num_nulls(rows_kept, kept_in) = ANY (ARRAY[0, 2]))),
  constraint run_check10 CHECK (((closing IS NULL) OR (released IS NULL))),
  constraint run_check11 CHECK (((strategy = 'native-replace'::text) OR ((NOT at_finish) AND (replacement_status IS NULL)))),
  constraint run_check12 CHECK ((num_nonnulls(max_rejections, max_rejection_share) = ((on_rejection = 'tolerate'::text))::integer)),
  constraint run_check13 CHECK (((strategy = 'snapshot-diff'::text) OR (on_rejection = 'stop'::text))),
  constraint run_check2 CHECK ((first_sequence = ((run_id << 32) + 1))),
  constraint run_check3 CHECK (((additions_end >> 32) = run_id)),
  constraint run_check4 CHECK ((((removals_end >> 32) = run_id) AND (removals_end >= additions_end))),
  constraint run_check5 CHECK ((num_nulls(parked_at, parked_code) = ANY (ARRAY[0, 2]))),
  constraint run_check6 CHECK ((num_nulls(wait_kind, wait_code, wait_since, wait_epoch) = ANY (ARRAY[0, 4]))),
  constraint run_check7 CHECK (((wait_kind IS NOT NULL) OR (num_nonnulls(wait_batch, wait_until) = 0))),
  constraint run_check8 CHECK (((closing IS NULL) = (closed_at IS NULL))),
  constraint run_check9 CHECK (((closing = 'completed'::text) = (phase = 'complete'::text))),
  constraint run_closing_check CHECK ((closing = ANY (ARRAY['completed'::text, 'rejected'::text, 'aborted'::text, 'guard-rejected'::text, 'guard-expired'::text, 'invalid'::text, 'discarded'::text, 'expired'::text, 'imported'::text]))),
  constraint run_empty_snapshot_check CHECK ((empty_snapshot = ANY (ARRAY['hold'::text, 'allow'::text]))),
  constraint run_max_batch_rows_check CHECK (((max_batch_rows >= 1) AND (max_batch_rows <= 100000))),
  constraint run_max_rejection_share_check CHECK (((max_rejection_share >= (0)::numeric) AND (max_rejection_share <= (1)::numeric))),
  constraint run_max_rejections_check CHECK ((max_rejections >= 0)),
  constraint run_max_removal_share_check CHECK (((max_removal_share >= (0)::numeric) AND (max_removal_share <= (1)::numeric))),
  constraint run_max_removals_check CHECK ((max_removals >= 0)),
  constraint run_max_remove_bytes_check CHECK ((max_remove_bytes >= 0)),
  constraint run_max_request_bytes_check CHECK ((max_request_bytes >= 1)),
  constraint run_mirror_id_fkey FOREIGN KEY (mirror_id) REFERENCES retl.mirror(mirror_id),
  constraint run_moved_check CHECK ((moved = ANY (ARRAY['credentials-changed'::text, 'removals-moved'::text, 'route-changed'::text]))),
  constraint run_on_rejection_check CHECK ((on_rejection = ANY (ARRAY['stop'::text, 'continue'::text, 'tolerate'::text]))),
  constraint run_parked_code_check CHECK ((parked_code = ANY (ARRAY['unknown-baseline'::text, 'credentials-changed'::text, 'removals-moved'::text, 'route-changed'::text, 'empty-snapshot'::text, 'max-removals'::text, 'max-removal-share'::text]))),
  constraint run_phase_check CHECK ((phase = ANY (ARRAY['init'::text, 'extract'::text, 'seal'::text, 'guard'::text, 'additions'::text, 'removals'::text, 'finish'::text, 'promote'::text, 'complete'::text]))),
  constraint run_pkey PRIMARY KEY (run_id),
  constraint run_refresh_after_ms_check CHECK ((refresh_after_ms > 0)),
  constraint run_released_check CHECK ((released = ANY (ARRAY['cancelled'::text, 'failed'::text, 'blocked'::text]))),
  constraint run_replacement_status_check CHECK ((replacement_status = 'accepted'::text)),
  constraint run_revision_id_fkey FOREIGN KEY (revision_id) REFERENCES retl.revision(revision_id),
  constraint run_rows_kept_check CHECK ((rows_kept >= 0)),
  constraint run_run_id_check CHECK (((run_id >= 1) AND (run_id <= 2147483647))),
  constraint run_strategy_check CHECK ((strategy = ANY (ARRAY['snapshot-diff'::text, 'native-replace'::text]))),
  constraint run_target_id_fkey FOREIGN KEY (target_id) REFERENCES retl.target(target_id),
  constraint run_wait_kind_check CHECK ((wait_kind = ANY (ARRAY['waiting'::text, 'pending'::text, 'blocked'::text])))
);
create table retl.store (
  target_id bigint not null,
  key text not null,
  value text not null,
  constraint store_pkey PRIMARY KEY (target_id, key),
  constraint store_target_id_fkey FOREIGN KEY (target_id) REFERENCES retl.target(target_id)
);
create table retl.target (
  target_id bigint generated always as identity not null,
  target_key text not null,
  mirror_id bigint not null,
  baseline text,
  baseline_proof text,
  baseline_note text,
  baseline_at timestamp with time zone,
  held bigint not null default 0,
  longest_removal bigint not null default 0,
  identity_foldings text[] not null default '{}'::text[],
  former_owners text[] not null default '{}'::text[],
  credentials retl.sha256,
  removal_route retl.sha256,
  identity_form text,
  created_at timestamp with time zone not null default now(),
  constraint target_baseline_check CHECK ((baseline = ANY (ARRAY['new-empty'::text, 'tracked'::text, 'replace'::text]))),
  constraint target_baseline_proof_check CHECK ((baseline_proof = ANY (ARRAY['verified'::text, 'attested'::text, 'unknown'::text]))),
  constraint target_check CHECK ((num_nulls(baseline, baseline_proof, baseline_at) = ANY (ARRAY[0, 3]))),
  constraint target_check1 CHECK (((baseline_proof <> 'unknown'::text) OR (baseline = 'replace'::text))),
  constraint target_former_owners_check CHECK ((array_position(former_owners, NULL::text) IS NULL)),
  constraint target_held_check CHECK ((held >= 0)),
  constraint target_identity_foldings_check CHECK ((array_position(identity_foldings, NULL::text) IS NULL)),
  constraint target_mirror_id_fkey FOREIGN KEY (mirror_id) REFERENCES retl.mirror(mirror_id),
  constraint target_pkey PRIMARY KEY (target_id),
  constraint target_target_key_key UNIQUE (target_key)
);

-- Indexes that are no constraint

CREATE INDEX attempt_run ON retl.attempt USING btree (run_id);
CREATE INDEX batch_open ON retl.batch USING btree (run_id) WHERE (state = ANY (ARRAY['prepared'::text, 'sending'::text, 'unknown'::text, 'staged'::text, 'not-applied'::text]));
CREATE INDEX batch_refused ON retl.batch USING btree (run_id) WHERE (state = 'refused'::text);
CREATE UNIQUE INDEX batch_retried_once ON retl.batch USING btree (retry_of, lower(operations)) WHERE (retry_of IS NOT NULL);
CREATE INDEX batch_run ON retl.batch USING btree (run_id, action, lower(operations));
CREATE UNIQUE INDEX batch_step_once ON retl.batch USING btree (run_id, action) WHERE ((action = ANY (ARRAY['init'::text, 'finish'::text])) AND (state <> 'not-applied'::text));
CREATE INDEX batch_unapplied ON retl.batch USING gist (operations) WHERE (state = 'not-applied'::text);
CREATE INDEX batch_unfolded ON retl.batch USING btree (run_id) WHERE ((state = 'settled'::text) AND (NOT folded));
CREATE INDEX checkpoint_reference ON retl.checkpoint USING btree (reference);
CREATE INDEX exception_run ON retl.exception USING btree (run_id);
CREATE UNIQUE INDEX generation_promoted ON retl.generation USING btree (target_id) WHERE (state = 'promoted'::text);
CREATE UNIQUE INDEX generation_run ON retl.generation USING btree (run_id) WHERE (state <> 'discarded'::text);
CREATE INDEX generation_superseded ON retl.generation USING btree (target_id, generation_id) WHERE ((state = ANY (ARRAY['superseded'::text, 'kept'::text])) AND rows_present);
CREATE INDEX generation_target ON retl.generation USING btree (target_id, generation_id);
CREATE INDEX index_build_name ON retl.index_build USING btree (index_name, build_id);
CREATE INDEX log_entry_run ON retl.log_entry USING btree (run_id);
CREATE INDEX log_entry_sequence ON retl.log_entry USING btree (first_sequence) WHERE (first_sequence IS NOT NULL);
CREATE UNIQUE INDEX log_snapshot_building ON retl.log_snapshot USING btree ((true)) WHERE (state = ANY (ARRAY['copying'::text, 'applying'::text, 'digesting'::text]));
CREATE UNIQUE INDEX log_snapshot_complete ON retl.log_snapshot USING btree ((true)) WHERE (state = 'complete'::text);
CREATE INDEX rejection_run ON retl.rejection USING btree (run_id);
CREATE INDEX release_run ON retl.release USING btree (run_id);
CREATE INDEX run_mirror ON retl.run USING btree (mirror_id, run_id);
CREATE UNIQUE INDEX run_open_mirror ON retl.run USING btree (mirror_id) WHERE (closing IS NULL);
CREATE UNIQUE INDEX run_open_target ON retl.run USING btree (target_id) WHERE (closing IS NULL);
CREATE INDEX run_receipts ON retl.run USING btree (closed_at) WHERE ((closing IS NOT NULL) AND (NOT receipts_pruned));
CREATE INDEX run_target ON retl.run USING btree (target_id, run_id);

-- Triggers

CREATE TRIGGER append_only BEFORE DELETE OR UPDATE OR TRUNCATE ON retl.approval FOR EACH STATEMENT EXECUTE FUNCTION retl.refuse_change();
CREATE TRIGGER append_only BEFORE DELETE OR UPDATE OR TRUNCATE ON retl.artifact FOR EACH STATEMENT EXECUTE FUNCTION retl.refuse_change();
CREATE TRIGGER append_only BEFORE UPDATE ON retl.attempt FOR EACH STATEMENT EXECUTE FUNCTION retl.refuse_change();
CREATE TRIGGER append_only BEFORE DELETE OR UPDATE OR TRUNCATE ON retl.attestation FOR EACH STATEMENT EXECUTE FUNCTION retl.refuse_change();
CREATE TRIGGER keep_outcome BEFORE UPDATE ON retl.batch FOR EACH ROW EXECUTE FUNCTION retl.keep_outcome();
CREATE TRIGGER append_only BEFORE DELETE OR UPDATE OR TRUNCATE ON retl.checkpoint FOR EACH STATEMENT EXECUTE FUNCTION retl.refuse_change();
CREATE TRIGGER append_only BEFORE UPDATE ON retl.exception FOR EACH STATEMENT EXECUTE FUNCTION retl.refuse_change();
CREATE TRIGGER append_only BEFORE DELETE OR UPDATE OR TRUNCATE ON retl.import FOR EACH STATEMENT EXECUTE FUNCTION retl.refuse_change();
CREATE TRIGGER append_only BEFORE DELETE OR UPDATE OR TRUNCATE ON retl.index_build FOR EACH STATEMENT EXECUTE FUNCTION retl.refuse_change();
CREATE TRIGGER append_only BEFORE DELETE OR UPDATE OR TRUNCATE ON retl.index_definition FOR EACH STATEMENT EXECUTE FUNCTION retl.refuse_change();
CREATE TRIGGER append_only BEFORE DELETE OR UPDATE OR TRUNCATE ON retl.log_entry FOR EACH STATEMENT EXECUTE FUNCTION retl.refuse_change();
CREATE TRIGGER append_only BEFORE UPDATE ON retl.rejection FOR EACH STATEMENT EXECUTE FUNCTION retl.refuse_change();
CREATE TRIGGER append_only BEFORE DELETE OR UPDATE OR TRUNCATE ON retl.release FOR EACH STATEMENT EXECUTE FUNCTION retl.refuse_change();
CREATE TRIGGER append_only BEFORE UPDATE ON retl.revision FOR EACH STATEMENT EXECUTE FUNCTION retl.refuse_change();

-- Functions

function retl.abandoned_runs(p_age_ms bigint, p_after bigint, p_limit integer)
  returns TABLE(run_id bigint, released boolean, namespace text, cluster text, workflow_id text, first_run_id text), language plpgsql, stable, security definer, body sha256:1b7997a7751d8e9246d830b822ee8c3e657d1097cfa21f97d05daf8710c20ef6
function retl.accept_import(p_run bigint, p_epoch bigint, p_ids bytea[], p_last bigint[])
  returns void, language plpgsql, security definer, body sha256:ddf0b26e2d9eb22556ee523462182a3f2ee025743f2b8acbd81dabbef7cf56f2
function retl.accepted_before(r retl.run)
  returns int8multirange, language sql, stable, body sha256:80e8820190b53ff718248c40acd04d0ba19acd6a5525f8d678bfd1bb857e97e8
function retl.admit(p_mirror text, p_strategy text, p_target_key text, p_settings text, p_settings_digest bytea, p_max_removal_share numeric, p_max_removals bigint, p_empty_snapshot text, p_approval_deadline_ms bigint, p_max_batch_rows integer, p_max_request_bytes bigint, p_may_resend boolean, p_namespace text, p_cluster text, p_workflow_id text, p_first_run_id text, p_closed_holder text, p_resume_after timestamp with time zone, p_at_finish boolean DEFAULT false, p_on_rejection text DEFAULT 'stop'::text, p_max_rejections bigint DEFAULT NULL::bigint, p_max_rejection_share numeric DEFAULT NULL::numeric, p_refresh_after_ms bigint DEFAULT NULL::bigint, p_tracked boolean DEFAULT false, p_last_copy_decides boolean DEFAULT false, p_credentials bytea DEFAULT NULL::bytea, p_removal_route bytea DEFAULT NULL::bytea, p_identity_form text DEFAULT NULL::text, p_removes_from text[] DEFAULT '{}'::text[])
  returns jsonb, language plpgsql, security definer, body sha256:7409f80ae23514457d0c205f4e8dc448de916be5079d5e6e64cc2d6573edf7df
function retl.adopt_abandoned(p_run bigint, p_age_ms bigint, p_closed_holder text, p_namespace text, p_cluster text, p_workflow_id text, p_first_run_id text)
  returns boolean, language plpgsql, security definer, body sha256:89de19a06aad52f65dd3b20bb5f1fe1802e50e22bb992591b5155e9a7cb48b8a
function retl.answer(r retl.run, p_verdict text, p_by text, p_because text, p_via text)
  returns void, language sql, body sha256:6677394b3a954ffb50f30e30a68ca5912222ad48f98fc615c1bf34307e4ec11c
function retl.append_entry(r retl.run, b retl.batch, p_kind text, p_effects integer, p_left_out bigint[])
  returns bigint, language plpgsql, body sha256:54fcf8e0be839e81f51360a101929550c4e4753ad4214db34a14b3c66c899e3d
function retl.apply_entries(s retl.log_snapshot, p_rows integer)
  returns void, language plpgsql, body sha256:a387f091199827e008c41e9094029735255c05b6243e9bd15df472a7b72c820d
function retl.apply_uploads(p_run bigint, p_epoch bigint, p_batches integer)
  returns bigint, language plpgsql, security definer, body sha256:5468d420aab7e013f84d26cad6f3498efe7f1dbc0556dded96dba437df5b1a96
function retl.approval_left(r retl.run)
  returns bigint, language sql, stable, body sha256:db0b1cbce6d95a6e1fb2ad437f0d0f1e705bd6f5dbdd1c22f9ab7efd085635d2
function retl.artifact_reference(p_type text, p_bytes bytea)
  returns bytea, language sql, immutable, body sha256:3c1604fe403d7b61ef95f6dbd0fe256791cfdfc4a272c5ca1ac64c6a8d24ab99
function retl.attest_empty(p_mirror text, p_target_key text, p_by text, p_because text)
  returns jsonb, language plpgsql, security definer, body sha256:389ed4a04d56ba9537fa0053e5877c1141b7fc5d03665617aeb742497d1bdb0b
function retl.begin_attempt(p_run bigint, p_namespace text, p_cluster text, p_workflow_id text, p_first_run_id text, p_step text)
  returns bigint, language plpgsql, security definer, body sha256:ae6a0013499b5a7c7698a7f2573bb0751b5f69554136c5b2dc04b39390ea9687
function retl.begin_compaction(p_boundary bigint)
  returns jsonb, language plpgsql, security definer, body sha256:01a82b1fcbd80feea753096db2b983fecb3293201b91ccad3ba63b0cbd723c63
function retl.begin_finish(p_run bigint, p_epoch bigint)
  returns jsonb, language plpgsql, security definer, body sha256:abee2a69df9ddae2627a87a04196f01d58386ec2b3267f4b7938eae51fdd6d7c
function retl.begin_index_build(p_index text, p_schema_version bigint, p_fingerprint bytea, p_log uuid, p_snapshot bigint)
  returns jsonb, language plpgsql, security definer, body sha256:f0f35970080063cd2f9d30bcbf8b563913aec930d5d318063493e90cbf9b7e09
function retl.begin_removals(p_run bigint, p_epoch bigint, p_max_remove bigint)
  returns jsonb, language plpgsql, security definer, body sha256:ce509be19b2671f842396f070ce321380cb95a97080053a5e74ad5262d811c10
function retl.begin_thinning(s retl.log_snapshot, r retl.run)
  returns boolean, language plpgsql, body sha256:8ebe8f06ac9c06fb8e943342d48727ad254cd6e289ff838f203a1822a301ebfe
function retl.beyond(r retl.run)
  returns text, language sql, immutable, body sha256:29ed38dbc4b49f97501ef2a51dee2d64e58b7794a0c9221d70386d8ff6e04171
function retl.close_run(p_run bigint, p_epoch bigint, p_closing text, p_reason text)
  returns void, language plpgsql, security definer, body sha256:24bbece3767b836bebbe02a56dbd1e2c3eb19747afe70b6874b3b2fd61da4c0e
function retl.collect_removals(p_run bigint, p_target bigint, p_generation bigint)
  returns bigint, language plpgsql, body sha256:82ec08f9f446beef9622050a3f70693a627103a41f0d420de023b58fea8076b3
function retl.compact_step(p_rows integer)
  returns jsonb, language plpgsql, security definer, body sha256:9d43e9ec739d4beadef335506d9c959fa5e5c6a56574762970b99a55e333ce33
function retl.complete_snapshot(p_snapshot bigint)
  returns jsonb, language plpgsql, body sha256:cb9590a040f81867272241c41b10e946fe07426bd762b00cb47dbdbe47a9ba42
function retl.confirm_replacement(p_run bigint, p_epoch bigint)
  returns void, language plpgsql, security definer, body sha256:db03174a3f76892839a2d1bb9ed8b9ce9af21825882b86adffbbaa356ad3495a
function retl.copy_snapshot(s retl.log_snapshot, p_rows integer)
  returns void, language plpgsql, body sha256:d9d65b6d6b4b4a4a54458cd7bff172c32059e98758e087a91139587ed278c400
function retl.create_candidate(p_run bigint, p_epoch bigint)
  returns bigint, language plpgsql, security definer, body sha256:75daeaa2af5491a64ab0b49e0f641f6d2f9046ccfdfe9d889fe8aa3febe3ec23
function retl.deadline(p_ms bigint)
  returns timestamp with time zone, language plpgsql, body sha256:d501db855a1232379bff94b2904bc9fc3e04dd5132a458cb26fa8d36e935d18d
function retl.decide(p_run bigint, p_shown bytea, p_verdict text, p_by text, p_because text, p_via text)
  returns jsonb, language plpgsql, security definer, body sha256:3488d8a4cd16878344289de1463685ed6ff2ec27d2d3c68f379ffe73f4dd1b98
function retl.digest_snapshot(s retl.log_snapshot, p_rows integer)
  returns boolean, language plpgsql, body sha256:6840f09f31f5191f63f726bc281d36b6338eb1ff9f8810da20147778b1d520e6
function retl.doubt(p_batch bytea, p_code text, p_retry_ms bigint)
  returns void, language sql, body sha256:6eb262f004290b1967912dfc21f44f982de8077ac85f8ab06017c3cfa6b38b08
function retl.drop_unused(p_tables text[])
  returns boolean, language plpgsql, body sha256:b393c245a41d6efe1315b53277d5b7025b66147688c2d8eb77af93f3ebaae4f6
function retl.entry_bytes(e retl.log_entry)
  returns bytea, language sql, immutable, body sha256:e63f5b0cf903ad50bb310bf11789612a98d92bdc43b75ae43d244d7515d9fb4c
function retl.find_operation(r retl.run, p_generation bigint, p_identity bytea, OUT found_sequence bigint, OUT found_change text, OUT found_payload bytea)
  returns record, language plpgsql, stable, body sha256:05fcf8f403e6b80af8b0c6c58ec7992a62b935a930c1f779cdb93d096087e354
function retl.fold(p_run bigint, p_epoch bigint, p_batches integer)
  returns bigint, language plpgsql, security definer, body sha256:a4b9f7a1e17f97f28526464554e38a79277cf10527c612fc6bd55d22d59217a2
function retl.fold_first(p_target bigint)
  returns boolean, language plpgsql, body sha256:9a3cd90f390a6ac771867958304530409e8850477a5b48321b598aa1caecba35
function retl.generation_digest(p_generation bigint)
  returns bytea, language plpgsql, body sha256:d41a20b0bbb5146c88545ab034cbff0f4aa0096e233340ac9200fa70e5ee222c
function retl.guard(p_run bigint, p_epoch bigint, p_approve_up_to bigint DEFAULT NULL::bigint, p_plan_generation bytea DEFAULT NULL::bytea, p_plan_removals bigint DEFAULT NULL::bigint, p_plan_digest bytea DEFAULT NULL::bytea)
  returns jsonb, language plpgsql, security definer, body sha256:727a9e243c2f6c6030f360703ab5668500e5180ea29c5cd1898c7424ba2109da
function retl.has_unresolved(p_run bigint)
  returns boolean, language sql, stable, body sha256:6a32fa1e46ffb7f04ef5396a3d26212d8b87e5487681759d4af40dd275d2346e
function retl.held_by(p_target bigint, p_identity bytea, OUT sequence bigint, OUT payload_hash bytea)
  returns record, language plpgsql, stable, security definer, body sha256:33c0977d2e62f9967369fd053aade131fe4556d07b2e0f21f40b933736f89c3b
function retl.hold_compaction(p_index text, p_position bigint)
  returns jsonb, language plpgsql, security definer, body sha256:94da939d12014b0aa18c7a248d3cef10b7d7305f618b75ad5c0dc562fc416b41
function retl.holds_members(p_target bigint)
  returns boolean, language sql, stable, security definer, body sha256:ac387822d14a1250114a6a45b97e5d99d2d80d7caf88e6899efb0dc433121002
function retl.insert_batches(r retl.run, p_action text, p_from bigint, p_ids bytea[], p_last bigint[], p_hashes bytea[], p_bytes bigint[], p_sending integer, p_retry_of bytea)
  returns bigint, language plpgsql, body sha256:047bc3889f4f657201ae93278664bb92a9f15b31932cf48f41e1c61899e6c855
function retl.is_abandoned(r retl.run, p_age_ms bigint)
  returns boolean, language sql, stable, body sha256:c45458bb46c2834640542dac93d2b172b1d94ea88aa99608c4298137002534cf
function retl.is_unowned(p_target bigint)
  returns boolean, language plpgsql, stable, security definer, body sha256:e4a76cd7ca1fb173a79ffbde5e235313a056ce6e6c73a76ff208ae1b4ae777ce
function retl.judge(p_run bigint)
  returns jsonb, language plpgsql, body sha256:a35d7a196b7b0db5a32720a3f15fdcc0455322e1e7e10b531fe6822df23759ab
function retl.keep_outcome()
  returns trigger, language plpgsql, body sha256:120722480905ab326debdae4d3659c415d61f39c096577f68652ac6f6a58da35
function retl.kept_operations(r retl.run, p_snapshot bigint)
  returns text, language sql, immutable, body sha256:a02ec2ab341404901efbb8898210cbe8170aac5569f048a9c8ce5eb92ef2c8be
function retl.loaded(p_run bigint, p_epoch bigint, p_generation bigint, p_key_types text, p_rows bigint, p_write_form text DEFAULT ''::text, p_identity_folding text DEFAULT ''::text)
  returns void, language plpgsql, security definer, body sha256:c4e8c44fcdd835a86ac341ab8f27adf4874a1be30648c19bd44accfb595f6199
function retl.lock_batch(p_run bigint, p_epoch bigint, p_batch bytea)
  returns retl.batch, language plpgsql, body sha256:acdcbf32b50f89e3d7a6d546598f8c10c77b80e28ed6a8b95c70901beb438d51
function retl.lock_compaction()
  returns void, language sql, body sha256:51bb740cbc296734ba258f8868eb8b9ea1ecdf0a19274e2ea2494209e11d6950
function retl.lock_run(p_run bigint, p_epoch bigint)
  returns retl.run, language plpgsql, body sha256:4aaabffffe519bd85cb4734ef72a631e8e885e34cd809c754b5a1c04d44002a4
function retl.mark_not_applied(p_run bigint, p_epoch bigint, p_batch bytea, p_code text, p_retry_ms bigint)
  returns void, language plpgsql, security definer, body sha256:b1cba443ed8b67d08cb34d135e5c172482da1c2a268a37da460d10a047f2222e
function retl.mark_refused(p_run bigint, p_epoch bigint, p_batch bytea, p_code text, p_words text, p_divisible boolean DEFAULT false)
  returns void, language plpgsql, security definer, body sha256:496a51668d938c81538946794bc76fe4a9a2fa32f21c56198be2b003818d2fde
function retl.mark_resending(p_run bigint, p_epoch bigint, p_batch bytea, p_deadline_ms bigint)
  returns void, language plpgsql, security definer, body sha256:9afb57c03366aa1835d4aca942f18cd962cd624aba1c444704b2ec154805876f
function retl.mark_sending(p_run bigint, p_epoch bigint, p_batch bytea, p_deadline_ms bigint)
  returns void, language plpgsql, security definer, body sha256:24d89a32413b76911187c9845a597ddb045fb6a27875a180159248e85bd4ace2
function retl.mark_staged(p_run bigint, p_epoch bigint, p_batch bytea, p_job_ids text[], p_receipt text, p_next_poll_ms bigint, p_store_keys text[] DEFAULT NULL::text[], p_store_values text[] DEFAULT NULL::text[])
  returns void, language plpgsql, security definer, body sha256:8e4fd6c202f84121bd67a86ebc1fe5f51012d6d0243be41eab437d4cf29244a7
function retl.mark_unknown(p_run bigint, p_epoch bigint, p_batch bytea, p_code text)
  returns void, language plpgsql, security definer, body sha256:53f3693b53873841f2670a13278d3955e4dab7d27934411b88fd44a95e7e9743
function retl.moved(t retl.target, r retl.run)
  returns text, language sql, immutable, body sha256:87ff91a1b2f90f94b30714dab1b4f9a9c3e72a4fb57cd893885d82c5a9e267b9
function retl.next_poll(p_ms bigint)
  returns timestamp with time zone, language plpgsql, body sha256:aa6c845b5de449661f9aff4388147f9d3fa86e6dc6e9ef3c3ae2a5c571f30c4d
function retl.next_sweep(s retl.log_snapshot)
  returns retl.run, language sql, stable, body sha256:5ced93ef8b767c8047c0a18c632c27a03f18c1b95281dfdc512177e22c3cc1c0
function retl.note_poll(p_run bigint, p_epoch bigint, p_batch bytea, p_code text, p_next_poll_ms bigint)
  returns void, language plpgsql, security definer, body sha256:bdc6ac279acf3ef57a1a9f1d4801d8baf0756c83f0ed201710ea43625709ef59
function retl.note_wait(p_run bigint, p_epoch bigint, p_kind text, p_code text, p_batch bytea, p_ms bigint)
  returns void, language plpgsql, security definer, body sha256:964d430eac557e3b5dd15b0f2a93b05c30567786e1368c62fd4d11e91e2fe4f1
function retl.open_import(p_mirror text, p_target_key text, p_settings text, p_settings_digest bytea, p_max_batch_rows integer, p_max_request_bytes bigint, p_by text, p_because text, p_listed boolean, p_credentials bytea DEFAULT NULL::bytea, p_removal_route bytea DEFAULT NULL::bytea, p_identity_form text DEFAULT NULL::text)
  returns jsonb, language plpgsql, security definer, body sha256:d2900957fae6184e899df36416f56b5ef2f6bd9daa563dbcb331601512c2c0e4
function retl.operation_table(r retl.run)
  returns text, language sql, immutable, body sha256:ed5ac82088ede9c4e3944a45dc199d03be176ed9ea8e4e90902fe9fef060d8fa
function retl.plan(p_run bigint, p_epoch bigint)
  returns jsonb, language plpgsql, security definer, body sha256:3f4b8f0bbc4d75481a9db72955975f4b8e5bd1de2378dd41ec4182bd87ab94a6
function retl.prepare_batches(p_run bigint, p_epoch bigint, p_action text, p_ids bytea[], p_last bigint[], p_hashes bytea[], p_bytes bigint[])
  returns void, language plpgsql, security definer, body sha256:31a2ed01321e1833f5b0e6a8db3fc241cc71e1a636ca1b717f4f635588e3a121
function retl.prepare_step(p_run bigint, p_epoch bigint, p_action text, p_batch bytea, p_hash bytea, p_bytes bigint)
  returns void, language plpgsql, security definer, body sha256:9b2a7c314457045be1c315eb6b136583b5a2e6f0155448690fa9b032042272b5
function retl.promote(p_run bigint, p_epoch bigint)
  returns void, language plpgsql, security definer, body sha256:d27bd27bc1b9b4406e31225e2b2d442c7d34071a5caebbe6f9315d57de405df3
function retl.prune(p_run bigint, p_limit integer)
  returns integer, language sql, security definer, body sha256:1666c54e8eead91772d291e790217411a6ceaf0fcf46db251ef4be2821a70310
function retl.prune_closed(p_age_ms bigint, p_rows integer)
  returns jsonb, language plpgsql, security definer, body sha256:8e0d4f39700d91b7eb32defc2e3df9421cf6c9ce0c5d6aaf1d88a6352f33abb4
function retl.prune_generations(p_target bigint, p_limit integer)
  returns integer, language plpgsql, security definer, body sha256:a96d88a008d080292ed87351e66c6b2384f7420d1ca9af3e0583045acd8413e3
function retl.pruned_receipt()
  returns text, language sql, immutable, body sha256:cf2399022852233ae7849db998852a268520c8239f6d91a56faaab20bcde8254
function retl.put_artifact(p_reference bytea, p_type text, p_bytes bytea)
  returns jsonb, language plpgsql, security definer, body sha256:c011ee05bb80782683c78548e221c703643448b915b1f581dd40396be9af9f02
function retl.put_checkpoint(p_build bigint, p_position bigint, p_reference bytea, p_previous bytea, p_log uuid, p_entry_hash bytea)
  returns jsonb, language plpgsql, security definer, body sha256:ee26540af61c67dd78c809fa8d5d3f08531a120053394bb08bde32e790a020ed
function retl.readable_generation(p_run bigint)
  returns bigint, language sql, stable, body sha256:94978d0b38150093a6ad564b0e3d2937b64f007ee6a007c19005448aeb27314a
function retl.recheck(r retl.run, p_members bigint, p_digest bytea)
  returns jsonb, language plpgsql, body sha256:0aed3835f4b328e563a6d05bc44006e555cbfa815e2165e2dc84b570000200bc
function retl.record_baseline(p_run bigint, p_epoch bigint, p_baseline text, p_proof text, p_note text)
  returns boolean, language plpgsql, security definer, body sha256:94dddf59fcdae3cd6a6b84dd73dcbed7907efbd954432e3f4aa345a686107789
function retl.record_exceptions(r retl.run)
  returns void, language plpgsql, body sha256:73e73d82e192ecad2705697816d1de707f281eb1814c11e529b7b71e207f7a60
function retl.record_progress(p_run bigint, p_epoch bigint, p_batch bytea, p_value text)
  returns void, language plpgsql, security definer, body sha256:1a2a92c849984aaca93c462f21fd5ca66e7a824bcea94823bbf02fd7efb49c58
function retl.record_replaced(p_run bigint, p_epoch bigint, p_ids bytea[], p_last bigint[])
  returns void, language plpgsql, security definer, body sha256:4d62666c7af35cedffedecb7dba7b53161a26b4bcc27f81dac4a7e79d4776f29
function retl.record_unsent(r retl.run, p_action text, p_from bigint, p_end bigint, p_ids bytea[], p_last bigint[], p_receipt text)
  returns bigint, language plpgsql, body sha256:9de4d103f1b5b1ec58c234447a7f2f4a7e0b2882eda3ed62edb2466ba8d265f6
function retl.refuse_change()
  returns trigger, language plpgsql, body sha256:356549aa3fd3e455e4851c29864244e5bc550f18270023a6e7a1841e788c80bc
function retl.refuse_state(b retl.batch, p_wanted text)
  returns void, language plpgsql, body sha256:29fafd6a5ef223fc7db26348fbf8e04f9073c1e4589471030c55bc1e73a8ccd3
function retl.rejected_identities(p_sequences bigint[])
  returns TABLE(sequence bigint, identity_hash bytea), language plpgsql, stable, security definer, body sha256:07ac9448d506e91ab40b89c0b4e5c4a8d43dc16b0893ef8268a6947385e4e15b
function retl.rejected_in(r retl.run, OUT members bigint, OUT stops boolean, OUT tolerated boolean)
  returns record, language sql, stable, security definer, body sha256:01319f20b1cdf9bf7a07ff1324f1f3bb8b5e03ab661a339f0f309be627c1bd1c
function retl.rejections_since(p_sequences bigint[])
  returns TABLE(sequence bigint, later_run bigint, became text), language plpgsql, stable, security definer, body sha256:73e8b6d4f9ff1cd5d4d137c092be99ac9c33a3fd1891ed6c47701472afca5f66
function retl.release_compaction(p_index text)
  returns void, language sql, security definer, body sha256:8b07434279f1f8dfdbd5d2b4cfef4d0c223c573d9aa293e4094d38de66c419bf
function retl.release_lost(p_run bigint, p_first_run_id text, p_by text, p_because text)
  returns jsonb, language plpgsql, security definer, body sha256:1d29b9e35a374ee809730a6042b0a0dc37db2c57e91eb5cc26205ff3f3217313
function retl.release_run(p_run bigint, p_epoch bigint, p_how text, p_reason text)
  returns void, language plpgsql, security definer, body sha256:b530e613e1408a51d12ae12f4870b3b8fb5cbfda169a1ba15968cbf8d8a7c102
function retl.removal_set(p_target bigint, p_generation bigint, OUT members bigint, OUT digest bytea)
  returns record, language plpgsql, stable, body sha256:c5fc295bbbd81448927461f2a4fbd8052661dd2141fa43ff4fe613d12e1f5540
function retl.require_a_day(p_age_ms bigint)
  returns void, language plpgsql, body sha256:e80dcab3417ffaff0435ac4f6adc21074cae4d1105b91572347409651ee35dcb
function retl.require_all_accepted(r retl.run, p_action text, p_planned bigint)
  returns void, language plpgsql, body sha256:0673334cd11b20648e584ba401bdc96df935f8076e8d0524a38f371edbb0e41a
function retl.require_baseline(r retl.run)
  returns void, language plpgsql, body sha256:8c301a9a0c7ed074bf38018703bd4b434e72c8de110931211179b24bfeb8ba3f
function retl.require_bound(p_rows integer)
  returns void, language plpgsql, body sha256:6bf3ebe1a1e74752d7f5594e74f0e50b2a2be40528c1edc64a83e0ed60a20211
function retl.require_clear(r retl.run)
  returns void, language plpgsql, body sha256:3253e87c9b364968a7bdb27ae32f523f580a8a48c5797e1e8c16729e5202d58a
function retl.require_membership(p_target bigint)
  returns void, language plpgsql, body sha256:d30ab5c5a6b99edc7d1661f2fe20c3041dacda40c26c4d59adaa1e6aa2cddf41
function retl.require_phase(r retl.run, p_phase text)
  returns void, language plpgsql, body sha256:cdbae316b5b1cbcb0992586a5d0209a41d8ecd3c2734b3cdeb78d0224526a300
function retl.require_replaced(r retl.run)
  returns void, language plpgsql, body sha256:543de8e9592f7eb5f5dcd8d6f3e559b4bc73b74ab801a6f0c947b12c8f74edfb
function retl.require_uploads(r retl.run)
  returns void, language plpgsql, body sha256:a55f07fa9488dc90073fac22f9114f65fc4f24f771f8f748812f672b4c2ce33a
function retl.require_writer()
  returns void, language plpgsql, body sha256:aeef2f5e11924b666ba300eb2543867efdb202857daf91a6600356998d4460fe
function retl.resolve_batch(p_batch bytea, p_verdict text, p_because text)
  returns void, language plpgsql, security definer, body sha256:4d64912d0b771cfcc38f2ef5f2097fd13b632636bd57bdf5902119e9d6b88eac
function retl.resume_of(r retl.run, p_resume_after timestamp with time zone)
  returns text, language plpgsql, stable, body sha256:c2897fa4e9760c460a61030e80f84fc195898d81933ce408df33294dfb70a321
function retl.retry_batch(p_run bigint, p_epoch bigint, p_batch bytea, p_ids bytea[], p_last bigint[], p_hashes bytea[], p_bytes bigint[])
  returns void, language plpgsql, security definer, body sha256:9bd6df3a8a65f2575f78864598d815e94a3c46f1f832dc374e3714cddcda6f06
function retl.seal(p_run bigint, p_epoch bigint, p_max_upsert bigint, p_max_remove bigint)
  returns jsonb, language plpgsql, security definer, body sha256:f0c43bc5a71db28a2806a384ed1889526840284d06ba7e75399ca981b6045299
function retl.search_operation(p_run bigint, p_column text, p_key text, p_first bigint, p_last bigint, OUT found_sequence bigint, OUT found_change text, OUT found_payload bytea)
  returns record, language plpgsql, stable, body sha256:dd3607d1ce6f68a9cd02d7ef841331ca0305accdb3b2429421b3b6587b2f8fc5
function retl.settle_batch(p_run bigint, p_epoch bigint, p_batch bytea, p_receipt text, p_rejected bigint[], p_codes text[], p_reasons text[], p_store_keys text[], p_store_values text[])
  returns bigint, language plpgsql, security definer, body sha256:339d967cbe952e3545239e765678d94e91495aa8df595ff4318d6d1c284f679e
function retl.settle_parts(p_run bigint, p_epoch bigint, p_batch bytea, p_receipt text, p_code text, p_retry_ms bigint, p_ids bytea[], p_last bigint[], p_hashes bytea[], p_bytes bigint[], p_applied boolean[], p_rejected bigint[], p_codes text[], p_reasons text[], p_store_keys text[], p_store_values text[])
  returns void, language plpgsql, security definer, body sha256:31278054bf976048bd344235312181ff0fb6fbbb1197c83a72eb23ff2cb58b27
function retl.settle_step(p_run bigint, p_epoch bigint, p_batch bytea, p_receipt text, p_store_keys text[], p_store_values text[])
  returns bigint, language plpgsql, security definer, body sha256:e6e73e8c15786a9857f0e7136ac682efe47893404865a71e9903ca655ba8643a
function retl.shown_digest(p_run bigint)
  returns bytea, language sql, stable, security definer, body sha256:84625a7d3804e4fc5ca0be05f5beea2a0f8aa7548801346b62d7b761c2526332
function retl.shown_of(p_generation bytea, p_removals bigint, p_removed bytea)
  returns bytea, language sql, immutable, body sha256:08c64503646b38a528822e4063a89fbab195d0be13ad565586af10fe9615d944
function retl.snapshot_header(p_boundary bigint, p_hash bytea)
  returns bytea, language sql, stable, body sha256:e0768e4d5eb313338fb4e8b99ac6fa31bc1ab5a64dca933e01b8132d0e6dd1af
function retl.sweep_step(p_rows integer, p_grace_ms bigint)
  returns jsonb, language plpgsql, security definer, body sha256:f4ed4d29022f43195c1e9e7065830e538b09e430e715e63068bf77daf010aa08
function retl.take_target(t retl.target, p_mirror bigint)
  returns void, language plpgsql, body sha256:476d22a97ad23da77c44e4b14343f8c94d48b9d7c5f85145d04a25e235e8c488
function retl.thin_step(l retl.leftover, p_rows integer)
  returns void, language plpgsql, body sha256:543e8a47128c0c0d681e78e424f54233020446328dbd285b41f045e49bc80fd2
function retl.trace_key(p_target bigint, p_key text, p_before bigint, p_limit integer)
  returns TABLE(run_id bigint, snapshot text, given text, identity_hash bytea), language plpgsql, stable, security definer, body sha256:3cf6df5ecdd9f6c2905dcaa9727a901a1e119b0964f4e3be7ffc3705aec1896d
function retl.trace_member(p_target bigint, p_identity bytea, p_before bigint, p_limit integer)
  returns TABLE(run_id bigint, snapshot text, desired_hash bytea, plan text, sequence bigint, change text, payload_hash bytea), language plpgsql, stable, security definer, body sha256:ee71be2f025f55b149ef57cbe9c6b8c87e373662acb09abc0904719818395b3c
function retl.unwanted(p_run bigint, OUT members bigint, OUT digest bytea)
  returns record, language plpgsql, stable, body sha256:79ca5907f8946a7c1896e13fb78f8c7118b5fde6894d34087921117728040296
function retl.verdict(r retl.run)
  returns text, language sql, stable, body sha256:c695461e7445c9865ccc83fa6fec70a076e50f6562fd355a4347908e906042c6
function retl.write_store(p_target bigint, p_keys text[], p_values text[])
  returns void, language plpgsql, body sha256:4fe6dd6bfbc4facda5f29cd58648fbb394431b171ee9589e52c420ebac5006cf

-- What retl_runtime may

grant usage on schema retl to retl_runtime;
grant select on retl.approval to retl_runtime;
grant select on retl.artifact to retl_runtime;
grant select on retl.attempt to retl_runtime;
grant select on retl.attestation to retl_runtime;
grant select on retl.batch to retl_runtime;
grant select on retl.checkpoint to retl_runtime;
grant select on retl.compaction_hold to retl_runtime;
grant select on retl.exception to retl_runtime;
grant select on retl.generation to retl_runtime;
grant select on retl.import to retl_runtime;
grant select on retl.index_build to retl_runtime;
grant select on retl.index_definition to retl_runtime;
grant select on retl.journal to retl_runtime;
grant select on retl.leftover to retl_runtime;
grant select on retl.log_entry to retl_runtime;
grant select on retl.log_head to retl_runtime;
grant select on retl.log_snapshot to retl_runtime;
grant select on retl.log_snapshot_run to retl_runtime;
grant select on retl.migration to retl_runtime;
grant select on retl.mirror to retl_runtime;
grant select on retl.rejection to retl_runtime;
grant select on retl.release to retl_runtime;
grant select on retl.revision to retl_runtime;
grant select on retl.run to retl_runtime;
grant select on retl.store to retl_runtime;
grant select on retl.target to retl_runtime;
grant execute on function retl.abandoned_runs(bigint,bigint,integer) to retl_runtime;
grant execute on function retl.accept_import(bigint,bigint,bytea[],bigint[]) to retl_runtime;
grant execute on function retl.admit(text,text,text,text,bytea,numeric,bigint,text,bigint,integer,bigint,boolean,text,text,text,text,text,timestamp with time zone,boolean,text,bigint,numeric,bigint,boolean,boolean,bytea,bytea,text,text[]) to retl_runtime;
grant execute on function retl.adopt_abandoned(bigint,bigint,text,text,text,text,text) to retl_runtime;
grant execute on function retl.apply_uploads(bigint,bigint,integer) to retl_runtime;
grant execute on function retl.attest_empty(text,text,text,text) to retl_runtime;
grant execute on function retl.begin_attempt(bigint,text,text,text,text,text) to retl_runtime;
grant execute on function retl.begin_compaction(bigint) to retl_runtime;
grant execute on function retl.begin_finish(bigint,bigint) to retl_runtime;
grant execute on function retl.begin_index_build(text,bigint,bytea,uuid,bigint) to retl_runtime;
grant execute on function retl.begin_removals(bigint,bigint,bigint) to retl_runtime;
grant execute on function retl.close_run(bigint,bigint,text,text) to retl_runtime;
grant execute on function retl.compact_step(integer) to retl_runtime;
grant execute on function retl.confirm_replacement(bigint,bigint) to retl_runtime;
grant execute on function retl.create_candidate(bigint,bigint) to retl_runtime;
grant execute on function retl.decide(bigint,bytea,text,text,text,text) to retl_runtime;
grant execute on function retl.fold(bigint,bigint,integer) to retl_runtime;
grant execute on function retl.guard(bigint,bigint,bigint,bytea,bigint,bytea) to retl_runtime;
grant execute on function retl.held_by(bigint,bytea) to retl_runtime;
grant execute on function retl.hold_compaction(text,bigint) to retl_runtime;
grant execute on function retl.holds_members(bigint) to retl_runtime;
grant execute on function retl.is_unowned(bigint) to retl_runtime;
grant execute on function retl.loaded(bigint,bigint,bigint,text,bigint,text,text) to retl_runtime;
grant execute on function retl.mark_not_applied(bigint,bigint,bytea,text,bigint) to retl_runtime;
grant execute on function retl.mark_refused(bigint,bigint,bytea,text,text,boolean) to retl_runtime;
grant execute on function retl.mark_resending(bigint,bigint,bytea,bigint) to retl_runtime;
grant execute on function retl.mark_sending(bigint,bigint,bytea,bigint) to retl_runtime;
grant execute on function retl.mark_staged(bigint,bigint,bytea,text[],text,bigint,text[],text[]) to retl_runtime;
grant execute on function retl.mark_unknown(bigint,bigint,bytea,text) to retl_runtime;
grant execute on function retl.note_poll(bigint,bigint,bytea,text,bigint) to retl_runtime;
grant execute on function retl.note_wait(bigint,bigint,text,text,bytea,bigint) to retl_runtime;
grant execute on function retl.open_import(text,text,text,bytea,integer,bigint,text,text,boolean,bytea,bytea,text) to retl_runtime;
grant execute on function retl.plan(bigint,bigint) to retl_runtime;
grant execute on function retl.prepare_batches(bigint,bigint,text,bytea[],bigint[],bytea[],bigint[]) to retl_runtime;
grant execute on function retl.prepare_step(bigint,bigint,text,bytea,bytea,bigint) to retl_runtime;
grant execute on function retl.promote(bigint,bigint) to retl_runtime;
grant execute on function retl.prune(bigint,integer) to retl_runtime;
grant execute on function retl.prune_closed(bigint,integer) to retl_runtime;
grant execute on function retl.prune_generations(bigint,integer) to retl_runtime;
grant execute on function retl.put_artifact(bytea,text,bytea) to retl_runtime;
grant execute on function retl.put_checkpoint(bigint,bigint,bytea,bytea,uuid,bytea) to retl_runtime;
grant execute on function retl.record_baseline(bigint,bigint,text,text,text) to retl_runtime;
grant execute on function retl.record_progress(bigint,bigint,bytea,text) to retl_runtime;
grant execute on function retl.record_replaced(bigint,bigint,bytea[],bigint[]) to retl_runtime;
grant execute on function retl.rejected_identities(bigint[]) to retl_runtime;
grant execute on function retl.rejected_in(retl.run) to retl_runtime;
grant execute on function retl.rejections_since(bigint[]) to retl_runtime;
grant execute on function retl.release_compaction(text) to retl_runtime;
grant execute on function retl.release_lost(bigint,text,text,text) to retl_runtime;
grant execute on function retl.release_run(bigint,bigint,text,text) to retl_runtime;
grant execute on function retl.resolve_batch(bytea,text,text) to retl_runtime;
grant execute on function retl.retry_batch(bigint,bigint,bytea,bytea[],bigint[],bytea[],bigint[]) to retl_runtime;
grant execute on function retl.seal(bigint,bigint,bigint,bigint) to retl_runtime;
grant execute on function retl.settle_batch(bigint,bigint,bytea,text,bigint[],text[],text[],text[],text[]) to retl_runtime;
grant execute on function retl.settle_parts(bigint,bigint,bytea,text,text,bigint,bytea[],bigint[],bytea[],bigint[],boolean[],bigint[],text[],text[],text[],text[]) to retl_runtime;
grant execute on function retl.settle_step(bigint,bigint,bytea,text,text[],text[]) to retl_runtime;
grant execute on function retl.shown_digest(bigint) to retl_runtime;
grant execute on function retl.sweep_step(integer,bigint) to retl_runtime;
grant execute on function retl.trace_key(bigint,text,bigint,integer) to retl_runtime;
grant execute on function retl.trace_member(bigint,bytea,bigint,integer) to retl_runtime;

-- What retl_inspector may

grant usage on schema retl to retl_inspector;
grant select on retl.attempt to retl_inspector;
grant select on retl.checkpoint to retl_inspector;
grant select on retl.compaction_hold to retl_inspector;
grant select on retl.generation to retl_inspector;
grant select on retl.index_build to retl_inspector;
grant select on retl.index_definition to retl_inspector;
grant select on retl.journal to retl_inspector;
grant select on retl.leftover to retl_inspector;
grant select on retl.log_entry to retl_inspector;
grant select on retl.log_head to retl_inspector;
grant select on retl.log_snapshot to retl_inspector;
grant select on retl.log_snapshot_run to retl_inspector;
grant select on retl.migration to retl_inspector;
grant select on retl.mirror to retl_inspector;
grant select on retl.run to retl_inspector;
grant select (approval_id, run_id, generation_digest, removals, removal_digest, shown, verdict, via, decided_at) on retl.approval to retl_inspector;
grant select (batch_id, run_id, action, operations, sending, resends, retry_of, state, request_hash, request_bytes, reason, divisible, prepared_epoch, sent_epoch, settled_epoch, prepared_at, sent_at, send_deadline, retry_at, next_poll_at, staged_at, polls, to_add, to_change, accepted, rejected, added, changed, position, folded, settled_at) on retl.batch to retl_inspector;
grant select (epoch, run_id, holder_namespace, holder_cluster, holder_workflow_id, holder_first_run_id, released_at) on retl.release to retl_inspector;
grant select (reference, type, stored_at) on retl.artifact to retl_inspector;
grant select (revision_id, mirror_id, digest, created_at) on retl.revision to retl_inspector;
grant select (run_id, listed, imported_at) on retl.import to retl_inspector;
grant select (sequence, run_id, batch_id, code, recorded_at) on retl.rejection to retl_inspector;
grant select (sequence, run_id, change, held_sequence) on retl.exception to retl_inspector;
grant select (target_id, attested_at) on retl.attestation to retl_inspector;
grant select (target_id, target_key, mirror_id, baseline, baseline_proof, baseline_at, held, longest_removal, identity_form, created_at) on retl.target to retl_inspector;
grant execute on function retl.abandoned_runs(bigint,bigint,integer) to retl_inspector;
grant execute on function retl.held_by(bigint,bytea) to retl_inspector;
grant execute on function retl.holds_members(bigint) to retl_inspector;
grant execute on function retl.is_unowned(bigint) to retl_inspector;
grant execute on function retl.rejected_identities(bigint[]) to retl_inspector;
grant execute on function retl.rejections_since(bigint[]) to retl_inspector;
grant execute on function retl.shown_digest(bigint) to retl_inspector;
grant execute on function retl.trace_key(bigint,text,bigint,integer) to retl_inspector;
grant execute on function retl.trace_member(bigint,bytea,bigint,integer) to retl_inspector;

-- What retl_reader may

grant usage on schema retl to retl_reader;
grant select on retl.approval to retl_reader;
grant select on retl.artifact to retl_reader;
grant select on retl.attempt to retl_reader;
grant select on retl.attestation to retl_reader;
grant select on retl.batch to retl_reader;
grant select on retl.checkpoint to retl_reader;
grant select on retl.compaction_hold to retl_reader;
grant select on retl.exception to retl_reader;
grant select on retl.generation to retl_reader;
grant select on retl.import to retl_reader;
grant select on retl.index_build to retl_reader;
grant select on retl.index_definition to retl_reader;
grant select on retl.journal to retl_reader;
grant select on retl.leftover to retl_reader;
grant select on retl.log_entry to retl_reader;
grant select on retl.log_head to retl_reader;
grant select on retl.log_snapshot to retl_reader;
grant select on retl.log_snapshot_run to retl_reader;
grant select on retl.migration to retl_reader;
grant select on retl.mirror to retl_reader;
grant select on retl.rejection to retl_reader;
grant select on retl.release to retl_reader;
grant select on retl.revision to retl_reader;
grant select on retl.run to retl_reader;
grant select on retl.store to retl_reader;
grant select on retl.target to retl_reader;
grant execute on function retl.abandoned_runs(bigint,bigint,integer) to retl_reader;
grant execute on function retl.held_by(bigint,bytea) to retl_reader;
grant execute on function retl.holds_members(bigint) to retl_reader;
grant execute on function retl.is_unowned(bigint) to retl_reader;
grant execute on function retl.rejected_identities(bigint[]) to retl_reader;
grant execute on function retl.rejections_since(bigint[]) to retl_reader;
grant execute on function retl.shown_digest(bigint) to retl_reader;
grant execute on function retl.trace_key(bigint,text,bigint,integer) to retl_reader;
grant execute on function retl.trace_member(bigint,bytea,bigint,integer) to retl_reader;
grant select on every later table of the owner to retl_reader;

-- What retl_approver may

grant usage on schema retl to retl_approver;
grant select on retl.attempt to retl_approver;
grant select on retl.checkpoint to retl_approver;
grant select on retl.compaction_hold to retl_approver;
grant select on retl.generation to retl_approver;
grant select on retl.index_build to retl_approver;
grant select on retl.index_definition to retl_approver;
grant select on retl.journal to retl_approver;
grant select on retl.leftover to retl_approver;
grant select on retl.log_entry to retl_approver;
grant select on retl.log_head to retl_approver;
grant select on retl.log_snapshot to retl_approver;
grant select on retl.log_snapshot_run to retl_approver;
grant select on retl.migration to retl_approver;
grant select on retl.mirror to retl_approver;
grant select on retl.run to retl_approver;
grant select (approval_id, run_id, generation_digest, removals, removal_digest, shown, verdict, via, decided_at) on retl.approval to retl_approver;
grant select (batch_id, run_id, action, operations, sending, resends, retry_of, state, request_hash, request_bytes, reason, divisible, prepared_epoch, sent_epoch, settled_epoch, prepared_at, sent_at, send_deadline, retry_at, next_poll_at, staged_at, polls, to_add, to_change, accepted, rejected, added, changed, position, folded, settled_at) on retl.batch to retl_approver;
grant select (epoch, run_id, holder_namespace, holder_cluster, holder_workflow_id, holder_first_run_id, released_at) on retl.release to retl_approver;
grant select (reference, type, stored_at) on retl.artifact to retl_approver;
grant select (revision_id, mirror_id, digest, created_at) on retl.revision to retl_approver;
grant select (sequence, run_id, batch_id, code, recorded_at) on retl.rejection to retl_approver;
grant select (sequence, run_id, change, held_sequence) on retl.exception to retl_approver;
grant select (target_id, target_key, mirror_id, baseline, baseline_proof, baseline_at, held, longest_removal, identity_form, created_at) on retl.target to retl_approver;
grant execute on function retl.abandoned_runs(bigint,bigint,integer) to retl_approver;
grant execute on function retl.decide(bigint,bytea,text,text,text,text) to retl_approver;
grant execute on function retl.held_by(bigint,bytea) to retl_approver;
grant execute on function retl.holds_members(bigint) to retl_approver;
grant execute on function retl.is_unowned(bigint) to retl_approver;
grant execute on function retl.rejected_identities(bigint[]) to retl_approver;
grant execute on function retl.rejections_since(bigint[]) to retl_approver;
grant execute on function retl.shown_digest(bigint) to retl_approver;
grant execute on function retl.trace_key(bigint,text,bigint,integer) to retl_approver;
grant execute on function retl.trace_member(bigint,bytea,bigint,integer) to retl_approver;
