/**
 * May an indexer go on from this checkpoint? (design.md section 7.) What the log is comes first: a checkpoint of another
 * log, or of one that was restored to an earlier time, must not pass because something else about it calls for a new build.
 */

import type { Checkpoint } from './checkpoint.ts';
import type { DecodedCheckpoint } from './checkpoint-codec.ts';
import type { ErrorCode, ErrorDetails } from './errors.ts';
import { type ArtifactReference, type LogPosition, logPosition, type Sha256 } from './ids.ts';

export interface IndexDefinition {
  readonly name: string;
  /** u32. */
  readonly schemaVersion: number;
  /** Hash of whatever decides what the index looks like. */
  readonly fingerprint: Sha256;
}

/** A log snapshot: the membership of all mirrors as it was at the boundary. */
export interface SnapshotMark {
  /** u64. */
  readonly id: bigint;
  readonly boundary: LogPosition;
  readonly digest: Sha256;
}

/** What is kept beside a checkpoint: in the journal's registry, and with the index itself. */
export interface CheckpointMark {
  /** Identifies the state of the index. */
  readonly reference: ArtifactReference;
  readonly position: LogPosition;
  readonly logId: string;
  /** Of the log entry at the position; the genesis hash at 0. */
  readonly entryHash: Sha256;
  /** Of the definition that the build was begun with. */
  readonly fingerprint: Sha256;
  /** The log snapshot that the build began with. */
  readonly snapshot: SnapshotMark | null;
}

export interface RecordedCheckpoint extends CheckpointMark {
  /** What its bytes say. */
  readonly decoded: DecodedCheckpoint;
}

/** What the log says now. */
export interface LogState {
  readonly logId: string;
  readonly head: LogPosition;
  /** The first position whose effects can be read. */
  readonly earliest: LogPosition;
  /** Of the entry at the checkpoint's position, and the genesis hash at 0; `null`: the log has no such entry (any more). */
  readonly entryHash: Sha256 | null;
  /** The log snapshot with the id that the checkpoint names; `null`: there is none. */
  readonly snapshot: SnapshotMark | null;
}

/** Why an indexer does not go on. */
export interface Refusal {
  readonly kind: 'refused';
  readonly code: ErrorCode;
  /** `full-replay`: a new build is the way on, and harmless. `stop`: a person must look first. */
  readonly remedy: 'full-replay' | 'stop';
  readonly details: ErrorDetails;
}

export type Validation =
  /** `replayFrom`: the position after the checkpoint's. */
  { readonly kind: 'valid'; readonly checkpoint: Checkpoint; readonly replayFrom: LogPosition } | Refusal;

export function validateCheckpoint(
  recorded: RecordedCheckpoint,
  log: LogState,
  definition: IndexDefinition,
): Validation {
  const { decoded } = recorded;
  if (decoded.kind === 'refused') {
    const { fault } = decoded;
    return fault.reason === 'unsupported-version'
      ? stop('index.checkpoint-version', { version: fault.version })
      : stop('index.checkpoint-damaged', { rule: fault.reason });
  }
  const { checkpoint } = decoded;
  return (
    refuseRecord(checkpoint, recorded, definition) ??
    refuseMark(recorded, checkpoint.projectionSchemaVersion, log, definition) ?? {
      kind: 'valid',
      checkpoint,
      replayFrom: logPosition(recorded.position + 1n),
    }
  );
}

/** Sound bytes, but not those of this index at this position. */
function refuseRecord(
  c: Checkpoint,
  recorded: RecordedCheckpoint,
  { name }: IndexDefinition,
): Refusal | null {
  if (c.projectionName !== name) return stop('index.checkpoint-damaged', { rule: 'other-index' });
  if (c.aslLogPosition !== recorded.position)
    return stop('index.checkpoint-damaged', { rule: 'other-position' });
  if (c.aslSnapshotId !== (recorded.snapshot?.id ?? null))
    return stop('index.checkpoint-damaged', { rule: 'other-snapshot' });
  return null;
}

/**
 * All of {@link validateCheckpoint} but what the checkpoint's own bytes say; needs no artifact.
 * @param builtAt schema version of the build
 */
export function refuseMark(
  mark: CheckpointMark,
  builtAt: number,
  log: LogState,
  definition: IndexDefinition,
): Refusal | null {
  return (
    refuseLog(mark, log) ??
    refuseDefinition(mark, builtAt, definition) ??
    refuseSnapshot(mark, log) ??
    refuseCompacted(mark, log)
  );
}

/** Whether the log is another one than the index was built from, or has been another; needs no artifact. */
export function refuseLog({ position, logId, entryHash }: CheckpointMark, log: LogState): Refusal | null {
  if (logId !== log.logId) return stop('index.other-log', { built_from: logId, log: log.logId });
  if (position > log.head)
    return stop('index.ahead-of-log', { position: `${position}`, head: `${log.head}` });
  // Below what the log still keeps there is nothing to compare with; it cannot be replayed from there either.
  if (log.entryHash === null && isCompacted(position, log)) return null;
  return log.entryHash === entryHash ? null : stop('index.log-diverged', { position: `${position}` });
}

function refuseDefinition(
  { fingerprint }: CheckpointMark,
  builtAt: number,
  definition: IndexDefinition,
): Refusal | null {
  const { schemaVersion } = definition;
  const otherVersion = refuseVersion(builtAt, schemaVersion);
  if (otherVersion !== null) return otherVersion;
  if (fingerprint === definition.fingerprint) return null;
  return stop('index.definition-changed', { index: definition.name, schema_version: schemaVersion });
}

/** Versions of one form of an index are in one thousand: of two forms, neither is newer than the other. */
const VERSIONS_OF_A_FORM = 1_000;

/**
 * What a newer release has built stays: where releases share a task queue, for the time of a deploy, they would take turns
 * at making each other's builds anew.
 */
export function refuseVersion(builtAt: number, now: number): Refusal | null {
  if (builtAt === now) return null;
  const form = (version: number) => Math.floor(version / VERSIONS_OF_A_FORM);
  const details = { built_at: builtAt, now };
  return builtAt > now && form(builtAt) === form(now)
    ? stop('index.newer-release', details)
    : fullReplay('index.schema-changed', details);
}

function refuseSnapshot({ snapshot: began, position }: CheckpointMark, log: LogState): Refusal | null {
  if (began === null) return null;
  const details = (rule: string) => ({ rule, snapshot: `${began.id}` });
  const now = log.snapshot;
  if (now?.id !== began.id) return stop('index.snapshot-mismatch', details('gone'));
  if (now.digest !== began.digest) return stop('index.snapshot-mismatch', details('digest'));
  // A build that begins with a snapshot has processed all that is in it.
  const isBoundary = now.boundary === began.boundary && now.boundary <= position;
  return isBoundary ? null : stop('index.snapshot-mismatch', details('boundary'));
}

function refuseCompacted({ position }: CheckpointMark, log: LogState): Refusal | null {
  if (!isCompacted(position, log)) return null;
  return fullReplay('index.past-compaction', { position: `${position}`, earliest: `${log.earliest}` });
}

/** Whether the next entry can no longer be read. */
function isCompacted(position: LogPosition, log: LogState): boolean {
  return position + 1n < log.earliest;
}

export function stop(code: ErrorCode, details: ErrorDetails): Refusal {
  return { kind: 'refused', code, remedy: 'stop', details };
}

function fullReplay(code: ErrorCode, details: ErrorDetails): Refusal {
  return { kind: 'refused', code, remedy: 'full-replay', details };
}
