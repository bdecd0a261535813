/**
 * How PostgreSQL runs the journal's hot statements on 100,000 members, as its own auto_explain tells: those inside of the
 * functions, too. What must not be is a plan whose cost grows with the table instead of with the page.
 */

import pg from 'pg';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { logPosition, sha256FromHex } from '../../src/domain/ids.ts';
import { markSending, prepareBatches, settleBatch } from '../../src/journal/batches.ts';
import { beginCompaction, compactStep } from '../../src/journal/compaction.ts';
import { explainKey, explainMember } from '../../src/journal/explain.ts';
import { logHead, readEffects, readEntries } from '../../src/journal/log.ts';
import { readLogPage } from '../../src/journal/log-reader.ts';
import { readSnapshotPage } from '../../src/journal/log-snapshot.ts';
import { memberOf } from '../../src/journal/membership.ts';
import { readOperations } from '../../src/journal/operations.ts';
import { listRejections } from '../../src/journal/rejections.ts';
import { beginRemovals, fold, guard, plan } from '../../src/journal/runs.ts';
import { createTestJournal, type TestJournal } from '../support/journal.ts';
import { identityHash, MAX_PAYLOAD, ScriptedRun, type TestRow } from '../support/journal-run.ts';

const MEMBERS = 100_000;

let journal: TestJournal;
let first: ScriptedRun;
let second: ScriptedRun;
/** A superuser's session in which every statement tells its plan. */
let client: pg.Client;
let plans: string[] = [];

const member = (i: number, payload: string): TestRow => ({ key: `${i}`, members: [{ id: `${i}`, payload }] });

beforeAll(async () => {
  journal = await createTestJournal();
  client = new pg.Client({ connectionString: journal.adminUrl });
  client.on('error', () => {});
  client.on('notice', (notice) => plans.push(notice.message ?? ''));
  await client.connect();
  await client.query(`load 'auto_explain'; set auto_explain.log_min_duration = 0; set auto_explain.log_level = notice;
    set auto_explain.log_nested_statements = on; set client_min_messages = notice`);

  first = await ScriptedRun.open(journal.runtime, { mirror: 'large', maxBatchRows: 5_000 });
  await first.upToAdditions(Array.from({ length: MEMBERS }, (_, i) => member(i, '1')));
  await first.complete(5_000);
  second = await ScriptedRun.open(journal.runtime, { mirror: 'large', maxBatchRows: 5_000 });
  await second.init();
  // One in a hundred changed, one gone.
  await second.load(
    Array.from({ length: MEMBERS }, (_, i) => i)
      .filter((i) => i % 100 !== 1)
      .map((i) => member(i, i % 100 === 0 ? '2' : '1')),
  );
  await second.seal();
}, 120_000);
afterAll(async () => {
  await client.end();
  await journal.close();
});

/** The plans of everything that `work` ran, those of its functions' statements among them. */
async function explained(work: () => Promise<unknown>): Promise<readonly string[]> {
  plans = [];
  await work();
  expect(plans.length).toBeGreaterThan(0);
  return plans;
}

const LARGE = /Seq Scan on (operation|generation|membership)_\d+/;

function planOf(all: readonly string[], statement: RegExp): string {
  const found = all.filter((p) => statement.test(p));
  expect(found, `${statement}`).toHaveLength(1);
  return found[0] ?? '';
}

