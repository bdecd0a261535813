/** Since when members are held, asked by their ids: what was written a moment ago is found, refreshed or not. */

import { z } from 'zod';
import { ask, type Engine, errorType, refusal, unavailable } from './ask.ts';
import type { Since } from './rows.ts';

const PAGE = 5_000;

const reply = z.object({
  docs: z.array(
    z.object({
      _id: z.string(),
      _source: z
        .object({ since: z.string().optional(), since_at: z.string().optional(), gone: z.boolean() })
        .optional(),
      error: z.unknown().optional(),
    }),
  ),
});

/** Those that the index has, and has as held. @throws RetlError */
export async function sinceOf(
  engine: Engine,
  index: string,
  ids: readonly string[],
): Promise<ReadonlyMap<string, Since>> {
  const found = new Map<string, Since>();
  for (let from = 0; from < ids.length; from += PAGE) {
    const page = ids.slice(from, from + PAGE);
    for (const { _id: id, _source: source, error } of await docsOf(engine, index, page)) {
      // A shard that cannot be asked is no reason to say that a member was not held.
      if (error !== undefined) throw unavailable(engine.client.system, errorType({ error }) ?? 'item-failed');
      if (source?.gone === false && source.since !== undefined && source.since_at !== undefined)
        found.set(id, { position: source.since, at: source.since_at });
    }
  }
  return found;
}

async function docsOf(engine: Engine, index: string, ids: readonly string[]) {
  const query = { _source_includes: 'since,since_at,gone' };
  const body = JSON.stringify({ ids });
  const answer = await ask(engine, { method: 'POST', path: `/${index}/_mget`, query, body });
  const read = reply.safeParse(answer.body);
  if (answer.status !== 200 || !read.success) throw refusal(engine, answer.status, answer.body);
  if (read.data.docs.length !== ids.length) throw unavailable(engine.client.system, 'items-lost');
  return read.data.docs;
}
