/** What the journal tells of one member and of refusals: to whom, without values and with them, and at what cost. */

import { randomBytes } from 'node:crypto';
import { inspect } from 'node:util';
import type pg from 'pg';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { valueWords } from '../../src/cli/value-text.ts';
import { hexOf, sha256FromHex, targetId } from '../../src/domain/ids.ts';
import { markNotApplied, markRefused } from '../../src/journal/batches.ts';
import {
  type Explanation,
  explainKey,
  explainMember,
  mayReadValues,
  targetOf,
} from '../../src/journal/explain.ts';
import { listMirrors, listRuns } from '../../src/journal/inspect.ts';
import { requireSchema } from '../../src/journal/migrate.ts';
import { openJournal } from '../../src/journal/pool.ts';
import { listRejections } from '../../src/journal/rejections.ts';
import { unresolvedBatches } from '../../src/journal/resolve.ts';
import { closeRun, prune } from '../../src/journal/runs.ts';
import { createTestJournal, stateOf, type TestJournal } from '../support/journal.ts';
import { identityHash, rowsOf, ScriptedRun, sha, type TestRow, upsertOf } from '../support/journal-run.ts';

const DENIED = '42501';

let journal: TestJournal;
let inspector: pg.Pool;
let reader: pg.Pool;
const people: string[] = [];

/** A person's login that is a member of one group. */
async function personIn(group: string): Promise<pg.Pool> {
  const name = `person_${randomBytes(6).toString('hex')}`;
  people.push(name);
  await journal.admin.query(`create role ${name} login in role ${group}`);
  const url = new URL(journal.runtimeUrl);
  url.username = name;
  return openJournal({ url: url.href, max: 3 });
}

beforeAll(async () => {
  journal = await createTestJournal();
  inspector = await personIn('retl_inspector');
  reader = await personIn('retl_reader');
});
afterAll(async () => {
  await Promise.all([inspector.end(), reader.end()]);
  for (const name of people) await journal.admin.query(`drop role ${name}`);
  await journal.close();
});

const hashOf = (id: string) => sha256FromHex(identityHash(id).toString('hex'));
const payloadHash = (id: string, payload: string) =>
  sha256FromHex(sha(upsertOf({ id, payload })).toString('hex'));

async function explain(
  mirror: string,
  id: string,
  options: { limit?: number; after?: string; values?: boolean; as?: pg.Pool } = {},
): Promise<Explanation> {
  const { limit = 20, after = null, values = false, as = inspector } = options;
  const target = await targetOf(as, mirror);
  if (target === null) throw new Error('never run');
  return explainMember(as, target, hashOf(id), { limit, after, values });
}

const didOf = ({ runs }: Explanation) => runs.map((run) => run.did);

