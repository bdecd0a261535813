/** The hashes of planning: over texts, as the journal takes them, and over what the guard shows. */

import { createHash } from 'node:crypto';

export { sha256Hex, sha256Latin1 } from '../journal/hash.ts';

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
