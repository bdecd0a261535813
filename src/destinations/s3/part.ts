/**
 * A request as one immutable object: its body is NDJSON already, one member a line. Key and bytes follow from the request,
 * so that the same request twice is the same object (rule 3), and a repeat is told from another by what it holds.
 */

import { createHash } from 'node:crypto';
import { promisify } from 'node:util';
import { gunzip, gzip } from 'node:zlib';
import { z } from 'zod';
import { hexOf } from '../../domain/ids.ts';
import type { BatchRequest, Receipt } from '../port.ts';

const compress = promisify(gzip);
const expand = promisify(gunzip);

export interface EncodedPart {
  readonly name: string;
  readonly contentType: string;
  readonly body: Buffer;
}

export async function encodePart(request: BatchRequest, gzipped: boolean): Promise<EncodedPart> {
  const plain = Buffer.from(request.body);
  const name = `${hexOf(request.batchId)}.ndjson`;
  if (!gzipped) return { name, contentType: 'application/x-ndjson', body: plain };
  return { name: `${name}.gz`, contentType: 'application/gzip', body: await compress(plain) };
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

const receiptSchema = z.object({
  key: z.string(),
  members: z.int(),
  bytes: z.int(),
  sha256: z.string(),
  etag: z.string(),
});

export type PartReceipt = z.infer<typeof receiptSchema>;

export function partReceipt(key: string, request: BatchRequest, stored: Buffer, etag: string): PartReceipt {
  return {
    key,
    members: request.operations.length,
    bytes: stored.length,
    sha256: `sha256:${createHash('sha256').update(stored).digest('hex')}`,
    etag,
  };
}

/** @throws ZodError where the journal gives back what this adapter never answered: a bug. */
export function readReceipt(receipt: Receipt): PartReceipt {
  return receiptSchema.parse(receipt);
}
