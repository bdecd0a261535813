/** What maintenance does in the journal alone, step by step: the log is compacted where that is asked for, and only if it verifies. */

import { afterAll, beforeAll, expect, test } from 'vitest';
import {
  addCounts,
  type MaintenanceStep,
  NOTHING_DONE,
  type RetentionSettings,
} from '../../src/domain/maintenance.ts';
import { logHead } from '../../src/journal/log.ts';
import { type JournalTask, maintainJournal } from '../../src/journal/maintain.ts';
import { type VerifiedPlace, verifyLogFrom } from '../../src/journal/verify-log.ts';
import { createTestJournal, type TestJournal } from '../support/journal.ts';
import { rowsOf, ScriptedRun } from '../support/journal-run.ts';
import { ReplayedIndex } from '../support/log-replay.ts';

const DAY_MS = 86_400_000;
const KEEP: RetentionSettings = { keepReceiptsMs: DAY_MS, keepCandidatesMs: DAY_MS, compactMs: null };
/** Every effect is old enough. */
const COMPACT: RetentionSettings = { ...KEEP, compactMs: 0 };

let journal: TestJournal;

beforeAll(async () => {
  journal = await createTestJournal();
  for (const v of ['1', '2', '3'])
    await ScriptedRun.whole(journal.runtime, { mirror: 'vip' }, rowsOf({ a: v, b: v, c: v, d: v }), 1);
});
afterAll(() => journal.close());

/** All steps of a task, each told to stop as soon as it may. */
async function all(task: JournalTask, settings: RetentionSettings) {
  let counts = NOTHING_DONE;
  const cursors: (string | null)[] = [];
  for (let step: MaintenanceStep = { kind: 'more', cursor: null, counts: {} }; step.kind === 'more'; ) {
    step = await maintainJournal(journal.runtime, task, settings, step.cursor, () => true);
    counts = addCounts(counts, step.counts);
    cursors.push(step.cursor?.split(' ')[0] ?? null);
  }
  return { counts, cursors };
}

/** As a superuser who switches the triggers off. */
async function change(sql: string): Promise<void> {
  await journal.admin.query(`begin; set local session_replication_role = replica; ${sql}; commit`);
}

test('unless it is asked for, the log stays whole', async () => {
  expect((await all('log', KEEP)).counts).toEqual(NOTHING_DONE);
  expect((await logHead(journal.runtime)).earliest).toBe(1n);
});

test('a log that is not what was written is refused, and nothing of it is compacted', async () => {
  await change('update retl.log_entry set effects = effects + 1 where position = 2');
  await expect(all('log', COMPACT)).rejects.toMatchObject({ code: 'log.broken', details: { position: '2' } });
  await change('update retl.log_entry set effects = effects - 1 where position = 2');
  expect((await logHead(journal.runtime)).earliest).toBe(1n);
});

test('it compacts once a week at most, what that makes superfluous goes an hour later, and a replay gives the same', async () => {
  const before = (await ReplayedIndex.replay(journal.runtime)).dump();
  const first = await all('log', COMPACT);
  expect(first.counts).toMatchObject({ compactions: 1, tables: 0 });
  expect(first.cursors).toContain('build');
  const { earliest, position } = await logHead(journal.runtime);
  expect(earliest).toBe(position + 1n);
  expect((await ReplayedIndex.replay(journal.runtime)).dump()).toBe(before);
  await ScriptedRun.whole(journal.runtime, { mirror: 'vip' }, rowsOf({ a: '4', b: '4', c: '4', d: '4' }));
  expect((await all('log', COMPACT)).counts).toEqual(NOTHING_DONE);
  await change("update retl.leftover set unused_since = unused_since - interval '2 hours'");
  expect((await all('log', COMPACT)).counts).toMatchObject({ compactions: 0, tables: 2 });
  await change("update retl.log_snapshot set completed_at = completed_at - interval '8 days'");
  expect((await all('log', COMPACT)).counts).toMatchObject({ compactions: 1 });
  expect((await ReplayedIndex.replay(journal.runtime)).size).toBe(4);
});

test('verified in parts, a log is found to be what it is as a whole', async () => {
  // More entries than a page has.
  const members = Object.fromEntries(Array.from({ length: 510 }, (_, i) => [`m${i}`, '1']));
  await ScriptedRun.whole(journal.runtime, { mirror: 'many' }, rowsOf(members), 1);
  const options = { effects: false };
  let place: VerifiedPlace | null = null;
  let parts = 0;
  for (;;) {
    const found: Awaited<ReturnType<typeof verifyLogFrom>> = await verifyLogFrom(
      journal.runtime,
      place,
      () => true,
      options,
    );
    parts += 1;
    if (found.kind !== 'more') {
      expect(found).toEqual({ kind: 'intact', position: (await logHead(journal.runtime)).position });
      break;
    }
    place = found;
  }
  expect(parts).toBeGreaterThan(1);
});
