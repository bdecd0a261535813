/** New builds that somebody asks for: from the beginning, or up to where the index stood at a retained checkpoint. */

import { type Refusal, refuseLog, stop } from '../domain/checkpoint-validation.ts';
import type { ArtifactReference, LogPosition } from '../domain/ids.ts';
import { buildOf, logStateAt, recordsOf } from '../journal/checkpoints.ts';
import { markOf, readCheckpoint } from './checkpoints.ts';
import type { Indexer } from './indexer.ts';
import { type Begun, newBuild } from './new-build.ts';
import type { ReplayDeps } from './replay.ts';

/**
 * Begins a build from the beginning of the log, in the place of one that is under way; readers keep the live one until
 * it has caught up. It is the way out of whatever else is refused.
 * @throws RetlError, JournalError
 */
export async function rebuild(
  deps: Pick<ReplayDeps, 'journal'>,
  indexer: Indexer,
  goal: LogPosition | null = null,
): Promise<Begun> {
  await indexer.prepare('anew');
  for (const { state, build } of await indexer.builds())
    if (state === 'building') await indexer.retire(build);
  return newBuild(deps, indexer, goal);
}

/**
 * Begins a build up to the position of a retained checkpoint; once there, it takes the live one's place and stays.
 * @throws RetlError, JournalError
 */
export async function rollback(
  deps: Pick<ReplayDeps, 'journal' | 'artifacts'>,
  indexer: Indexer,
  reference: ArtifactReference,
): Promise<Begun> {
  const { name } = indexer.definition;
  for (const record of await recordsOf(deps.journal, reference)) {
    const build = await buildOf(deps.journal, record.build);
    if (build === null || build.definition.name !== name) continue;
    const refusal = await unfit(deps, markOf(build, record));
    return refusal ?? rebuild(deps, indexer, record.position);
  }
  return stop('index.unknown-checkpoint', { index: name });
}

/** `null`: the checkpoint is what the journal says, and is of this log. */
async function unfit(
  { journal, artifacts }: Pick<ReplayDeps, 'journal' | 'artifacts'>,
  mark: ReturnType<typeof markOf>,
): Promise<Refusal | null> {
  const log = await logStateAt(journal, mark.position, null);
  const otherLog = refuseLog(mark, log);
  if (otherLog !== null) return otherLog;
  const read = await readCheckpoint(artifacts, mark);
  if (read.kind === 'refused') return read;
  if (read.recorded.decoded.kind === 'decoded') return null;
  return stop('index.checkpoint-damaged', { rule: read.recorded.decoded.fault.reason });
}
