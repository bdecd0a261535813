/**
 * OAuth 2.0 client credentials (RFC 6749, 4.4), or a refresh token (RFC 6749, 6) where one is given. A token serves all requests of a writer until shortly before it
 * expires. Whatever fails here has sent nothing to the API itself.
 */

import { readContent } from './web-reply.ts';
import { retryAfterMs } from './web-retry-after.ts';
import type { Exchange, HttpRequest, HttpTransport, Reply } from './web-transport.ts';

export interface OAuthSettings {
  readonly token_url: string;
  readonly client_id: string;
  readonly client_secret: string;
  readonly refresh_token?: string | undefined;
  readonly scope?: string | undefined;
  readonly audience?: string | undefined;
  readonly client_auth: 'basic' | 'body';
}

export type TokenResult =
  | { readonly kind: 'token'; readonly token: string }
  | { readonly kind: 'not-applied'; readonly code: string; readonly retryAfterMs: number | null }
  /** `words`: the token endpoint's own, not yet cleaned. */
  | { readonly kind: 'misconfigured'; readonly code: string; readonly words: string };

/** A token is renewed this long before its end, or after nine tenths of a life that is shorter than ten times that. */
const MARGIN_MS = 60_000;
/** Life of a token whose reply gives none. */
const DEFAULT_LIFE_MS = 300_000;

export class TokenSource {
  readonly #settings: OAuthSettings;
  readonly #transport: HttpTransport;
  readonly #now: () => number;
  readonly #onToken: (token: string) => void;
  #current: { readonly token: string; readonly renewAt: number } | null = null;
  #pending: Promise<TokenResult> | null = null;

  /** `onToken` learns each new token before it is used, so that its echoes can be taken out. */
  constructor(
    settings: OAuthSettings,
    transport: HttpTransport,
    now: () => number,
    onToken: (token: string) => void,
  ) {
    this.#settings = settings;
    this.#transport = transport;
    this.#now = now;
    this.#onToken = onToken;
  }

  /** A token with some life left; concurrent callers share one request for it. */
  async get(): Promise<TokenResult> {
    const current = this.#current;
    if (current !== null && this.#now() < current.renewAt) return { kind: 'token', token: current.token };
    this.#pending ??= this.#request().finally(() => {
      this.#pending = null;
    });
    return this.#pending;
  }

  /** Forgets `token`, which the API has refused, unless another has taken its place already. */
  forget(token: string): void {
    if (this.#current?.token === token) this.#current = null;
  }

  async #request(): Promise<TokenResult> {
    const result = readToken(await this.#transport.exchange(tokenRequest(this.#settings)), this.#now());
    if (result.kind !== 'granted') return result;
    const { token, lifeMs } = result;
    this.#onToken(token);
    this.#current = { token, renewAt: this.#now() + lifeMs - Math.min(MARGIN_MS, lifeMs / 10) };
    return { kind: 'token', token };
  }
}

function tokenRequest(settings: OAuthSettings): HttpRequest {
  const { refresh_token } = settings;
  const form = new URLSearchParams(
    refresh_token === undefined
      ? { grant_type: 'client_credentials' }
      : { grant_type: 'refresh_token', refresh_token },
  );
  if (settings.scope !== undefined) form.set('scope', settings.scope);
  if (settings.audience !== undefined) form.set('audience', settings.audience);
  const headers: { [name: string]: string } = {
    'content-type': 'application/x-www-form-urlencoded',
    accept: 'application/json',
  };
  if (settings.client_auth === 'body') {
    form.set('client_id', settings.client_id);
    form.set('client_secret', settings.client_secret);
  } else {
    // RFC 6749, 2.3.1: both are form-encoded before they are joined.
    const [id, password] = [settings.client_id, settings.client_secret].map(formEncode);
    headers.authorization = `Basic ${Buffer.from(`${id}:${password}`).toString('base64')}`;
  }
  const url = new URL(settings.token_url);
  return { method: 'POST', path: url.pathname + url.search, headers, body: Buffer.from(form.toString()) };
}

export function formEncode(text: string): string {
  return new URLSearchParams({ v: text }).toString().slice(2);
}

type Granted = { readonly kind: 'granted'; readonly token: string; readonly lifeMs: number };

function readToken(exchange: Exchange, now: number): Granted | Exclude<TokenResult, { kind: 'token' }> {
  if (exchange.kind !== 'reply')
    return { kind: 'not-applied', code: `oauth-${exchange.code}`, retryAfterMs: null };
  const { status } = exchange;
  if (status === 429 || status === 408 || status >= 500)
    return {
      kind: 'not-applied',
      code: `oauth-http-${status}`,
      retryAfterMs: retryAfterMs(exchange.headers['retry-after'], now),
    };
  if (exchange.cut !== null)
    return { kind: 'not-applied', code: `oauth-${exchange.cut}`, retryAfterMs: null };
  const granted = status === 200 || status === 201 ? grantIn(exchange) : null;
  if (granted !== null) return granted;
  const code = status < 300 ? 'oauth-reply-without-token' : `oauth-http-${status}`;
  // A 2xx may hold half a token: its words are not kept.
  return { kind: 'misconfigured', code, words: status < 300 ? '' : wordsOf(exchange) };
}

function grantIn(reply: Reply): Granted | null {
  const content = readContent(reply);
  if (content.kind !== 'json' || typeof content.value !== 'object' || content.value === null) return null;
  const { value } = content;
  const token = 'access_token' in value ? value.access_token : undefined;
  const type = 'token_type' in value ? value.token_type : 'bearer';
  const seconds = 'expires_in' in value ? Number(value.expires_in) : Number.NaN;
  if (typeof token !== 'string' || !/^[\x21-\x7e]+$/.test(token)) return null;
  if (typeof type !== 'string' || type.toLowerCase() !== 'bearer') return null;
  return {
    kind: 'granted',
    token,
    lifeMs: Number.isFinite(seconds) && seconds > 0 ? seconds * 1_000 : DEFAULT_LIFE_MS,
  };
}

function wordsOf(reply: Reply): string {
  const content = readContent(reply);
  return content.kind === 'empty' ? '' : content.text;
}
