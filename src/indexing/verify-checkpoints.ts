/**
 * Holds every checkpoint that the journal has kept of an index to its artifact, to the log and to the one before
 * (design.md section 7): what an audit, or a rollback to one of them, relies on.
 */

import type { ErrorCode } from '../domain/errors.ts';
import { type ArtifactReference, type BuildId, type LogPosition, logPosition } from '../domain/ids.ts';
import type { ArtifactStore } from '../journal/artifact-store.ts';
import { buildsOf, type CheckpointRecord, checkpointsOf, type IndexBuild } from '../journal/checkpoints.ts';
import type { Queryable } from '../journal/pool.ts';
import { checkResume, markOf } from './checkpoints.ts';

export interface CheckpointFaultFound {
  readonly build: BuildId;
  readonly position: LogPosition;
  readonly reference: ArtifactReference;
  readonly code: ErrorCode;
  /** What exactly, where the code leaves that open; a stable word. */
  readonly rule: string | null;
}

export interface VerifiedCheckpoints {
  readonly builds: number;
  readonly checked: number;
  readonly faults: readonly CheckpointFaultFound[];
}

const PAGE = 200;

/**
 * Goes through the checkpoints of every build, the newest first; finds one fault of each at most.
 * @throws JournalError; as the store does
 */
export async function verifyCheckpoints(
  db: Queryable,
  store: ArtifactStore,
  index: string,
): Promise<VerifiedCheckpoints> {
  const faults: CheckpointFaultFound[] = [];
  let [builds, checked] = [0, 0];
  for await (const build of allBuilds(db, index)) {
    builds += 1;
    const check = async (record: CheckpointRecord, before: ArtifactReference | null): Promise<void> => {
      checked += 1;
      const fault = faultOfChain(record, before) ?? (await faultOf(db, store, build, record));
      if (fault !== null) faults.push(fault);
    };
    let newer: CheckpointRecord | null = null;
    for await (const record of allCheckpoints(db, build.build)) {
      if (newer !== null) await check(newer, record.reference);
      newer = record;
    }
    if (newer !== null) await check(newer, null);
  }
  return { builds, checked, faults };
}

async function* allBuilds(db: Queryable, index: string): AsyncGenerator<IndexBuild> {
  let before: BuildId | null = null;
  do {
    const page: readonly IndexBuild[] = await buildsOf(db, index, before, PAGE);
    yield* page;
    before = page.at(-1)?.build ?? null;
  } while (before !== null);
}

/** The newest first. */
async function* allCheckpoints(db: Queryable, build: BuildId): AsyncGenerator<CheckpointRecord> {
  let upTo: LogPosition | null = null;
  for (;;) {
    const page: readonly CheckpointRecord[] = await checkpointsOf(db, build, upTo, PAGE);
    yield* page;
    const last = page.at(-1);
    if (last === undefined || last.position === 0n) return;
    upTo = logPosition(last.position - 1n);
  }
}

/** Whether a checkpoint names the one before it. */
function faultOfChain(
  record: CheckpointRecord,
  before: ArtifactReference | null,
): CheckpointFaultFound | null {
  return record.previous === before ? null : found(record, 'index.checkpoint-damaged', 'chain');
}

async function faultOf(
  db: Queryable,
  store: ArtifactStore,
  build: IndexBuild,
  record: CheckpointRecord,
): Promise<CheckpointFaultFound | null> {
  const validation = await checkResume(db, store, markOf(build, record), build.definition);
  // That the log can no longer be replayed from there is in the nature of an old checkpoint.
  if (validation.kind === 'valid' || validation.code === 'index.past-compaction') return null;
  const { rule } = validation.details;
  return found(record, validation.code, typeof rule === 'string' ? rule : null);
}

function found(record: CheckpointRecord, code: ErrorCode, rule: string | null): CheckpointFaultFound {
  const { build, position, reference } = record;
  return { build, position, reference, code, rule };
}
