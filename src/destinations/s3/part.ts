/**
 * A request as one immutable object: its body is NDJSON already, one member a line. Key and bytes follow from the request,
 * so that the same request twice is the same object (rule 3), and a repeat is told from another by what it holds.
 */

import { createHash } from 'node:crypto';
import { promisify } from 'node:util';
import { gunzip, gzip } from 'node:zlib';
import { z } from 'zod';
import { type BatchId, hexOf } from '../../domain/ids.ts';
import type { AcceptedUpload, BatchRequest, Receipt } from '../port.ts';

const compress = promisify(gzip);
const expand = promisify(gunzip);

export interface EncodedPart {
  readonly name: string;
  readonly contentType: string;
  readonly body: Buffer;
}

export async function encodePart(request: BatchRequest, gzipped: boolean): Promise<EncodedPart> {
  const plain = Buffer.from(request.body);
  const name = partName(request.batchId, gzipped);
  if (!gzipped) return { name, contentType: 'application/x-ndjson', body: plain };
  return { name, contentType: 'application/gzip', body: await compress(plain) };
}

export function partName(batch: BatchId, gzipped: boolean): string {
  return `${hexOf(batch)}.ndjson${gzipped ? '.gz' : ''}`;
}

/**
 * Whether a stored object holds this request. Another release may compress to other bytes: what is compared is what a reader
 * gets.
 */
export async function holdsRequest(
  stored: Buffer,
  request: BatchRequest,
  gzipped: boolean,
): Promise<boolean> {
  try {
    return (gzipped ? await expand(stored) : stored).equals(Buffer.from(request.body));
  } catch {
    return false; // no gzip
  }
}

/** How many members a stored object holds, one a line; `null`: it is no part. */
export async function countMembers(stored: Buffer, gzipped: boolean): Promise<number | null> {
  try {
    const plain = gzipped ? await expand(stored) : stored;
    let lines = 0;
    for (let at = plain.indexOf(LINE_END); at !== -1; at = plain.indexOf(LINE_END, at + 1)) lines += 1;
    return plain.length === 0 || plain.at(-1) === LINE_END ? lines : null;
  } catch {
    return null; // no gzip
  }
}

const LINE_END = 0x0a;

const receiptSchema = z.object({
  key: z.string(),
  members: z.int(),
  bytes: z.int(),
  sha256: z.string(),
  etag: z.string(),
});

export type PartReceipt = z.infer<typeof receiptSchema>;

export function partReceipt(key: string, members: number, stored: Buffer, etag: string): PartReceipt {
  return {
    key,
    members,
    bytes: stored.length,
    sha256: `sha256:${createHash('sha256').update(stored).digest('hex')}`,
    etag,
  };
}

/**
 * `null`: somebody has vouched for the upload, and nothing is known of its part.
 * @throws ZodError where the journal gives back what this adapter never answered: a bug
 */
export function readReceipt({ receipt }: AcceptedUpload): PartReceipt | null {
  return isVouched(receipt) ? null : receiptSchema.parse(receipt);
}

/** What stands for the receipt after `retl resolve <upload> --accepted`. */
function isVouched({ resolved }: Receipt): boolean {
  return resolved === 'accepted';
}
