/** What proves to the API who is asking, and the secrets that no kept text may repeat. */

import type { WebConnection } from './web-connection.ts';
import { formEncode, type TokenResult, type TokenSource } from './web-oauth.ts';
import type { Redactor } from './web-redactor.ts';

export type Authorization =
  | {
      readonly kind: 'headers';
      readonly headers: { readonly [name: string]: string };
      readonly token: string | null;
    }
  | Exclude<TokenResult, { kind: 'token' }>;

/** The headers of one request; asks for an OAuth token where none is at hand. */
export async function authorize({ auth }: WebConnection, tokens: TokenSource | null): Promise<Authorization> {
  if (tokens !== null) {
    const result = await tokens.get();
    if (result.kind !== 'token') return result;
    return { kind: 'headers', headers: { authorization: `Bearer ${result.token}` }, token: result.token };
  }
  return { kind: 'headers', headers: fixedHeaders(auth), token: null };
}

function fixedHeaders(auth: WebConnection['auth']): { readonly [name: string]: string } {
  if (auth === 'none' || 'oauth2' in auth) return {};
  if ('bearer' in auth) return { authorization: `Bearer ${auth.bearer}` };
  if ('basic' in auth) return { authorization: `Basic ${basicToken(auth.basic.user, auth.basic.password)}` };
  return { [auth.header.toLowerCase()]: auth.value };
}

function basicToken(user: string, password: string): string {
  return Buffer.from(`${user}:${password}`).toString('base64');
}

/** Header values this short, or these headers', are no secrets, and masking them would only garble text. */
const SHORTEST_HEADER_SECRET = 8;
const OPEN_HEADERS = new Set(['accept', 'accept-language', 'content-type', 'user-agent']);

/** Teaches the redactor every secret of a connection, each also in the spelling in which it is sent. */
export function learnSecrets({ auth, headers }: WebConnection, redactor: Redactor): void {
  for (const [name, value] of Object.entries(headers))
    if (!OPEN_HEADERS.has(name.toLowerCase()) && value.length >= SHORTEST_HEADER_SECRET) redactor.add(value);
  if (auth === 'none') return;
  if ('bearer' in auth) redactor.add(auth.bearer);
  else if ('basic' in auth) {
    redactor.add(auth.basic.password);
    redactor.add(basicToken(auth.basic.user, auth.basic.password));
  } else if ('oauth2' in auth) {
    const { client_id, client_secret, refresh_token } = auth.oauth2;
    if (refresh_token !== undefined) redactor.add(refresh_token);
    redactor.add(client_secret);
    redactor.add(formEncode(client_secret));
    redactor.add(basicToken(formEncode(client_id), formEncode(client_secret)));
  } else redactor.add(auth.value);
}