describe('the plan of a run', () => {
  test('the diff is one join of hashes or in order, never a search for each of 100,000 members', async () => {
    const all = await explained(() => plan(client, second.attempt));
    const diff = planOf(
      all,
      /create table retl\.operation_\d+ as\s+select \d+::bigint \+ row_number\(\) over \(order by g\./,
    );
    expect(diff).toMatch(/(Hash|Merge) (Left|Right) Join/);
    expect(diff).not.toMatch(/Nested Loop/);
    const gone = planOf(
      all,
      /Query Text: select count\(\*\), sha256\(coalesce\(string_agg\(m\.identity_hash/,
    );
    expect(gone).toMatch(/(Hash|Merge) (Right )?Anti Join/);
    expect(gone).not.toMatch(/Nested Loop/);
    expect(await guard(client, second.attempt)).toEqual({ kind: 'passed' });
  });

  test('tables and indexes have the names that the documentation gives them', async () => {
    const [a, b] = [await first.record(), await second.record()];
    const { rows } = await journal.admin.query<{ name: string }>(
      `select indexname as name from pg_indexes where schemaname = 'retl' and tablename = any($1) order by 1`,
      [
        [
          `generation_${a.generation}`,
          `generation_${b.generation}`,
          `operation_${a.run}`,
          `operation_${b.run}`,
          `membership_${a.target}`,
        ],
      ],
    );
    expect(rows.map((row) => row.name)).toEqual(
      [
        ...[a, b].flatMap((r) => [`generation_${r.generation}_identity`, `generation_${r.generation}_key`]),
        `generation_${a.generation}_row`,
        ...[a, b].map((r) => `operation_${r.run}_pkey`),
        `membership_${a.target}_pkey`,
      ].sort(),
    );
  });
});

describe('pages', () => {
  test('a page is a range of an index on both sides, wherever the bytes are', async () => {
    const wide = await first.record();
    const narrow = await second.record();
    expect([wide.operationsHoldBytes, narrow.operationsHoldBytes]).toEqual([false, true]);
    const from = (wide.firstSequence ?? 0n) + 50_000n;
    const read = await explained(() => readOperations(client, wide, 'upsert', from, from + 999n));
    const page = planOf(read, /join retl\.generation_/);
    expect(page).toMatch(/Index Scan using operation_\d+_pkey/);
    expect(page).toMatch(/Index Scan using generation_\d+_row[\s\S]*Index Cond: \(\(g?\.?row_no >= /);
    expect(page).not.toMatch(LARGE);
    const [entry] = await readEntries(journal.runtime, logPosition(0), 1);
    if (entry === undefined) throw new Error('no entry');
    const effects = await explained(() => readEffects(client, entry));
    expect(planOf(effects, /join retl\.generation_/)).not.toMatch(LARGE);
    const start = narrow.firstSequence ?? 0n;
    const own = await explained(() => readOperations(client, narrow, 'upsert', start, start + 99n));
    expect(planOf(own, /from retl\.operation_/)).toMatch(/Index Scan using operation_\d+_pkey/);
  });

  test('no request, receipt or fold reads more of a large table than it is about', async () => {
    const [draft] = await second.drafts('upsert', 100, 1);
    if (draft === undefined) throw new Error('nothing to send');
    const { id } = draft.draft;
    const { attempt } = second;
    const all = [
      ...(await explained(() => prepareBatches(client, attempt, 'upsert', [draft.draft]))),
      ...(await explained(() => markSending(client, attempt, id, 1_000))),
      ...(await explained(() => settleBatch(client, attempt, id, '{}', [], new Map()))),
      ...(await explained(() => fold(client, attempt, 10))),
    ];
    for (const p of all) expect(p).not.toMatch(LARGE);
  });

  test('removals find their bytes without reading the generations through', async () => {
    await second.deliver('upsert');
    const all = await explained(() => beginRemovals(client, second.attempt, MAX_PAYLOAD));
    const bytes = planOf(all, /insert into retl\.removal_\d+ select d\.identity_hash, b\.removal_hash/);
    expect(bytes).toMatch(/Index Scan using generation_\d+_identity|Hash Join|Merge Join/);
    const batches = await second.prepare('remove', 1_000);
    expect(batches.flatMap((b) => b.members)).toHaveLength(MEMBERS / 100);
  });

  test('one member is found by indexes, folded or not', async () => {
    const { target } = await second.record();
    for (const i of [0, 100, 1, 2]) {
      const hash = sha256FromHex(identityHash(`${i}`).toString('hex'));
      const all = await explained(() => memberOf(client, target, hash));
      for (const p of all) expect(p).not.toMatch(LARGE);
    }
  });

  test('a member’s story, with its values, a source key and a list of refusals are found by indexes', async () => {
    const { target } = await second.record();
    const pool = new pg.Pool({ connectionString: journal.adminUrl, max: 1 });
    pool.on('connect', (own) => {
      own.on('notice', (notice) => plans.push(notice.message ?? ''));
      void own.query(`load 'auto_explain'; set auto_explain.log_min_duration = 0; set auto_explain.log_level = notice;
        set auto_explain.log_nested_statements = on; set client_min_messages = notice`);
    });
    const asked = { limit: 20, after: null, values: true };
    for (const i of [0, 100, 1, 2]) {
      const hash = sha256FromHex(identityHash(`${i}`).toString('hex'));
      const all = await explained(() => explainMember(pool, target, hash, asked));
      expect(all.filter((p) => /with recursive s\(lo, hi\)/.test(p)).length).toBeGreaterThan(1);
      for (const p of all) expect(p).not.toMatch(LARGE);
    }
    const key = await explained(() => explainKey(pool, target, '["7"]', 20));
    expect(key.join()).toMatch(/Index Scan using generation_\d+_key/);
    for (const p of key) expect(p).not.toMatch(LARGE);
    const refusals = { mirror: 'large', run: null, before: null, limit: 20, values: true };
    for (const p of await explained(() => listRejections(pool, refusals))) expect(p).not.toMatch(LARGE);
    await pool.end();
  });
});

describe('the log', () => {
  test('a page of it costs what is on it, wherever the bytes are; so does a page of a snapshot, and each step to it', async () => {
    const read = await explained(() => readLogPage(client, logPosition(3), { effects: 1, values: 'all' }));
    const page = planOf(read, /join retl\.generation_/);
    expect(page).toMatch(/Index Scan using operation_\d+_pkey/);
    expect(page).toMatch(/Index Scan using generation_\d+_row/);
    for (const p of read) expect(p).not.toMatch(LARGE);
    const narrow = await explained(() => readLogPage(client, logPosition(4), { effects: 1 }));
    for (const p of narrow) expect(p).not.toMatch(LARGE);

    const { position } = await logHead(client);
    await beginCompaction(client, logPosition(position - 1n));
    let step = await compactStep(client, 5_000);
    const all: string[] = [];
    while (step.kind === 'building') {
      all.push(...(await explained(async () => (step = await compactStep(client, 5_000)))));
    }
    expect(step.kind).toBe('complete');
    expect(all.join()).toMatch(/Query Text: insert into retl\.snapshot_\d+/);
    for (const p of all) expect(p).not.toMatch(LARGE);
    const id = step.kind === 'complete' ? step.snapshot : 0n;
    const members = await explained(() =>
      readSnapshotPage(client, id, null, { members: 1_000, values: true }),
    );
    for (const p of members) expect(p).not.toMatch(/Seq Scan on (operation|generation|snapshot)_\d+/);
  });
});
