/**
 * Whether a build may go on from where it stands (design.md section 7): asked by whoever replays, and by a check, which changes
 * nothing.
 */

import {
  type CheckpointMark,
  type IndexDefinition,
  type Refusal,
  refuseMark,
  refuseVersion,
  stop,
} from '../domain/checkpoint-validation.ts';
import type { ArtifactStore } from '../journal/artifact-store.ts';
import { buildOf, type CheckpointRecord, logStateAt, newestCheckpoint } from '../journal/checkpoints.ts';
import { logHead } from '../journal/log.ts';
import { latestSnapshot } from '../journal/log-snapshot.ts';
import type { Queryable } from '../journal/pool.ts';
import { checkResume } from './checkpoints.ts';
import type { Indexer, OwnBuild } from './indexer.ts';

interface ResumeDeps {
  readonly journal: Queryable;
  /** `null`: of the checkpoint only what stands beside it is asked, by whoever looks every few seconds. */
  readonly artifacts: ArtifactStore | null;
}

/**
 * Both of what is asked below. `null`: it may.
 * @throws JournalError; RetlError as the index and the store of artifacts do
 */
export async function refuseBuild(
  deps: ResumeDeps,
  indexer: Indexer,
  build: OwnBuild,
): Promise<Refusal | null> {
  return (
    (await refuseResume(deps, indexer.definition, build)) ??
    (await refuseRegistered(deps.journal, indexer, build))
  );
}

/** `null`: it may. @throws JournalError; RetlError as the store of artifacts does */
async function refuseResume(
  deps: ResumeDeps,
  definition: IndexDefinition,
  build: OwnBuild,
): Promise<Refusal | null> {
  const { mark } = build;
  if (mark === null) return refuseLoad(deps.journal, definition, build);
  return (await refuseCheckpoint(deps, definition, build, mark)) ?? rowsOfOtherLog(deps.journal, build);
}

async function refuseCheckpoint(
  { journal, artifacts }: ResumeDeps,
  definition: IndexDefinition,
  build: OwnBuild,
  mark: CheckpointMark,
): Promise<Refusal | null> {
  if (artifacts === null) {
    const log = await logStateAt(journal, mark.position, mark.snapshot?.id ?? null);
    return refuseMark(mark, build.definition.schemaVersion, log, definition);
  }
  const validation = await checkResume(journal, artifacts, mark, definition);
  return validation.kind === 'refused' ? validation : null;
}

/**
 * Rows past the checkpoint, of a builder that died, are written over only by the entries that they came from. `null`: there are
 * none, or the log has those entries.
 * @throws JournalError
 */
export async function rowsOfOtherLog(
  journal: Queryable,
  { ahead }: Pick<OwnBuild, 'ahead'>,
): Promise<Refusal | null> {
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
  const built = build.definition;
  const otherVersion = refuseVersion(built.schemaVersion, definition.schemaVersion);
  if (otherVersion !== null) return otherVersion;
  if (built.fingerprint !== definition.fingerprint) {
    const details = { built_at: built.schemaVersion, now: definition.schemaVersion };
    return { kind: 'refused', code: 'index.schema-changed', remedy: 'full-replay', details };
  }
  return refuseSnapshot(journal, build);
}

/** Of a log snapshot that a newer one has replaced, the rest may be gone, and what follows it is. */
async function refuseSnapshot(journal: Queryable, { snapshot }: OwnBuild): Promise<Refusal | null> {
  if (snapshot === null) return null;
  const newest = await latestSnapshot(journal);
  if (newest?.id === snapshot.id) return null;
  const details = { boundary: `${snapshot.boundary}`, earliest: `${(newest?.boundary ?? 0n) + 1n}` };
  return { kind: 'refused', code: 'index.past-compaction', remedy: 'full-replay', details };
}

/** A build that goes on meanwhile is looked at so often. */
const LOOKS = 20;

/**
 * Whether the journal's registry and an index tell of the same newest checkpoint of a build. An index may be one ahead, where
 * its builder died in between, and never behind: it was restored to before, then, and a page that it wrote would give its
 * chain of checkpoints a second end. A person must look: which of the two was restored, and why, nobody else knows, and
 * readers have the index as it is until then. Changes nothing.
 * @throws JournalError; RetlError as the index does
 */
async function refuseRegistered(
  journal: Queryable,
  indexer: Indexer,
  { build, state }: OwnBuild,
): Promise<Refusal | null> {
  if ((await buildOf(journal, build)) === null) return stop('index.other-log', { rule: 'no-such-build' });
  let before: string | null | undefined;
  for (let looked = 0; looked < LOOKS; looked += 1) {
    // The registry first, since it hears last: what is newer there is newer than an index may be behind.
    const newest = await newestCheckpoint(journal, build);
    // A journal that was restored gives numbers again: the live build beside may have the same, of another time.
    const own = (await indexer.builds()).find((one) => one.build === build && one.state === state);
    if (own === undefined) return null;
    const reference = newest?.reference ?? null;
    if ((own.mark?.reference ?? null) === reference) return null;
    if (own.mark !== null && own.previous === reference) return null;
    const isBehind = newest !== null && (own.mark?.position ?? -1n) < newest.position;
    if (isBehind || before === reference) return mismatch(isBehind, own, newest);
    before = reference;
  }
  return null;
}

function mismatch(isBehind: boolean, own: OwnBuild, newest: CheckpointRecord | null): Refusal {
  return stop('index.registry-mismatch', {
    rule: isBehind ? 'index-behind' : 'not-registered',
    position: `${own.mark?.position ?? 'none'}`,
    newest: `${newest?.position ?? 'none'}`,
  });
}