describe('a member’s story', () => {
  test('added, unchanged, changed, removed, added again: each run says what it did, and where the log has it', async () => {
    const db = journal.runtime;
    const others = { b: '1', c: '1', d: '1', e: '1' };
    const mirror = 'story';
    const first = await ScriptedRun.whole(db, { mirror }, rowsOf({ a: '1', ...others }));
    await ScriptedRun.whole(db, { mirror }, rowsOf({ a: '1', ...others }));
    expect(await explain(mirror, 'a')).toMatchObject({
      verdict: 'held',
      held: { payloadHash: payloadHash('a', '1'), runId: `${first.run}` },
      runs: [
        { did: 'unchanged' },
        { did: 'added', operation: { change: 'add', batches: [{ state: 'settled', accepted: 5 }] } },
      ],
      next: null,
      values: null,
    });
    const changed = await ScriptedRun.whole(db, { mirror }, rowsOf({ a: '2', ...others }));
    expect(await explain(mirror, 'a')).toMatchObject({
      verdict: 'held',
      held: { payloadHash: payloadHash('a', '2'), runId: `${changed.run}` },
    });
    await ScriptedRun.whole(db, { mirror }, rowsOf(others));
    const removed = await explain(mirror, 'a');
    expect(removed).toMatchObject({ verdict: 'removed', held: null });
    expect(didOf(removed)).toEqual(['removed', 'changed', 'unchanged', 'added']);
    const positions = removed.runs.flatMap((run) =>
      run.kind === 'run' ? [Number(run.operation?.batches[0]?.position)] : [],
    );
    expect(positions).toEqual([...positions].sort((x, y) => y - x));
    await ScriptedRun.whole(db, { mirror }, rowsOf({ a: '3', ...others }));
    expect(didOf(await explain(mirror, 'a'))).toEqual(['added', 'removed', 'changed', 'unchanged', 'added']);
    expect(didOf(await explain(mirror, 'nobody'))).toEqual(['left-out']);
  });

  test('what was accepted shows at once, folded or not, and a removal of an aborted run stands (rule 6)', async () => {
    const db = journal.runtime;
    const mirror = 'unfolded';
    await ScriptedRun.whole(db, { mirror }, rowsOf({ a: '1', b: '1' }));
    const run = await ScriptedRun.open(db, { mirror });
    await run.upToAdditions(rowsOf({ b: '1', c: '1' }));
    expect(await explain(mirror, 'a')).toMatchObject({ verdict: 'removal-due', held: {} });
    expect(await explain(mirror, 'c')).toMatchObject({ verdict: 'add-pending', held: null });
    await run.deliver('upsert');
    await run.beginRemovals();
    expect(await explain(mirror, 'a')).toMatchObject({ verdict: 'remove-pending', held: {} });
    await run.deliver('remove');
    expect(await explain(mirror, 'a')).toMatchObject({ verdict: 'removed', held: null });
    expect(await explain(mirror, 'c')).toMatchObject({ verdict: 'held', held: { runId: `${run.run}` } });
    await closeRun(db, run.attempt, 'aborted', null);
    expect(await explain(mirror, 'a')).toMatchObject({ verdict: 'removed', held: null });
  });

  test('failed-row-deleted: a refused change leaves the old payload held, and both are shown', async () => {
    const db = journal.runtime;
    const mirror = 'refused-change';
    await ScriptedRun.whole(db, { mirror }, rowsOf({ a: '1', b: '1', c: '1', d: '1', e: '1' }));
    const run = await ScriptedRun.open(db, { mirror });
    await run.upToAdditions(rowsOf({ a: '2', b: '1', c: '1', d: '1', e: '1' }));
    await run.deliver('upsert', { reject: new Set(['a']) });
    await closeRun(db, run.attempt, 'rejected', 'refused-row');
    const found = await explain(mirror, 'a');
    expect(found).toMatchObject({
      verdict: 'change-refused',
      held: { payloadHash: payloadHash('a', '1') },
      runs: [
        {
          did: 'rejected',
          state: 'rejected',
          operation: { payloadHash: payloadHash('a', '2'), rejection: { code: 'refused-row' } },
        },
        { did: 'added' },
      ],
    });
    expect(inspect(found, { depth: null })).not.toContain('no a');
  });

  test('a request proven unapplied, its second sending, and a refusal of the whole are told apart', async () => {
    const db = journal.runtime;
    const mirror = 'sendings';
    const run = await ScriptedRun.open(db, { mirror });
    await run.upToAdditions(rowsOf({ a: '1', b: '1' }));
    const [one] = await run.prepare('upsert', 1, 1);
    if (one === undefined) throw new Error('nothing prepared');
    await run.sending(one.id);
    await markNotApplied(db, run.attempt, one.id, 'http-429', 0);
    const id = one.members[0] ?? '';
    expect(await explain(mirror, id)).toMatchObject({
      verdict: 'add-pending',
      runs: [{ operation: { batches: [{ state: 'not-applied', code: 'http-429' }] } }],
    });
    const [other] = await run.prepare('upsert', 1, 1);
    if (other === undefined) throw new Error('nothing prepared');
    await run.sending(other.id);
    await markRefused(db, run.attempt, other.id, 'http-422', 'the words of the provider');
    const refused = await explain(mirror, other.members[0] ?? '');
    expect(refused).toMatchObject({ verdict: 'add-refused', held: null, runs: [{ did: 'refused' }] });
    await closeRun(db, run.attempt, 'rejected', 'http-422');
    expect(await explain(mirror, id)).toMatchObject({ verdict: 'unknown', runs: [{ did: 'never-sent' }] });
  });

  test('generations that were dropped: the story stays, and says where it is inferred or lost', async () => {
    const db = journal.runtime;
    const mirror = 'pruned';
    const held = { a: '1', b: '1', c: '1', d: '1', e: '1' };
    for (let i = 0; i < 4; i++) await ScriptedRun.whole(db, { mirror }, rowsOf(held));
    const sent = await ScriptedRun.open(db, { mirror });
    await sent.upToAdditions(rowsOf({ ...held, f: '1' }));
    await closeRun(db, sent.attempt, 'aborted', null);
    const last = await ScriptedRun.whole(db, { mirror }, rowsOf(held));
    await prune(db, last.run, 100);
    expect((await explain(mirror, 'a')).runs).toMatchObject([
      { kind: 'quiet', did: 'unchanged', isInferred: false, runs: 1 },
      { kind: 'quiet', did: 'rows-gone' },
      { kind: 'quiet', did: 'unchanged', isInferred: true, runs: 3 },
      { kind: 'run', did: 'added' },
    ]);
    expect(didOf(await explain(mirror, 'f'))).toEqual(['left-out', 'rows-gone', 'left-out', 'left-out']);
  });

  test('pages follow each other without a gap, and tell the same as one page', async () => {
    const db = journal.runtime;
    const mirror = 'pages';
    const others = Object.fromEntries(Array.from({ length: 10 }, (_, i) => [`x${i}`, '1']));
    for (const a of ['1', '2', null, '3', '3', null, '1']) {
      await ScriptedRun.whole(db, { mirror }, rowsOf(a === null ? others : { a, ...others }));
    }
    const whole = await explain(mirror, 'a');
    expect(didOf(whole)).toEqual(['added', 'removed', 'unchanged', 'added', 'removed', 'changed', 'added']);
    const paged: Explanation['runs'][number][] = [];
    let after: string | undefined;
    do {
      const page = await explain(mirror, 'a', { limit: 2, ...(after === undefined ? {} : { after }) });
      expect(page.runs.length).toBeLessThanOrEqual(2);
      expect(page.verdict).toBe(after === undefined ? 'held' : null);
      paged.push(...page.runs);
      after = page.next ?? undefined;
    } while (after !== undefined);
    expect(paged).toEqual(whole.runs);
    await expect(explain(mirror, 'a', { after: '1; drop table' })).rejects.toThrow(RangeError);
  });

  test('rule 7: a row left out on purpose is found by its source key', async () => {
    const db = journal.runtime;
    const mirror = 'by-key';
    const out: TestRow = { key: 'k1', members: [] };
    await ScriptedRun.whole(db, { mirror }, [out, ...rowsOf({ b: '1' })]);
    await ScriptedRun.whole(db, { mirror }, rowsOf({ k1: '1', b: '1' }));
    const target = (await targetOf(inspector, mirror)) ?? targetId(1);
    expect(await explainKey(inspector, target, '["k1"]', 10)).toMatchObject([
      { given: 'member', identityHash: hashOf('k1') },
      { given: 'excluded', identityHash: null },
    ]);
    expect(await explainKey(inspector, target, '["nobody"]', 1)).toMatchObject([{ given: 'absent' }]);
  });
});

