/**
 * Indexes as the journal knows them (design.md section 7): definitions, builds, and the chain of each build's checkpoints,
 * which a compare-and-set extends. Nothing here is ever changed: a rollback and an audit find every checkpoint there was.
 */

import type { IndexDefinition, LogState, SnapshotMark } from '../domain/checkpoint-validation.ts';
import {
  type ArtifactReference,
  type BuildId,
  buildId,
  type LogPosition,
  logPosition,
  type Sha256,
  sha256FromHex,
} from '../domain/ids.ts';
import { hashBytes } from './batches.ts';
import type { SnapshotId } from './compaction.ts';
import { big, bigOrNull, date, number, object, type Row, text, textOrNull } from './decode.ts';
import { logHead } from './log.ts';
import { logSnapshot } from './log-snapshot.ts';
import { call, type Queryable, run } from './pool.ts';

/** One construction of an index. */
export interface IndexBuild {
  readonly build: BuildId;
  readonly definition: IndexDefinition;
  readonly logId: string;
  /** The log snapshot that it began with; `null`: it began with the log's first entry. */
  readonly snapshot: SnapshotMark | null;
  readonly begunAt: Date;
}

/** A checkpoint as it is recorded; what it says besides stands in its artifact. */
export interface CheckpointRecord {
  readonly build: BuildId;
  readonly position: LogPosition;
  readonly reference: ArtifactReference;
  /** `null`: the first of its build. */
  readonly previous: ArtifactReference | null;
  readonly entryHash: Sha256;
  readonly recordedAt: Date;
}

export type BegunBuild =
  | { readonly kind: 'begun'; readonly build: BuildId }
  /** Another definition has this name and schema version. */
  | { readonly kind: 'definition-changed' }
  | { readonly kind: 'other-log' }
  /** It is none, or no longer the newest. */
  | { readonly kind: 'no-such-snapshot' }
  /** The log's first entry can no longer be read: a build begins with the newest log snapshot. */
  | { readonly kind: 'compacted' };

/**
 * Begins a build. The first definition under a name and schema version keeps the pair.
 * @param snapshot the log snapshot that it begins with; `null`: it begins with the log's first entry.
 * @throws JournalError
 */
export async function beginBuild(
  db: Queryable,
  definition: IndexDefinition,
  logId: string,
  snapshot: SnapshotId | null,
): Promise<BegunBuild> {
  const { name, schemaVersion, fingerprint } = definition;
  const answer = object(
    await call(db, 'retl.begin_index_build($1,$2,$3,$4,$5)', [
      name,
      schemaVersion,
      hashBytes(fingerprint),
      logId,
      snapshot,
    ]),
  );
  const kind = text(answer, 'kind') as BegunBuild['kind'];
  return kind === 'begun' ? { kind, build: buildId(big(answer, 'build')) } : { kind };
}

export type PutCheckpoint =
  /** `repeated`: exactly this one is the newest already. */
  | { readonly kind: 'recorded' | 'repeated' }
  /** The newest is another one: `newest` is what another builder has recorded (`null`: nothing; what the caller knew of is not there). */
  | {
      readonly kind: 'raced';
      readonly newest: { readonly position: LogPosition; readonly reference: ArtifactReference } | null;
    }
  /** It is not past the newest, which stands at `position`. */
  | { readonly kind: 'not-later'; readonly position: LogPosition }
  /** The log is not the one that the builder has read. */
  | { readonly kind: 'other-log' | 'ahead' | 'diverged'; readonly head: LogPosition }
  | { readonly kind: 'no-such-build' };

export interface CheckpointDraft {
  readonly build: BuildId;
  readonly position: LogPosition;
  readonly reference: ArtifactReference;
  /** The newest one of the build that the builder knows of. */
  readonly previous: ArtifactReference | null;
  /** Of the log that the builder has read. */
  readonly logId: string;
  /** Of the entry at the position, as the builder has read it; the genesis hash at 0. */
  readonly entryHash: Sha256;
}

/** Records a checkpoint whose artifact has been put before. @throws JournalError */
export async function putCheckpoint(db: Queryable, draft: CheckpointDraft): Promise<PutCheckpoint> {
  const { build, position, reference, previous, logId, entryHash } = draft;
  const answer = object(
    await call(db, 'retl.put_checkpoint($1,$2,$3,$4,$5,$6)', [
      build,
      position,
      hashBytes(reference),
      previous === null ? null : hashBytes(previous),
      logId,
      hashBytes(entryHash),
    ]),
  );
  const kind = text(answer, 'kind') as PutCheckpoint['kind'];
  switch (kind) {
    case 'recorded':
    case 'repeated':
    case 'no-such-build':
      return { kind };
    case 'raced':
      return { kind, newest: newestIn(answer) };
    case 'not-later':
      return { kind, position: logPosition(big(answer, 'position')) };
    case 'other-log':
    case 'ahead':
    case 'diverged':
      return { kind, head: logPosition(big(answer, 'head')) };
  }
}

function newestIn(answer: Row) {
  const reference = textOrNull(answer, 'reference');
  if (reference === null) return null;
  return { position: logPosition(big(answer, 'position')), reference: sha256FromHex(reference) };
}

const BUILDS = `
  select b.build_id, b.index_name, b.schema_version, encode(d.fingerprint, 'hex') as fingerprint, b.log_id::text as log_id,
    b.snapshot_id, b.snapshot_boundary, encode(b.snapshot_digest, 'hex') as snapshot_digest, b.begun_at
  from retl.index_build b join retl.index_definition d using (index_name, schema_version)`;

