/** An API's address, credentials and limits, as `retl.yaml` has them. Messages never repeat a value. */

import { validateHeaderValue } from 'node:http';
import { createSecureContext } from 'node:tls';
import { z } from 'zod';
import { isLoopback } from '../../domain/http-url.ts';
import { headerName, headers, holds } from './header-schema.ts';

const text = z.string().min(1, 'must not be empty');
const secret = text.meta({ secret: true });
const headerSecret = text
  .refine(
    (value) => holds(() => validateHeaderValue('x', value)) && value.trim() === value,
    'must have no line breaks and no blanks at its ends',
  )
  .meta({ secret: true });

const endpoint = z.string().refine((text) => {
  const url = URL.canParse(text) ? new URL(text) : null;
  if (url === null || !['https:', 'http:'].includes(url.protocol)) return false;
  return url.username === '' && url.password === '' && url.hash === '';
}, 'must be an http or https URL without user, password or fragment');

const auth = z.union(
  [
    z.literal('none'),
    z.strictObject({ header: headerName, value: headerSecret }),
    z.strictObject({ bearer: headerSecret }),
    z.strictObject({
      basic: z.strictObject({
        user: z.string().regex(/^[^:]*$/, 'must not contain a colon'),
        password: z.string().meta({ secret: true }),
      }),
    }),
    z.strictObject({
      oauth2: z.strictObject({
        token_url: endpoint,
        client_id: text,
        client_secret: secret,
        refresh_token: secret
          .optional()
          .describe('asks by this refresh token; not given: by the client’s own credentials'),
        scope: z.string().optional(),
        audience: z.string().optional(),
        client_auth: z
          .enum(['basic', 'body'])
          .default('basic')
          .describe(
            'basic or body: client_id and client_secret stand in an Authorization header, or in the form',
          ),
      }),
    }),
  ],
  {
    error:
      'must be `none`, or have one of `bearer`, `header` with `value`, `basic: {user, password}`, `oauth2: {token_url, client_id, client_secret}`',
  },
);

const ms = (most: number) => z.int().min(1).max(most);

export const httpConnectionSchema = z
  .strictObject({
    base_url: endpoint
      .refine(
        (text) => !URL.canParse(text) || new URL(text).search === '',
        'must have no query: put it into the paths',
      )
      .describe('an https URL (http on loopback) that the paths of all mirrors are joined to'),
    account: z
      .string()
      .regex(
        /^[\x21-\x7e](?:[\x20-\x7e]{0,126}[\x21-\x7e])?$/,
        'must be a name of 1 to 128 printable ASCII characters',
      )
      .optional()
      .describe(
        'a name for the account that the credentials open; part of the target: connections that name one account are one place, others are not',
      ),
    allow_plain_http: z
      .boolean()
      .default(false)
      .describe(
        'true or false; true lets requests, with their secrets and personal data, cross a network unencrypted',
      ),
    auth: auth.default('none').describe('`none`, or one of bearer, header with value, basic, oauth2'),
    headers: headers.default({}).describe('header names with their values, sent with every request'),
    timeout_ms: ms(3_600_000)
      .default(60_000)
      .describe('milliseconds for one whole request, from connecting to the last byte of the reply'),
    connect_timeout_ms: ms(600_000).default(10_000).describe('milliseconds for name resolution, TCP and TLS'),
    // A server that closes a connection just as it is used again makes that request's outcome unknown, so this stays
    // well under servers' own limits.
    keep_alive_ms: z
      .int()
      .min(0)
      .max(60_000)
      .default(1_000)
      .describe(
        'milliseconds from 0 to 60000 that an idle connection may be used again; 0 opens one for each request',
      ),
    tls: z
      .strictObject({
        ca: z
          .string()
          .refine(
            (pem) =>
              pem.includes('-----BEGIN CERTIFICATE-----') && holds(() => createSecureContext({ ca: pem })),
            'must be one or more certificates in PEM',
          )
          .optional()
          .describe('certificates in PEM that are trusted instead of the well-known ones'),
      })
      .default({}),
  })
  .superRefine((connection, context) => {
    const urls: [PropertyKey[], string][] = [[['base_url'], connection.base_url]];
    if (typeof connection.auth === 'object' && 'oauth2' in connection.auth)
      urls.push([['auth', 'oauth2', 'token_url'], connection.auth.oauth2.token_url]);
    for (const [path, text] of urls) {
      if (!URL.canParse(text)) continue;
      const url = new URL(text);
      if (url.protocol === 'https:' || isLoopback(url.hostname) || connection.allow_plain_http) continue;
      context.addIssue({
        code: 'custom',
        path,
        message: 'plain http is for loopback only: use https, or set `allow_plain_http: true`',
      });
    }
  });

export type HttpConnection = z.output<typeof httpConnectionSchema>;
