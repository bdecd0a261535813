/**
 * Artifacts: immutable bytes addressed by the hash of their type and content (design.md sections 2 and 7). The type is part
 * of the hash, so that no artifact of one type can be passed off as another; what is hashed is also what files and object
 * stores hold, so that any tool's SHA-256 of such a file is its name. docs/checkpoint-format.md has the form.
 */

import { ByteReader, ByteWriter, concatBytes } from './byte-form.ts';
import { type ArtifactReference, sha256FromHex } from './ids.ts';

export interface Artifact {
  /** What the bytes are: `retl.projection-checkpoint`. A later form of the same thing has its version in the bytes. */
  readonly type: string;
  readonly bytes: Uint8Array;
}

/** 16 MiB: one artifact is read, hashed and sent whole. What is larger is cut, by whoever knows where. */
export const MAX_ARTIFACT_BYTES = 16_777_216;

export const CHECKPOINT_ARTIFACT = 'retl.projection-checkpoint';
/** Of no content: shows that a store takes artifacts. */
export const PROBE_ARTIFACT = 'retl.probe';

/** Separates these hashes from every other that the project makes. */
const DOMAIN = 'retl.artifact.1';
const TYPE = /^[a-z][a-z0-9]*([.-][a-z0-9]+)*$/;
const MAX_TYPE_BYTES = 64;

/** SHA-256 over parts that follow each other, as 64 lower-case hex digits. */
export type HashBytes = (parts: readonly Uint8Array[]) => string;

/** What comes before the content in what is hashed and in what is kept in files. @throws RangeError: no type's name */
export function artifactHead(type: string): Uint8Array {
  if (!TYPE.test(type) || type.length > MAX_TYPE_BYTES)
    throw new RangeError('not the name of an artifact type');
  const head = new ByteWriter();
  head.string('domain', DOMAIN, MAX_TYPE_BYTES);
  head.string('type', type, MAX_TYPE_BYTES);
  const end = head.end();
  if (end.kind === 'refused') throw new RangeError('not the name of an artifact type');
  return end.bytes;
}

/** @throws RangeError where `type` is no type's name. */
export function artifactReference({ type, bytes }: Artifact, hash: HashBytes): ArtifactReference {
  return sha256FromHex(hash([artifactHead(type), bytes]));
}

/** The artifact as one byte string: head and content. @throws RangeError where `type` is no type's name. */
export function packArtifact({ type, bytes }: Artifact): Uint8Array {
  return concatBytes([artifactHead(type), bytes]);
}

/** Bytes that the head of an artifact can have at most. */
export const MAX_HEAD_BYTES = 8 + DOMAIN.length + MAX_TYPE_BYTES;

/** `null` where the bytes are no packed artifact. Whether it is the one that was asked for, only its hash tells. */
export function unpackArtifact(packed: Uint8Array): Artifact | null {
  const from = new ByteReader(packed);
  const domain = from.string('domain', MAX_TYPE_BYTES);
  const type = from.string('type', MAX_TYPE_BYTES);
  if (from.fault !== null || domain !== DOMAIN || !TYPE.test(type)) return null;
  return { type, bytes: packed.subarray(artifactHead(type).length) };
}
