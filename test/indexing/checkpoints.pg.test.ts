/** Checkpoints from their writing to the decision to go on from them, and the faults that stand between (design.md section 7). */

import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { Checkpoint } from '../../src/domain/checkpoint.ts';
import type { CheckpointMark, IndexDefinition } from '../../src/domain/checkpoint-validation.ts';
import { type LogPosition, logPosition, sha256FromHex } from '../../src/domain/ids.ts';
import { checkResume, markOf, refusalOf, storeCheckpoint } from '../../src/indexing/checkpoints.ts';
import { verifyCheckpoints } from '../../src/indexing/verify-checkpoints.ts';
import { journalArtifacts } from '../../src/journal/artifacts.ts';
import { hashBytes } from '../../src/journal/batches.ts';
import {
  beginBuild,
  buildOf,
  type IndexBuild,
  logStateAt,
  newestCheckpoint,
  type PutCheckpoint,
  putCheckpoint,
} from '../../src/journal/checkpoints.ts';
import { logHead } from '../../src/journal/log.ts';
import { compactTo } from '../support/compact.ts';
import { createTestJournal, type TestJournal } from '../support/journal.ts';
import { rowsOf, ScriptedRun, shaHex } from '../support/journal-run.ts';

let journal: TestJournal;
/** Has the same log id, as a journal that was restored to its beginning; what it has grown since is its own. */
let restored: TestJournal;

beforeAll(async () => {
  [journal, restored] = await Promise.all([createTestJournal(), createTestJournal()]);
  const { logId } = await logHead(journal.runtime);
  await restored.admin.query('update retl.journal set log_id = $1', [logId]);
  for (const ids of [{ a: '1' }, { b: '1' }, { c: '1' }, { d: '1' }])
    await ScriptedRun.whole(journal.runtime, { mirror: 'vip' }, rowsOf(ids));
});
afterAll(() => Promise.all([journal.close(), restored.close()]));

const hash = (text: string) => sha256FromHex(shaHex(text));
let serial = 0;
const definitionOf = (change: Partial<IndexDefinition> = {}): IndexDefinition => ({
  name: `index-${serial++}`,
  schemaVersion: 3,
  fingerprint: hash('definition'),
  ...change,
});

const checkpointAt = (
  build: IndexBuild,
  position: LogPosition,
  change: Partial<Checkpoint> = {},
): Checkpoint => ({
  projectionName: build.definition.name,
  projectionSchemaVersion: build.definition.schemaVersion,
  aslSnapshotId: build.snapshot?.id ?? null,
  aslLogPosition: position,
  createdAt: 1_700_000_000_000n,
  builderId: 'tests',
  artifactCount: 1n,
  edgeCount: null,
  errorCount: 0n,
  lagMillis: 0n,
  note: null,
  ...change,
});

interface Built {
  readonly build: IndexBuild;
  readonly mark: CheckpointMark;
}

/** An index that has replayed up to each of the positions, and has made a checkpoint there. */
async function indexAt(
  positions: readonly number[],
  options: { at?: TestJournal; snapshot?: bigint; change?: Partial<Checkpoint> } = {},
): Promise<Built> {
  const db = (options.at ?? journal).runtime;
  const { logId } = await logHead(db);
  const begun = await beginBuild(db, definitionOf(), logId, options.snapshot ?? null);
  const build = begun.kind === 'begun' ? await buildOf(db, begun.build) : null;
  if (build === null) throw new Error(begun.kind);
  for (const position of positions.map(logPosition)) {
    const checkpoint = checkpointAt(build, position, options.change);
    const stored = await storeCheckpoint(journalArtifacts(db), checkpoint);
    if (stored.kind !== 'stored') throw new Error(stored.kind);
    const { entryHash } = await logStateAt(db, position, null);
    if (entryHash === null) throw new Error('no entry');
    const previous = (await newestCheckpoint(db, build.build))?.reference ?? null;
    const draft = { build: build.build, position, previous, logId, entryHash, reference: stored.reference };
    expect(refusalOf(await putCheckpoint(db, draft))).toBeNull();
  }
  const newest = await newestCheckpoint(db, build.build);
  if (newest === null) throw new Error('no checkpoint');
  return { build, mark: markOf(build, newest) };
}

