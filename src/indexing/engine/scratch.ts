/**
 * A second build of an index that nobody sees, and its comparison with the live one: both are read side by side in one order, a
 * page of each at a time, as they stood when the reading began.
 */

import type { LogPosition } from '../../domain/ids.ts';
import type { Comparison, Scratch } from '../indexer.ts';
import { take } from './apply.ts';
import type { Engine } from './ask.ts';
import { type KeptBuild, readBuild, writeAlias } from './build-state.ts';
import { createIndex, deleteIndex, type Place, readDirectory, refresh } from './directory.ts';
import { createBody, type EngineForm } from './form.ts';
import { isBefore, type ScrolledRow, scrollRows } from './scroll.ts';

/** Before a build whose builder is in the middle of a page is looked at again. */
const BUSY_MS = 250;

/** @throws RetlError */
export async function openScratch(
  engine: Engine,
  place: Place,
  form: EngineForm,
  live: KeptBuild,
  engineIndex: string,
): Promise<Scratch> {
  const meta = { index: place.name, build: live.build, logId: live.logId, scratch: true };
  const shape = { shards: 1, replicas: 0 };
  await createIndex(engine, engineIndex, createBody(form, shape, meta, writeAlias(engineIndex)));
  return {
    async apply(batch) {
      await take(engine, engineIndex, batch);
    },
    compare: (position) => compareAt(engine, place, live, engineIndex, position),
    // A sweep does it otherwise.
    close: () => deleteIndex(engine, engineIndex).catch(() => undefined),
  };
}

async function compareAt(
  engine: Engine,
  place: Place,
  live: KeptBuild,
  scratch: string,
  position: LogPosition,
): Promise<Comparison> {
  const before = await standing(engine, place, live);
  if (before === null) return { kind: 'replaced' };
  if (before.mark?.position !== position || before.ahead !== null) return moved(before, position);
  for (const index of [live.engineIndex, scratch]) await refresh(engine, index);
  const rows = scrollRows(engine, live.engineIndex);
  const first = rows.next();
  // What the engine reads from now on is as it was then; if nobody has begun to write since, it is as of the position.
  await first;
  const after = await standing(engine, place, live);
  if (after?.revision.seqNo !== before.revision.seqNo) {
    await rows.return();
    return after === null ? { kind: 'replaced' } : moved(after, position);
  }
  const found = await compared(first, rows, scrollRows(engine, scratch));
  return { ...found, oneByOne: found.rows, boundary: null, counted: before.rows, mark: before.mark };
}

async function standing(engine: Engine, place: Place, live: KeptBuild): Promise<KeptBuild | null> {
  const directory = await readDirectory(engine, place);
  return directory.live === live.engineIndex ? readBuild(engine, live.engineIndex, 'live') : null;
}

async function moved({ mark }: KeptBuild, position: LogPosition): Promise<Comparison> {
  await new Promise((wake) => setTimeout(wake, BUSY_MS));
  return { kind: 'moved', position: mark?.position ?? position };
}

type Rows = AsyncGenerator<ScrolledRow, void, void>;

async function compared(
  firstOfLive: ReturnType<Rows['next']>,
  live: Rows,
  log: Rows,
): Promise<Pick<Extract<Comparison, { kind: 'compared' }>, 'kind' | 'rows' | 'missing' | 'unexpected'>> {
  let [rows, missing, unexpected] = [0n, 0n, 0n];
  try {
    let [a, b] = [await firstOfLive, await log.next()];
    while (!a.done || !b.done) {
      const [mine, theirs] = [a.value ?? null, b.value ?? null];
      const isMine = mine !== null && (theirs === null || !isBefore(theirs, mine));
      const isTheirs = theirs !== null && (mine === null || !isBefore(mine, theirs));
      const isSame = isMine && isTheirs && mine.line === theirs.line;
      if (isMine) rows += 1n;
      if (isTheirs && !isSame) missing += 1n;
      if (isMine && !isSame) unexpected += 1n;
      if (isMine) a = await live.next();
      if (isTheirs) b = await log.next();
    }
  } finally {
    await Promise.all([live.return(), log.return()]);
  }
  return { kind: 'compared', rows, missing, unexpected };
}
