/**
 * `artifacts` of retl.yaml: where checkpoints are kept. What a reference gives is judged where it is resolved, by the store's
 * own schema (src/indexing/artifacts/options.ts), which has the same options: a test holds the two together.
 */

import { z } from 'zod';
import { isKeyPrefix } from '../domain/key-prefix.ts';
import type { ArtifactSettings } from '../domain/settings.ts';
import { plainOptions } from './json-value.ts';
import { REFERENCE_FORMS } from './secrets.ts';
import { isKnownPlainHttp, mayBeCertificate, mayBeHttpUrl } from './url-text.ts';

const HOUR_MS = 3_600_000;

const text = (what: string) => z.string().min(1).describe(what);
const secret = (what: string) => text(`${what}, as ${REFERENCE_FORMS}`).optional();

const journal = z.strictObject({ type: z.literal('journal') });

const files = z.strictObject({
  type: z.literal('files'),
  folder: text('a folder that is there, relative to the project’s'),
});

const s3Shape = z.strictObject({
  type: z.literal('s3'),
  bucket: text('the name of a bucket that is there'),
  prefix: z.string().describe('what every key begins with, ending with a slash').optional(),
  endpoint: text('the URL of a store that is not AWS’s own, such as https://store.example.org').optional(),
  region: z
    .string()
    .min(1)
    .meta({ description: 'the region that requests are signed for', default: 'us-east-1' })
    .optional(),
  path_style: z.boolean().describe('true or false; true, the default with an endpoint').optional(),
  access_key_id: secret('the key’s id; the SDK’s own chain is asked where left out'),
  secret_access_key: secret('the key'),
  session_token: secret('the token of a session'),
  allow_plain_http: z
    .boolean()
    .meta({ description: 'true or false: whether artifacts may cross a network unencrypted', default: false })
    .optional(),
  timeout_ms: z
    .int()
    .min(1)
    .max(HOUR_MS)
    .meta({ description: 'milliseconds for one request to the store', default: 60_000 })
    .optional(),
  ca: text(
    `certificates in PEM that are trusted instead of the well-known ones, as ${REFERENCE_FORMS}`,
  ).optional(),
  encryption: z
    .union([z.literal('AES256'), z.strictObject({ kms_key_id: text('the id of a key of KMS') })])
    .describe('encryption at rest other than the bucket’s own: AES256 or {kms_key_id}')
    .optional(),
});

type S3Input = z.infer<typeof s3Shape>;

/** What does not fit together; each is told at its place, whatever else is wrong. */
const fitting = z.superRefine(
  (store: S3Input, context) => {
    const fault = (key: keyof S3Input, message: string, remedy: string) =>
      context.addIssue({ code: 'custom', path: [key], message, params: { remedy } });
    const { access_key_id: id, secret_access_key: key, session_token: token, endpoint } = store;
    if (id === undefined && key !== undefined)
      fault('access_key_id', 'is missing beside `secret_access_key`', 'Give both or neither.');
    if (id !== undefined && key === undefined)
      fault('secret_access_key', 'is missing beside `access_key_id`', 'Give both or neither.');
    if (id === undefined && key === undefined && token !== undefined)
      fault('session_token', 'stands without `access_key_id`', 'Give the key that it is of, or remove it.');
    if (!mayBeHttpUrl(endpoint))
      fault(
        'endpoint',
        'must be an http or https URL without query and fragment',
        'Name the bucket as `bucket`.',
      );
    else if (isKnownPlainHttp(endpoint) && store.allow_plain_http !== true)
      fault(
        'endpoint',
        'may be plain http on this machine only',
        'Use https, or set `allow_plain_http: true`.',
      );
    if (!mayBeCertificate(store.ca))
      fault('ca', 'must be one or more certificates in PEM', `Write ${REFERENCE_FORMS}.`);
    if (typeof store.prefix === 'string' && !isKeyPrefix(store.prefix))
      fault(
        'prefix',
        'must be empty or end with a slash, without empty parts, `.` and `..`',
        'Expected: a prefix such as prod/checkpoints/.',
      );
  },
  { when: ({ value }) => typeof value === 'object' && value !== null },
);

const store = z
  .discriminatedUnion('type', [journal, files, s3Shape.check(fitting)])
  .describe('{type: journal}, {type: files, folder} or {type: s3, …}');

const former = {
  former: z
    .array(store)
    .max(8)
    .describe('stores that were used before, which are read and no longer written')
    .optional(),
};

export const artifactsInput = z
  .discriminatedUnion('type', [
    journal.extend(former),
    files.extend(former),
    s3Shape.extend(former).check(fitting),
  ])
  .describe(
    'where checkpoints are kept: {type: journal}, the default, {type: files, folder} or {type: s3, …}',
  );

export function artifactSettings(input: z.infer<typeof artifactsInput> | undefined): ArtifactSettings {
  const { former: before = [], ...current } = input ?? { type: 'journal' };
  return { current: plainOptions(current), former: before.map((one) => plainOptions(one)) };
}