/** `valid` and where replay goes on, or the code and what follows from it. */
async function verdict(
  { mark, build }: Built,
  options: { at?: TestJournal; definition?: Partial<IndexDefinition>; artifacts?: TestJournal } = {},
): Promise<string> {
  const { at = journal, definition = {}, artifacts = at } = options;
  const store = journalArtifacts(artifacts.runtime);
  const validation = await checkResume(at.runtime, store, mark, { ...build.definition, ...definition });
  if (validation.kind === 'valid') return `valid: ${validation.replayFrom}`;
  return `${validation.code}: ${validation.remedy}`;
}

/** As a superuser who switches triggers and constraints off. */
async function tamper(sql: string, values: readonly unknown[]): Promise<void> {
  const client = await journal.admin.connect();
  try {
    await client.query('begin');
    await client.query('set local session_replication_role = replica');
    await client.query(sql, [...values]);
    await client.query('commit');
  } finally {
    client.release();
  }
}

describe('going on from a checkpoint', () => {
  test('what was written is read, validated, and replay goes on at the next position', async () => {
    expect(await verdict(await indexAt([0]))).toBe('valid: 1');
    expect(await verdict(await indexAt([2, 5]))).toBe('valid: 6');
    const { position } = await logHead(journal.runtime);
    expect(await verdict(await indexAt([Number(position)]))).toBe(`valid: ${position + 1n}`);
  });

  test('a new schema version replays everything; a changed definition under the old one stops', async () => {
    const built = await indexAt([2]);
    expect(await verdict(built, { definition: { schemaVersion: 4 } })).toBe(
      'index.schema-changed: full-replay',
    );
    const fingerprint = hash('another');
    expect(await verdict(built, { definition: { fingerprint } })).toBe('index.definition-changed: stop');
  });

  test('an index that is pointed at a journal restored to an earlier time is ahead, and once that has grown, diverged', async () => {
    const built = await indexAt([2]);
    expect(await verdict(built, { at: restored, artifacts: journal })).toBe('index.ahead-of-log: stop');
    const rows = rowsOf({ other: '1' });
    for (let i = 0; i < 2; i++) await ScriptedRun.whole(restored.runtime, { mirror: 'vip' }, rows);
    expect((await logHead(restored.runtime)).position).toBeGreaterThan(1n);
    expect(await verdict(built, { at: restored, artifacts: journal })).toBe('index.log-diverged: stop');
  });

  test('an index that is pointed at another journal stops, however far its log goes', async () => {
    const { mark, build } = await indexAt([2]);
    expect(await verdict({ build, mark: { ...mark, logId: randomUUID() } })).toBe('index.other-log: stop');
  });

  test('a log snapshot must be there as it was, and the log after it readable', async () => {
    const compacted = await createTestJournal();
    try {
      for (const ids of [{ a: '1' }, { b: '1' }, { c: '1' }])
        await ScriptedRun.whole(compacted.runtime, { mirror: 'vip' }, rowsOf(ids));
      const { id } = await compactTo(compacted.runtime, 3);
      const built = await indexAt([3, 4], { at: compacted, snapshot: id });
      expect(await verdict(built, { at: compacted })).toBe('valid: 5');
      const other = { ...built.mark, snapshot: { id, boundary: logPosition(2), digest: hash('snapshot') } };
      expect(await verdict({ ...built, mark: other }, { at: compacted })).toBe(
        'index.snapshot-mismatch: stop',
      );
      await compactTo(compacted.runtime, 6);
      expect(await verdict(built, { at: compacted })).toBe('index.past-compaction: full-replay');
      const { name } = built.build.definition;
      const audited = await verifyCheckpoints(compacted.runtime, journalArtifacts(compacted.runtime), name);
      expect(audited).toEqual({ builds: 1, checked: 2, faults: [] });
    } finally {
      await compacted.close();
    }
  });

  test('an artifact that is damaged, lost or of another type stops, and is named', async () => {
    const [damaged, lost] = [await indexAt([2]), await indexAt([3])];
    const put = await journalArtifacts(journal.runtime).put({ type: 'test.bytes', bytes: Buffer.from('x') });
    if (put.kind !== 'stored') throw new Error(put.kind);
    const other = { ...damaged, mark: { ...damaged.mark, reference: put.reference } };
    expect(await verdict(other)).toBe('index.checkpoint-damaged: stop');
    const bytes = 'set bytes = set_byte(bytes, 20, get_byte(bytes, 20) # 1) where reference = $1';
    await tamper(`update retl.artifact ${bytes}`, [hashBytes(damaged.mark.reference)]);
    await tamper('delete from retl.artifact where reference = $1', [hashBytes(lost.mark.reference)]);
    expect(await verdict(damaged)).toBe('artifact.corrupt: stop');
    expect(await verdict(lost)).toBe('artifact.missing: stop');
    const again = await storeCheckpoint(
      journalArtifacts(journal.runtime),
      checkpointAt(damaged.build, logPosition(2)),
    );
    expect(again).toMatchObject({ code: 'artifact.corrupt', details: { reference: damaged.mark.reference } });
  });
});

