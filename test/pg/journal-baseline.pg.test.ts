/** Imported baselines (design, section 4, "Strategies": `tracked`): what they make of the journal, and what they are refused. */

import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { sequence, sha256FromHex } from '../../src/domain/ids.ts';
import { acceptImport, openImport } from '../../src/journal/baseline.ts';
import { loadWithin } from '../../src/journal/candidate.ts';
import { JournalError } from '../../src/journal/errors.ts';
import type { JournalClient } from '../../src/journal/pool.ts';
import { countRun } from '../../src/journal/run-record.ts';
import { type Attempt, admit, plan, seal } from '../../src/journal/runs.ts';
import { verifyLog } from '../../src/journal/verify-log.ts';
import { text } from '../domain/support.ts';
import { BaselineImport } from '../support/baseline-import.ts';
import { createTestJournal, type TestJournal } from '../support/journal.ts';
import {
  addRow,
  admission,
  MAX_PAYLOAD,
  rowsOf,
  ScriptedRun,
  sha,
  shaHex,
  targetOf,
} from '../support/journal-run.ts';
import { ReplayedIndex } from '../support/log-replay.ts';

let journal: TestJournal;
const made: BaselineImport[] = [];

beforeAll(async () => {
  journal = await createTestJournal();
});
afterAll(() => journal.close());
afterEach(async () => {
  for (const one of made.splice(0)) await one.close();
});

async function baseline(mirror: string): Promise<BaselineImport> {
  const one = await BaselineImport.of(mirror, [text('id'), text('v')]);
  made.push(one);
  return one;
}

const csvOf = (members: Readonly<Record<string, string>>) =>
  `id,v\n${Object.entries(members)
    .map((m) => `${m.join(',')}\n`)
    .join('')}`;

async function imported(mirror: string, members: Readonly<Record<string, string>>): Promise<number> {
  const one = await baseline(mirror);
  return one.import(journal.runtime, await one.write('members.csv', csvOf(members)));
}

async function count(table: string): Promise<number> {
  const { rows } = await journal.admin.query<{ n: number }>(`select count(*)::int as n from ${table}`);
  return rows[0]?.n ?? -1;
}

const TRACKED = { tracked: true } as const;

