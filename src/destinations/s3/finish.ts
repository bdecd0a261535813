/**
 * The finish: what is to be published is compared with what the store holds, and then one conditional write makes it visible,
 * whole. Repeated, it finds its own id in the manifest and changes nothing.
 */

import type { AcceptedUpload, FinishRequest, StepOutcome } from '../port.ts';
import type { Bucket, Listing, StoredObject } from './bucket.ts';
import type { Failure } from './failures.ts';
import { beforeWriting, type Fence } from './fence.ts';
import { type Layout, type Published, type Retention, supersede } from './manifest.ts';
import { countMembers, type PartReceipt, partName, partReceipt, readReceipt } from './part.ts';

export interface Finishing {
  readonly bucket: Bucket;
  readonly fence: Fence;
  readonly layout: Layout;
  readonly retention: Retention;
  readonly run: string;
  readonly gzip: boolean;
  now(): number;
  /** Whether the call has taken so long that nothing may be written any more. */
  tooLate(): boolean;
}

/** How often another writer may come between taking the fence and publishing. */
const TRIES = 3;

export async function publish(f: Finishing, request: FinishRequest): Promise<StepOutcome> {
  let parts: readonly PartReceipt[] | null = null;
  for (let tries = 0; tries < TRIES; tries++) {
    const held = await f.fence.take(false);
    if (held.kind !== 'held') return held;
    const { published } = held.manifest;
    if (published?.finish === request.batchId) return accepted(published);
    if (parts === null) {
      const checked = await checkedParts(f, request);
      if (checked.kind !== 'sound') return checked;
      ({ parts } = checked);
    }
    // Rule 3: nothing may reach the store later than this attempt has declared.
    if (f.tooLate()) return { kind: 'not-applied', code: 'too-slow', retryAfterMs: null, tooLarge: false };
    const now = f.now();
    const next = publication(f, request, parts, now);
    const done = await f.fence.write(supersede(held.manifest, next, f.retention, now), held.etag);
    if (done.kind === 'held') return accepted(next);
    if (done.kind !== 'precondition') return done;
  }
  return { kind: 'not-applied', code: 'manifest-contended', retryAfterMs: null, tooLarge: false };
}

function accepted({ generation, members, parts }: Published): StepOutcome {
  return { kind: 'accepted', receipt: { generation, members, parts: parts.length } };
}

function publication(
  f: Finishing,
  request: FinishRequest,
  parts: readonly PartReceipt[],
  now: number,
): Published {
  return {
    generation: request.generation,
    folder: f.layout.folderOf(f.run),
    digest: request.digest,
    members: request.members,
    finish: request.batchId,
    publishedAt: new Date(now).toISOString(),
    compression: f.gzip ? 'gzip' : 'none',
    parts: parts.map(({ key, members, bytes, sha256 }) => ({ key, members, bytes, sha256 })),
  };
}

type Checked =
  | { readonly kind: 'sound'; readonly parts: readonly PartReceipt[] }
  | Exclude<Failure, { kind: 'unknown' }>
  | Extract<StepOutcome, { kind: 'refused' }>;

/** Every part is there as it was uploaded, and together they are the sealed set: nothing less may become visible. */
async function checkedParts(f: Finishing, request: FinishRequest): Promise<Checked> {
  const found = await partsOf(f, request.uploads?.());
  if (found.kind !== 'sound') return found;
  const { parts } = found;
  const members = parts.reduce((sum, part) => sum + part.members, 0);
  if (members !== request.members) {
    return refused('members-differ', 'The uploads do not add up to the members of the sealed set.');
  }
  const stored = await storedParts(f);
  if (stored.kind !== 'stored') return stored;
  const sound = parts.every(({ key, bytes, etag }) => {
    const there = stored.objects.get(key);
    return there?.bytes === bytes && there.etag === etag;
  });
  if (sound) return { kind: 'sound', parts };
  return refused('parts-missing', 'An uploaded part is gone from the store, or is another.');
}

async function partsOf(f: Finishing, uploads: AsyncIterable<AcceptedUpload> | undefined): Promise<Checked> {
  const parts: PartReceipt[] = [];
  for await (const upload of uploads ?? []) {
    const known = readReceipt(upload);
    const found: Checked = known === null ? await vouchedPart(f, upload) : { kind: 'sound', parts: [known] };
    if (found.kind !== 'sound') return found;
    parts.push(...found.parts);
  }
  return { kind: 'sound', parts };
}

/** A person's word makes no object: the store is asked for the part that the upload must have left. */
async function vouchedPart(f: Finishing, { batchId, members }: AcceptedUpload): Promise<Checked> {
  const key = `${folderOf(f)}${partName(batchId, f.gzip)}`;
  const stored = beforeWriting(await f.bucket.get(key));
  if (stored.kind !== 'found' && stored.kind !== 'absent') return stored;
  if (stored.kind === 'absent' || (await countMembers(stored.body, f.gzip)) !== members) {
    const reason = 'An upload was resolved as accepted, and the store does not hold its part whole.';
    return refused('upload-not-proven', reason);
  }
  return { kind: 'sound', parts: [partReceipt(key, members, stored.body, stored.etag)] };
}

function folderOf({ layout, run }: Finishing): string {
  return `${layout.parts}${layout.folderOf(run)}/`;
}

type Stored =
  | { readonly kind: 'stored'; readonly objects: ReadonlyMap<string, StoredObject> }
  | Exclude<Failure, { kind: 'unknown' }>;

async function storedParts(f: Finishing): Promise<Stored> {
  const objects = new Map<string, StoredObject>();
  const folder = folderOf(f);
  let from: string | null = null;
  do {
    const page: Listing | { readonly kind: 'absent' } | Exclude<Failure, { kind: 'unknown' }> = beforeWriting(
      await f.bucket.list(folder, from, false),
    );
    if (page.kind === 'absent') break;
    if (page.kind !== 'listed') return page;
    for (const object of page.objects) objects.set(object.key, object);
    from = page.next;
  } while (from !== null);
  return { kind: 'stored', objects };
}

function refused(code: string, reason: string): Extract<StepOutcome, { kind: 'refused' }> {
  return { kind: 'refused', code, reason };
}
