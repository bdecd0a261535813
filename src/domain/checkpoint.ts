/**
 * The projection checkpoint: this index, at this schema version, has processed the log up to this position (design.md
 * section 7). Numbers are unsigned; a `u64` is a bigint. It holds no value of a row: builder and note are an operator's words.
 */

export interface Checkpoint {
  /** The index's name. */
  readonly projectionName: string;
  /** u32. */
  readonly projectionSchemaVersion: number;
  /** u64: the log snapshot that the index's build began with; `null` where it began with the log's first entry. */
  readonly aslSnapshotId: bigint | null;
  /** u64: the last position that was processed whole; 0 where none was. */
  readonly aslLogPosition: bigint;
  /** u64: milliseconds since 1970, UTC. */
  readonly createdAt: bigint;
  /** The indexer instance that made it. */
  readonly builderId: string;
  /** u64, as the three below: what the index holds, in its own units. */
  readonly artifactCount: bigint | null;
  readonly edgeCount: bigint | null;
  readonly errorCount: bigint | null;
  /** The age of what is not processed yet when the checkpoint was made. */
  readonly lagMillis: bigint | null;
  readonly note: string | null;
}

/** A checkpoint as JSON for people and other programs: the names of its format, a u64 as decimal text. */
export type CheckpointJson = { readonly [field: string]: string | number | null };

/** @param version of the form that the checkpoint was read from. */
export function checkpointJson(c: Checkpoint, version: number): CheckpointJson {
  return {
    checkpoint_version: version,
    projection_name: c.projectionName,
    projection_schema_version: c.projectionSchemaVersion,
    asl_snapshot_id: decimal(c.aslSnapshotId),
    asl_log_position: decimal(c.aslLogPosition),
    created_at: decimal(c.createdAt),
    builder_id: c.builderId,
    artifact_count: decimal(c.artifactCount),
    edge_count: decimal(c.edgeCount),
    error_count: decimal(c.errorCount),
    lag_millis: decimal(c.lagMillis),
    note: c.note,
  };
}

function decimal(value: bigint | null): string | null {
  return value === null ? null : value.toString();
}
