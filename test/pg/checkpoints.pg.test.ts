/** Indexes in the journal: definitions, builds, and chains of checkpoints that two builders cannot fork. */

import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import type { IndexDefinition } from '../../src/domain/checkpoint-validation.ts';
import { type BuildId, buildId, logPosition, type Sha256, sha256FromHex } from '../../src/domain/ids.ts';
import {
  beginBuild,
  buildOf,
  buildsOf,
  type CheckpointDraft,
  checkpointsOf,
  everyBuild,
  everyCheckpoint,
  logStateAt,
  newestCheckpoint,
  putCheckpoint,
  recordsOf,
} from '../../src/journal/checkpoints.ts';
import { logHead, readEntries } from '../../src/journal/log.ts';
import { compactTo } from '../support/compact.ts';
import { createTestJournal, stateOf, type TestJournal } from '../support/journal.ts';
import { rowsOf, ScriptedRun, shaHex } from '../support/journal-run.ts';

let journal: TestJournal;
let logId: string;
/** Of each log entry, by its position; the genesis hash at 0. */
let hashes: readonly Sha256[];

const hash = (text: string): Sha256 => sha256FromHex(shaHex(text));
const definition = (change: Partial<IndexDefinition> = {}): IndexDefinition => ({
  name: 'members',
  schemaVersion: 1,
  fingerprint: hash('definition'),
  ...change,
});

beforeAll(async () => {
  journal = await createTestJournal();
  for (const ids of [{ a: '1', b: '1' }, { b: '1', c: '1' }, { c: '2' }])
    await ScriptedRun.whole(journal.runtime, { mirror: 'vip' }, rowsOf(ids));
  ({ logId } = await logHead(journal.runtime));
  const entries = await readEntries(journal.runtime, logPosition(0), 1000);
  hashes = [sha256FromHex('0'.repeat(64)), ...entries.map(({ entryHash }) => entryHash)];
  expect(hashes.length).toBeGreaterThan(7);
});
afterAll(() => journal.close());

async function listOf<T>(items: AsyncIterable<T>): Promise<readonly T[]> {
  const list: T[] = [];
  for await (const item of items) list.push(item);
  return list;
}

async function begin(of = definition()): Promise<BuildId> {
  const begun = await beginBuild(journal.runtime, of, logId, null);
  if (begun.kind !== 'begun') throw new Error(begun.kind);
  return begun.build;
}

describe('definitions', () => {
  test('another definition under the same name and schema version is refused, under another version it is not', async () => {
    const of = definition({ name: 'defined' });
    await begin(of);
    await begin(of);
    const other = { ...of, fingerprint: hash('another') };
    expect(await beginBuild(journal.runtime, other, logId, null)).toEqual({ kind: 'definition-changed' });
    await begin({ ...other, schemaVersion: 2 });
    await begin({ ...other, name: 'defined-too' });
    expect(await beginBuild(journal.runtime, of, logId, null)).toMatchObject({ kind: 'begun' });
  });

  test('of two definitions that come at once, one has the pair', async () => {
    const begun = await Promise.all(
      Array.from({ length: 8 }, (_, i) => {
        const of = definition({ name: 'raced', fingerprint: hash(`definition ${i % 2}`) });
        return beginBuild(journal.runtime, of, logId, null);
      }),
    );
    const kinds = begun.map(({ kind }) => kind).sort();
    expect(kinds).toEqual([...Array(4).fill('begun'), ...Array(4).fill('definition-changed')]);
  });

  test('the schema version is a u32, to its limits', async () => {
    for (const schemaVersion of [0, 2 ** 32 - 1]) {
      const build = await begin(definition({ name: 'limits', schemaVersion }));
      expect(await buildOf(journal.runtime, build)).toMatchObject({ definition: { schemaVersion } });
    }
    for (const schemaVersion of [-1, 2 ** 32])
      expect(await stateOf(begin(definition({ name: 'limits', schemaVersion })))).toBe('23514');
  });
});

describe('builds', () => {
  test('a build keeps what it began with, and builds of one index are listed newest first', async () => {
    const of = definition({ name: 'listed' });
    const [first, second] = [await begin(of), await begin(of)];
    expect(second).toBeGreaterThan(first);
    expect(await buildsOf(journal.runtime, 'listed', null, 10)).toMatchObject([
      { build: second, definition: of, logId, snapshot: null },
      { build: first, definition: of, logId, snapshot: null },
    ]);
    expect(await buildsOf(journal.runtime, 'listed', null, 1)).toMatchObject([{ build: second }]);
    expect(await buildsOf(journal.runtime, 'listed', second, 10)).toMatchObject([{ build: first }]);
    for (const size of [1, 2, 10])
      expect(await listOf(everyBuild(journal.runtime, 'listed', size))).toMatchObject([
        { build: second },
        { build: first },
      ]);
    expect(await buildOf(journal.runtime, buildId(1_000_000))).toBeNull();
  });

  test('a builder that has read the log of another journal begins none', async () => {
    const elsewhere = '00000000-0000-4000-8000-000000000000';
    const begun = await beginBuild(journal.runtime, definition({ name: 'elsewhere' }), elsewhere, null);
    expect(begun).toEqual({ kind: 'other-log' });
    expect(await buildsOf(journal.runtime, 'elsewhere', null, 1)).toEqual([]);
  });
});

