/** How PostgreSQL looks a member up among 50,000, in an index and in the journal: never by reading all of them. */

import pg from 'pg';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { searchedText } from '../../src/domain/identity-text.ts';
import { sha256FromHex } from '../../src/domain/ids.ts';
import { searchStatement } from '../../src/indexing/postgres/reader.ts';
import { findMembers } from '../../src/journal/find-members.ts';
import { IndexScene } from '../support/index-scene.ts';
import { identityHash, ScriptedRun } from '../support/journal-run.ts';

const MEMBERS = 50_000;

let scene: IndexScene;
let client: pg.Client;

const identity = (n: number) => `{"email":"p${n}@example.org","no":"n${n}"}`;

beforeAll(async () => {
  scene = await IndexScene.open();
  const rows = Array.from({ length: MEMBERS }, (_, n) => ({
    key: `${n}`,
    members: [{ id: identity(n), payload: '1' }],
  }));
  await ScriptedRun.whole(scene.journal.runtime, { mirror: 'large', maxBatchRows: 5_000 }, rows, 5_000);
  await scene.follow(scene.indexer('people'), 10_000);
  client = new pg.Client({ connectionString: scene.journal.adminUrl });
  await client.connect();
}, 240_000);
afterAll(async () => {
  await client.end();
  await scene.close();
});

const hashOf = (n: number) => sha256FromHex(identityHash(identity(n)).toString('hex'));
const NONE = { hashes: [], text: null, mirrors: null, limit: 20 };

/** As the reader asks it: for a cursor, of which PostgreSQL takes only the first rows for granted. */
async function planned(search: Parameters<typeof searchStatement>[1]): Promise<string> {
  const { rows } = await client.query<{ name: string }>(
    "select 'retl_index.rows_' || table_id as name from retl_index.index_build where state = 'live'",
  );
  const { text, values } = searchStatement(rows[0]?.name ?? '', search);
  const plan = await client.query<{ 'QUERY PLAN': string }>(`explain ${text}`, [...values]);
  return plan.rows.map((row) => row['QUERY PLAN']).join('\n');
}

test.each([
  ['the first value of an identity', 'p77@example.org'],
  ['another value of it', 'n77'],
  ['a value that nobody has', 'nobody'],
])('%s is found by the indexes of both, in some mirrors or in all', async (_, typed) => {
  const text = searchedText(typed, 'value');
  for (const mirrors of [null, ['large']]) {
    const plan = await planned({ ...NONE, text, hashes: [hashOf(77)], mirrors });
    expect(plan).not.toMatch(/Seq Scan/);
    expect(plan).toMatch(/BitmapOr[\s\S]*rows_\d+_pkey[\s\S]*rows_\d+_word_idx[\s\S]*rows_\d+_more_idx/);
  }
});

test('a hash alone is looked up by its key', async () => {
  const plan = await planned({ ...NONE, hashes: [hashOf(77)] });
  expect(plan).toMatch(/rows_\d+_pkey[\s\S]*Index Cond: \(identity_hash = ANY/);
  expect(plan).not.toMatch(/Seq Scan/);
});

test('the journal looks a hash up, and gives up looking through all for a text when its time is over', async () => {
  const pool = new pg.Pool({ connectionString: scene.journal.adminUrl, max: 1 });
  const plans: string[] = [];
  pool.on('connect', (own) => {
    own.on('notice', (notice) => plans.push(notice.message ?? ''));
    void own.query(`load 'auto_explain'; set auto_explain.log_min_duration = 0; set auto_explain.log_level = notice;
      set auto_explain.log_nested_statements = on; set client_min_messages = notice`);
  });
  const found = await findMembers(pool, { ...NONE, hashes: [hashOf(77)] });
  expect(found).toMatchObject({ kind: 'found', found: [{ identity: identity(77) }] });
  expect(plans.length).toBeGreaterThan(0);
  for (const plan of plans) expect(plan).not.toMatch(/Seq Scan on (operation|generation|membership)_\d+/);
  const search = { ...NONE, text: searchedText('p77@example.org', 'value') };
  expect(await findMembers(pool, search, 1)).toEqual({ kind: 'too-long', ms: 1 });
  expect(await findMembers(pool, search)).toMatchObject({ found: [{ identity: identity(77) }] });
  // Nothing of the limit stays behind with the connection.
  const { rows } = await pool.query<{ statement_timeout: string }>('show statement_timeout');
  expect(rows[0]?.statement_timeout).toBe('0');
  await pool.end();
});
