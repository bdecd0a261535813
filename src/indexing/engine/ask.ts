/**
 * Requests that may be sent again: the engine says the same, or does the same, however often. What is busy or away is waited for
 * within a budget; the engine's own words stay out of whatever is thrown.
 */

import { RetlError } from '../../domain/errors.ts';
import { type EngineClient, type EngineReply, type EngineRequest, field } from './client.ts';

export interface Answer {
  readonly status: number;
  readonly body: unknown;
}

export interface Patience {
  /** How often a request is sent in all. */
  readonly tries: number;
  /** Milliseconds before the second; each wait is twice the one before, up to `longestMs`. */
  readonly firstMs: number;
  readonly longestMs: number;
  /** Milliseconds after the first was sent in which another one may be: where none is answered, each costs its timeout. */
  readonly budgetMs: number;
}

/** Some ten seconds: whoever gives up is called again by its workflow. */
export const PATIENCE: Patience = { tries: 8, firstMs: 100, longestMs: 4_000, budgetMs: 12_000 };

/** Of whoever has somebody waiting, and another place to look in. */
export const READER_PATIENCE: Patience = { tries: 2, firstMs: 200, longestMs: 200, budgetMs: 2_000 };

export interface Engine {
  readonly client: EngineClient;
  readonly patience: Patience;
}

const BUSY: readonly number[] = [408, 429, 500, 502, 503, 504];

/**
 * Sends a request until it has an answer that is not about the engine's own state: one of 200 and above, 400, 404, 409, 412, 413.
 * @throws RetlError `index.unavailable`, `index.misconfigured`
 */
export async function ask(engine: Engine, request: EngineRequest): Promise<Answer> {
  const begun = performance.now();
  for (let tried = 1; ; tried += 1) {
    const reply = await engine.client.send(request);
    const judged = judge(engine, reply);
    if (judged.kind === 'answer') return judged;
    if (judged.kind === 'never' || isOver(engine.patience, tried, begun)) throw judged.error;
    await pause(engine.patience, tried);
  }
}

/** @throws RetlError as {@link ask}, and where the answer has another status than 200 and 201 */
export async function done(engine: Engine, request: EngineRequest): Promise<unknown> {
  const { status, body } = await ask(engine, request);
  if (status === 200 || status === 201) return body;
  throw refusal(engine, status, body);
}

type Judged =
  | ({ readonly kind: 'answer' } & Answer)
  | { readonly kind: 'later' | 'never'; readonly error: RetlError };

export function judge(engine: Engine, reply: EngineReply): Judged {
  const { system } = engine.client;
  if (reply.kind === 'refused') return { kind: 'never', error: misconfigured(system, reply.code) };
  if (reply.kind === 'no-answer') return { kind: 'later', error: unavailable(system, reply.code) };
  const { status, body } = reply;
  if (isBusy(status, errorType(body)))
    return { kind: 'later', error: unavailable(system, errorType(body) ?? `http-${status}`) };
  if (status === 401 || status === 403)
    return { kind: 'never', error: misconfigured(system, `http-${status}`) };
  // It speaks another language than the client, as a server of another product or generation does.
  if (status === 406) return { kind: 'never', error: misconfigured(system, 'other-product') };
  return { kind: 'answer', status, body };
}

/** A full disk or a recovering cluster blocks writes for a while, under whatever status. */
export function isBusy(status: number, type: string | null): boolean {
  return BUSY.includes(status) || type === 'cluster_block_exception';
}

/**
 * Whether no other try may follow.
 * @param begun when the first was, by the monotonic clock
 */
export function isOver({ tries, budgetMs }: Patience, tried: number, begun: number): boolean {
  return tried >= tries || performance.now() - begun >= budgetMs;
}

/** The wait before another try, with a spread so that builders do not come together again. */
export async function pause({ firstMs, longestMs }: Patience, tried: number): Promise<void> {
  const ms = Math.min(longestMs, firstMs * 2 ** (tried - 1));
  await new Promise((wake) => setTimeout(wake, ms * (0.75 + Math.random() / 2)));
}

/** The engine's name for what is wrong, such as `mapper_parsing_exception`; its sentences may hold values. */
export function errorType(body: unknown): string | null {
  const type = field(field(body, 'error'), 'type');
  return typeof type === 'string' && /^[a-z][a-z0-9_]{2,80}$/.test(type) ? type : null;
}

/** The engine's name for an index that is not there. */
export const INDEX_GONE = 'index_not_found_exception';

/** Whether it was thrown because an index is not there. */
export function isIndexGone(error: unknown): boolean {
  return error instanceof RetlError && error.details.code === INDEX_GONE;
}

/** An answer that nobody foresaw. A thing that is gone may be there again, or be begun anew, at the next call. */
export function refusal({ client }: Engine, status: number, body: unknown): RetlError {
  const code = errorType(body) ?? `http-${status}`;
  return status === 404 ? unavailable(client.system, code) : misconfigured(client.system, code);
}

export function unavailable(system: string, code: string): RetlError {
  return new RetlError('index.unavailable', { system, code });
}

export function misconfigured(system: string, code: string): RetlError {
  return new RetlError('index.misconfigured', { system, code });
}
