/**
 * Branded types for everything that names or counts something, built in this one file.
 *
 * A `u64` of the design is a `bigint`; the journal stores it as a PostgreSQL `bigint`, so its range is 1 to 2^63−1.
 */

declare const brand: unique symbol;
type Brand<T, Name extends string> = T & { readonly [brand]: Name };

/** Number of one logical run. */
export type RunId = Brand<bigint, 'RunId'>;
/** Number of one sealed (or loading) desired set; never reused. */
export type GenerationId = Brand<bigint, 'GenerationId'>;
/** Number of one mirror in the journal. */
export type MirrorId = Brand<bigint, 'MirrorId'>;
/** Number of one target in the journal. */
export type TargetId = Brand<bigint, 'TargetId'>;
/** Number of one stored configuration revision. */
export type RevisionId = Brand<bigint, 'RevisionId'>;
/** Fencing token of one attempt; strictly increasing over the whole journal. */
export type Epoch = Brand<bigint, 'Epoch'>;
/** Dense sequence number of one planned operation. */
export type Sequence = Brand<bigint, 'Sequence'>;
/** Number of one construction of an index; never reused. */
export type BuildId = Brand<bigint, 'BuildId'>;
/** Position of a log entry, from 1; 0 is the head of an empty log. */
export type LogPosition = Brand<bigint, 'LogPosition'>;
/** A content hash with its algorithm's name: `sha256:` and 64 lower-case hex digits. */
export type Sha256 = Brand<string, 'Sha256'>;
/** Content hash of an operation (design.md section 5). */
export type OperationId = Sha256;
/** Content hash of a batch (design.md section 5). */
export type BatchId = Sha256;
/** Hash of an artifact's type and content (design.md section 7). */
export type ArtifactReference = Sha256;

const MAX_POSITIVE = 2n ** 63n - 1n;

function positive<T extends Brand<bigint, string>>(what: string): (value: bigint | string | number) => T {
  return (value) => {
    const n = BigInt(value);
    if (n < 1n || n > MAX_POSITIVE) throw new RangeError(`${what} is out of range: it runs from 1 to 2^63-1`);
    return n as T;
  };
}

export const runId = positive<RunId>('run id');
export const generationId = positive<GenerationId>('generation id');
export const mirrorId = positive<MirrorId>('mirror id');
export const targetId = positive<TargetId>('target id');
export const revisionId = positive<RevisionId>('revision id');
export const epoch = positive<Epoch>('epoch');
export const sequence = positive<Sequence>('sequence number');
export const buildId = positive<BuildId>('build number');

/** @throws RangeError unless 0 ≤ value ≤ 2^63−1. */
export function logPosition(value: bigint | string | number): LogPosition {
  const n = BigInt(value);
  if (n < 0n || n > MAX_POSITIVE)
    throw new RangeError('log position is out of range: it runs from 0 to 2^63-1');
  return n as LogPosition;
}

const SHA256 = /^sha256:[0-9a-f]{64}$/;

/** @throws RangeError when the text is not `sha256:` and 64 lower-case hex digits. */
export function sha256(text: string): Sha256 {
  if (!SHA256.test(text)) throw new RangeError('not a sha256 reference');
  return text as Sha256;
}

/**
 * Builds the named form from the 64 lower-case hex digits that a hash function or the journal gave. Millions pass through
 * here: only the length is checked. Text from outside goes through {@link sha256}.
 */
export function sha256FromHex(hex: string): Sha256 {
  if (hex.length !== 64) throw new RangeError('not a sha256 digest in hex');
  return `sha256:${hex}` as Sha256;
}

/** The 64 hex digits behind the algorithm's name. */
export function hexOf(hash: Sha256): string {
  return hash.slice('sha256:'.length);
}
