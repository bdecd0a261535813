/** The bytes of a checkpoint (design.md section 7): one value, one byte string, for ever. */

import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { MAX_U32, MAX_U64 } from '../../src/domain/byte-form.ts';
import { type Checkpoint, checkpointJson } from '../../src/domain/checkpoint.ts';
import {
  CHECKPOINT_VERSION,
  decodeCheckpoint,
  encodeCheckpoint,
  MAX_STRING_BYTES,
} from '../../src/domain/checkpoint-codec.ts';
import { blocks, page, rows, section } from '../docs/pages.ts';
import {
  anyText,
  bytesOf,
  checkpoints,
  goldenVectors,
  MINIMAL,
  told,
  toldByPython,
  u64,
} from './checkpoint-support.ts';

const GOLDEN = goldenVectors();

describe('golden vectors', () => {
  test.each(GOLDEN.map((vector) => [vector.name, vector] as const))('%s', (_, { bytes, says }) => {
    expect(told(bytes)).toEqual(says);
  });

  test('every reason to refuse bytes has a vector, and every optional field', () => {
    const text = JSON.stringify(GOLDEN.map(({ says }) => says));
    const reasons = rows(section(page('docs/checkpoint-format.md'), 'Refusals')).map(([reason]) => reason);
    expect(reasons).toHaveLength(6);
    for (const reason of reasons) expect(text).toContain(`"reason":"${reason?.replaceAll('`', '')}"`);
    const fields = rows(section(page('docs/checkpoint-format.md'), 'Fields'));
    const optional = fields.filter(([, , bit]) => bit !== '').map(([field]) => field?.replaceAll('`', ''));
    expect(optional).toHaveLength(6);
    for (const field of optional) expect(text).toMatch(new RegExp(`"${field}":("|\\d)`));
  });
});

describe('one value, one encoding', () => {
  test('every checkpoint comes back from its bytes', () => {
    fc.assert(
      fc.property(checkpoints, (checkpoint) => {
        expect(decodeCheckpoint(bytesOf(checkpoint))).toEqual({ kind: 'decoded', checkpoint });
      }),
    );
  });

  test('one field that differs makes other bytes, and nothing else does', () => {
    const fields = fc.constantFrom(...(Object.keys(MINIMAL) as (keyof Checkpoint)[]));
    fc.assert(
      fc.property(checkpoints, checkpoints, fields, (one, source, field) => {
        const other = { ...one, [field]: source[field] };
        const [a, b] = [bytesOf(one), bytesOf(other)].map((bytes) => Buffer.from(bytes).toString('hex'));
        expect(a === b).toBe(one[field] === source[field]);
      }),
    );
  });

  /** Bytes near a valid form: one part replaced, cut out, doubled or added. */
  const mutated = fc
    .tuple(
      checkpoints.map(bytesOf),
      fc.nat(),
      fc.nat({ max: 9 }),
      fc.oneof(fc.uint8Array({ maxLength: 9 }), fc.constantFrom(Uint8Array.of(0, 0, 0, 1), Uint8Array.of(0))),
    )
    .map(([bytes, at, remove, insert]) => {
      const start = at % (bytes.length + 1);
      const [before, after] = [bytes.subarray(0, start), bytes.subarray(start + remove)];
      return new Uint8Array(Buffer.concat([before, insert, after]));
    });

  test('whatever bytes are accepted, encoding what they mean gives those very bytes', () => {
    let accepted = 0;
    const back = (bytes: Uint8Array) => {
      const decoded = decodeCheckpoint(bytes);
      if (decoded.kind === 'refused') return;
      accepted += 1;
      expect(Buffer.from(bytesOf(decoded.checkpoint)).toString('hex')).toBe(
        Buffer.from(bytes).toString('hex'),
      );
    };
    fc.assert(fc.property(mutated, back), { numRuns: 3000 });
    fc.assert(fc.property(fc.uint8Array({ maxLength: 80 }), back));
    expect(accepted).toBeGreaterThan(100);
  });

  test('no change of a single byte goes unnoticed: another checkpoint, or none', () => {
    const bytes = bytesOf({ ...MINIMAL, aslSnapshotId: 7n, note: 'Zo\u00eb \u{1f600}' });
    for (let at = 0; at < bytes.length; at++) {
      for (const flip of [0x01, 0x10, 0x80, 0xff]) {
        const other = Uint8Array.from(bytes);
        other[at] = (other[at] ?? 0) ^ flip;
        expect(decodeCheckpoint(other)).not.toEqual(decodeCheckpoint(bytes));
      }
    }
  });

  test('every beginning of a checkpoint lacks bytes, and says how many at least', () => {
    const bytes = bytesOf({ ...MINIMAL, artifactCount: 1n, note: 'end' });
    for (let length = 0; length < bytes.length; length++) {
      const decoded = decodeCheckpoint(bytes.subarray(0, length));
      expect(decoded).toMatchObject({ kind: 'refused', fault: { reason: 'missing-bytes' } });
      if (decoded.kind === 'refused' && decoded.fault.reason === 'missing-bytes')
        expect(decoded.fault.needed).toBeLessThanOrEqual(bytes.length - length);
    }
  });

  test('bytes in the middle of a larger buffer are read from their own beginning', () => {
    const bytes = bytesOf(MINIMAL);
    const around = Buffer.concat([Buffer.alloc(5, 0xff), bytes, Buffer.alloc(3, 0xff)]);
    expect(decodeCheckpoint(around.subarray(5, 5 + bytes.length))).toEqual({
      kind: 'decoded',
      checkpoint: MINIMAL,
    });
  });
});

describe('values that have no bytes', () => {
  const faultOf = (change: Partial<typeof MINIMAL>) => {
    const encoded = encodeCheckpoint({ ...MINIMAL, ...change });
    return encoded.kind === 'refused' ? encoded.fault : null;
  };

  test('nul+surrogates: half of a surrogate pair is refused, wherever it stands, never replaced', () => {
    for (const text of ['\ud83d', '\ude00', 'a\ud83db', '\ude00\ud83d', '\u{1f600}\ud83d']) {
      const reason = 'lone-surrogate';
      expect(faultOf({ projectionName: text })).toEqual({ reason, field: 'projection_name' });
      expect(faultOf({ builderId: text })).toEqual({ reason, field: 'builder_id' });
      expect(faultOf({ note: text })).toEqual({ reason, field: 'note' });
    }
  });

  test('numbers outside of u32 and u64 are refused, the limits are not', () => {
    for (const value of [-1, MAX_U32 + 1, 1.5, Number.NaN, Number.POSITIVE_INFINITY])
      expect(faultOf({ projectionSchemaVersion: value })).toEqual({
        reason: 'out-of-range',
        field: 'projection_schema_version',
      });
    for (const value of [-1n, MAX_U64 + 1n])
      expect(faultOf({ lagMillis: value })).toEqual({ reason: 'out-of-range', field: 'lag_millis' });
    expect(faultOf({ projectionSchemaVersion: MAX_U32, aslLogPosition: MAX_U64, lagMillis: 0n })).toBeNull();
  });

  test('the limit of a string is in bytes, not characters, for writer and reader alike', () => {
    const longest = '\u00e9'.repeat(MAX_STRING_BYTES / 2);
    expect(faultOf({ note: `${longest}x` })).toEqual({ reason: 'string-too-long', field: 'note' });
    const bytes = bytesOf({ ...MINIMAL, note: longest });
    expect(decodeCheckpoint(bytes)).toMatchObject({ kind: 'decoded', checkpoint: { note: longest } });
  });
});

describe('docs/checkpoint-format.md', () => {
  const PAGE = page('docs/checkpoint-format.md');

  test('its example is the golden one', () => {
    const [hex = ''] = blocks(PAGE, 'hex');
    const example = GOLDEN.find(({ name }) => name === 'example');
    expect(hex.replaceAll(/\s/g, '')).toBe(Buffer.from(example?.bytes ?? []).toString('hex'));
  });

  test('its fields stand in the order of the bytes', () => {
    const named = rows(section(PAGE, 'Fields')).map(([field]) => field?.replaceAll('`', ''));
    const inJson = Object.keys(checkpointJson(MINIMAL, CHECKPOINT_VERSION));
    expect(named).toEqual(['checkpoint_version', 'presence', ...inJson.slice(1)]);
  });

  test('a decoder written from the page alone says the same of every vector, and of bytes at random', () => {
    const sound = fc.sample(checkpoints.map(bytesOf), { numRuns: 200, seed: 1 });
    const other = fc.sample(
      fc.tuple(checkpoints.map(bytesOf), fc.nat(), u64, anyText).map(([bytes, at, number, text]) => {
        const wrong = Buffer.from(bytes);
        const start = at % bytes.length;
        const rest = bytes.length - start;
        if (rest < 8) return Buffer.concat([wrong, Buffer.from(text)]);
        wrong.writeBigUInt64BE(number, start);
        return wrong.subarray(0, bytes.length - (at % 3));
      }),
      { numRuns: 400, seed: 2 },
    );
    const all = [...GOLDEN.map(({ bytes }) => bytes), ...sound, ...other];
    expect(toldByPython(all)).toEqual(all.map(told));
    expect(new Set(all.map((bytes) => decodeCheckpoint(bytes).kind)).size).toBe(2);
  });
});
