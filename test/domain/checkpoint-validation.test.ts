/** What an indexer checks of a checkpoint before it goes on from it (design.md section 7): each fault has its own code. */

import { describe, expect, test } from 'vitest';
import {
  type IndexDefinition,
  type LogState,
  type RecordedCheckpoint,
  type SnapshotMark,
  validateCheckpoint,
} from '../../src/domain/checkpoint-validation.ts';
import { ERROR_CODES } from '../../src/domain/errors.ts';
import { logPosition, sha256FromHex } from '../../src/domain/ids.ts';
import { INDEX_CODES } from '../../src/domain/index-codes.ts';
import { MINIMAL } from './checkpoint-support.ts';

const hash = (digit: string) => sha256FromHex(digit.repeat(64));
const at = logPosition;

const DEFINITION: IndexDefinition = { name: 'members', schemaVersion: 1, fingerprint: hash('f') };
const SNAPSHOT: SnapshotMark = { id: 7n, boundary: at(40), digest: hash('5') };

const CHECKPOINT = { ...MINIMAL, aslLogPosition: 42n };
const RECORDED: RecordedCheckpoint = {
  reference: hash('1'),
  decoded: { kind: 'decoded', checkpoint: CHECKPOINT },
  position: at(42),
  logId: 'log-1',
  entryHash: hash('e'),
  fingerprint: hash('f'),
  snapshot: null,
};
const BEGAN_WITH_SNAPSHOT: RecordedCheckpoint = {
  ...RECORDED,
  decoded: { kind: 'decoded', checkpoint: { ...CHECKPOINT, aslSnapshotId: 7n } },
  snapshot: SNAPSHOT,
};
const LOG: LogState = {
  logId: 'log-1',
  head: at(50),
  earliest: at(1),
  entryHash: hash('e'),
  snapshot: null,
};

/** `valid`, or the code and what follows from it. */
function verdict(recorded: RecordedCheckpoint, log: LogState, definition = DEFINITION): string {
  const validation = validateCheckpoint(recorded, log, definition);
  return validation.kind === 'valid' ? 'valid' : `${validation.code}: ${validation.remedy}`;
}

const decoded = (change: Partial<typeof CHECKPOINT>, of = RECORDED): RecordedCheckpoint => ({
  ...of,
  decoded: { kind: 'decoded', checkpoint: { ...CHECKPOINT, ...change } },
});

describe('a checkpoint that is in order', () => {
  test('replay goes on at the position after it', () => {
    const validation = validateCheckpoint(RECORDED, LOG, DEFINITION);
    expect(validation).toEqual({ kind: 'valid', checkpoint: CHECKPOINT, replayFrom: 43n });
  });

  test('it may stand at the head, at the head of an empty log, and at the boundary of a compaction', () => {
    expect(verdict(RECORDED, { ...LOG, head: at(42) })).toBe('valid');
    const empty = { ...decoded({ aslLogPosition: 0n }), position: at(0), entryHash: hash('0') };
    expect(verdict(empty, { ...LOG, head: at(0), entryHash: hash('0') })).toBe('valid');
    expect(verdict(RECORDED, { ...LOG, earliest: at(43) })).toBe('valid');
  });

  test('its log snapshot is there, with the boundary and the digest that were recorded', () => {
    expect(verdict(BEGAN_WITH_SNAPSHOT, { ...LOG, snapshot: SNAPSHOT })).toBe('valid');
    const atBoundary = { ...SNAPSHOT, boundary: at(42) };
    expect(verdict({ ...BEGAN_WITH_SNAPSHOT, snapshot: atBoundary }, { ...LOG, snapshot: atBoundary })).toBe(
      'valid',
    );
  });
});

