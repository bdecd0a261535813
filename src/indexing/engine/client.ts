/**
 * OpenSearch and Elasticsearch through their official clients, by the part of their interface that is the same in both. The
 * clients' own retries are off: what may be sent again is decided here (ask.ts), and a conditional write never is blindly.
 * The clients are large: each is loaded where an index needs it.
 */

import type { EngineName } from '../../domain/settings.ts';
import type { EngineOptions } from './options.ts';

export interface EngineRequest {
  readonly method: 'GET' | 'PUT' | 'POST' | 'DELETE';
  readonly path: string;
  readonly query?: { readonly [name: string]: string | number | boolean };
  /** JSON. */
  readonly body?: string;
  /** JSON texts, each of which ends with a line feed. */
  readonly lines?: string;
}

export type EngineReply =
  | { readonly kind: 'answered'; readonly status: number; readonly body: unknown }
  /** Whether it was carried out is not known. `code`: a system's code or a word of ours. */
  | { readonly kind: 'no-answer'; readonly code: string }
  /** It was never sent: no connection that may be trusted, or to another product. */
  | { readonly kind: 'refused'; readonly code: string };

export interface EngineClient {
  readonly system: EngineName;
  send(request: EngineRequest): Promise<EngineReply>;
  close(): Promise<void>;
}

/** What both clients have. */
interface Transport {
  request(
    params: {
      method: string;
      path: string;
      querystring?: Record<string, unknown>;
      body?: string;
      bulkBody?: string;
    },
    options: Record<string, unknown>,
  ): Promise<unknown>;
}

export async function openEngine(system: EngineName, options: EngineOptions): Promise<EngineClient> {
  const { transport, jsonHeaders, close } = await (system === 'opensearch'
    ? openSearch(options)
    : elastic(options));
  return {
    system,
    async send({ method, path, query, body, lines }) {
      const params = {
        method,
        path,
        ...(query === undefined ? {} : { querystring: { ...query } }),
        ...(body === undefined ? {} : { body }),
        ...(lines === undefined ? {} : { bulkBody: lines }),
      };
      try {
        const headers = body === undefined ? {} : { headers: jsonHeaders };
        return answered(await transport.request(params, { maxRetries: 0, meta: true, ...headers }));
      } catch (error) {
        return failed(error);
      }
    },
    close,
  };
}

interface Opened {
  readonly transport: Transport;
  /** Of a text that is JSON already, which a client would send as mere text. */
  readonly jsonHeaders: { readonly [name: string]: string };
  close(): Promise<void>;
}

async function openSearch(options: EngineOptions): Promise<Opened> {
  const { Client } = await import('@opensearch-project/opensearch');
  const client = new Client({
    node: options.url,
    requestTimeout: options.timeout_ms,
    ...basicAuth(options),
    ...(options.api_key === undefined ? {} : { headers: { authorization: `ApiKey ${options.api_key}` } }),
    ...(options.ca === undefined ? {} : { ssl: { ca: options.ca } }),
  });
  const jsonHeaders = { 'content-type': 'application/json' };
  return { transport: client.transport, jsonHeaders, close: () => client.close() };
}

async function elastic(options: EngineOptions): Promise<Opened> {
  const { Client } = await import('@elastic/elasticsearch');
  const client = new Client({
    node: options.url,
    requestTimeout: options.timeout_ms,
    enableMetaHeader: false,
    ...(options.api_key === undefined ? basicAuth(options) : { auth: { apiKey: options.api_key } }),
    ...(options.ca === undefined ? {} : { tls: { ca: options.ca } }),
  });
  const jsonHeaders = { 'content-type': 'application/vnd.elasticsearch+json; compatible-with=8' };
  return { transport: client.transport, jsonHeaders, close: () => client.close() };
}

function basicAuth({ username, password }: EngineOptions) {
  return username === undefined ? {} : { auth: { username, password: password ?? '' } };
}

function answered(result: unknown): EngineReply {
  const status = field(result, 'statusCode');
  return { kind: 'answered', status: typeof status === 'number' ? status : 0, body: field(result, 'body') };
}

function failed(error: unknown): EngineReply {
  const meta = field(error, 'meta');
  const status = field(meta, 'statusCode');
  const name = error instanceof Error ? error.name : '';
  if (name === 'ProductNotSupportedError') return { kind: 'refused', code: 'other-product' };
  // Bytes that are no JSON, as from a proxy: its status still says what happened. What is said to be done and ends in the
  // middle says nothing of what was asked.
  if (typeof status === 'number' && status > 0)
    return status < 300
      ? { kind: 'no-answer', code: 'torn' }
      : { kind: 'answered', status, body: field(meta, 'body') };
  const text = error instanceof Error ? error.message : '';
  if (TLS_FAULT.test(text)) return { kind: 'refused', code: 'tls' };
  const code = /\bE[A-Z]{4,20}\b/.exec(text)?.[0] ?? (name === 'TimeoutError' ? 'timeout' : 'no-answer');
  return { kind: 'no-answer', code };
}

/** The clients pass on a message alone; it is read for what it is about, and goes no further. */
const TLS_FAULT = /certificate|altnames|\bTLS\b|\bSSL\b|wrong version number|EPROTO/i;

export function field(value: unknown, name: string): unknown {
  return typeof value === 'object' && value !== null ? Reflect.get(value, name) : undefined;
}
