/**
 * Takes an index away that nobody follows any more (design.md section 7): its word in the directory, so that its builders are
 * refused; then its builds and comparisons, with which the alias goes; then the word itself. Whoever dies in between leaves
 * what the next call finds. What another journal or another index has there stays.
 */

import { RetlError } from '../../domain/errors.ts';
import type { EngineName, Options } from '../../domain/settings.ts';
import type { Forgotten } from '../indexer.ts';
import { type Engine, PATIENCE, type Patience } from './ask.ts';
import { openEngine } from './client.ts';
import {
  type Directory,
  deleteIndex,
  deleteWord,
  type Place,
  readDirectory,
  writeDirectory,
} from './directory.ts';
import { type MadeIndex, madeIndexes } from './made-here.ts';
import { engineOptions } from './options.ts';

export interface EngineRemains {
  readonly name: string;
  readonly system: EngineName;
  /** As in retl.yaml, references resolved. */
  readonly options: Options;
  /** Of this journal. */
  readonly logId: string;
  readonly patience?: Patience;
}

/** How often it is begun again where a builder comes in between. */
const TRIES = 5;

/** @throws RetlError; `index.build-raced` where builders do not cease to begin new builds */
export async function forgetInEngine(remains: EngineRemains): Promise<Forgotten> {
  const { name, system, options, logId, patience = PATIENCE } = remains;
  const { prefix, replicas, ...access } = engineOptions(system, options);
  const engine = { client: await openEngine(system, { ...access, prefix, replicas }), patience };
  const place = { prefix, replicas, name };
  try {
    let builds = 0;
    for (let tried = 0; tried < TRIES; tried += 1) {
      const round = await forgetOnce(engine, place, logId);
      builds += round.builds;
      if (!round.raced) return { builds, foreign: round.foreign };
    }
    throw new RetlError('index.build-raced', { index: name });
  } finally {
    await engine.client.close();
  }
}

async function forgetOnce(
  engine: Engine,
  place: Place,
  logId: string,
): Promise<Forgotten & { readonly raced: boolean }> {
  const foreign = (await madeIndexes(engine, place)).filter((made) => made.logId !== logId);
  const said = await readDirectory(engine, place);
  const word = await disown(engine, place, said, foreign);
  if (word === null) return { builds: 0, foreign: 0, raced: true };
  // Only now, so that one is among them that was made before the directory had changed.
  const own = (await madeIndexes(engine, place)).filter((made) => made.logId === logId);
  for (const { name } of own) await deleteIndex(engine, name);
  const isOthers = word.live !== null || word.building !== null;
  const raced = !isOthers && !(await deleteWord(engine, place, word));
  const builds = (made: readonly MadeIndex[]) => made.filter(({ scratch }) => !scratch).length;
  return { builds: builds(own), foreign: builds(foreign), raced };
}

/** Has the directory speak of others' builds alone. `null`: somebody else has changed it. */
async function disown(
  engine: Engine,
  place: Place,
  said: Directory,
  foreign: readonly MadeIndex[],
): Promise<Directory | null> {
  const kept = (index: string | null) => (foreign.some(({ name }) => name === index) ? index : null);
  const next = { ...said, live: kept(said.live), building: kept(said.building) };
  const isSame = next.live === said.live && next.building === said.building;
  return isSame ? said : writeDirectory(engine, place, next);
}
