/**
 * The fence (design.md, rule 9): the manifest names its writer, an owner and the epoch of the newest attempt. An attempt
 * takes the fence by writing the manifest anew with its own epoch, on condition that the object is still the one it
 * has read. From then on a conditional write of an older attempt fails, also one that is under way: it expects another ETag.
 *
 * Where a manifest belongs to a mirror or a journal that is gone for good, deleting the object frees the place.
 */

import type { Bucket } from './bucket.ts';
import type { Failure } from './failures.ts';
import { emptyManifest, type Layout, type Manifest, manifestBytes, readManifest } from './manifest.ts';

export interface Writer {
  readonly owner: string;
  /** Whoever of them still is in the manifest has sent nothing: it may be taken. */
  readonly formerOwners?: readonly string[];
  readonly epoch: bigint;
}

/** The manifest as the store has it, under this attempt's epoch. */
export interface Held {
  readonly kind: 'held';
  readonly manifest: Manifest;
  readonly etag: string;
}

export type Seen =
  | { readonly kind: 'found'; readonly manifest: Manifest; readonly etag: string }
  | { readonly kind: 'absent' }
  | Failure;

/** How often another writer may come between reading and writing. */
const TRIES = 5;
const MANIFEST_TYPE = 'application/json';

export class Fence {
  constructor(
    private readonly bucket: Bucket,
    private readonly layout: Layout,
    private readonly writer: Writer,
  ) {}

  async look(): Promise<Seen> {
    const found = await this.bucket.get(this.layout.manifest);
    if (found.kind !== 'found') return found;
    const manifest = readManifest(found.body);
    if (manifest === null) {
      const reason = 'The object manifest.json of this prefix is no manifest of this program.';
      return { kind: 'misconfigured', code: 'manifest-foreign', reason };
    }
    return { kind: 'found', manifest, etag: found.etag };
  }

  /** Takes the fence for this attempt; `mayBegin` also where there is no manifest yet. */
  async take(mayBegin: boolean): Promise<Held | Failure> {
    for (let tries = 0; tries < TRIES; tries++) {
      const seen = beforeWriting(await this.look());
      const next = this.next(seen, mayBegin);
      if (next.kind !== 'write') return next;
      const done = await this.write(next.manifest, seen.kind === 'found' ? seen.etag : null);
      if (done.kind !== 'precondition') return done;
    }
    return { kind: 'not-applied', code: 'manifest-contended', retryAfterMs: null, tooLarge: false };
  }

  /** Replaces the manifest that was last seen; `precondition`: it is another one by now. */
  async write(
    manifest: Manifest,
    etag: string | null,
  ): Promise<Held | { readonly kind: 'precondition' } | Failure> {
    const condition = etag === null ? 'absent' : { etag };
    const { manifest: key } = this.layout;
    const done = await this.bucket.put(key, manifestBytes(manifest), MANIFEST_TYPE, condition);
    return done.kind === 'stored' ? { kind: 'held', manifest, etag: done.etag } : done;
  }

  private next(
    seen: Seen,
    mayBegin: boolean,
  ): Held | Failure | { readonly kind: 'write'; readonly manifest: Manifest } {
    const writer = { owner: this.writer.owner, epoch: String(this.writer.epoch) };
    if (seen.kind === 'absent') {
      return mayBegin ? { kind: 'write', manifest: emptyManifest(writer) } : notTaken();
    }
    if (seen.kind !== 'found') return seen;
    const { manifest, etag } = seen;
    const barred = this.barred(manifest);
    if (barred !== null) return barred;
    if (manifest.writer.epoch === writer.epoch) return { kind: 'held', manifest, etag };
    return { kind: 'write', manifest: { ...manifest, writer } };
  }

  /** Whether a manifest of this owner is one's own, or was left by one that the target was taken from. */
  mayTake(owner: string): boolean {
    return owner === this.writer.owner || (this.writer.formerOwners ?? []).includes(owner);
  }

  private barred({ writer }: Manifest): Failure | null {
    if (!this.mayTake(writer.owner)) {
      return misconfigured(
        'target-owned',
        'The manifest belongs to another mirror or another journal. Where that one is gone for good, delete the manifest.',
      );
    }
    return BigInt(writer.epoch) > this.writer.epoch
      ? misconfigured('fenced', 'A newer attempt has taken over.')
      : null;
  }
}

function notTaken(): Failure {
  return misconfigured('fence-not-taken', 'The manifest is not there: no attempt has taken the fence.');
}

function misconfigured(code: string, reason: string): Failure {
  return { kind: 'misconfigured', code, reason };
}

/** A read whose answer is lost has changed nothing: it is simply made again. */
export function beforeWriting<T extends { readonly kind: string }>(
  answer: T | Failure,
): T | Exclude<Failure, { kind: 'unknown' }> {
  if (!isUnknown(answer)) return answer;
  return { kind: 'not-applied', code: answer.code, retryAfterMs: null, tooLarge: false };
}

function isUnknown<T extends { readonly kind: string }>(
  answer: T | Failure,
): answer is Extract<Failure, { kind: 'unknown' }> {
  return answer.kind === 'unknown';
}
