/** What the shared client needs to know of an API's connection, whichever adapter's options gave it. */

import type { OAuthSettings } from './web-oauth.ts';

export type WebAuth =
  | 'none'
  | { readonly header: string; readonly value: string }
  | { readonly bearer: string }
  | { readonly basic: { readonly user: string; readonly password: string } }
  | { readonly oauth2: OAuthSettings };

export interface WebConnection {
  /** `https://host[:port][/path]`; the paths of requests are joined to its path. */
  readonly base_url: string;
  readonly auth: WebAuth;
  /** Sent with every request; a request's own come before them. */
  readonly headers: { readonly [name: string]: string };
  /** For one whole request, from connecting to the last byte of the reply. */
  readonly timeout_ms: number;
  readonly connect_timeout_ms: number;
  /** How long an idle connection may be used again; 0: never. */
  readonly keep_alive_ms: number;
  /** `ca`: PEM certificates trusted in place of the well-known ones. */
  readonly tls: { readonly ca?: string | undefined };
}
