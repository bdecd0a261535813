/**
 * Which builds of an index there are: one document for each index, in an index of its own beside them. The alias that readers
 * ask follows what it says, so that an alias that was changed by hand is found, and mended.
 */

import { z } from 'zod';
import { RetlError } from '../../domain/errors.ts';
import { ask, done, type Engine, errorType, refusal } from './ask.ts';
import { compareAndSet, deleteSeen, type Revision, readDocument, STATE_MAPPING } from './documents.ts';

export interface Directory {
  /** The engine's index that readers see; `null`: none yet. */
  readonly live: string | null;
  /** The one that takes its place when it has caught up. */
  readonly building: string | null;
  /** `null`: nothing was written of this index yet. */
  readonly revision: Revision | null;
}

/** Where indexes stand in an engine. Names of indexes have no `_`: none of theirs is taken. */
export interface Place {
  readonly prefix: string;
  readonly replicas: number;
  /** Of the index. */
  readonly name: string;
}

/** By which readers ask for it. */
export const aliasOf = ({ prefix, name }: Place): string => `${prefix}${name}`;

const state = z.object({ live: z.string().nullable(), building: z.string().nullable() });

/** By which the directory is asked and written. */
export const directoryAlias = ({ prefix }: Place): string => `${prefix}retl_indexes`;

/** @throws RetlError */
export async function readDirectory(engine: Engine, place: Place): Promise<Directory> {
  const found = await readDocument(engine, directoryAlias(place), place.name);
  if (found === null) return { live: null, building: null, revision: null };
  const read = state.safeParse(found.state);
  if (!read.success)
    throw new RetlError('index.misconfigured', { system: engine.client.system, rule: 'directory' });
  return { ...read.data, revision: found.revision };
}

/** `null`: somebody else has changed it. @throws RetlError */
export async function writeDirectory(
  engine: Engine,
  place: Place,
  next: Directory,
): Promise<Directory | null> {
  const { live, building, revision } = next;
  const written = await compareAndSet(engine, directoryAlias(place), place.name, revision, {
    live,
    building,
  });
  return written.kind === 'raced' ? null : { ...next, revision: written.revision };
}

/** Takes its word of an index away; `false`: somebody else has changed it. @throws RetlError */
export async function deleteWord(engine: Engine, place: Place, { revision }: Directory): Promise<boolean> {
  return revision === null || deleteSeen(engine, directoryAlias(place), place.name, revision);
}

/** Makes the index of the directory where there is none, and gives it back the name that was taken from it. @throws RetlError */
export async function prepareDirectory(engine: Engine, place: Place): Promise<void> {
  const alias = directoryAlias(place);
  const { status } = await ask(engine, { method: 'GET', path: `/_alias/${alias}` });
  if (status === 200) return;
  const index = `${alias}_1`;
  const body = JSON.stringify({
    settings: { index: { number_of_shards: 1, number_of_replicas: place.replicas, hidden: true } },
    mappings: { dynamic: 'strict', properties: STATE_MAPPING },
    aliases: { [alias]: {} },
  });
  await createIndex(engine, index, body);
  await addAlias(engine, index, alias);
}

/** One that it has already is as good. @throws RetlError */
export async function addAlias(engine: Engine, index: string, alias: string): Promise<void> {
  const body = JSON.stringify({ actions: [{ add: { index, alias } }] });
  await done(engine, { method: 'POST', path: '/_aliases', body });
}

/** One that is there already is as good. @throws RetlError */
export async function createIndex(engine: Engine, name: string, body: string): Promise<void> {
  const answer = await ask(engine, { method: 'PUT', path: `/${name}`, body });
  if (answer.status === 200 || errorType(answer.body) === 'resource_already_exists_exception') return;
  throw refusal(engine, answer.status, answer.body);
}

/** One that is gone already is as good. @throws RetlError */
export async function deleteIndex(engine: Engine, name: string): Promise<void> {
  const answer = await ask(engine, {
    method: 'DELETE',
    path: `/${name}`,
    query: { ignore_unavailable: true },
  });
  if (answer.status !== 200 && answer.status !== 404) throw refusal(engine, answer.status, answer.body);
}

/** Whatever was written before is found by a search from now on. @throws RetlError */
export async function refresh(engine: Engine, index: string): Promise<void> {
  await done(engine, { method: 'POST', path: `/${index}/_refresh` });
}