describe('what destinations refused', () => {
  test('single members and whole requests, newest first, page by page, by mirror and run', async () => {
    const db = journal.runtime;
    const run = await ScriptedRun.open(db, { mirror: 'refusals' });
    await run.upToAdditions(rowsOf({ a: '1', b: '1', c: '1', d: '1' }));
    const [single, whole] = await run.prepare('upsert', 2, 2);
    if (single === undefined || whole === undefined) throw new Error('nothing prepared');
    await run.sending(single.id);
    await run.sending(whole.id);
    await run.settle(single, new Set(['a', 'b']));
    await markRefused(db, run.attempt, whole.id, 'http-400', 'whole words');
    const asked = { mirror: 'refusals', run: null, before: null, limit: 10, values: false };
    const all = await listRejections(inspector, asked);
    expect(all).toMatchObject({
      rejections: [
        { kind: 'request', batch: whole.id, code: 'http-400', members: 2, sequence: null, values: null },
        { kind: 'operation', identityHash: hashOf('b'), code: 'refused-row', runId: `${run.run}` },
        { kind: 'operation', identityHash: hashOf('a') },
      ],
      next: null,
    });
    const [first, second, third] = all.rejections;
    const page = await listRejections(inspector, { ...asked, limit: 1 });
    expect(page).toEqual({ rejections: [first], next: first?.at });
    const rest = await listRejections(inspector, { ...asked, before: BigInt(page.next ?? 0) });
    expect(rest.rejections).toEqual([second, third]);
    expect((await listRejections(inspector, { ...asked, run: 1n })).rejections).toEqual([]);
    expect((await listRejections(inspector, { ...asked, mirror: 'nothing' })).rejections).toEqual([]);
    const everywhere = await listRejections(inspector, { ...asked, mirror: null });
    expect(everywhere.rejections.length).toBeGreaterThan(3);
    const read = await listRejections(reader, { ...asked, values: true });
    expect(read.rejections.map((one) => one.values)).toEqual([
      { identity: null, words: 'whole words' },
      { identity: '{"id":"b"}', words: 'no b' },
      { identity: '{"id":"a"}', words: 'no a' },
    ]);
    await closeRun(db, run.attempt, 'rejected', 'http-400');
  });
});

