/** The one hash of this project: over the UTF-8 bytes of a text, and over what the guard shows. */

import { createHash, hash } from 'node:crypto';

/** 64 hex digits. */
export function sha256Hex(text: string): string {
  return hash('sha256', text, 'hex');
}

/** The same as 32 bytes in latin-1 text: one call, no Buffer. */
export function sha256Latin1(text: string): string {
  return hash('sha256', text, 'binary');
}

/** What a person answers to, in 64 hex digits, as retl.shown_of computes it (migrations/0002); takes digests in hex. */
export function shownDigest(generation: string, removals: number, removed: string): string {
  const count = Buffer.alloc(8);
  count.writeBigInt64BE(BigInt(removals));
  return createHash('sha256')
    .update('retl-mirror/shown/1\0')
    .update(generation, 'hex')
    .update(count)
    .update(removed, 'hex')
    .digest('hex');
}
