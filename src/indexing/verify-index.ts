/**
 * Holds an index to the log: whether what it says of itself is so, and what replaying the log gives now, row by row, beside what
 * stands in the live build (design.md section 7). Identities are held against their hashes: an altered one is in both.
 */

import { type Refusal, stop } from '../domain/checkpoint-validation.ts';
import { type LogPosition, logPosition } from '../domain/ids.ts';
import { readCheckpoint } from './checkpoints.ts';
import type { Astray, Comparison, Indexer, OwnBuild, Scratch } from './indexer.ts';
import { LogSource } from './log-source.ts';
import { beginning } from './new-build.ts';
import type { ReplayDeps } from './replay.ts';
import { refuseBuild } from './resume.ts';

export type VerifiedIndex =
  | ({
      readonly position: LogPosition;
      /** How many rows the checkpoint of that position says there are. */
      readonly artifactCount: bigint | null;
      /** What keeps readers from the rows that were compared; `null`: nothing does. */
      readonly astray: Astray | null;
    } & Extract<Comparison, { readonly kind: 'compared' }>)
  | Refusal;

/** A live build that moves on while it is compared is followed so often. */
const TRIES = 20;

/** @throws RetlError, JournalError */
export async function verifyIndex(deps: ReplayDeps, indexer: Indexer): Promise<VerifiedIndex> {
  const { name } = indexer.definition;
  const live = (await indexer.builds()).find(({ state }) => state === 'live');
  if (live === undefined || live.mark === null) return stop('index.not-built', { index: name });
  const { position } = live.mark;
  const refused = await refuseBuild(deps, indexer, live);
  if (refused !== null) return refused;
  const snapshot = await beginning(deps.journal);
  if (snapshot !== null && position < snapshot.boundary)
    return stop('index.past-compaction', { position: `${position}`, earliest: `${snapshot.boundary + 1n}` });
  const scratch = await indexer.scratch(live, snapshot?.boundary ?? null);
  try {
    const found = await compared(deps, scratch, live, position, snapshot);
    if (found.kind === 'refused') return found;
    const read = await readCheckpoint(deps.artifacts, found.mark);
    if (read.kind === 'refused') return read;
    const { decoded } = read.recorded;
    if (decoded.kind === 'refused') return stop('index.checkpoint-damaged', { rule: decoded.fault.reason });
    const { artifactCount } = decoded.checkpoint;
    return { ...found, position: found.mark.position, artifactCount, astray: await indexer.astray() };
  } finally {
    await scratch.close();
  }
}

async function compared(
  deps: ReplayDeps,
  scratch: Scratch,
  { build }: OwnBuild,
  position: LogPosition,
  snapshot: Awaited<ReturnType<typeof beginning>>,
): Promise<Extract<Comparison, { readonly kind: 'compared' }> | Refusal> {
  const source = new LogSource(deps.journal, deps.effects, true);
  let gone = snapshot !== null && !(await loaded(source, scratch, snapshot.id));
  let at: LogPosition = snapshot?.boundary ?? logPosition(0);
  let goal = position;
  for (let tried = 0; tried < TRIES && !gone; tried += 1) {
    const reached = await replayed(source, scratch, at, goal);
    gone = reached === null;
    if (reached === null) continue;
    at = reached;
    const comparison = await scratch.compare(at);
    if (comparison.kind === 'compared') return comparison;
    if (comparison.kind === 'replaced') return stop('index.build-raced', { build: `${build}` });
    goal = comparison.position;
  }
  return gone
    ? stop('index.past-compaction', { rule: 'compacted-meanwhile' })
    : stop('index.build-raced', { build: `${build}` });
}

/** Whether the log snapshot could be read whole. */
async function loaded(source: LogSource, scratch: Scratch, id: bigint): Promise<boolean> {
  let page = await source.members(id, null);
  while (page.kind === 'members') {
    await scratch.apply(page);
    page = await source.members(id, page.next);
  }
  return page.kind === 'end';
}

/** How far it got; `null`: the log was compacted meanwhile. */
async function replayed(
  source: LogSource,
  scratch: Scratch,
  from: LogPosition,
  goal: LogPosition,
): Promise<LogPosition | null> {
  let at = from;
  let page = await source.entries(at, goal);
  while (page.kind === 'entries') {
    await scratch.apply(page);
    at = page.entries.at(-1)?.entry.position ?? goal;
    page = await source.entries(at, goal);
  }
  return page.kind === 'end' ? at : null;
}
