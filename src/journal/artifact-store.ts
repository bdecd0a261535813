/**
 * The port for artifacts (design.md section 7), wherever they are kept: the journal's own tables by default
 * (artifacts.ts), files or an object store (src/indexing/artifacts). A put is idempotent, a get verifies, and nothing
 * that stands under a reference is ever changed.
 */

import { createHash } from 'node:crypto';
import { type Artifact, artifactReference, type HashBytes } from '../domain/artifact.ts';
import type { ArtifactReference } from '../domain/ids.ts';

export type PutArtifact =
  /** `present`: it was there before, byte for byte. */
  | { readonly kind: 'stored' | 'present'; readonly reference: ArtifactReference }
  /** Something else stands under its reference: it was damaged there. It is left as it is. */
  | { readonly kind: 'corrupt'; readonly reference: ArtifactReference }
  /** More than `MAX_ARTIFACT_BYTES`. */
  | { readonly kind: 'too-large'; readonly bytes: number };

export type GotArtifact =
  /** Its hash is the reference. */
  | { readonly kind: 'found'; readonly artifact: Artifact }
  | { readonly kind: 'missing' }
  /** What is there is not what the reference says. */
  | { readonly kind: 'corrupt' };

/**
 * Every method throws where the store is away or refuses to be used: `JournalError` from the journal, else `RetlError`
 * `artifact.unavailable` or `artifact.misconfigured`.
 */
export interface ArtifactStore {
  /** It is durable, and visible to every get, when this resolves. @throws RangeError where its type is no type's name */
  put(artifact: Artifact): Promise<PutArtifact>;
  get(reference: ArtifactReference): Promise<GotArtifact>;
  /**
   * References in ascending order, from the one after `after` (`null`: the first); `limit` of them, fewer only at the end.
   * Damaged artifacts are among them.
   */
  list(after: ArtifactReference | null, limit: number): Promise<readonly ArtifactReference[]>;
}

/** A reference whose artifact cannot be had. */
export interface ArtifactFault {
  readonly reference: ArtifactReference;
  readonly kind: 'missing' | 'corrupt';
}

const PAGE = 500;

export interface VerifiedArtifacts {
  readonly checked: number;
  /** Each reference once. */
  readonly faults: readonly ArtifactFault[];
}

/**
 * Reads everything that a store holds, and what else it is expected to hold.
 * @throws as the store does
 */
export async function verifyArtifacts(
  store: ArtifactStore,
  expected: Iterable<ArtifactReference> = [],
): Promise<VerifiedArtifacts> {
  const awaited = new Set(expected);
  const faults: ArtifactFault[] = [];
  let checked = 0;
  const check = async (reference: ArtifactReference): Promise<void> => {
    const { kind } = await store.get(reference);
    checked += 1;
    if (kind !== 'found') faults.push({ reference, kind });
  };
  let page = await store.list(null, PAGE);
  for (let last = page.at(-1); last !== undefined; last = page.at(-1)) {
    for (const reference of page) {
      awaited.delete(reference);
      await check(reference);
    }
    page = await store.list(last, PAGE);
  }
  for (const reference of awaited) await check(reference);
  return { checked, faults };
}

export const sha256Parts: HashBytes = (parts) => {
  const hash = createHash('sha256');
  for (const part of parts) hash.update(part);
  return hash.digest('hex');
};

/** @throws RangeError where its type is no type's name */
export function referenceOf(artifact: Artifact): ArtifactReference {
  return artifactReference(artifact, sha256Parts);
}
