/** How PostgreSQL finds the requests of one operation, and what was refused, among many. */

import type pg from 'pg';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { sha256FromHex, targetId } from '../../src/domain/ids.ts';
import { explainMember } from '../../src/journal/explain.ts';
import { openJournal } from '../../src/journal/pool.ts';
import { listRejections } from '../../src/journal/rejections.ts';
import { createTestJournal, type TestJournal } from '../support/journal.ts';
import { shaHex } from '../support/journal-run.ts';

let journal: TestJournal;
let db: pg.Pool;
const plans: string[] = [];

/** One run of 100,000 operations, the first 30,000 in a request each; the rows are written as no function of the journal would. */
const REQUESTS = `
  insert into retl.mirror (name, strategy) values ('many', 'snapshot-diff');
  insert into retl.target (target_key, mirror_id) values ('many', 1);
  insert into retl.revision (mirror_id, digest, settings) values (1, sha256('x'), 'x');
  insert into retl.run (mirror_id, target_id, revision_id, strategy, holder_namespace, holder_cluster, holder_workflow_id,
      holder_first_run_id, empty_snapshot, approval_deadline_ms, max_batch_rows, max_request_bytes, may_resend, phase, first_sequence, additions_end,
      operations_hold_bytes)
    values (1, 1, 1, 'snapshot-diff', 'n', 'c', 'w', 'f', 'allow', 1000, 1000, 1000, false, 'additions', (1::bigint << 32) + 1,
      (1::bigint << 32) + 100000, true);
  create table retl.operation_1 (sequence bigint primary key, change "char", identity_hash bytea, payload_hash bytea,
    row_no bigint, identity text, upsert text, remove text);
  insert into retl.operation_1 select (1::bigint << 32) + row_number() over (order by h), 'a', h, h, null, '{}', '{}', null
    from (select sha256(n::text::bytea) as h from generate_series(1, 100000) n) s;
  create table retl.membership_1 (identity_hash bytea primary key, payload_hash bytea, sequence bigint);
  insert into retl.membership_1 select sha256(format('held %s', n)::bytea), sha256('x'), n from generate_series(1, 100000) n;
  insert into retl.batch (batch_id, run_id, action, operations, sending, state, request_hash, request_bytes, prepared_epoch,
      reason, settled_epoch, prepared_at)
    select sha256(format('%s %s', n, s)::bytea), 1, 'upsert',
      int8range((1::bigint << 32) + 1 + n, (1::bigint << 32) + 2 + n), s,
      case when s = 1 and n % 10 = 0 then 'not-applied' when n % 5000 = 1 then 'refused' else 'prepared' end, sha256('x'), 1, 1,
      'code', case when n % 5000 = 1 then 1 end, now()
    from generate_series(0, 29999) n, generate_series(1, 2) s where s = 1 or n % 10 = 0;
  analyze`;

beforeAll(async () => {
  journal = await createTestJournal();
  await journal.owner.query(REQUESTS);
  db = openJournal({ url: journal.adminUrl, max: 1 });
  db.on('connect', (client) => {
    client.on('notice', (notice) => plans.push(notice.message ?? ''));
    void client.query(`load 'auto_explain'; set auto_explain.log_min_duration = 0; set auto_explain.log_level = notice;
      set auto_explain.log_nested_statements = on; set client_min_messages = notice`);
  });
}, 120_000);
afterAll(async () => {
  await db.end();
  await journal.close();
});

async function explained(work: () => Promise<unknown>): Promise<readonly string[]> {
  plans.length = 0;
  await work();
  expect(plans.length).toBeGreaterThan(0);
  return plans;
}

const LARGE = /Seq Scan on (batch|operation_1|membership_1)\b/;

test('both sendings of one operation among 33,000 requests, and the operation among 100,000', async () => {
  const { rows } = await journal.admin.query<{ hash: string }>(
    "select encode(identity_hash, 'hex') as hash from retl.operation_1 where sequence = (1::bigint << 32) + 20001",
  );
  const hash = sha256FromHex(rows[0]?.hash ?? '');
  const asked = { limit: 20, after: null, values: false };
  const all = await explained(async () => {
    expect(await explainMember(db, targetId(1), hash, asked)).toMatchObject({
      verdict: 'add-pending',
      runs: [
        {
          operation: {
            batches: [
              { sending: 1, state: 'not-applied' },
              { sending: 2, state: 'prepared' },
            ],
          },
        },
      ],
    });
  });
  for (const plan of all) expect(plan).not.toMatch(LARGE);
  expect(all.join('\n')).toMatch(/batch_operation_once[\s\S]*batch_unapplied/);
  const nobody = sha256FromHex(shaHex('nobody'));
  for (const plan of await explained(() => explainMember(db, targetId(1), nobody, asked)))
    expect(plan).not.toMatch(LARGE);
});

test('the newest refusals, without reading the requests that were not refused', async () => {
  const asked = { mirror: 'many', run: null, before: null, limit: 5, values: false };
  const all = await explained(async () => {
    const page = await listRejections(db, asked);
    expect(page.rejections.map((one) => one.kind)).toEqual(Array.from({ length: 5 }, () => 'request'));
    const next = await listRejections(db, { ...asked, before: BigInt(page.next ?? 0) });
    expect(BigInt(next.rejections[0]?.at ?? 0)).toBeLessThan(BigInt(page.next ?? 0));
  });
  for (const plan of all) expect(plan).not.toMatch(LARGE);
});