describe('refusals', () => {
  const refused = (fault: Parameters<typeof String>[0]) => ({
    ...RECORDED,
    decoded: { kind: 'refused', fault } as RecordedCheckpoint['decoded'],
  });

  test.each<[string, RecordedCheckpoint, LogState, IndexDefinition, string]>([
    [
      'a schema version that differs',
      RECORDED,
      LOG,
      { ...DEFINITION, schemaVersion: 2 },
      'index.schema-changed: full-replay',
    ],
    [
      'a schema version of a newer release',
      decoded({ projectionSchemaVersion: 2 }),
      LOG,
      DEFINITION,
      'index.newer-release: stop',
    ],
    [
      'a schema version of another form, which is neither older nor newer',
      decoded({ projectionSchemaVersion: 1_001 }),
      LOG,
      DEFINITION,
      'index.schema-changed: full-replay',
    ],
    [
      'another definition under the same name and version',
      RECORDED,
      LOG,
      { ...DEFINITION, fingerprint: hash('a') },
      'index.definition-changed: stop',
    ],
    [
      'a position ahead of the head',
      RECORDED,
      { ...LOG, head: at(41), entryHash: null },
      DEFINITION,
      'index.ahead-of-log: stop',
    ],
    ['another log', RECORDED, { ...LOG, logId: 'log-2' }, DEFINITION, 'index.other-log: stop'],
    [
      'a log that was restored and has grown again',
      RECORDED,
      { ...LOG, entryHash: hash('d') },
      DEFINITION,
      'index.log-diverged: stop',
    ],
    [
      'a log without the entry, though not compacted',
      RECORDED,
      { ...LOG, entryHash: null },
      DEFINITION,
      'index.log-diverged: stop',
    ],
    [
      'a version that is not supported',
      refused({ reason: 'unsupported-version', version: 2 }),
      LOG,
      DEFINITION,
      'index.checkpoint-version: stop',
    ],
    [
      'bytes that are no checkpoint',
      refused({ reason: 'trailing-bytes', offset: 1, bytes: 1 }),
      LOG,
      DEFINITION,
      'index.checkpoint-damaged: stop',
    ],
    [
      'the checkpoint of another index',
      decoded({ projectionName: 'other' }),
      LOG,
      DEFINITION,
      'index.checkpoint-damaged: stop',
    ],
    [
      'the checkpoint of another position',
      decoded({ aslLogPosition: 41n }),
      LOG,
      DEFINITION,
      'index.checkpoint-damaged: stop',
    ],
    [
      'a snapshot in the checkpoint alone',
      { ...BEGAN_WITH_SNAPSHOT, snapshot: null },
      { ...LOG, snapshot: SNAPSHOT },
      DEFINITION,
      'index.checkpoint-damaged: stop',
    ],
    [
      'a snapshot beside the checkpoint alone',
      { ...RECORDED, snapshot: SNAPSHOT },
      { ...LOG, snapshot: SNAPSHOT },
      DEFINITION,
      'index.checkpoint-damaged: stop',
    ],
    ['a snapshot that is gone', BEGAN_WITH_SNAPSHOT, LOG, DEFINITION, 'index.snapshot-mismatch: stop'],
    [
      'a snapshot of another id',
      BEGAN_WITH_SNAPSHOT,
      { ...LOG, snapshot: { ...SNAPSHOT, id: 8n } },
      DEFINITION,
      'index.snapshot-mismatch: stop',
    ],
    [
      'a snapshot of another digest',
      BEGAN_WITH_SNAPSHOT,
      { ...LOG, snapshot: { ...SNAPSHOT, digest: hash('6') } },
      DEFINITION,
      'index.snapshot-mismatch: stop',
    ],
    [
      'a snapshot of another boundary',
      BEGAN_WITH_SNAPSHOT,
      { ...LOG, snapshot: { ...SNAPSHOT, boundary: at(39) } },
      DEFINITION,
      'index.snapshot-mismatch: stop',
    ],
    [
      'a snapshot whose boundary is past the position',
      { ...BEGAN_WITH_SNAPSHOT, snapshot: { ...SNAPSHOT, boundary: at(43) } },
      { ...LOG, snapshot: { ...SNAPSHOT, boundary: at(43) } },
      DEFINITION,
      'index.snapshot-mismatch: stop',
    ],
    [
      'a log that was compacted past the next position',
      RECORDED,
      { ...LOG, earliest: at(44), entryHash: null },
      DEFINITION,
      'index.past-compaction: full-replay',
    ],
  ])('%s', (_, recorded, log, definition, expected) => {
    expect(verdict(recorded, log, definition)).toBe(expected);
  });

  test('that the log is another one is said before anything that a full replay would mend', () => {
    const newer = { ...DEFINITION, schemaVersion: 2 };
    expect(verdict(RECORDED, { ...LOG, logId: 'log-2' }, newer)).toBe('index.other-log: stop');
    expect(verdict(RECORDED, { ...LOG, head: at(41), entryHash: null }, newer)).toBe(
      'index.ahead-of-log: stop',
    );
    const compactedOther = { ...LOG, earliest: at(44), entryHash: hash('d') };
    expect(verdict(RECORDED, compactedOther, newer)).toBe('index.log-diverged: stop');
  });

  test('every code of an index has a meaning and a remedy of its own', () => {
    const texts = Object.values(INDEX_CODES).flatMap(({ meaning, remedy }) => [meaning, remedy]);
    expect(new Set(texts).size).toBe(texts.length);
    expect(ERROR_CODES).toMatchObject(INDEX_CODES);
  });
});
