/** What stores outside of the journal keep of an artifact: its head and content in one, whose SHA-256 is its name. */

import { MAX_ARTIFACT_BYTES, MAX_HEAD_BYTES, unpackArtifact } from '../../domain/artifact.ts';
import { type ArtifactReference, hexOf, sha256FromHex } from '../../domain/ids.ts';
import { type GotArtifact, sha256Parts } from '../../journal/artifact-store.ts';

/** No packed artifact is longer: what is need not be read. */
export const MAX_PACKED_BYTES = MAX_HEAD_BYTES + MAX_ARTIFACT_BYTES;

export function verifyPacked(reference: ArtifactReference, packed: Uint8Array): GotArtifact {
  if (sha256Parts([packed]) !== hexOf(reference)) return { kind: 'corrupt' };
  const artifact = unpackArtifact(packed);
  return artifact === null ? { kind: 'corrupt' } : { kind: 'found', artifact };
}

const NAME = /^[0-9a-f]{64}$/;

/** `null`: not the name of an artifact. */
export function referenceOfName(name: string): ArtifactReference | null {
  return NAME.test(name) ? sha256FromHex(name) : null;
}
