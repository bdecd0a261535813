/** Beginning a build: with the newest log snapshot, or with the log's first entry where there is none (design.md section 7). */

import { type Refusal, type SnapshotMark, stop } from '../domain/checkpoint-validation.ts';
import { type LogPosition, logPosition } from '../domain/ids.ts';
import { beginBuild } from '../journal/checkpoints.ts';
import { holdCompaction, releaseCompaction } from '../journal/compaction.ts';
import { logHead } from '../journal/log.ts';
import { latestSnapshot } from '../journal/log-snapshot.ts';
import type { Queryable } from '../journal/pool.ts';
import type { Indexer, OwnBuild } from './indexer.ts';

export type Begun = { readonly kind: 'chosen'; readonly build: OwnBuild } | Refusal;

/** A compaction may be completed between two steps; another one takes far longer than to try again. */
const TRIES = 3;

/**
 * Begins a build beside the live one.
 * @param goal the position of a rollback; `null`: it follows the log
 * @throws RetlError, JournalError
 */
export async function newBuild(
  { journal }: { readonly journal: Queryable },
  indexer: Indexer,
  goal: LogPosition | null,
): Promise<Begun> {
  for (let tried = 0; tried < TRIES; tried += 1) {
    const begun = await tryBegin(journal, indexer, goal);
    if (begun !== null) return begun;
  }
  return stop('index.past-compaction', { rule: 'compacted-meanwhile' });
}

/** `null`: the log was compacted meanwhile. */
async function tryBegin(
  journal: Queryable,
  indexer: Indexer,
  goal: LogPosition | null,
): Promise<Begun | null> {
  const { definition, holdsLog } = indexer;
  const { logId, earliest } = await logHead(journal);
  const snapshot = await beginning(journal);
  const from = snapshot?.boundary ?? logPosition(0);
  if (goal !== null && goal < from)
    return stop('index.past-compaction', { position: `${goal}`, earliest: `${earliest}` });
  if (holdsLog) {
    const held = await holdCompaction(journal, definition.name, from);
    if (held.kind === 'compacted') return null;
  } else await releaseCompaction(journal, definition.name);
  const begun = await beginBuild(journal, definition, logId, snapshot?.id ?? null);
  switch (begun.kind) {
    case 'begun':
      break;
    case 'definition-changed':
      return stop('index.definition-changed', {
        index: definition.name,
        schema_version: definition.schemaVersion,
      });
    case 'other-log':
      return stop('index.other-log', {});
    case 'no-such-snapshot':
    case 'compacted':
      return null;
  }
  const own = { build: begun.build, definition, logId, snapshot, goal };
  const { kind } = await indexer.begin(own);
  if (kind === 'raced') return stop('index.build-raced', { index: definition.name });
  const nothing = { loaded: null, mark: null, previous: null, ahead: null, rows: 0n };
  const build: OwnBuild = { ...own, state: 'building', ...nothing };
  return { kind: 'chosen', build };
}

/** Where a full replay begins now; `null`: with the first entry. @throws JournalError */
export async function beginning(journal: Queryable): Promise<SnapshotMark | null> {
  const found = await latestSnapshot(journal);
  if (found === null || found.digest === null) return null;
  return { id: found.id, boundary: found.boundary, digest: found.digest };
}