describe('an import', () => {
  test('the first run diffs against it: what is alike is not sent, leftovers are removed by their imported bytes', async () => {
    const mirror = 'diffed';
    expect(await imported(mirror, { a: '1', b: 'old', left: '1' })).toBe(3);
    const run = await ScriptedRun.open(journal.runtime, { mirror, ...TRACKED });
    await run.step('init');
    await run.load(rowsOf({ a: '1', b: '2', c: '1' }));
    await run.seal();
    expect(await run.plan()).toMatchObject({ kind: 'passed' });
    expect((await run.deliver('upsert')).flatMap(({ members }) => members).sort()).toEqual(['b', 'c']);
    await run.beginRemovals();
    expect((await run.deliver('remove')).flatMap(({ members }) => members)).toEqual(['left']);
    expect(await countRun(journal.runtime, run.run)).toMatchObject({
      toAdd: 1,
      toChange: 1,
      toRemove: 1,
      unchanged: 1,
    });
  });

  test('is operations with log entries: the log verifies, a replay gives the members, and so does the folded table', async () => {
    const mirror = 'logged';
    const members = Object.fromEntries(Array.from({ length: 2_345 }, (_, i) => [`m${i}`, '1']));
    expect(await imported(mirror, members)).toBe(2_345);
    expect(await verifyLog(journal.runtime, { effects: true })).toMatchObject({ kind: 'intact' });
    const index = await ReplayedIndex.replay(journal.runtime, 500);
    expect(index.dump()).toContain('m2344');
    const { rows } = await journal.admin.query(
      `select e.kind, e.effects from retl.log_entry e join retl.mirror m using (mirror_id) where m.name = $1 order by position`,
      [mirror],
    );
    expect(rows).toEqual([1_000, 1_000, 345].map((effects) => ({ kind: 'additions', effects })));
    const next = await ScriptedRun.whole(journal.runtime, { mirror, ...TRACKED }, rowsOf(members));
    expect(await countRun(journal.runtime, next.run)).toMatchObject({
      added: 0,
      changed: 0,
      unchanged: 2_345,
    });
    expect(await next.record()).toMatchObject({ held: 2_345, baseline: 'tracked' });
    expect(await verifyLog(journal.runtime, { effects: true })).toMatchObject({ kind: 'intact' });
  });

  test('resync-forgets: members that the query never gave are held to the guard like any others', async () => {
    const mirror = 'guarded';
    await imported(mirror, { a: '1', x: '1', y: '1' });
    const run = await ScriptedRun.open(journal.runtime, { mirror, ...TRACKED, maxRemovals: 1 });
    await run.step('init');
    await run.load(rowsOf({ a: '1' }));
    await run.seal();
    expect(await run.plan()).toMatchObject({ kind: 'held', code: 'max-removals', removals: 2, held: 3 });
  });

  test('who and why are kept, for those who may read them', async () => {
    await imported('told', { a: '1' });
    const { rows } = await journal.admin.query(
      `select i.imported_by, i.because, r.closing, t.baseline, t.baseline_proof, has_column_privilege('retl_inspector',
         'retl.import', 'because', 'select') as inspected
       from retl.import i join retl.run r using (run_id) join retl.target t on t.target_id = r.target_id
       join retl.mirror m on m.mirror_id = r.mirror_id where m.name = 'told'`,
    );
    expect(rows).toEqual([
      {
        imported_by: 'ada',
        because: 'export of Monday',
        closing: 'imported',
        baseline: 'tracked',
        baseline_proof: 'attested',
        inspected: false,
      },
    ]);
  });
});

describe('is refused, with nothing changed', () => {
  const refusedAs = async (mirror: string, code: string) => {
    const before = [await count('retl.run'), await count('retl.log_entry'), await count('retl.target')];
    await expect(imported(mirror, { a: '1' })).rejects.toMatchObject({ code });
    expect([await count('retl.run'), await count('retl.log_entry'), await count('retl.target')]).toEqual(
      before,
    );
  };

  test('where a run has made the baseline known, or an import has', async () => {
    await ScriptedRun.whole(journal.runtime, { mirror: 'known' }, rowsOf({ a: '1' }));
    await refusedAs('known', 'run.baseline-known');
    await imported('twice', { a: '1' });
    await refusedAs('twice', 'run.baseline-known');
  });

  test('where a run is open, held by somebody or let go', async () => {
    await ScriptedRun.open(journal.runtime, { mirror: 'open' });
    await refusedAs('open', 'run.baseline-open-run');
    await journal.admin.query(
      `update retl.run r set released = 'failed' from retl.mirror m where m.mirror_id = r.mirror_id and m.name = 'open'`,
    );
    await refusedAs('open', 'run.baseline-open-run');
  });

  test('where the mirror replaces its target, or the target is another’s', async () => {
    await ScriptedRun.open(journal.runtime, { mirror: 'replaces', strategy: 'native-replace' });
    await refusedAs('replaces', 'run.strategy-changed');
    await ScriptedRun.open(journal.runtime, { mirror: 'owner', targetKey: targetOf('late') });
    await refusedAs('late', 'run.target-owned');
  });

  test('a file that is not the one that was shown', async () => {
    const one = await baseline('swapped');
    const file = await one.write('members.csv', csvOf({ a: '1' }));
    const { digest } = await one.inspect(file);
    await one.write('members.csv', csvOf({ a: '1', b: '1' }));
    await expect(one.import(journal.runtime, file, digest)).rejects.toMatchObject({
      code: 'data.baseline-file',
      details: { rule: 'changed-since-shown' },
    });
    expect(await count(`retl.mirror where name = 'swapped'`)).toBe(0);
  });
});

