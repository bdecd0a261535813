/**
 * Positions of the log under many writers and readers at once (design.md section 5): gapless, in the order of commits, and
 * whoever has seen position N never later finds a smaller one. Writers roll back and are cut off between the entry and its
 * commit all the while.
 */

import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { logPosition } from '../../src/domain/ids.ts';
import { settleBatch } from '../../src/journal/batches.ts';
import { logHead, readEntries } from '../../src/journal/log.ts';
import { readLogPage } from '../../src/journal/log-reader.ts';
import { verifyLog } from '../../src/journal/verify-log.ts';
import { createTestJournal, type TestJournal } from '../support/journal.ts';
import { type Prepared, ScriptedRun, type TestRow } from '../support/journal-run.ts';

let journal: TestJournal;

beforeAll(async () => {
  journal = await createTestJournal();
});
afterAll(() => journal.close());

const MIRRORS = 10;
const READERS = 5;
const MEMBERS = 24;

const many = (n: number): readonly TestRow[] =>
  Array.from({ length: n }, (_, i) => ({ key: `k${i}`, members: [{ id: `k${i}`, payload: '1' }] }));

/** What a writer does before it settles a batch for good. */
type Accident = 'none' | 'rolls back' | 'is killed';

/** A writer with a connection of its own, which may die. */
async function write(run: ScriptedRun, batch: Prepared, accident: Accident): Promise<void> {
  const client = new pg.Client({ connectionString: journal.runtimeUrl });
  client.on('error', () => {});
  await client.connect();
  try {
    if (accident !== 'none') {
      await client.query('begin');
      await settleBatch(client, run.attempt, batch.id, '{"ok":true}', [], new Map());
      const { rows } = await client.query<{ pid: number }>('select pg_backend_pid() as pid');
      if (accident === 'rolls back') await client.query('rollback');
      else await journal.admin.query('select pg_terminate_backend($1, 5000)', [rows[0]?.pid]);
    }
  } finally {
    await client.end().catch(() => {});
  }
  await settleBatch(journal.runtime, run.attempt, batch.id, '{"ok":true}', [], new Map());
}

class Reader {
  readonly seen: bigint[] = [];
  stop = false;

  /** Follows the log, and looks at the whole of it: whatever is visible is 1 to N, and N never shrinks. */
  async follow(): Promise<void> {
    let largest = 0n;
    for (;;) {
      const last = this.stop;
      const page = await readEntries(journal.runtime, logPosition(this.seen.at(-1) ?? 0n), 5);
      this.seen.push(...page.map((entry) => entry.position));
      const { rows } = await journal.runtime.query<{ n: string; largest: string }>(
        'select count(*) as n, coalesce(max(position), 0) as largest from retl.log_entry',
      );
      expect(rows[0]?.n).toBe(rows[0]?.largest);
      const now = BigInt(rows[0]?.largest ?? -1);
      expect(now).toBeGreaterThanOrEqual(largest);
      largest = now;
      if (last && page.length === 0) return;
      await sleep(1);
    }
  }
}

test('section 5: many mirrors and readers race, writers roll back and die; positions are gapless and in commit order', async () => {
  const runs = await Promise.all(
    Array.from({ length: MIRRORS }, async (_, i) => {
      const run = await ScriptedRun.open(journal.runtime, { mirror: `race-${i}` });
      await run.upToAdditions(many(MEMBERS));
      return { run, batches: await run.prepare('upsert', 2) };
    }),
  );
  const readers = Array.from({ length: READERS }, () => new Reader());
  const reading = readers.map((reader) => reader.follow());
  const done = { none: 0, 'rolls back': 0, 'is killed': 0 };
  await Promise.all(
    runs.map(async ({ run, batches }, i) => {
      for (const [n, batch] of batches.entries()) {
        await run.sending(batch.id);
        const accident = (['none', 'rolls back', 'none', 'is killed'] as const)[(n + i) % 4] ?? 'none';
        done[accident] += 1;
        await write(run, batch, accident);
      }
    }),
  );
  for (const reader of readers) reader.stop = true;
  await Promise.all(reading);

  const total = (MIRRORS * MEMBERS) / 2;
  expect(done).toMatchObject({ none: total / 2, 'rolls back': total / 4, 'is killed': total / 4 });
  const expected = Array.from({ length: total }, (_, i) => BigInt(i + 1));
  for (const reader of readers) expect(reader.seen).toEqual(expected);
  const head = await logHead(journal.runtime);
  expect(head).toMatchObject({ position: BigInt(total), earliest: 1n });
  expect(await verifyLog(journal.runtime, { effects: true })).toEqual({
    kind: 'intact',
    position: head.position,
  });
  const page = await readLogPage(journal.runtime, logPosition(0));
  expect(page.kind === 'entries' && page.entries.flatMap((e) => e.effects).length).toBe(MIRRORS * MEMBERS);
});
