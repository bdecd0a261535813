/** The writer of an HTTP API: each call is one request, or one question about an earlier one. */

import type {
  Action,
  BatchOutcome,
  BatchRequest,
  EmptyCheck,
  FinishRequest,
  PollOutcome,
  PreflightProblem,
  Receipt,
  StepFound,
  StepOutcome,
  Writer,
  WriterContext,
} from '../port.ts';
import type { ApiClient, ApiRequest, ApiResult } from '../web-client.ts';
import { readContent } from '../web-reply.ts';
import { NO_CALL, SessionlessWriter } from '../web-sessionless.ts';
import { judge, type Question } from './answer.ts';
import { JobReader } from './jobs.ts';
import { at } from './json-pointer.ts';
import { lookUp } from './lookup.ts';
import { bodyShape, type HttpOptions } from './options.ts';
import { mayPass, preflightProblem } from './preflight.ts';
import { fillPath, placeholders } from './url.ts';

/** UTF-16 units kept of a token endpoint's words. */
const REASON_LIMIT = 500;

export class HttpWriter extends SessionlessWriter implements Writer {
  readonly #client: ApiClient;
  readonly #options: HttpOptions;
  readonly #context: WriterContext;
  /** `null`: such an API has no read for jobs. */
  readonly #jobs: JobReader | null;

  constructor(client: ApiClient, options: HttpOptions, context: WriterContext) {
    super();
    const { asynchronous } = options;
    this.#jobs =
      asynchronous === undefined ? null : new JobReader(client, options, asynchronous, () => context.now());
    this.#client = client;
    this.#options = options;
    this.#context = context;
  }

  async preflight(): Promise<readonly PreflightProblem[]> {
    const request = this.#emptyRead();
    if (request === null) {
      const code = await this.#client.probe();
      return code === null ? [] : [preflightProblem(code)];
    }
    const result = await this.#client.send(request);
    if (result.kind === 'reply' && result.status >= 200 && result.status < 300) return [];
    return [preflightProblem(codeOf(result))];
  }

  async checkEmpty(): Promise<EmptyCheck> {
    const request = this.#emptyRead();
    const read = this.#options.verify_empty;
    if (request === null || read === undefined) return { kind: 'cannot-look' };
    const result = await this.#client.send(request);
    if (result.kind !== 'reply' || result.status !== 200) return unanswered(result);
    const content = readContent(result);
    // A list that is too long to be read whole is not empty, whatever the rest of it says.
    if (content.kind === 'unreadable' && content.code === 'reply-too-large' && read.list !== undefined)
      return { kind: 'not-empty' };
    if (content.kind === 'unreadable') return { kind: 'failed', code: content.code };
    const found = content.kind === 'json' ? at(content.value, read.count ?? read.list ?? '') : undefined;
    const size = read.count === undefined ? (Array.isArray(found) ? found.length : undefined) : found;
    if (typeof size !== 'number' || !Number.isSafeInteger(size) || size < 0)
      return { kind: 'misconfigured', code: 'reply-not-understood' };
    return { kind: size === 0 ? 'empty' : 'not-empty' };
  }

  upsert(request: BatchRequest): Promise<BatchOutcome> {
    return this.#deliver('upsert', request);
  }

  remove(request: BatchRequest): Promise<BatchOutcome> {
    return this.#deliver('remove', request);
  }