describe('writing', () => {
  test('a checkpoint without bytes is told by its field, and leaves no artifact', async () => {
    const { build } = await indexAt([0]);
    const count = async () => (await journal.admin.query('select count(*) from retl.artifact')).rows[0];
    const before = await count();
    const checkpoint = checkpointAt(build, logPosition(1), { note: 'half \ud83d' });
    const stored = await storeCheckpoint(journalArtifacts(journal.runtime), checkpoint);
    expect(stored).toEqual({ kind: 'no-bytes', fault: { reason: 'lone-surrogate', field: 'note' } });
    expect(await count()).toEqual(before);
  });

  test('each refusal of the registry has its code', () => {
    const position = logPosition(4);
    const refusals: readonly (readonly [PutCheckpoint, string])[] = [
      [{ kind: 'raced', newest: null }, 'index.build-raced'],
      [{ kind: 'not-later', position }, 'index.build-raced'],
      [{ kind: 'other-log', head: position }, 'index.other-log'],
      [{ kind: 'ahead', head: position }, 'index.ahead-of-log'],
      [{ kind: 'diverged', head: position }, 'index.log-diverged'],
      [{ kind: 'no-such-build' }, 'index.other-log'],
    ];
    for (const [put, code] of refusals)
      expect(refusalOf(put)).toMatchObject({ kind: 'refused', remedy: 'stop', code });
  });
});

describe('an audit', () => {
  const audit = ({ build }: Built) =>
    verifyCheckpoints(journal.runtime, journalArtifacts(journal.runtime), build.definition.name);

  test('goes through all checkpoints of all builds, and finds nothing where nothing is wrong', async () => {
    const built = await indexAt([0, 1, 2, 5]);
    const { name } = built.build.definition;
    const { logId } = await logHead(journal.runtime);
    await beginBuild(journal.runtime, { ...built.build.definition, schemaVersion: 4 }, logId, null);
    expect(await audit(built)).toEqual({ builds: 2, checked: 4, faults: [] });
    expect(
      await verifyCheckpoints(journal.runtime, journalArtifacts(journal.runtime), `${name}-not`),
    ).toEqual({ builds: 0, checked: 0, faults: [] });
  });

  test('names each checkpoint that something is wrong with, and what, and no other', async () => {
    const built = await indexAt([1, 2, 3, 4, 5]);
    const { build } = built.build;
    const at = (set: string) => `update retl.checkpoint set ${set} where build_id = $1 and position = $2`;
    await tamper(
      'delete from retl.artifact where reference in (select reference from retl.checkpoint where build_id = $1 and position = $2)',
      [build, 2],
    );
    await tamper(at("entry_hash = sha256('x')"), [build, 3]);
    await tamper(at("previous = sha256('x')"), [build, 4]);
    await tamper('update retl.checkpoint set position = 6 where build_id = $1 and position = $2', [build, 5]);
    const { faults, checked } = await audit(built);
    expect(checked).toBe(5);
    expect(faults.map(({ position, code, rule }) => [position, code, rule])).toEqual([
      [6n, 'index.checkpoint-damaged', 'other-position'],
      [4n, 'index.checkpoint-damaged', 'chain'],
      [3n, 'index.log-diverged', null],
      [2n, 'artifact.missing', null],
    ]);
  });

  test('a checkpoint that names another index than its build’s is found', async () => {
    const built = await indexAt([2], { change: { projectionName: 'somebody-else' } });
    expect((await audit(built)).faults).toMatchObject([
      { code: 'index.checkpoint-damaged', rule: 'other-index' },
    ]);
  });
});
