/** All that an index holds, in order of identity hash and target, a page at a time, as it stood when the reading began. */

import { z } from 'zod';
import { ask, type done, type Engine, refusal, unavailable } from './ask.ts';
import { HELD } from './form.ts';

const PAGE = 5_000;
/** How long the engine keeps the place between two pages. */
const KEPT = '5m';

export interface ScrolledRow {
  readonly identityHash: string;
  readonly target: bigint;
  /** The document, for comparison with another. */
  readonly line: string;
}

const source = z.record(z.string(), z.unknown());

const page = z.object({
  _scroll_id: z.string(),
  timed_out: z.boolean(),
  _shards: z.object({ failed: z.number() }),
  hits: z.object({ hits: z.array(z.object({ _source: source })) }),
});

export function isBefore(a: ScrolledRow, b: ScrolledRow): boolean {
  if (a.identityHash !== b.identityHash) return a.identityHash < b.identityHash;
  return a.target < b.target;
}

/** @throws RetlError */
export async function* scrollRows(engine: Engine, index: string): AsyncGenerator<ScrolledRow, void, void> {
  const body = { query: HELD, sort: [{ identity_hash: 'asc' }, { target_id: 'asc' }], size: PAGE };
  const first = {
    method: 'POST',
    path: `/${index}/_search`,
    query: { scroll: KEPT },
    body: JSON.stringify(body),
  } as const;
  let read = await pageOf(engine, first);
  try {
    while (read.hits.hits.length > 0) {
      for (const { _source: document } of read.hits.hits) yield rowOf(document);
      // What was read once cannot be asked for again: a page whose answer is lost ends the reading.
      const next = JSON.stringify({ scroll: KEPT, scroll_id: read._scroll_id });
      read = await pageOf(onceOnly(engine), { method: 'POST', path: '/_search/scroll', body: next });
    }
  } finally {
    const given = JSON.stringify({ scroll_id: read._scroll_id });
    await ask(onceOnly(engine), { method: 'DELETE', path: '/_search/scroll', body: given }).catch(
      () => undefined,
    );
  }
}

function onceOnly({ client, patience }: Engine): Engine {
  return { client, patience: { ...patience, tries: 1 } };
}

async function pageOf(engine: Engine, request: Parameters<typeof done>[1]): Promise<z.infer<typeof page>> {
  const answer = await ask(engine, request);
  const read = page.safeParse(answer.body);
  if (answer.status !== 200 || !read.success) throw refusal(engine, answer.status, answer.body);
  // A part of the rows would be taken for all.
  if (read.data.timed_out || read.data._shards.failed > 0)
    throw unavailable(engine.client.system, 'shards-failed');
  return read.data;
}

/** A document that was changed by hand may hold anything, and is compared all the same. */
function rowOf(document: z.infer<typeof source>): ScrolledRow {
  const { identity_hash: hash, target_id: target } = document;
  return {
    identityHash: String(hash),
    target: /^\d{1,19}$/.test(String(target)) ? BigInt(String(target)) : 0n,
    line: JSON.stringify(Object.entries(document).sort(([a], [b]) => (a < b ? -1 : 1))),
  };
}