describe('checkpoints', () => {
  let build: BuildId;
  beforeEach(async () => {
    build = await begin();
  });

  function draft(position: number, previous: CheckpointDraft | null, by = ''): CheckpointDraft {
    return {
      build,
      position: logPosition(position),
      reference: hash(`${build} at ${position}${by}`),
      previous: previous?.reference ?? null,
      logId,
      entryHash: hashes[position] ?? hash('no entry'),
    };
  }
  const put = (of: CheckpointDraft) => putCheckpoint(journal.runtime, of);

  test('they are a chain that is kept: the newest, all of them, those up to a position, one by its artifact', async () => {
    const [zero, two, five] = [draft(0, null), draft(2, draft(0, null)), draft(5, draft(2, null))];
    for (const one of [zero, two, five]) expect(await put(one)).toEqual({ kind: 'recorded' });
    expect(await newestCheckpoint(journal.runtime, build)).toMatchObject({
      position: 5n,
      previous: two.reference,
    });
    const all = await checkpointsOf(journal.runtime, build, null, 10);
    expect(all.map(({ reference }) => reference)).toEqual(
      [five, two, zero].map(({ reference }) => reference),
    );
    for (const size of [1, 2, 3, 10])
      expect(await listOf(everyCheckpoint(journal.runtime, build, size))).toEqual(all);
    expect(await newestCheckpoint(journal.runtime, build, logPosition(4))).toMatchObject({ position: 2n });
    const { previous, reference, position, entryHash } = two;
    expect(await recordsOf(journal.runtime, reference)).toMatchObject([
      { build, previous, reference, position, entryHash },
    ]);
    expect(await newestCheckpoint(journal.runtime, await begin())).toBeNull();
  });

  test('an exact repeat changes nothing; of one that is no longer the newest the builder is told which is', async () => {
    const [two, five] = [draft(2, null), draft(5, draft(2, null))];
    expect(await put(two)).toEqual({ kind: 'recorded' });
    expect(await put(two)).toEqual({ kind: 'repeated' });
    expect(await put(five)).toEqual({ kind: 'recorded' });
    const newest = { position: 5n, reference: five.reference };
    expect(await put(two)).toEqual({ kind: 'raced', newest });
    expect(await put(five)).toEqual({ kind: 'repeated' });
    expect(await checkpointsOf(journal.runtime, build, null, 10)).toHaveLength(2);
  });

  test('positions of a build only grow, whatever the builder says was before', async () => {
    const five = draft(5, null);
    await put(five);
    for (const position of [0, 4, 5])
      expect(await put(draft(position, five, ' again'))).toEqual({ kind: 'not-later', position: 5n });
    expect(await put(draft(6, five))).toEqual({ kind: 'recorded' });
  });

  test('a builder that knows of another newest one is refused, and told which it is', async () => {
    const two = draft(2, null);
    expect(await put(draft(2, draft(1, null)))).toEqual({ kind: 'raced', newest: null });
    await put(two);
    const newest = { position: 2n, reference: two.reference };
    expect(await put(draft(5, null))).toEqual({ kind: 'raced', newest });
    expect(await put(draft(5, draft(1, null)))).toEqual({ kind: 'raced', newest });
    expect(await put(draft(2, null, ' by another'))).toEqual({ kind: 'raced', newest });
  });

  test('two builders of one build, checkpoint by checkpoint at once: one of them records each, and there is one chain', async () => {
    const wins = [0, 0];
    let last: CheckpointDraft | null = null;
    for (let position = 1; position < 7; position++) {
      const both: readonly CheckpointDraft[] = [0, 1].map((by) => draft(position, last, ` by ${by}`));
      const answers = await Promise.all(both.map(put));
      expect(answers.map(({ kind }) => kind).sort()).toEqual(['raced', 'recorded']);
      const winner = answers.findIndex(({ kind }) => kind === 'recorded');
      const won: CheckpointDraft | undefined = both[winner];
      if (won === undefined) throw new Error('nobody has won');
      const loser = answers[1 - winner];
      expect(loser).toEqual({ kind: 'raced', newest: { position: won.position, reference: won.reference } });
      wins[winner] = (wins[winner] ?? 0) + 1;
      last = won;
    }
    const chain = await checkpointsOf(journal.runtime, build, null, 100);
    expect(chain).toHaveLength(6);
    chain.forEach(({ previous }, i) => {
      expect(previous).toBe(chain[i + 1]?.reference ?? null);
    });
    expect((wins[0] ?? 0) + (wins[1] ?? 0)).toBe(6);
  });

  test('a builder that replays slowly behind another one cannot take the build back', async () => {
    const [ahead, late] = [draft(6, null), draft(3, null, ' late')];
    await put(ahead);
    expect(await put(late)).toMatchObject({ kind: 'raced', newest: { position: 6n } });
    expect(await put({ ...late, previous: ahead.reference })).toMatchObject({ kind: 'not-later' });
    expect(await newestCheckpoint(journal.runtime, build)).toMatchObject({ reference: ahead.reference });
  });

  test('what was read of another log, past the head or with another entry is refused', async () => {
    const head = logPosition(hashes.length - 1);
    const elsewhere = '00000000-0000-4000-8000-000000000000';
    expect(await put({ ...draft(2, null), logId: elsewhere })).toEqual({ kind: 'other-log', head });
    expect(await put(draft(hashes.length, null))).toEqual({ kind: 'ahead', head });
    expect(await put({ ...draft(2, null), entryHash: hash('restored') })).toEqual({ kind: 'diverged', head });
    expect(await put({ ...draft(0, null), entryHash: hash('restored') })).toEqual({ kind: 'diverged', head });
    expect(await put({ ...draft(2, null), build: buildId(1_000_000) })).toEqual({ kind: 'no-such-build' });
    expect(await newestCheckpoint(journal.runtime, build)).toBeNull();
  });

  test('rule 6: nobody changes, deletes or forks what is recorded, its owner neither', async () => {
    const two = draft(2, null);
    await put(two);
    for (const table of ['checkpoint', 'index_build', 'index_definition'])
      for (const sql of [`delete from retl.${table}`, `truncate retl.${table} cascade`])
        expect(await stateOf(journal.owner.query(sql)), sql).toBe('RM006');
    expect(await stateOf(journal.owner.query('update retl.checkpoint set position = 9'))).toBe('RM006');
    expect(
      await stateOf(journal.owner.query("update retl.index_definition set fingerprint = sha256('x')")),
    ).toBe('RM006');
    const fork = `insert into retl.checkpoint (build_id, position, reference, previous, entry_hash)
      values ($1, 6, sha256('fork'), null, sha256('x'))`;
    expect(await stateOf(journal.owner.query(fork, [build]))).toBe('23505');
  });
});

