/** An object store's address, credentials and limits, as `retl.yaml` has them. Messages never repeat a value. */

import { z } from 'zod';
import { isBareHttpUrl, isPlainHttp } from '../../domain/http-url.ts';
import { UNBOUNDED_MS } from '../port.ts';

const text = z.string().min(1, 'must not be empty');
const secret = text.meta({ secret: true });
const ms = (most: number) => z.int().min(1).max(most);

const endpoint = z
  .string()
  .refine(isBareHttpUrl, 'must be an http or https URL without user, password, query or fragment')
  .describe('the URL of a store that is not AWS’s own');

export const connectionSchema = z
  .strictObject({
    endpoint: endpoint.optional(),
    region: text
      .default('us-east-1')
      .describe('the region that requests are signed for; us-east-1 by default'),
    path_style: z
      .boolean()
      .optional()
      .describe('true or false; true (the default with an endpoint) puts the bucket into the path'),
    access_key_id: secret.optional().describe('a secret reference; without it the SDK’s own chain is asked'),
    secret_access_key: secret.optional().describe('a secret reference'),
    session_token: secret.optional().describe('a secret reference'),
    allow_plain_http: z
      .boolean()
      .default(false)
      .describe('true or false; true lets personal data cross a network unencrypted'),
    timeout_ms: ms(3_600_000).default(60_000).describe('milliseconds for one whole request'),
    connect_timeout_ms: ms(600_000).default(10_000).describe('milliseconds for TCP and TLS'),
    tls: z
      .strictObject({
        ca: z
          .string()
          .includes('-----BEGIN CERTIFICATE-----', { error: 'must be one or more certificates in PEM' })
          .optional()
          .describe('certificates in PEM that are trusted instead of the well-known ones'),
      })
      .default({}),
  })
  .superRefine((connection, context) => {
    const fault = (path: string, message: string) =>
      context.addIssue({ code: 'custom', path: [path], message });
    const { access_key_id: id, secret_access_key: key, session_token: token } = connection;
    if (id === undefined && key !== undefined) fault('access_key_id', 'is missing beside secret_access_key');
    if (id !== undefined && key === undefined) fault('secret_access_key', 'is missing beside access_key_id');
    if (token !== undefined && id === undefined) fault('session_token', 'stands without access_key_id');
    if (connection.endpoint === undefined || !isPlainHttp(connection.endpoint)) return;
    if (connection.allow_plain_http) return;
    fault('endpoint', 'plain http is for loopback only: use https, or set `allow_plain_http: true`');
  });

export type S3Connection = z.output<typeof connectionSchema>;

/** Requests of one call of the writer, one after the other, at most: a finish that is contended. */
const REQUESTS_OF_A_CALL = 40;

/** How long one call of the writer may go on writing, in ms. */
export function longestCallMs({ timeout_ms }: S3Connection): number {
  return Math.min(UNBOUNDED_MS, REQUESTS_OF_A_CALL * timeout_ms);
}

function urlOf(given: string | undefined): URL | null {
  return given !== undefined && URL.canParse(given) ? new URL(given) : null;
}

/** AWS's own hosts: there a bucket's name is unique, whichever of them is asked. */
const AWS = /(?:^|\.)amazonaws\.com(\.cn)?$/;

/** Names the store: its normal URL, or the AWS partition, in which bucket names are unique. */
export function storeName({ endpoint: given, region }: S3Connection): string {
  const url = urlOf(given);
  if (url === null) return region.startsWith('cn-') ? 'aws-cn' : 'aws';
  const host = url.hostname.replace(/\.$/, '');
  const aws = AWS.exec(host);
  if (aws !== null) return aws[1] === undefined ? 'aws' : 'aws-cn';
  const port = url.port === '' ? '' : `:${url.port}`;
  return `${url.protocol}//${host}${port}${url.pathname.replace(/\/+$/, '')}`;
}
