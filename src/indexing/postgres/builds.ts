/**
 * The builds of the indexes in one schema, and each one's own checkpoint: a row that changes in the transaction that changes
 * the build's rows. Every change asks for the checkpoint it goes on from, so that of two builders one is refused.
 */

import type { CheckpointMark, SnapshotMark } from '../../domain/checkpoint-validation.ts';
import { buildId, type LogPosition, logPosition, sha256 } from '../../domain/ids.ts';
import { big, bigOrNull, bytes, number, type Row, text, textOrNull } from '../../journal/decode.ts';
import type { NewBuild, OwnBuild } from '../indexer.ts';
import { query } from './database.ts';

type Db = Parameters<typeof query>[0];

/** A build with what only this kind of index knows of it. */
export interface KeptBuild extends OwnBuild {
  /** Number of its table. */
  readonly table: bigint;
  /** Changes that wait beside its rows; see late-changes.ts. */
  readonly late: bigint;
}

/** @param schema quoted */
export const buildTable = (schema: string): string => `
  create table if not exists ${schema}.index_build (
    table_id bigint generated always as identity primary key,
    index_name text not null,
    build_id bigint not null,
    state text not null check (state in ('building', 'live', 'retired')),
    schema_version bigint not null,
    fingerprint text not null,
    log_id uuid not null,
    snapshot_id bigint,
    snapshot_boundary bigint,
    snapshot_digest text,
    goal bigint, -- of a rollback
    loaded_target bigint, -- how far the log snapshot has been read
    loaded_hash bytea,
    late bigint not null default 0, -- changes that wait beside the rows
    rows bigint not null default 0,
    position bigint, -- the checkpoint: null while the log snapshot is being read
    entry_hash text,
    reference text,
    previous text,
    begun_at timestamptz not null default clock_timestamp(),
    checkpoint_at timestamptz,
    dropped boolean not null default false
  );
  create unique index if not exists index_build_state on ${schema}.index_build (index_name, state) where state <> 'retired'`;

const SELECT = (schema: string) => `
  select table_id, build_id, state, index_name, schema_version, fingerprint, log_id::text as log_id, snapshot_id,
    snapshot_boundary, snapshot_digest, goal, loaded_target, loaded_hash, late, rows, position, entry_hash, reference, previous
  from ${schema}.index_build`;

/** @throws RetlError */
export async function readBuilds(db: Db, schema: string, index: string): Promise<readonly KeptBuild[]> {
  const rows = await query(
    db,
    `${SELECT(schema)} where index_name = $1 and state <> 'retired' order by table_id`,
    [index],
  );
  return rows.map(decode);
}

/**
 * Locks a build that still is as `build` says; `null`: another builder has changed it.
 * @throws RetlError
 */
export async function lockBuild(db: Db, schema: string, build: OwnBuild): Promise<KeptBuild | null> {
  const where = `where index_name = $1 and build_id = $2 and state = $3 and reference is not distinct from $4
    and loaded_target is not distinct from $5 and loaded_hash is not distinct from $6 for update`;
  const { definition, loaded } = build;
  const [row] = await query(db, `${SELECT(schema)} ${where}`, [
    definition.name,
    build.build,
    build.state,
    build.mark?.reference ?? null,
    loaded?.target ?? null,
    loaded?.identityHash ?? null,
  ]);
  return row === undefined ? null : decode(row);
}

/** @returns the number of its table; `null`: another build of the index is under way. @throws RetlError */
export async function insertBuild(db: Db, schema: string, build: NewBuild): Promise<bigint | null> {
  const sql = `insert into ${schema}.index_build (index_name, build_id, state, schema_version, fingerprint, log_id, snapshot_id,
      snapshot_boundary, snapshot_digest, goal)
    values ($1, $2, 'building', $3, $4, $5, $6, $7, $8, $9) on conflict do nothing returning table_id`;
  const { definition, snapshot } = build;
  const [row] = await query(db, sql, [
    definition.name,
    build.build,
    definition.schemaVersion,
    definition.fingerprint,
    build.logId,
    snapshot?.id ?? null,
    snapshot?.boundary ?? null,
    snapshot?.digest ?? null,
    build.goal,
  ]);
  return row === undefined ? null : big(row, 'table_id');
}

/** Writes what a batch has changed of a build that is locked. @throws RetlError */
export async function writeBuild(db: Db, schema: string, build: KeptBuild): Promise<void> {
  const { mark, loaded } = build;
  const sql = `update ${schema}.index_build set rows = $2, late = $3, loaded_target = $4, loaded_hash = $5, position = $6,
      entry_hash = $7, reference = $8, previous = $9, checkpoint_at = clock_timestamp()
    where table_id = $1`;
  await query(db, sql, [
    build.table,
    build.rows,
    build.late,
    loaded?.target ?? null,
    loaded?.identityHash ?? null,
    mark?.position ?? null,
    mark?.entryHash ?? null,
    mark?.reference ?? null,
    build.previous,
  ]);
}

function decode(row: Row): KeptBuild {
  const definition = {
    name: text(row, 'index_name'),
    schemaVersion: number(row, 'schema_version'),
    fingerprint: sha256(text(row, 'fingerprint')),
  };
  const goal = bigOrNull(row, 'goal');
  const loaded = bigOrNull(row, 'loaded_target');
  const previous = textOrNull(row, 'previous');
  const common = { logId: text(row, 'log_id'), snapshot: snapshotIn(row) };
  return {
    ...common,
    build: buildId(big(row, 'build_id')),
    state: text(row, 'state') === 'live' ? 'live' : 'building',
    definition,
    goal: goal === null ? null : logPosition(goal),
    loaded: loaded === null ? null : { target: loaded, identityHash: bytes(row, 'loaded_hash') },
    mark: markIn(row, { ...common, fingerprint: definition.fingerprint }),
    previous: previous === null ? null : sha256(previous),
    ahead: null,
    rows: big(row, 'rows'),
    table: big(row, 'table_id'),
    late: big(row, 'late'),
  };
}

function snapshotIn(row: Row): SnapshotMark | null {
  const id = bigOrNull(row, 'snapshot_id');
  if (id === null) return null;
  const boundary: LogPosition = logPosition(big(row, 'snapshot_boundary'));
  return { id, boundary, digest: sha256(text(row, 'snapshot_digest')) };
}

function markIn(
  row: Row,
  common: Pick<CheckpointMark, 'logId' | 'snapshot' | 'fingerprint'>,
): CheckpointMark | null {
  const reference = textOrNull(row, 'reference');
  if (reference === null) return null;
  return {
    ...common,
    reference: sha256(reference),
    position: logPosition(big(row, 'position')),
    entryHash: sha256(text(row, 'entry_hash')),
  };
}