  /** Where nothing is configured for jobs they stay staged, with their ids, until someone resolves them. */
  poll(request: BatchRequest, jobIds: readonly string[], receipt: Receipt): Promise<PollOutcome> {
    if (this.#jobs === null) return Promise.resolve({ kind: 'staged', jobIds, receipt });
    return this.#jobs.poll({ jobIds, receipt, operations: request.operations });
  }

  /**
   * Asks, where there is a `lookup`. Else sends the same bytes with the same key again, where the user has declared that
   * twice equals once. The answer is about that copy; whoever asked knows that a refusal of it says nothing about the first.
   */
  async reconcileBatch(request: BatchRequest, receipt: Receipt | null): Promise<BatchOutcome> {
    const jobIds = receipt === null ? [] : jobIdsOf(receipt);
    if (receipt !== null && jobIds.length > 0) return { kind: 'staged', jobIds, receipt };
    const { lookup, idempotent } = this.#options;
    if (lookup !== undefined)
      return lookUp(this.#client, lookup, request, this.#question(request.operations, undefined));
    if (!idempotent) return { kind: 'unknown', code: 'not-verifiable' };
    return this.#deliver(request.action, request);
  }

  async finish(request: FinishRequest): Promise<StepOutcome> {
    const { finish } = this.#options;
    if (finish === undefined) return NO_CALL;
    const body = finishBody(finish.body, request);
    const result = await this.#client.send({
      method: finish.method,
      path: finish.path,
      headers: { ...finish.headers, ...this.#keyHeader(request.idempotencyKey) },
      contentType: body === null ? null : 'application/json',
      body,
    });
    return asStep(this.#judge(result, null, finish.accepts));
  }

  async reconcileFinish(request: FinishRequest, receipt: Receipt | null): Promise<StepFound> {
    const { finish } = this.#options;
    if (finish === undefined) return NO_CALL;
    const jobIds = receipt === null ? [] : jobIdsOf(receipt);
    if (receipt !== null && jobIds.length > 0) return this.#pollFinish(jobIds, receipt);
    if (!finish.idempotent) return { kind: 'unknown', code: 'not-verifiable' };
    const outcome = await this.finish(request);
    // Only of an API that is idempotent altogether it is known to the caller that this was a second copy.
    return this.#options.idempotent ? outcome : (replayFailure(outcome) ?? outcome);
  }

  close(): Promise<void> {
    this.#client.close();
    return Promise.resolve();
  }

  async #pollFinish(jobIds: readonly string[], receipt: Receipt): Promise<StepFound> {
    if (this.#jobs === null) return { kind: 'pending', jobIds, receipt };
    const outcome = await this.#jobs.poll({ jobIds, receipt, operations: null });
    return outcome.kind === 'missing' ? outcome : asStep(outcome);
  }

  async #deliver(action: Action, request: BatchRequest): Promise<BatchOutcome> {
    const { method, path, headers, accepts } = this.#options[action];
    const shape = bodyShape(this.#options, action);
    const single = shape === 'single' || shape === 'none';
    if (single && request.operations.length !== 1) throw new Error('this form takes one operation a request');
    const filled = filledPath(path, request);
    if (filled === null) return { kind: 'refused', code: 'identity-not-addressable', reason: '' };
    const result = await this.#client.send({
      method,
      path: filled,
      headers: { ...headers, ...this.#keyHeader(request.idempotencyKey) },
      contentType: shape === 'none' ? null : shape === 'ndjson' ? 'application/x-ndjson' : 'application/json',
      body: shape === 'none' ? null : Buffer.from(request.body, 'utf8'),
    });
    return this.#judge(result, request, accepts);
  }

  #judge(
    result: ApiResult,
    request: BatchRequest | null,
    accepts: readonly number[] | undefined,
  ): BatchOutcome {
    if (result.kind === 'not-applied') return { ...result, tooLarge: false };
    if (result.kind === 'misconfigured')
      return {
        kind: 'misconfigured',
        code: result.code,
        reason: this.#client.redactor.clean(result.words, REASON_LIMIT),
      };
    return judge(result, this.#question(request === null ? null : request.operations, accepts));
  }

  #question(operations: Question['operations'], accepts: Question['accepts']): Question {
    const { redactor } = this.#client;
    return { operations, accepts, options: this.#options, redactor, now: this.#context.now() };
  }

  #keyHeader(key: string): { readonly [name: string]: string } {
    const { idempotency } = this.#options;
    return idempotency === undefined ? {} : { [idempotency.header]: key };
  }

  #emptyRead(): ApiRequest | null {
    const read = this.#options.verify_empty;
    if (read === undefined) return null;
    return { method: 'GET', path: read.path, headers: read.headers, contentType: null, body: null };
  }
}

/** The one operation's identity fills the placeholders of a single-row form. */
function filledPath(path: string, request: BatchRequest): string | null {
  if (placeholders(path).length === 0) return path;
  const identity: unknown = JSON.parse(request.operations[0]?.identity ?? 'null');
  return typeof identity === 'object' && identity !== null ? fillPath(path, { ...identity }) : null;
}

function finishBody(body: NonNullable<HttpOptions['finish']>['body'], request: FinishRequest): Buffer | null {
  if (body === 'none') return null;
  const { generation, members, digest } = request;
  return Buffer.from(
    JSON.stringify(body === 'summary' ? { generation, members, digest } : body.json),
    'utf8',
  );
}

function jobIdsOf(receipt: Receipt): readonly string[] {
  const ids = receipt.jobIds;
  return Array.isArray(ids) ? ids.filter((id): id is string => typeof id === 'string') : [];
}

/** A refusal of the second sending says nothing about the first one: it stays unknown. */
function replayFailure(outcome: StepOutcome): Extract<StepOutcome, { kind: 'unknown' }> | null {
  switch (outcome.kind) {
    case 'not-applied':
      // Turned away for now: the same finish twice equals once, so that it may be tried again.
      return { kind: 'unknown', code: `replay-${outcome.code}`, unanswered: true };
    case 'refused':
    case 'misconfigured':
      return { kind: 'unknown', code: `replay-${outcome.code}` };
    default:
      return null;
  }
}

function asStep(outcome: BatchOutcome): StepOutcome {
  if (outcome.kind === 'staged') return { ...outcome, kind: 'pending' };
  if (outcome.kind === 'settled') throw new Error('a step has no rows to settle');
  return outcome;
}

/** A read without its 200. Another success, a redirect or a refusal is the same each time; a busy server is not. */
function unanswered(result: ApiResult): EmptyCheck {
  const code = codeOf(result);
  const lasting = result.kind === 'reply' ? !mayPass(code) : result.kind === 'misconfigured';
  return { kind: lasting ? 'misconfigured' : 'failed', code };
}

function codeOf(result: ApiResult): string {
  return result.kind === 'reply' ? `http-${result.status}` : result.code;
}
