/** Takes parts away in bounded steps: those of an aborted run, and those of sets that no reader needs any more. */

import type { Tidied } from '../port.ts';
import type { Bucket } from './bucket.ts';
import type { Failure } from './failures.ts';
import { foldersInUse, type Layout, type Manifest, type Retention } from './manifest.ts';

export type Emptied =
  | { readonly kind: 'empty'; readonly removed: number }
  | { readonly kind: 'more'; readonly removed: number }
  | Failure;

/** Deletes up to a page of a folder's parts. */
export async function emptyFolder(bucket: Bucket, layout: Layout, folder: string): Promise<Emptied> {
  const page = await bucket.list(`${layout.parts}${folder}/`, null, false);
  if (page.kind === 'absent') return { kind: 'empty', removed: 0 };
  if (page.kind !== 'listed') return page;
  const removed = page.objects.length;
  if (removed === 0) return { kind: 'empty', removed };
  const done = await bucket.remove(page.objects.map(({ key }) => key));
  if (done.kind !== 'removed') return done;
  return { kind: page.next === null ? 'empty' : 'more', removed };
}

export interface Tidying {
  readonly bucket: Bucket;
  readonly layout: Layout;
  readonly retention: Retention;
  now(): number;
}

/**
 * One step: the first folder of this mirror that is older than the published one and that no reader may be reading. Runs follow
 * one another, so that an older run's folder is closed for good; what belongs to others is never touched.
 */
export async function tidyStep(t: Tidying, manifest: Manifest): Promise<Tidied> {
  const { published } = manifest;
  const newest = published === null ? null : t.layout.runOf(published.folder);
  if (newest === null) return { kind: 'done' };
  const inUse = foldersInUse(manifest, t.retention, t.now());
  const old = (folder: string): boolean => {
    const run = t.layout.runOf(folder);
    return run !== null && run < newest && !inUse.has(folder);
  };
  for (let from: string | null = null; ; ) {
    const page = await t.bucket.list(t.layout.parts, from, true);
    if (page.kind === 'absent') return { kind: 'done' };
    if (page.kind !== 'listed') return { kind: 'failed', code: page.code };
    for (const folder of page.folders.map((path) => path.slice(t.layout.parts.length, -1)).filter(old)) {
      const emptied = await emptyFolder(t.bucket, t.layout, folder);
      if (emptied.kind !== 'empty' && emptied.kind !== 'more') return { kind: 'failed', code: emptied.code };
      // Some stores go on listing a folder that has nothing in it.
      if (emptied.removed > 0) return { kind: 'more' };
    }
    if (page.next === null) return { kind: 'done' };
    from = page.next;
  }
}
