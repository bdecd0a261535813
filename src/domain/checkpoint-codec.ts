/**
 * The bytes of a checkpoint, version 1 (design.md section 7): one value, one byte string, for ever. docs/checkpoint-format.md
 * is the format's page; the golden vectors of test/domain/golden hold both to it. A change of the format is a new version.
 */

import { ByteReader, ByteWriter, type ReadFault, type WriteFault } from './byte-form.ts';
import type { Checkpoint } from './checkpoint.ts';

export const CHECKPOINT_VERSION = 1;

/** Bytes of UTF-8 that each string may have. */
export const MAX_STRING_BYTES = 65_536;

export type EncodedCheckpoint =
  | { readonly kind: 'encoded'; readonly bytes: Uint8Array }
  | { readonly kind: 'refused'; readonly fault: WriteFault };

/** Why bytes are no checkpoint of version 1. */
export type CheckpointFault =
  | ReadFault
  | { readonly reason: 'unsupported-version'; readonly version: number }
  /** `bits`: the ones that this version does not know. */
  | { readonly reason: 'unknown-presence-bits'; readonly bits: number };

export type DecodedCheckpoint =
  | { readonly kind: 'decoded'; readonly checkpoint: Checkpoint }
  | { readonly kind: 'refused'; readonly fault: CheckpointFault };

/** Bits of the presence bitmap, in the order of the fields that they announce. */
const BIT = {
  aslSnapshotId: 0b00_0001,
  artifactCount: 0b00_0010,
  edgeCount: 0b00_0100,
  errorCount: 0b00_1000,
  lagMillis: 0b01_0000,
  note: 0b10_0000,
} as const satisfies { readonly [Field in keyof Checkpoint]?: number };

type OptionalField = keyof typeof BIT;

const OPTIONAL: readonly OptionalField[] = [
  'aslSnapshotId',
  'artifactCount',
  'edgeCount',
  'errorCount',
  'lagMillis',
  'note',
];
const KNOWN_BITS = OPTIONAL.reduce((bits, field) => bits | BIT[field], 0);

/** The fault names the field as the format's page does; it never repeats a value. */
export function encodeCheckpoint(c: Checkpoint): EncodedCheckpoint {
  const out = new ByteWriter();
  out.u32('checkpoint_version', CHECKPOINT_VERSION);
  out.u32('presence', presenceOf(c));
  out.string('projection_name', c.projectionName, MAX_STRING_BYTES);
  out.u32('projection_schema_version', c.projectionSchemaVersion);
  if (c.aslSnapshotId !== null) out.u64('asl_snapshot_id', c.aslSnapshotId);
  out.u64('asl_log_position', c.aslLogPosition);
  out.u64('created_at', c.createdAt);
  out.string('builder_id', c.builderId, MAX_STRING_BYTES);
  if (c.artifactCount !== null) out.u64('artifact_count', c.artifactCount);
  if (c.edgeCount !== null) out.u64('edge_count', c.edgeCount);
  if (c.errorCount !== null) out.u64('error_count', c.errorCount);
  if (c.lagMillis !== null) out.u64('lag_millis', c.lagMillis);
  if (c.note !== null) out.string('note', c.note, MAX_STRING_BYTES);
  const end = out.end();
  return end.kind === 'written' ? { kind: 'encoded', bytes: end.bytes } : end;
}

/** Whatever the bytes are: a checkpoint that encodes to exactly them, or the reason why there is none. */
export function decodeCheckpoint(bytes: Uint8Array): DecodedCheckpoint {
  const from = new ByteReader(bytes);
  const version = from.u32('checkpoint_version');
  const wrongVersion = from.fault === null && version !== CHECKPOINT_VERSION;
  // Of another version nothing else is known, not even where its fields are.
  if (wrongVersion) return refused({ reason: 'unsupported-version', version });
  const presence = from.u32('presence');
  const unknown = (presence & ~KNOWN_BITS) >>> 0;
  if (unknown !== 0) return refused({ reason: 'unknown-presence-bits', bits: unknown });
  const checkpoint = readFields(from, (field) => (presence & BIT[field]) !== 0);
  const fault = from.end();
  return fault === null ? { kind: 'decoded', checkpoint } : refused(fault);
}

/** In the order of the bytes. */
function readFields(from: ByteReader, has: (field: OptionalField) => boolean): Checkpoint {
  return {
    projectionName: from.string('projection_name', MAX_STRING_BYTES),
    projectionSchemaVersion: from.u32('projection_schema_version'),
    aslSnapshotId: has('aslSnapshotId') ? from.u64('asl_snapshot_id') : null,
    aslLogPosition: from.u64('asl_log_position'),
    createdAt: from.u64('created_at'),
    builderId: from.string('builder_id', MAX_STRING_BYTES),
    artifactCount: has('artifactCount') ? from.u64('artifact_count') : null,
    edgeCount: has('edgeCount') ? from.u64('edge_count') : null,
    errorCount: has('errorCount') ? from.u64('error_count') : null,
    lagMillis: has('lagMillis') ? from.u64('lag_millis') : null,
    note: has('note') ? from.string('note', MAX_STRING_BYTES) : null,
  };
}

function presenceOf(c: Checkpoint): number {
  return OPTIONAL.reduce((bits, field) => (c[field] === null ? bits : bits | BIT[field]), 0);
}

function refused(fault: CheckpointFault): DecodedCheckpoint {
  return { kind: 'refused', fault };
}