/** The builds of an index before `before` (`null`: all), the newest first. @throws JournalError */
export async function buildsOf(
  db: Queryable,
  index: string,
  before: BuildId | null,
  limit: number,
): Promise<readonly IndexBuild[]> {
  const query = `${BUILDS} where b.index_name = $1 and b.build_id < coalesce($2, 9223372036854775807)
    order by b.build_id desc limit $3`;
  return (await run(db, query, [index, before, limit])).map(decodeBuild);
}

const PAGE = 200;

/** All builds of an index, the newest first, read a page at a time. @throws JournalError */
export async function* everyBuild(db: Queryable, index: string, size = PAGE): AsyncGenerator<IndexBuild> {
  for (let before: BuildId | null = null; ; ) {
    const page: readonly IndexBuild[] = await buildsOf(db, index, before, size);
    yield* page;
    const last = page.at(-1);
    if (last === undefined || page.length < size) return;
    before = last.build;
  }
}

/** @throws JournalError */
export async function buildOf(db: Queryable, build: BuildId): Promise<IndexBuild | null> {
  const [row] = await run(db, `${BUILDS} where b.build_id = $1`, [build]);
  return row === undefined ? null : decodeBuild(row);
}

const CHECKPOINTS = `
  select build_id, position, encode(reference, 'hex') as reference, encode(previous, 'hex') as previous,
    encode(entry_hash, 'hex') as entry_hash, recorded_at
  from retl.checkpoint`;

/** The newest checkpoint of a build that is not past `upTo`; `null`: there is none. @throws JournalError */
export async function newestCheckpoint(
  db: Queryable,
  build: BuildId,
  upTo: LogPosition | null = null,
): Promise<CheckpointRecord | null> {
  const [newest] = await checkpointsOf(db, build, upTo, 1);
  return newest ?? null;
}

/** The checkpoints of a build that are not past `upTo` (`null`: all), the newest first. @throws JournalError */
export async function checkpointsOf(
  db: Queryable,
  build: BuildId,
  upTo: LogPosition | null,
  limit: number,
): Promise<readonly CheckpointRecord[]> {
  const query = `${CHECKPOINTS} where build_id = $1 and position <= coalesce($2, 9223372036854775807)
    order by position desc limit $3`;
  return (await run(db, query, [build, upTo, limit])).map(decodeCheckpointRow);
}

/** All checkpoints of a build, the newest first, read a page at a time. @throws JournalError */
export async function* everyCheckpoint(
  db: Queryable,
  build: BuildId,
  size = PAGE,
): AsyncGenerator<CheckpointRecord> {
  for (let upTo: LogPosition | null = null; ; ) {
    const page: readonly CheckpointRecord[] = await checkpointsOf(db, build, upTo, size);
    yield* page;
    const last = page.at(-1);
    if (last === undefined || page.length < size || last.position === 0n) return;
    upTo = logPosition(last.position - 1n);
  }
}

/** The records of an artifact, which several builds may share, the newest build first. @throws JournalError */
export async function recordsOf(
  db: Queryable,
  reference: ArtifactReference,
): Promise<readonly CheckpointRecord[]> {
  const query = `${CHECKPOINTS} where reference = $1 order by build_id desc`;
  return (await run(db, query, [hashBytes(reference)])).map(decodeCheckpointRow);
}

const GENESIS = sha256FromHex('0'.repeat(64));

/**
 * What the log says of a checkpoint's position.
 * @param snapshot the log snapshot that its build began with
 * @throws JournalError
 */
export async function logStateAt(
  db: Queryable,
  position: LogPosition,
  snapshot: SnapshotId | null,
): Promise<LogState> {
  // The head first: an entry that is appended in between is not taken for one that is missing.
  const { logId, position: head, earliest } = await logHead(db);
  const query = `select encode(entry_hash, 'hex') as entry_hash from retl.log_entry where position = $1`;
  const [row] = await run(db, query, [position]);
  const entryHash = row === undefined ? null : sha256FromHex(text(row, 'entry_hash'));
  const mark = snapshot === null ? null : await snapshotMark(db, snapshot);
  return { logId, head, earliest, entryHash: position === 0n ? GENESIS : entryHash, snapshot: mark };
}

/** `null`: there is none of this id, or it is not complete. */
async function snapshotMark(db: Queryable, snapshot: SnapshotId): Promise<SnapshotMark | null> {
  const found = await logSnapshot(db, snapshot);
  if (found === null || found.digest === null) return null;
  return { id: found.id, boundary: found.boundary, digest: found.digest };
}

function decodeBuild(row: Row): IndexBuild {
  const id = bigOrNull(row, 'snapshot_id');
  return {
    build: buildId(big(row, 'build_id')),
    definition: {
      name: text(row, 'index_name'),
      schemaVersion: number(row, 'schema_version'),
      fingerprint: sha256FromHex(text(row, 'fingerprint')),
    },
    logId: text(row, 'log_id'),
    snapshot:
      id === null
        ? null
        : {
            id,
            boundary: logPosition(big(row, 'snapshot_boundary')),
            digest: sha256FromHex(text(row, 'snapshot_digest')),
          },
    begunAt: date(row, 'begun_at'),
  };
}

function decodeCheckpointRow(row: Row): CheckpointRecord {
  const previous = textOrNull(row, 'previous');
  return {
    build: buildId(big(row, 'build_id')),
    position: logPosition(big(row, 'position')),
    reference: sha256FromHex(text(row, 'reference')),
    previous: previous === null ? null : sha256FromHex(previous),
    entryHash: sha256FromHex(text(row, 'entry_hash')),
    recordedAt: date(row, 'recorded_at'),
  };
}