describe('admission', () => {
  test('a tracked target that nobody has imported opens no run, and leaves no trace', async () => {
    const before = [await count('retl.mirror'), await count('retl.target'), await count('retl.revision')];
    const refused = { kind: 'refused', code: 'baseline-missing' };
    expect(await admit(journal.runtime, admission({ mirror: 'unknown', ...TRACKED }))).toEqual(refused);
    expect([await count('retl.mirror'), await count('retl.target'), await count('retl.revision')]).toEqual(
      before,
    );
  });

  test('another target of the same mirror needs an import of its own', async () => {
    await imported('moved', { a: '1' });
    const elsewhere = admission({ mirror: 'moved', targetKey: 'elsewhere', ...TRACKED });
    expect(await admit(journal.runtime, elsewhere)).toMatchObject({
      kind: 'refused',
      code: 'baseline-missing',
    });
    expect(await admit(journal.runtime, admission({ mirror: 'moved', ...TRACKED }))).toMatchObject({
      kind: 'admitted',
      resume: 'fresh',
    });
  });
});

/** The steps of an import, one after the other, in a transaction of the caller's. */
async function steps(client: JournalClient, mirror: string, upTo: number): Promise<Attempt | null> {
  const settings = JSON.stringify({ mirror });
  const opened = await openImport(client, {
    mirror,
    targetKey: targetOf(mirror),
    settings,
    settingsDigest: sha(settings),
    maxBatchRows: 100,
    maxRequestBytes: 10_000,
    by: 'ada',
    because: 'a test',
    listed: false,
  });
  if (opened.kind === 'refused') throw new Error(opened.code);
  if (upTo > 1)
    await loadWithin(client, opened, '[]', async (sink) => {
      for (const row of rowsOf({ a: '1', b: '1' })) addRow(sink, row);
    });
  if (upTo > 2) await seal(client, opened, MAX_PAYLOAD, MAX_PAYLOAD);
  if (upTo > 3) await plan(client, opened);
  return opened;
}

async function within<T>(work: (client: JournalClient) => Promise<T>): Promise<T> {
  const client = await journal.runtime.connect();
  try {
    await client.query('begin');
    return await work(client);
  } finally {
    // As a process that dies: nobody commits.
    client.release(true);
  }
}

const idOf = (name: string) => sha256FromHex(shaHex(name));

describe('what an import cannot do', () => {
  test.each([1, 2, 3, 4])(
    'a process that dies after step %i has imported nothing, and the next one begins anew',
    async (n) => {
      const mirror = `dies-${n}`;
      await within((client) => steps(client, mirror, n));
      expect(await count(`retl.mirror where name = '${mirror}'`)).toBe(0);
      expect(await imported(mirror, { a: '1' })).toBe(1);
    },
  );

  test('rule 4: its batches cover every member once, from the first to the last', async () => {
    const accepting = (lasts: readonly bigint[]) =>
      within(async (client) => {
        const attempt = await steps(client, 'partly', 4);
        if (attempt === null) throw new Error('not opened');
        const first = BigInt(attempt.run) * 2n ** 32n;
        const batches = lasts.map((last, i) => ({ id: idOf(`partly ${i}`), last: sequence(first + last) }));
        await acceptImport(client, attempt, batches);
      });
    await accepting([1n, 2n]);
    await expect(accepting([1n])).rejects.toThrow(/do not cover/);
    await expect(accepting([3n])).rejects.toThrow(/not planned/);
    await expect(accepting([2n, 1n])).rejects.toThrow(/not planned/);
  });

  test('rule 2: a run that sends makes nothing true in this way', async () => {
    const run = await ScriptedRun.open(journal.runtime, { mirror: 'sends' });
    await run.init();
    await run.load(rowsOf({ a: '1' }));
    await run.seal();
    await run.plan();
    const batch = { id: idOf('sends'), last: sequence(BigInt(run.run) * 2n ** 32n + 1n) };
    await expect(acceptImport(journal.runtime, run.attempt, [batch])).rejects.toThrow(JournalError);
  });
});
