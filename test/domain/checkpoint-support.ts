/** Checkpoints at random, the golden vectors, and the second decoder. */

import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import fc from 'fast-check';
import { artifactReference, CHECKPOINT_ARTIFACT } from '../../src/domain/artifact.ts';
import { MAX_U32, MAX_U64 } from '../../src/domain/byte-form.ts';
import { type Checkpoint, checkpointJson } from '../../src/domain/checkpoint.ts';
import { CHECKPOINT_VERSION, decodeCheckpoint, encodeCheckpoint } from '../../src/domain/checkpoint-codec.ts';
import { ROOT } from '../architecture/sources.ts';

/** Each bit of the numbers, and their limits, are as likely as small ones. */
const u32 = fc.oneof(fc.constantFrom(0, 1, 2 ** 31, MAX_U32), fc.nat({ max: MAX_U32 }));
export const u64 = fc.oneof(
  fc.constantFrom(0n, 1n, 2n ** 53n + 1n, 2n ** 63n - 1n, 2n ** 63n, MAX_U64),
  fc.bigInt({ min: 0n, max: MAX_U64 }),
);
/** All of Unicode, the control characters and the noncharacters included; never half of a surrogate pair. */
export const anyText = fc.oneof(
  fc.string({ unit: 'binary', maxLength: 40 }),
  fc.string({ unit: 'grapheme', maxLength: 20 }),
  fc.constantFrom('', '\0', '\ufeff', '\ufeffx', '\uffff', 'e\u0301', '\u00e9', '\u{10ffff}'),
);
const optional = <T>(values: fc.Arbitrary<T>) => fc.option(values, { nil: null });

export const checkpoints: fc.Arbitrary<Checkpoint> = fc.record({
  projectionName: anyText,
  projectionSchemaVersion: u32,
  aslSnapshotId: optional(u64),
  aslLogPosition: u64,
  createdAt: u64,
  builderId: anyText,
  artifactCount: optional(u64),
  edgeCount: optional(u64),
  errorCount: optional(u64),
  lagMillis: optional(u64),
  note: optional(anyText),
});

export const MINIMAL: Checkpoint = {
  projectionName: 'members',
  projectionSchemaVersion: 1,
  aslSnapshotId: null,
  aslLogPosition: 42n,
  createdAt: 1_700_000_000_000n,
  builderId: 'b1',
  artifactCount: null,
  edgeCount: null,
  errorCount: null,
  lagMillis: null,
  note: null,
};

/** @throws where the checkpoint has no bytes */
export function bytesOf(checkpoint: Checkpoint): Uint8Array {
  const encoded = encodeCheckpoint(checkpoint);
  if (encoded.kind === 'refused') throw new Error(JSON.stringify(encoded.fault));
  return encoded.bytes;
}

export function sha256Hex(parts: readonly Uint8Array[]): string {
  const hash = createHash('sha256');
  for (const part of parts) hash.update(part);
  return hash.digest('hex');
}

/** What the product says of the bytes, in the form of the golden files. */
export function told(bytes: Uint8Array): unknown {
  const reference = artifactReference({ type: CHECKPOINT_ARTIFACT, bytes }, sha256Hex);
  const decoded = decodeCheckpoint(bytes);
  return decoded.kind === 'decoded'
    ? { reference, checkpoint: checkpointJson(decoded.checkpoint, CHECKPOINT_VERSION) }
    : { reference, refused: decoded.fault };
}

/** What the decoder of docs/ says of each. @throws where there is no Python, or where it fails */
export function toldByPython(all: readonly Uint8Array[]): readonly unknown[] {
  const input = all.map((bytes) => `${Buffer.from(bytes).toString('hex')}\n`).join('');
  const decoder = join(ROOT, 'docs', 'checkpoint_decoder.py');
  const ran = spawnSync('python3', [decoder], { input, encoding: 'utf8', maxBuffer: 1 << 28 });
  if (ran.status !== 0) throw new Error(`python3: ${ran.error?.message ?? ran.stderr}`);
  return ran.stdout
    .trimEnd()
    .split('\n')
    .map((line): unknown => JSON.parse(line));
}

export interface GoldenVector {
  readonly name: string;
  readonly bytes: Uint8Array;
  /** `{reference, checkpoint}` or `{reference, refused}`. */
  readonly says: unknown;
}

/** The committed vectors; none of them was written by the code under test. */
export function goldenVectors(): readonly GoldenVector[] {
  const folder = join(ROOT, 'test', 'domain', 'golden', 'checkpoints');
  const names = readdirSync(folder).filter((file) => file.endsWith('.hex'));
  return names.map((file) => ({
    name: file.replace('.hex', ''),
    bytes: Buffer.from(readFileSync(join(folder, file), 'utf8').trim(), 'hex'),
    says: JSON.parse(readFileSync(join(folder, file.replace('.hex', '.json')), 'utf8')),
  }));
}
