/**
 * Checkpoints as an indexer writes and reads them (design.md section 7). Writing: the artifact first, for an orphan is
 * harmless; then the index's own row, with the rows it speaks of; the journal's registry follows. Reading: nothing goes on
 * from a checkpoint that has not been validated against the log as it is now.
 */

import { CHECKPOINT_ARTIFACT } from '../domain/artifact.ts';
import type { WriteFault } from '../domain/byte-form.ts';
import type { Checkpoint } from '../domain/checkpoint.ts';
import { decodeCheckpoint, encodeCheckpoint } from '../domain/checkpoint-codec.ts';
import {
  type CheckpointMark,
  type IndexDefinition,
  type RecordedCheckpoint,
  type Refusal,
  refuseLog,
  stop,
  type Validation,
  validateCheckpoint,
} from '../domain/checkpoint-validation.ts';
import type { ArtifactReference } from '../domain/ids.ts';
import type { ArtifactStore } from '../journal/artifact-store.ts';
import {
  type CheckpointRecord,
  type IndexBuild,
  logStateAt,
  type PutCheckpoint,
} from '../journal/checkpoints.ts';
import type { Queryable } from '../journal/pool.ts';

export type StoredCheckpoint =
  | { readonly kind: 'stored'; readonly reference: ArtifactReference }
  /** The checkpoint has no bytes: a name or note that is too long or no Unicode, a number out of range. */
  | { readonly kind: 'no-bytes'; readonly fault: WriteFault }
  | Refusal;

/** Puts a checkpoint's artifact; the first step of three. @throws as the store does */
export async function storeCheckpoint(
  store: ArtifactStore,
  checkpoint: Checkpoint,
): Promise<StoredCheckpoint> {
  const encoded = encodeCheckpoint(checkpoint);
  if (encoded.kind === 'refused') return { kind: 'no-bytes', fault: encoded.fault };
  const put = await store.put({ type: CHECKPOINT_ARTIFACT, bytes: encoded.bytes });
  switch (put.kind) {
    case 'stored':
    case 'present':
      return { kind: 'stored', reference: put.reference };
    case 'corrupt':
      return stop('artifact.corrupt', { reference: put.reference });
    case 'too-large':
      throw new Error('the longest checkpoint is far below the limit of an artifact');
  }
}

/** `null`: the registry has the checkpoint, now or already. */
export function refusalOf(put: PutCheckpoint): Refusal | null {
  switch (put.kind) {
    case 'recorded':
    case 'repeated':
      return null;
    case 'raced':
      return stop('index.build-raced', put.newest === null ? {} : { newest: `${put.newest.position}` });
    case 'not-later':
      return stop('index.build-raced', { newest: `${put.position}` });
    case 'other-log':
      return stop('index.other-log', {});
    case 'ahead':
      return stop('index.ahead-of-log', { head: `${put.head}` });
    case 'diverged':
      return stop('index.log-diverged', { head: `${put.head}` });
    case 'no-such-build':
      return stop('index.other-log', { rule: 'no-such-build' });
  }
}

/** What the journal's registry keeps beside a checkpoint. */
export function markOf(build: IndexBuild, record: CheckpointRecord): CheckpointMark {
  const { logId, snapshot, definition } = build;
  const { reference, position, entryHash } = record;
  return { reference, position, logId, entryHash, fingerprint: definition.fingerprint, snapshot };
}

/** Reads what a mark refers to; that it is in order is still to be seen. @throws as the store does */
export async function readCheckpoint(
  store: ArtifactStore,
  mark: CheckpointMark,
): Promise<{ readonly kind: 'read'; readonly recorded: RecordedCheckpoint } | Refusal> {
  const { reference } = mark;
  const got = await store.get(reference);
  if (got.kind === 'missing') return stop('artifact.missing', { reference });
  if (got.kind === 'corrupt') return stop('artifact.corrupt', { reference });
  const { type, bytes } = got.artifact;
  if (type !== CHECKPOINT_ARTIFACT)
    return stop('index.checkpoint-damaged', { rule: 'other-type', reference });
  return { kind: 'read', recorded: { ...mark, decoded: decodeCheckpoint(bytes) } };
}

/**
 * May the indexer go on from this mark, the one that its index carries or the registry's?
 * @throws JournalError; as the store does
 */
export async function checkResume(
  db: Queryable,
  store: ArtifactStore,
  mark: CheckpointMark,
  definition: IndexDefinition,
): Promise<Validation> {
  const log = await logStateAt(db, mark.position, mark.snapshot?.id ?? null);
  const read = await readCheckpoint(store, mark);
  // Another journal has none of the artifacts: what is wrong is the journal, and not that they are missing.
  if (read.kind === 'refused') return refuseLog(mark, log) ?? read;
  return validateCheckpoint(read.recorded, log, definition);
}
