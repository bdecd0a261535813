/** Authorised requests to one API: headers in their order of precedence, a fresh token once after a 401. */

import type { WriterContext } from './port.ts';
import type { WebConnection } from './web-connection.ts';
import { type Authorization, authorize, learnSecrets } from './web-credentials.ts';
import { TokenSource } from './web-oauth.ts';
import { Redactor } from './web-redactor.ts';
import { type Exchange, HttpTransport, MAX_REPLY_BYTES, type TransportSettings } from './web-transport.ts';

export interface ApiRequest {
  readonly method: string;
  /** Below the base URL, placeholders filled. */
  readonly path: string;
  readonly headers: { readonly [name: string]: string };
  readonly contentType: string | null;
  readonly body: Buffer | null;
}

export type ApiResult = Exchange | Exclude<Authorization, { kind: 'headers' }>;

export class ApiClient {
  readonly redactor = new Redactor();
  readonly #connection: WebConnection;
  readonly #transport: HttpTransport;
  readonly #tokenTransport: HttpTransport | null;
  readonly #tokens: TokenSource | null;

  /** `maxReplyBytes`: of one reply's body; what is longer is cut, and says so. */
  constructor(
    connection: WebConnection,
    context: Pick<WriterContext, 'signal' | 'now'>,
    maxReplyBytes = MAX_REPLY_BYTES,
  ) {
    this.#connection = connection;
    this.#transport = new HttpTransport(
      { ...transportSettings(connection, connection.base_url), maxReplyBytes },
      context.signal,
    );
    const { auth } = connection;
    const oauth = typeof auth === 'object' && 'oauth2' in auth ? auth.oauth2 : null;
    this.#tokenTransport =
      oauth === null
        ? null
        : new HttpTransport(transportSettings(connection, oauth.token_url), context.signal);
    this.#tokens =
      oauth === null || this.#tokenTransport === null
        ? null
        : new TokenSource(
            oauth,
            this.#tokenTransport,
            () => context.now(),
            (token) => this.redactor.add(token),
          );
    learnSecrets(connection, this.redactor);
  }

  get baseUrl(): string {
    return this.#connection.base_url;
  }

  /** Sends once; and once more where a stale token was refused, which proves that nothing was applied. */
  async send(request: ApiRequest): Promise<ApiResult> {
    const first = await authorize(this.#connection, this.#tokens);
    if (first.kind !== 'headers') return first;
    const result = await this.#exchange(request, first.headers);
    if (result.kind !== 'reply' || result.status !== 401 || this.#tokens === null || first.token === null)
      return result;
    this.#tokens.forget(first.token);
    const second = await authorize(this.#connection, this.#tokens);
    if (second.kind !== 'headers') return second;
    return this.#exchange(request, second.headers);
  }

  /** Asks for a token where one is needed, else only connects. A code where that fails. */
  async probe(): Promise<string | null> {
    if (this.#tokens !== null) {
      const result = await this.#tokens.get();
      if (result.kind !== 'token') return result.code;
    }
    return this.#transport.probe();
  }

  close(): void {
    this.#transport.close();
    this.#tokenTransport?.close();
  }

  #exchange(request: ApiRequest, authorization: { readonly [name: string]: string }): Promise<Exchange> {
    const type = request.contentType === null ? {} : { 'content-type': request.contentType };
    const headers = merged(
      { accept: 'application/json', 'user-agent': 'retl-mirror', ...type },
      this.#connection.headers,
      request.headers,
      authorization,
    );
    const path = joinPath(this.#connection.base_url, request.path);
    return this.#transport.exchange({ method: request.method, path, headers, body: request.body });
  }
}

function transportSettings(connection: WebConnection, url: string): TransportSettings {
  return {
    url: new URL(url),
    ca: connection.tls.ca,
    connectTimeoutMs: connection.connect_timeout_ms,
    timeoutMs: connection.timeout_ms,
    keepAliveMs: connection.keep_alive_ms,
    maxReplyBytes: MAX_REPLY_BYTES,
  };
}

/** Joins a path to the base URL's own path: what stands on the request line. */
export function joinPath(baseUrl: string, path: string): string {
  return new URL(baseUrl).pathname.replace(/\/+$/, '') + path;
}

/** Later ones win, whatever the spelling of the name. */
function merged(...layers: readonly { readonly [name: string]: string }[]): { [name: string]: string } {
  const headers: { [name: string]: string } = {};
  for (const layer of layers)
    for (const [name, value] of Object.entries(layer)) headers[name.toLowerCase()] = value;
  return headers;
}
