/**
 * Several stores as one: what is put goes to the first, and is looked for in each. A project may so change its store without
 * losing checkpoints. What is damaged in one is told, and not made up for by another.
 */

import type { ArtifactReference } from '../../domain/ids.ts';
import type { ArtifactStore, GotArtifact } from '../../journal/artifact-store.ts';

export function chainArtifacts(first: ArtifactStore, former: readonly ArtifactStore[]): ArtifactStore {
  if (former.length === 0) return first;
  const all = [first, ...former];
  return {
    put: (artifact) => first.put(artifact),
    async get(reference): Promise<GotArtifact> {
      for (const store of all) {
        const got = await store.get(reference);
        if (got.kind !== 'missing') return got;
      }
      return { kind: 'missing' };
    },
    async list(after, limit) {
      const found = new Set<ArtifactReference>();
      for (const store of all) for (const reference of await store.list(after, limit)) found.add(reference);
      return [...found].sort().slice(0, limit);
    },
  };
}

/** A store that is opened when it is first asked something. */
export function lazyArtifacts(open: () => Promise<ArtifactStore>): ArtifactStore {
  let opened: Promise<ArtifactStore> | null = null;
  const store = () => {
    // What failed once, as with a secret that was missing, is tried again.
    opened ??= open().catch((error: unknown) => {
      opened = null;
      throw error;
    });
    return opened;
  };
  return {
    put: async (artifact) => (await store()).put(artifact),
    get: async (reference) => (await store()).get(reference),
    list: async (after, limit) => (await store()).list(after, limit),
  };
}
