/**
 * What stands in an engine under an index's name: builds and comparisons, each known by what it says of itself. A name alone
 * says nothing: it may be somebody else's, or the beginning of another index's.
 */

import { z } from 'zod';
import { done, type Engine, refusal } from './ask.ts';
import { aliasOf, type Place } from './directory.ts';

/** An index of the engine that was made for an index of ours. */
export interface MadeIndex {
  readonly name: string;
  /** Of the log that it was built from. */
  readonly logId: string;
  /** Whether it was made for a comparison, and is seen by nobody. */
  readonly scratch: boolean;
  /** By the engine's own clock, in milliseconds since 1970. */
  readonly createdAt: number;
}

const meta = z.object({ retl: z.object({ index: z.string(), log_id: z.string(), scratch: z.boolean() }) });

const answer = z.record(
  z.string(),
  z.object({
    mappings: z.object({ _meta: z.unknown() }).partial().optional(),
    settings: z.object({ index: z.object({ creation_date: z.string() }) }),
  }),
);

/** Closed ones as well. @throws RetlError */
export async function madeIndexes(engine: Engine, place: Place): Promise<readonly MadeIndex[]> {
  const path = `/${aliasOf(place)}-v*-b*`;
  const body = await done(engine, { method: 'GET', path, query: { expand_wildcards: 'all' } });
  const found = answer.safeParse(body);
  if (!found.success) throw refusal(engine, 200, body);
  return Object.entries(found.data).flatMap(([name, { mappings, settings }]) => {
    const said = saidBy(mappings?._meta, place);
    return said === null ? [] : [{ name, ...said, createdAt: Number(settings.index.creation_date) }];
  });
}

/** @param found what an index says of itself. `null`: it is none of ours */
export function saidBy(found: unknown, place: Place): Pick<MadeIndex, 'logId' | 'scratch'> | null {
  const read = meta.safeParse(found);
  if (!read.success || read.data.retl.index !== place.name) return null;
  const { log_id: logId, scratch } = read.data.retl;
  return { logId, scratch };
}
