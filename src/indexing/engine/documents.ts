/**
 * Single documents that say how an index stands: read by id, and changed only by whoever has seen them last. Each write carries
 * a stamp of its own, so that a write whose answer was lost is known again instead of being taken for somebody else's.
 */

import { randomUUID } from 'node:crypto';
import { z } from 'zod';
import { type Answer, ask, type Engine, isOver, judge, pause, refusal } from './ask.ts';

/** Where a document stands among the changes of its index. */
export interface Revision {
  readonly seqNo: number;
  readonly primaryTerm: number;
}

export interface Found {
  /** What is kept under `state`. */
  readonly state: unknown;
  readonly stamp: string;
  readonly revision: Revision;
}

export type Written = { readonly kind: 'written'; readonly revision: Revision } | { readonly kind: 'raced' };

const got = z.object({
  _seq_no: z.number(),
  _primary_term: z.number(),
  _source: z.object({ state: z.unknown(), stamp: z.string() }),
});

const put = z.object({ _seq_no: z.number(), _primary_term: z.number() });

/** A document as these are: nothing in it is searched. */
export const STATE_MAPPING = {
  stamp: { type: 'keyword', index: false, doc_values: false },
  state: { type: 'object', enabled: false },
} as const;

/** `null`: there is no such document, or no such index. @throws RetlError */
export async function readDocument(engine: Engine, index: string, id: string): Promise<Found | null> {
  const answer = await ask(engine, { method: 'GET', path: `/${index}/_doc/${id}` });
  if (answer.status === 404) return null;
  const read = got.safeParse(answer.body);
  if (answer.status !== 200 || !read.success) throw refusal(engine, answer.status, answer.body);
  const { _seq_no: seqNo, _primary_term: primaryTerm, _source: source } = read.data;
  return { state: source.state, stamp: source.stamp, revision: { seqNo, primaryTerm } };
}

/**
 * Writes a document where it still is as it was seen.
 * @param alias of the index: an index that is gone is not made by writing to it
 * @param seen `null`: there was none
 * @throws RetlError
 */
export async function compareAndSet(
  engine: Engine,
  alias: string,
  id: string,
  seen: Revision | null,
  state: unknown,
): Promise<Written> {
  const stamp = randomUUID();
  const condition =
    seen === null ? { op_type: 'create' } : { if_seq_no: seen.seqNo, if_primary_term: seen.primaryTerm };
  const request = {
    method: 'PUT',
    path: `/${alias}/_doc/${id}`,
    query: { ...condition, require_alias: true },
    body: JSON.stringify({ stamp, state }),
  } as const;
  const begun = performance.now();
  for (let tried = 1; ; tried += 1) {
    const judged = judge(engine, await engine.client.send(request));
    if (judged.kind === 'never') throw judged.error;
    if (judged.kind === 'answer' && judged.status !== 409)
      return { kind: 'written', revision: written(engine, judged) };
    // Refused, or its answer lost: what stands there says which.
    const now = await readDocument(engine, alias, id);
    if (now?.stamp === stamp) return { kind: 'written', revision: now.revision };
    if (judged.kind === 'answer' || !isSame(now?.revision ?? null, seen)) return { kind: 'raced' };
    if (isOver(engine.patience, tried, begun)) throw judged.error;
    await pause(engine.patience, tried);
  }
}

/**
 * Deletes a document where it still is as it was seen; one that is gone is as good. `false`: somebody else has changed it.
 * @throws RetlError
 */
export async function deleteSeen(
  engine: Engine,
  index: string,
  id: string,
  seen: Revision,
): Promise<boolean> {
  const query = { if_seq_no: seen.seqNo, if_primary_term: seen.primaryTerm };
  const { status, body } = await ask(engine, { method: 'DELETE', path: `/${index}/_doc/${id}`, query });
  if (status === 200 || status === 404) return true;
  // Sent again after a lost answer, it finds nothing to be as it was seen.
  if (status === 409) return (await readDocument(engine, index, id)) === null;
  throw refusal(engine, status, body);
}

function written(engine: Engine, { status, body }: Answer): Revision {
  const read = put.safeParse(body);
  if ((status !== 200 && status !== 201) || !read.success) throw refusal(engine, status, body);
  return { seqNo: read.data._seq_no, primaryTerm: read.data._primary_term };
}

function isSame(a: Revision | null, b: Revision | null): boolean {
  return a?.seqNo === b?.seqNo && a?.primaryTerm === b?.primaryTerm;
}