describe('who may', () => {
  test('an inspector sees runs, mirrors, batches and stories, and no value in any way', async () => {
    await requireSchema(inspector);
    expect((await listRuns(inspector, { limit: 5 })).length).toBe(5);
    expect((await listMirrors(inspector)).length).toBeGreaterThan(3);
    expect(await unresolvedBatches(inspector, '1')).toEqual([]);
    expect(await mayReadValues(inspector)).toBe(false);
    const { rows } = await journal.admin.query<{ name: string }>(
      `select format('%I.%I', schemaname, tablename) as name from pg_tables where schemaname = 'retl'
       and tablename ~ '^(generation|operation|membership)_[0-9]+$'`,
    );
    expect(rows.length).toBeGreaterThan(10);
    for (const { name } of rows)
      expect(await stateOf(inspector.query(`select from ${name}`)), name).toBe(DENIED);
    for (const column of ['receipt', 'refusal', 'progress', 'job_ids', 'resolved_because'])
      expect(await stateOf(inspector.query(`select ${column} from retl.batch`)), column).toBe(DENIED);
    for (const sql of [
      'select reason from retl.rejection',
      'select settings from retl.revision',
      'select value from retl.store',
      'select baseline_note from retl.target',
      'select * from retl.batch',
    ])
      expect(await stateOf(inspector.query(sql)), sql).toBe(DENIED);
    await expect(explain('story', 'a', { values: true })).rejects.toMatchObject({ sqlState: DENIED });
  });

  test('a reader sees identity, payloads, receipts and words, those of later runs too, and changes nothing', async () => {
    expect(await mayReadValues(reader)).toBe(true);
    expect(await mayReadValues(journal.runtime)).toBe(false);
    const mirror = 'read';
    await ScriptedRun.whole(journal.runtime, { mirror }, rowsOf({ a: '1', b: '1', c: '1', d: '1', e: '1' }));
    const run = await ScriptedRun.open(journal.runtime, { mirror });
    await run.upToAdditions(rowsOf({ a: '2', b: '1', c: '1', d: '1', e: '1' }));
    await run.deliver('upsert', { reject: new Set(['a']) });
    const { values } = await explain(mirror, 'a', { values: true, as: reader });
    expect(values).toMatchObject({
      identity: '{"id":"a"}',
      held: { payload: '{"id":"a","v":"1"}', removal: '{"id":"a"}' },
      desired: { sourceKey: '["a"]', payload: '{"id":"a","v":"2"}' },
      operations: [
        {
          payload: '{"id":"a","v":"2"}',
          rejection: 'no a',
          batches: [{ receipt: '{"ok":true}', refusal: null }],
        },
        { payload: '{"id":"a","v":"1"}', rejection: null },
      ],
    });
    for (const [who, db] of [
      ['reader', reader],
      ['inspector', inspector],
    ] as const)
      for (const sql of [
        'delete from retl.rejection',
        'update retl.batch set folded = true',
        "insert into retl.store values (1, 'k', 'v')",
        'select retl.prune(1, 1)',
        "select retl.resolve_batch('', 'accepted', 'x')",
        "select nextval('retl.epoch')",
        'create table retl.mine (x int)',
      ])
        expect(await stateOf(db.query(sql)), `${who}: ${sql}`).toBe(DENIED);
    await closeRun(journal.runtime, run.attempt, 'rejected', null);
  });

  test('values that the journal has lost are told as lost', async () => {
    const mirror = 'lossy';
    await ScriptedRun.whole(journal.runtime, { mirror }, rowsOf({ a: '1' }));
    const { rows } = await journal.admin.query<{ name: string }>(
      `select format('retl.generation_%s', generation_id) as name from retl.generation join retl.run using (run_id)
         join retl.mirror using (mirror_id) where name = $1`,
      [mirror],
    );
    const lost = ['identity', 'upsert', 'remove'];
    for (const column of lost)
      await journal.admin.query(
        `alter table ${rows[0]?.name} alter column ${column} drop not null; update ${rows[0]?.name} set ${column} = null`,
      );
    const { values } = await explain(mirror, 'a', { values: true, as: reader });
    expect(values).toMatchObject({
      identity: null,
      held: { payload: null, removal: null },
      desired: { payload: null },
      operations: [{ payload: null }],
    });
    expect(valueWords(null)).toBe('(lost)');
  });

  test('identities cannot be listed without the right to values: only rejected ones have their hashes told', async () => {
    const { rows } = await journal.admin.query<{ first: string }>(
      `select first_sequence::text as first from retl.run r join retl.mirror m using (mirror_id) where m.name = 'story' order by run_id limit 1`,
    );
    const told = await inspector.query('select * from retl.rejected_identities($1)', [[rows[0]?.first]]);
    expect(told.rows).toEqual([]);
    const helper = `select retl.search_operation(1, 'sequence', '1', 1, 1)`;
    expect(await stateOf(inspector.query(helper))).toBe(DENIED);
    expect(hexOf(hashOf('a'))).toHaveLength(64);
  });
});
