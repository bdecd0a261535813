/**
 * Documents written in bulk, each with the log's position as its external version (design.md section 7): what stands there at the
 * same or a later position stays, and is success. A part of them that is refused for the moment is sent again, alone; one that
 * is refused for good fails the whole, so that no checkpoint passes it. Nothing of the engine's sentences is kept: they quote
 * values.
 */

import { z } from 'zod';
import { RetlError } from '../../domain/errors.ts';
import { ask, type Engine, errorType, isBusy, isOver, pause, refusal, unavailable } from './ask.ts';
import type { RowWrite } from './rows.ts';

/** A request of a managed engine may be limited to 10 MiB. */
const MAX_BYTES = 4 * 1024 * 1024;
const MAX_ROWS = 5_000;
/** While one request is worked on the next is on its way. */
const IN_FLIGHT = 2;

interface Line {
  readonly write: RowWrite;
  /** Action and document. */
  readonly text: string;
}

const reply = z.object({ errors: z.boolean(), items: z.array(z.unknown()) });

const outcomes = z.array(
  z.object({ index: z.object({ status: z.number(), error: z.object({ type: z.string() }).optional() }) }),
);

type Outcome = z.infer<typeof outcomes>[number]['index'];

/**
 * @param alias of the index to write to
 * @param writes of different documents
 * @throws RetlError `index.unavailable`; `index.misconfigured` where the engine takes a document never
 */
export async function writeRows(engine: Engine, alias: string, writes: readonly RowWrite[]): Promise<void> {
  const chunks = chunksOf(writes);
  const worker = async (): Promise<void> => {
    try {
      for (let next = chunks.next(); !next.done; next = chunks.next())
        await writeChunk(engine, alias, next.value);
    } finally {
      chunks.return();
    }
  };
  // Where one fails the other ends with its request: nothing is on its way when the caller hears of it.
  const ended = await Promise.allSettled(Array.from({ length: IN_FLIGHT }, worker));
  for (const one of ended) if (one.status === 'rejected') throw one.reason;
}

function* chunksOf(writes: readonly RowWrite[]): Generator<readonly Line[], void, void> {
  let chunk: Line[] = [];
  let bytes = 0;
  for (const write of writes) {
    const text = `{"index":{"_id":"${write.id}","version":${write.version},"version_type":"external"}}\n${write.document}\n`;
    const size = Buffer.byteLength(text);
    if (chunk.length > 0 && (bytes + size > MAX_BYTES || chunk.length === MAX_ROWS)) {
      yield chunk;
      [chunk, bytes] = [[], 0];
    }
    chunk.push({ write, text });
    bytes += size;
  }
  if (chunk.length > 0) yield chunk;
}

async function writeChunk(engine: Engine, alias: string, lines: readonly Line[]): Promise<void> {
  const begun = performance.now();
  let left = lines;
  for (let tried = 1; left.length > 0; tried += 1) {
    const sent = await send(engine, alias, left);
    if (sent.kind === 'too-large') return halves(engine, alias, left);
    if (sent.later.length > 0) {
      if (isOver(engine.patience, tried, begun)) throw unavailable(engine.client.system, sent.code);
      await pause(engine.patience, tried);
    }
    left = sent.later;
  }
}

async function halves(engine: Engine, alias: string, lines: readonly Line[]): Promise<void> {
  if (lines.length === 1) throw refused(engine, lines, 'http-413');
  const middle = Math.ceil(lines.length / 2);
  await writeChunk(engine, alias, lines.slice(0, middle));
  await writeChunk(engine, alias, lines.slice(middle));
}

type Sent =
  /** `later`: those that the engine could not take in for the moment. */
  | { readonly kind: 'sent'; readonly later: readonly Line[]; readonly code: string }
  | { readonly kind: 'too-large' };

const QUERY = {
  require_alias: true,
  filter_path: 'errors,items.*.status,items.*.error.type,error.type',
} as const;

async function send(engine: Engine, alias: string, lines: readonly Line[]): Promise<Sent> {
  const text = lines.map((line) => line.text).join('');
  const answer = await ask(engine, { method: 'POST', path: `/${alias}/_bulk`, query: QUERY, lines: text });
  if (answer.status === 413) return { kind: 'too-large' };
  const read = reply.safeParse(answer.body);
  if (answer.status !== 200 || !read.success) throw refusal(engine, answer.status, answer.body);
  // An answer that lacks items, or has more, says nothing of any.
  if (read.data.items.length !== lines.length) throw unavailable(engine.client.system, 'items-lost');
  if (!read.data.errors) return { kind: 'sent', later: [], code: '' };
  const found = outcomes.safeParse(read.data.items);
  if (!found.success) throw unavailable(engine.client.system, 'items-lost');
  return sorted(engine, lines, found.data);
}

type Judged = 'done' | 'later' | 'gone' | 'never';

function judged({ status, error }: Outcome): Judged {
  // A conflict is success: the same write stands there already, or a newer one.
  if (status < 300 || status === 409) return 'done';
  if (isBusy(status, error?.type ?? null)) return 'later';
  return status === 404 ? 'gone' : 'never';
}

function sorted(
  engine: Engine,
  lines: readonly Line[],
  items: z.infer<typeof outcomes>,
): Extract<Sent, { kind: 'sent' }> {
  const sorts: { readonly [sort in Judged]: Line[] } = { done: [], later: [], gone: [], never: [] };
  const codes: { [sort in Judged]?: string } = {};
  for (const [n, { index }] of items.entries()) {
    const line = lines[n];
    if (line === undefined) continue;
    const sort = judged(index);
    sorts[sort].push(line);
    codes[sort] ??= errorType({ error: index.error }) ?? `http-${index.status}`;
  }
  if (sorts.never.length > 0) throw refused(engine, sorts.never, codes.never ?? '');
  // The build has been deleted by hand: the next call finds that out, and begins anew.
  if (sorts.gone.length > 0) throw unavailable(engine.client.system, codes.gone ?? '');
  return { kind: 'sent', later: sorts.later, code: codes.later ?? '' };
}

/** Which rows of the log, and how many; their values stay out. */
function refused({ client }: Engine, lines: readonly Line[], code: string): RetlError {
  const [first] = lines.map(({ write }) => write.version).sort((a, b) => (a < b ? -1 : 1));
  return new RetlError('index.misconfigured', {
    system: client.system,
    rule: 'rows-refused',
    code,
    rows: lines.length,
    position: `${first}`,
  });
}
