/**
 * The calls of Bulk API 2.0 and of the REST API that this adapter makes, and how their answers are read: by status first,
 * and by `errorCode`, the words of the documentation, where a status has more than one meaning.
 */

import type { WriterContext } from '../port.ts';
import { ApiClient, type ApiResult } from '../web-client.ts';
import { readContent } from '../web-reply.ts';
import { retryAfterMs } from '../web-retry-after.ts';
import type { Reply } from '../web-transport.ts';
import type { SalesforceConnection } from './connection.ts';
import { webConnection } from './connection.ts';

/** Bytes of one result table that are read: what 10,000 rows of documented size may have, with their errors. */
const MAX_REPLY_BYTES = 160 * 1024 * 1024;
/** UTF-16 units kept of an error's words. */
const REASON_LIMIT = 500;

export type Operation = 'upsert' | 'delete';
export type JobState = 'Open' | 'UploadComplete' | 'InProgress' | 'JobComplete' | 'Failed' | 'Aborted';
const STATES: readonly string[] = [
  'Open',
  'UploadComplete',
  'InProgress',
  'JobComplete',
  'Failed',
  'Aborted',
];

export interface Job {
  readonly id: string;
  readonly state: JobState;
  /** Rows that the job says it has looked at, failed ones included; `null`: it does not say. */
  readonly processed: number | null;
  /** The job's own words about its end, cleaned. */
  readonly words: string;
}

/** Why a call brought nothing. `later`: the org asks for patience, and has done nothing. */
export type Trouble =
  | { readonly kind: 'later'; readonly code: string; readonly afterMs: number | null }
  | { readonly kind: 'not-sent'; readonly code: string }
  | { readonly kind: 'denied'; readonly code: string; readonly reason: string }
  /** Any other 4xx: the org has understood the call, and refuses it. */
  | { readonly kind: 'refused'; readonly status: number; readonly code: string; readonly reason: string }
  /** Lost, 5xx, a page, or nothing that can be understood. */
  | { readonly kind: 'unsure'; readonly code: string };

export type Called<T> = { readonly kind: 'ok'; readonly value: T } | Trouble;

export class SalesforceApi {
  readonly #client: ApiClient;
  readonly #base: string;
  readonly #now: () => number;

  constructor(connection: SalesforceConnection, context: Pick<WriterContext, 'signal' | 'now'>) {
    this.#client = new ApiClient(webConnection(connection), context, MAX_REPLY_BYTES);
    this.#base = `/services/data/v${connection.api_version}`;
    this.#now = () => context.now();
  }

  createJob(operation: Operation, object: string, externalId: string): Promise<Called<Job>> {
    const upsert = operation === 'upsert' ? { externalIdFieldName: externalId } : {};
    const body = {
      object,
      operation,
      contentType: 'CSV',
      columnDelimiter: 'COMMA',
      lineEnding: 'LF',
      ...upsert,
    };
    return this.#job('POST', '/jobs/ingest', body);
  }