describe('a log that has been compacted', () => {
  let compacted: TestJournal;
  beforeAll(async () => {
    compacted = await createTestJournal();
    for (const ids of [{ a: '1' }, { b: '1' }, { c: '1' }])
      await ScriptedRun.whole(compacted.runtime, { mirror: 'vip' }, rowsOf(ids));
  });
  afterAll(() => compacted.close());

  test('builds begin with its newest snapshot, keep which that was, and have no checkpoint before its boundary', async () => {
    const db = compacted.runtime;
    const log = await logHead(db);
    const beginWith = (snapshot: bigint | null) => beginBuild(db, definition(), log.logId, snapshot);
    const first = await compactTo(db, 3);
    expect(await beginWith(null)).toEqual({ kind: 'compacted' });
    expect(await beginWith(first.id + 1n)).toEqual({ kind: 'no-such-snapshot' });
    const begun = await beginWith(first.id);
    if (begun.kind !== 'begun') throw new Error(begun.kind);
    const snapshot = { id: first.id, boundary: 3n, digest: first.digest };
    expect(await buildOf(db, begun.build)).toMatchObject({ snapshot });

    const { entryHash } = await logStateAt(db, logPosition(3), null);
    if (entryHash === null) throw new Error('no entry');
    const draft = { build: begun.build, reference: hash('one'), previous: null, logId: log.logId, entryHash };
    expect(await stateOf(putCheckpoint(db, { ...draft, position: logPosition(2) }))).toBe('RM003');
    expect(await putCheckpoint(db, { ...draft, position: logPosition(3) })).toEqual({ kind: 'recorded' });

    await compactTo(db, 5);
    expect(await beginWith(first.id)).toEqual({ kind: 'no-such-snapshot' });
    expect(await logStateAt(db, logPosition(3), first.id)).toEqual({
      logId: log.logId,
      head: log.position,
      earliest: 6n,
      entryHash,
      snapshot,
    });
    expect(await logStateAt(db, logPosition(3), 1_000_000n)).toMatchObject({ snapshot: null });
  });
});

test('the log’s state at a position: its entry, its head, and nothing where there is no entry', async () => {
  const head = logPosition(hashes.length - 1);
  const common = { logId, head, earliest: 1n, snapshot: null };
  for (const position of [0, 1, hashes.length - 1])
    expect(await logStateAt(journal.runtime, logPosition(position), null)).toEqual({
      ...common,
      entryHash: hashes[position],
    });
  const past = await logStateAt(journal.runtime, logPosition(hashes.length), null);
  expect(past).toEqual({ ...common, entryHash: null });
});
