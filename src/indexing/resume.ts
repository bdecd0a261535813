/**
 * Whether a build may go on from where it stands (design.md section 7): asked by whoever replays, and by a check, which changes
 * nothing.
 */

import { type IndexDefinition, type Refusal, stop } from '../domain/checkpoint-validation.ts';
import type { ArtifactStore } from '../journal/artifact-store.ts';
import { logStateAt } from '../journal/checkpoints.ts';
import { logHead } from '../journal/log.ts';
import type { Queryable } from '../journal/pool.ts';
import { checkResume } from './checkpoints.ts';
import type { OwnBuild } from './indexer.ts';

interface ResumeDeps {
  readonly journal: Queryable;
  readonly artifacts: ArtifactStore;
}

/** `null`: it may. @throws JournalError; RetlError as the store of artifacts does */
export async function refuseResume(
  { journal, artifacts }: ResumeDeps,
  definition: IndexDefinition,
  build: OwnBuild,
): Promise<Refusal | null> {
  const { mark } = build;
  if (mark === null) return refuseLoad(journal, definition, build);
  const validation = await checkResume(journal, artifacts, mark, definition);
  return validation.kind === 'refused' ? validation : rowsOfOtherLog(journal, build);
}

/** Rows past the checkpoint, of a builder that died, are written over only by the entries that they came from. */
async function rowsOfOtherLog(journal: Queryable, { ahead }: OwnBuild): Promise<Refusal | null> {
  if (ahead === null) return null;
  const { position, entryHash } = ahead;
  const { head, entryHash: now } = await logStateAt(journal, position, null);
  const details = { rule: 'rows-ahead', position: `${position}` };
  if (position > head) return stop('index.ahead-of-log', { ...details, head: `${head}` });
  return now === entryHash ? null : stop('index.log-diverged', details);
}

/** A build without a checkpoint has nothing yet that could not be made anew. */
async function refuseLoad(
  journal: Queryable,
  definition: IndexDefinition,
  build: OwnBuild,
): Promise<Refusal | null> {
  const { logId } = await logHead(journal);
  if (build.logId !== logId) return stop('index.other-log', { built_from: build.logId, log: logId });
  const same =
    build.definition.schemaVersion === definition.schemaVersion &&
    build.definition.fingerprint === definition.fingerprint;
  if (same) return null;
  const details = { built_at: build.definition.schemaVersion, now: definition.schemaVersion };
  return { kind: 'refused', code: 'index.schema-changed', remedy: 'full-replay', details };
}