  async upload(job: string, csv: string): Promise<Called<null>> {
    const result = await this.#client.send({
      method: 'PUT',
      path: `${this.#base}/jobs/ingest/${job}/batches`,
      headers: {},
      contentType: 'text/csv; charset=UTF-8',
      body: Buffer.from(csv, 'utf8'),
    });
    if (result.kind !== 'reply' || result.status !== 201) return this.#trouble(result);
    return result.requestLeft
      ? { kind: 'ok', value: null }
      : { kind: 'unsure', code: 'reply-before-request' };
  }

  setState(job: string, state: 'UploadComplete' | 'Aborted'): Promise<Called<Job>> {
    return this.#job('PATCH', `/jobs/ingest/${job}`, { state });
  }

  job(job: string): Promise<Called<Job>> {
    return this.#job('GET', `/jobs/ingest/${job}`, null);
  }

  /** A result table as CSV text. */
  async results(
    job: string,
    table: 'successfulResults' | 'failedResults' | 'unprocessedrecords',
  ): Promise<Called<string>> {
    const result = await this.#client.send({
      method: 'GET',
      path: `${this.#base}/jobs/ingest/${job}/${table}`,
      headers: { accept: 'text/csv' },
      contentType: null,
      body: null,
    });
    if (result.kind !== 'reply' || result.status !== 200) return this.#trouble(result);
    const content = readContent(result);
    if (content.kind === 'empty') return { kind: 'ok', value: '' };
    // CSV may look like anything; what is not whole, or a page, has been found out by now.
    if (content.kind === 'text') return { kind: 'ok', value: content.text };
    const isCsv = (result.headers['content-type'] ?? '').toLowerCase().includes('csv');
    const whole = content.kind === 'json' || content.code === 'reply-malformed';
    return isCsv && whole
      ? { kind: 'ok', value: content.text }
      : { kind: 'unsure', code: content.kind === 'json' ? 'reply-not-csv' : content.code };
  }

  /** A read below the version's path, such as `/sobjects/Contact/describe`; the answer's JSON. */
  read(path: string): Promise<Called<unknown>> {
    return this.#json('GET', path.startsWith('/services/') ? path : `${this.#base}${path}`, null);
  }

  /** Connects, and asks for a token where one is needed. A code where that fails. */
  probe(): Promise<string | null> {
    return this.#client.probe();
  }

  close(): void {
    this.#client.close();
  }

  /** The org's words, made safe to keep. */
  clean(words: string): string {
    return this.#client.redactor.clean(words, REASON_LIMIT);
  }

  async #job(method: string, path: string, body: unknown): Promise<Called<Job>> {
    const called = await this.#json(method, `${this.#base}${path}`, body);
    if (called.kind !== 'ok') return called;
    const job = jobOf(called.value, (words) => this.clean(words));
    return job === null ? { kind: 'unsure', code: 'reply-lacks-job-id' } : { kind: 'ok', value: job };
  }

  async #json(method: string, path: string, body: unknown): Promise<Called<unknown>> {
    const result = await this.#client.send({
      method,
      path,
      headers: {},
      contentType: body === null ? null : 'application/json; charset=UTF-8',
      body: body === null ? null : Buffer.from(JSON.stringify(body), 'utf8'),
    });
    if (result.kind !== 'reply' || (result.status !== 200 && result.status !== 201))
      return this.#trouble(result);
    const content = readContent(result);
    if (content.kind === 'json') return { kind: 'ok', value: content.value };
    return { kind: 'unsure', code: content.kind === 'unreadable' ? content.code : 'reply-not-json' };
  }

  #trouble(result: ApiResult): Trouble {
    switch (result.kind) {
      case 'not-sent':
        return { kind: 'not-sent', code: result.code };
      case 'lost':
        return { kind: 'unsure', code: result.code };
      case 'not-applied':
        return { kind: 'later', code: result.code, afterMs: result.retryAfterMs };
      case 'misconfigured':
        return { kind: 'denied', code: result.code, reason: this.clean(result.words) };
      case 'reply':
        return this.#judge(result);
    }
  }

  #judge(reply: Reply): Trouble {
    const { status } = reply;
    const content = readContent(reply);
    if (content.kind === 'unreadable') return { kind: 'unsure', code: content.code };
    const { errorCode, message } = errorIn(content.kind === 'json' ? content.value : null);
    const code = errorCode === '' ? `http-${status}` : `http-${status}:${errorCode}`;
    const reason = this.clean(message);
    const patience =
      status === 429 || status === 503 || (status === 403 && errorCode === 'REQUEST_LIMIT_EXCEEDED');
    if (patience)
      return { kind: 'later', code, afterMs: retryAfterMs(reply.headers['retry-after'], this.#now()) };
    if (status === 401 || status === 403 || (status >= 300 && status < 400))
      return { kind: 'denied', code, reason };
    if (status >= 400 && status < 500) return { kind: 'refused', status, code, reason };
    return { kind: 'unsure', code };
  }
}

/** Errors come as a list, of which the first speaks; its code is a word of the documentation, and safe to show. */
function errorIn(value: unknown): { readonly errorCode: string; readonly message: string } {
  const first: unknown = Array.isArray(value) ? value[0] : value;
  if (typeof first !== 'object' || first === null) return { errorCode: '', message: '' };
  const code = 'errorCode' in first ? first.errorCode : '';
  const message = 'message' in first ? first.message : '';
  return {
    errorCode: typeof code === 'string' && /^[A-Z_]{1,60}$/.test(code) ? code : '',
    message: typeof message === 'string' ? message : '',
  };
}

/** A job's ID goes into paths: letters and digits, and nothing else. */
function jobOf(value: unknown, clean: (words: string) => string): Job | null {
  if (typeof value !== 'object' || value === null || !('id' in value) || !('state' in value)) return null;
  const { id, state } = value;
  if (typeof id !== 'string' || !/^[A-Za-z0-9]{15}(?:[A-Za-z0-9]{3})?$/.test(id)) return null;
  if (!isState(state)) return null;
  const processed = 'numberRecordsProcessed' in value ? value.numberRecordsProcessed : null;
  const words = 'errorMessage' in value && typeof value.errorMessage === 'string' ? value.errorMessage : '';
  return { id, state, processed: typeof processed === 'number' ? processed : null, words: clean(words) };
}

function isState(value: unknown): value is JobState {
  return typeof value === 'string' && STATES.includes(value);
}
