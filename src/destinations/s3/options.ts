/** What a mirror says about its place in a bucket. */

import { z } from 'zod';

const BUCKET = /^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$/;

/** Every key is under 1,024 bytes with what is added to the prefix. */
const MAX_PREFIX_BYTES = 700;

function prefixFault(prefix: string): string | null {
  if (Buffer.byteLength(prefix) > MAX_PREFIX_BYTES) return `must have at most ${MAX_PREFIX_BYTES} bytes`;
  if (prefix.startsWith('/') || prefix.includes('//')) return 'must have no empty folder';
  if (prefix.split('/').some((part) => part === '.' || part === '..')) return 'must have no . or .. in it';
  // biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what is kept out
  return /[\u0000-\u001f\u007f]/.test(prefix) ? 'must have no control characters' : null;
}

export const optionsSchema = z.strictObject({
  bucket: z
    .string()
    .regex(BUCKET, 'must be the name of a bucket: 3 to 63 lower-case letters, digits, dots and hyphens')
    .describe('the bucket; it must exist'),
  prefix: z
    .string()
    .superRefine((prefix, context) => {
      const fault = prefixFault(prefix);
      if (fault !== null) context.addIssue({ code: 'custom', message: fault });
    })
    .default('')
    .describe('the folder of this mirror in the bucket; no other writer may use it'),
  gzip: z.boolean().default(false).describe('true or false; true compresses the parts'),
  keep_superseded: z
    .int()
    .min(0)
    .max(100)
    .default(1)
    .describe('how many superseded sets are kept besides the current one'),
  keep_superseded_ms: z
    .int()
    .min(0)
    .max(31_536_000_000)
    .default(3_600_000)
    .describe('milliseconds that a superseded set is kept at least, for readers that have its manifest'),
  encryption: z
    .union([z.literal('AES256'), z.strictObject({ kms_key_id: z.string().min(1) })])
    .optional()
    .describe('encryption at rest other than the bucket’s own: AES256 or {kms_key_id}'),
});

export type S3Options = z.output<typeof optionsSchema>;

/** With its slash at the end; empty: the bucket itself. */
export function folderOf({ prefix }: S3Options): string {
  return prefix === '' || prefix.endsWith('/') ? prefix : `${prefix}/`;
}
