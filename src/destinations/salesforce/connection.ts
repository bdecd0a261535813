/** An org's address, credentials and limits, as `retl.yaml` has them. Messages never repeat a value. */

import { createSecureContext } from 'node:tls';
import { z } from 'zod';
import { isLoopback } from '../../domain/http-url.ts';
import { UNBOUNDED_MS } from '../port.ts';
import type { WebConnection } from '../web-connection.ts';

const text = z.string().min(1, 'must not be empty');
const secret = text.meta({ secret: true });
const token = secret.regex(/^[\x21-\x7e]+$/, 'must be one word of ASCII');

const auth = z.union(
  [
    z.strictObject({ access_token: token }),
    z.strictObject({ client_id: text, client_secret: secret, refresh_token: secret.optional() }),
  ],
  { error: 'must be `{client_id, client_secret}`, with or without `refresh_token`, or `{access_token}`' },
);

const ms = (most: number) => z.int().min(1).max(most);

export const salesforceConnectionSchema = z.strictObject({
  instance_url: z
    .string()
    .refine(
      isInstance,
      'must be an https URL (http on loopback) without user, path, query or fragment, such as `https://acme.my.salesforce.com`',
    )
    .describe('the org’s own address, `https://<domain>.my.salesforce.com`'),
  api_version: z
    .string()
    .regex(/^[4-9]\d\.0$/, 'must be a version such as `62.0`')
    .default('62.0')
    .describe('version of the API'),
  auth: auth.describe(
    'OAuth: client_id and client_secret (client credentials), with refresh_token; or an access_token that does not expire meanwhile',
  ),
  timeout_ms: ms(3_600_000)
    .default(60_000)
    .describe('milliseconds for one whole HTTP request, from connecting to the last byte of the reply'),
  connect_timeout_ms: ms(600_000).default(10_000).describe('milliseconds for name resolution, TCP and TLS'),
  tls: z
    .strictObject({
      ca: z
        .string()
        .refine(isCertificate, 'must be one or more certificates in PEM')
        .optional()
        .describe('certificates in PEM that are trusted instead of the well-known ones'),
    })
    .default({}),
});
export type SalesforceConnection = z.output<typeof salesforceConnectionSchema>;

function isInstance(given: string): boolean {
  const url = URL.canParse(given) ? new URL(given) : null;
  if (url === null || url.username !== '' || url.password !== '') return false;
  if (url.pathname !== '/' || url.search !== '' || url.hash !== '') return false;
  return url.protocol === 'https:' || (url.protocol === 'http:' && isLoopback(url.hostname));
}

function isCertificate(pem: string): boolean {
  if (!pem.includes('-----BEGIN CERTIFICATE-----')) return false;
  try {
    createSecureContext({ ca: pem });
    return true;
  } catch {
    return false;
  }
}

/** Scheme, host and port, in one spelling. */
export function instanceOrigin({ instance_url }: SalesforceConnection): string {
  return new URL(instance_url).origin;
}

export function webConnection(connection: SalesforceConnection): WebConnection {
  const { auth: given, timeout_ms, connect_timeout_ms, tls } = connection;
  const origin = instanceOrigin(connection);
  return {
    base_url: origin,
    auth:
      'access_token' in given
        ? { bearer: given.access_token }
        : { oauth2: { ...given, token_url: `${origin}/services/oauth2/token`, client_auth: 'body' } },
    headers: {},
    timeout_ms,
    connect_timeout_ms,
    // A connection that the server closes as it is used again loses an answer for nothing.
    keep_alive_ms: 1_000,
    tls,
  };
}

/** A request's steps may take as long as so many of the longest exchanges. */
const EXCHANGES = 5;

/** How long the steps of one request may go on starting further ones, in ms. */
export function stepsBudgetMs({ timeout_ms }: SalesforceConnection): number {
  return Math.min(UNBOUNDED_MS / 4, timeout_ms * EXCHANGES);
}

/** The last step may begin at the very end of the budget; a stale token makes up to four exchanges of it. */
export function longestRequestMs(connection: SalesforceConnection): number {
  return Math.min(UNBOUNDED_MS, stepsBudgetMs(connection) + 4 * connection.timeout_ms);
}
