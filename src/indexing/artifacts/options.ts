/** Where artifacts are kept, as a project says it; the journal keeps them where it says nothing. Messages repeat no value. */

import { z } from 'zod';
import { isBareHttpUrl, isPlainHttp } from '../../domain/http-url.ts';
import { isKeyPrefix } from '../../domain/key-prefix.ts';

const text = z.string().min(1, 'must not be empty');
const secret = text.meta({ secret: true });

const journalOptions = z.strictObject({ type: z.literal('journal') });

const filesOptions = z.strictObject({
  type: z.literal('files'),
  folder: text.describe('a folder that is there, on a disk of its own backup; relative to the project’s'),
});

const s3Options = z
  .strictObject({
    type: z.literal('s3'),
    bucket: text.describe('the bucket; it must exist'),
    prefix: z
      .string()
      .refine(isKeyPrefix, 'must be empty or end with a slash, without empty parts, . and ..')
      .default('')
      .describe('what every key begins with, ending with a slash'),
    endpoint: z
      .string()
      .refine(isBareHttpUrl, 'must be an http or https URL without user, password, query or fragment')
      .describe('the URL of a store that is not AWS’s own')
      .optional(),
    region: text
      .default('us-east-1')
      .describe('the region that requests are signed for; us-east-1 by default'),
    path_style: z.boolean().describe('true or false; true, the default with an endpoint').optional(),
    access_key_id: secret.describe('a secret reference; without it the SDK’s own chain is asked').optional(),
    secret_access_key: secret.describe('a secret reference').optional(),
    session_token: secret.describe('a secret reference').optional(),
    allow_plain_http: z
      .boolean()
      .default(false)
      .describe('true or false; true lets artifacts cross a network unencrypted'),
    timeout_ms: z.int().min(1).max(3_600_000).default(60_000).describe('milliseconds for one request'),
    ca: text
      .includes('-----BEGIN CERTIFICATE-----', { error: 'must be one or more certificates in PEM' })
      .describe('certificates in PEM that are trusted instead of the well-known ones')
      .optional(),
    encryption: z
      .union([z.literal('AES256'), z.strictObject({ kms_key_id: text })])
      .describe('encryption at rest other than the bucket’s own: AES256 or {kms_key_id}')
      .optional(),
  })
  .superRefine((options, context) => {
    const fault = (path: string, message: string) =>
      context.addIssue({ code: 'custom', path: [path], message });
    const { access_key_id: id, secret_access_key: key, session_token: token } = options;
    if (id === undefined && key !== undefined) fault('access_key_id', 'is missing beside secret_access_key');
    if (id !== undefined && key === undefined) fault('secret_access_key', 'is missing beside access_key_id');
    if (id === undefined && token !== undefined) fault('session_token', 'stands without access_key_id');
    const { endpoint = '' } = options;
    if (isBareHttpUrl(endpoint) && isPlainHttp(endpoint) && !options.allow_plain_http)
      fault('endpoint', 'plain http is for loopback only: use https, or set `allow_plain_http: true`');
  });

export const artifactOptions = z.discriminatedUnion('type', [journalOptions, filesOptions, s3Options]);

export type ArtifactOptions = z.output<typeof artifactOptions>;
export type S3Options = z.output<typeof s3Options>;
