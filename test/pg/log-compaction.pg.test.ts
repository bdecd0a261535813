/**
 * Compaction of the log into a log snapshot (design.md section 5): a full replay from the earliest position gives the same
 * membership, byte for byte, as the replay from the beginning did, whenever the compaction was killed and whatever ran meanwhile.
 */

import pg from 'pg';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { logPosition, sha256FromHex } from '../../src/domain/ids.ts';
import {
  beginCompaction,
  type CompactStep,
  compactStep,
  holdCompaction,
  releaseCompaction,
  sweepStep,
} from '../../src/journal/compaction.ts';
import { logHead } from '../../src/journal/log.ts';
import { readLogPage } from '../../src/journal/log-reader.ts';
import { latestSnapshot, logSnapshots, readSnapshotPage } from '../../src/journal/log-snapshot.ts';
import { memberOf } from '../../src/journal/membership.ts';
import { listRejections } from '../../src/journal/rejections.ts';
import { closeRun, prune } from '../../src/journal/runs.ts';
import { verifyLog } from '../../src/journal/verify-log.ts';
import { createTestJournal, type TestJournal } from '../support/journal.ts';
import { identityHash, identityOf, ScriptedRun, type TestRow } from '../support/journal-run.ts';
import { ReplayedIndex } from '../support/log-replay.ts';
import { promoted } from '../support/replaced-run.ts';
import { tampered as tamperedWith } from '../support/tamper.ts';

let journal: TestJournal;

beforeAll(async () => {
  journal = await createTestJournal();
});
afterAll(() => journal.close());

/** Members `from` to `to`, each with a payload and removal bytes of its own. */
const rows = (from: number, to: number, payload: string): readonly TestRow[] =>
  Array.from({ length: to - from }, (_, i) => {
    const id = `k${from + i}`;
    return { key: id, members: [{ id, payload, remove: `{"gone":"${id} ${payload}"}` }] };
  });

/** What every history ends with, but for two members more: 12 members of an older run, and 20 of the last. */
const STEADY = [...rows(6, 26, '5'), ...rows(26, 38, '4')];

/** Adds, changes, removes and adds again; large changes and small ones; rejections, and a run that is given up. */
async function history(mirror: string): Promise<void> {
  const whole = async (of: readonly TestRow[], size = 5) => {
    const run = await ScriptedRun.whole(journal.runtime, { mirror }, of, size);
    await prune(journal.runtime, run.run, 100);
  };
  await whole(rows(0, 40, '1'));
  await whole([...rows(0, 4, '2'), ...rows(4, 40, '1')]);
  await whole([...rows(0, 4, '2'), ...rows(4, 36, '1')]);
  const given = await ScriptedRun.open(journal.runtime, { mirror });
  await given.upToAdditions([...rows(0, 4, '3'), ...rows(4, 38, '1')]);
  await given.deliver('upsert', { reject: new Set(['k1', 'k36']) });
  await closeRun(journal.runtime, given.attempt, 'rejected', 'refused-row');
  await whole(rows(0, 38, '4'), 9);
  await whole([...rows(0, 2, '4'), ...rows(6, 38, '4')]);
  await whole([...rows(0, 2, '4'), ...STEADY]);
}

/** The step is made and its transaction's connection dies before the commit. */
async function killed(step: (client: pg.Client) => Promise<unknown>): Promise<void> {
  const client = new pg.Client({ connectionString: journal.runtimeUrl });
  client.on('error', () => {});
  await client.connect();
  await client.query('begin');
  await step(client);
  const { rows: own } = await client.query<{ pid: number }>('select pg_backend_pid() as pid');
  await journal.admin.query('select pg_terminate_backend($1, 5000)', [own[0]?.pid]);
  await client.end().catch(() => {});
}

type Between = (step: CompactStep | { readonly kind: string }) => Promise<void>;

/** Builds and completes a snapshot up to `boundary`, killed all the while. */
async function compact(boundary: bigint, size: number, between: Between = async () => {}) {
  await killed((client) => beginCompaction(client, logPosition(boundary)));
  const begun = await beginCompaction(journal.runtime, logPosition(boundary));
  expect(begun).toMatchObject({ kind: 'begun', boundary });
  for (;;) {
    await killed((client) => compactStep(client, size));
    const step = await compactStep(journal.runtime, size);
    await between(step);
    if (step.kind === 'complete') return step;
    if (step.kind !== 'building') throw new Error(step.kind);
  }
}

async function sweep(size: number, between: Between = async () => {}): Promise<number> {
  for (;;) {
    await killed((client) => sweepStep(client, size, 0));
    const step = await sweepStep(journal.runtime, size, 0);
    await between(step);
    if (step.kind === 'idle') return step.waiting;
  }
}

async function tablesNow(): Promise<readonly string[]> {
  const { rows: tables } = await journal.admin.query<{ name: string }>(
    "select tablename as name from pg_tables where schemaname = 'retl' and tablename ~ '_[0-9]+$' order by 1",
  );
  return tables.map(({ name }) => name);
}

describe('a log snapshot', () => {
  test('replays to the same bytes, killed at every step, with runs going on, once and again', {
    timeout: 240_000,
  }, async () => {
    for (const mirror of ['a', 'b']) await history(mirror);
    const follower = new ReplayedIndex();
    await follower.follow(journal.runtime);
    expect(follower.size).toBe(2 * 34);
    let n = 6;
    for (const [size, share] of [
      [1000, 0.5],
      [23, 0.9],
      [50, 1],
    ] as const) {
      const { position } = await logHead(journal.runtime);
      const boundary = BigInt(Math.floor(Number(position) * share));
      const open = await ScriptedRun.open(journal.runtime, { mirror: 'a' });
      await open.upToAdditions([...rows(0, 2, `${n}`), ...STEADY, ...rows(50, 60, `${n}`)]);
      await open.deliver('upsert', { size: 1, count: 1 });
      const before = await follower.follow(journal.runtime).then(() => follower.dump());
      const completed = await compact(boundary, size, async (step) => {
        // A run goes on, and whoever follows the log.
        await open.deliver('upsert', { size: 1, count: 1 });
        await follower.follow(journal.runtime);
        if (step.kind === 'complete')
          expect((await ReplayedIndex.replay(journal.runtime, 40)).dump()).toBe(follower.dump());
      });
      expect(before).not.toBe('');
      await open.complete(3);
      await follower.follow(journal.runtime);
      const head = await logHead(journal.runtime);
      expect(head.earliest).toBe(boundary + 1n);
      expect(await latestSnapshot(journal.runtime)).toMatchObject({
        id: completed.snapshot,
        boundary,
        digest: completed.digest,
        members: completed.members,
      });
      let steps = 0;
      await sweep(size, async () => {
        steps += 1;
        if (steps % 4 === 0)
          expect((await ReplayedIndex.replay(journal.runtime, 40)).dump()).toBe(follower.dump());
      });
      expect((await ReplayedIndex.replay(journal.runtime)).dump()).toBe(follower.dump());
      n += 1;
      expect(await verifyLog(journal.runtime, { effects: true })).toEqual({
        kind: 'intact',
        position: (await logHead(journal.runtime)).position,
      });
    }
    expect((await logSnapshots(journal.runtime)).map(({ state }) => state)).toEqual([
      'superseded',
      'superseded',
      'complete',
    ]);
  });

  test('what lies before it is answered as compacted, and what only served that is gone', async () => {
    const { earliest } = await logHead(journal.runtime);
    expect(earliest).toBeGreaterThan(20n);
    for (const after of [0n, earliest - 2n])
      expect(await readLogPage(journal.runtime, logPosition(after))).toEqual({ kind: 'compacted', earliest });
    expect((await readLogPage(journal.runtime, logPosition(earliest - 1n))).kind).not.toBe('compacted');
    const [first, second, newest] = await logSnapshots(journal.runtime);
    expect(await readSnapshotPage(journal.runtime, first?.id ?? 0n, null)).toEqual({ kind: 'compacted' });
    // The first run of each mirror has been superseded as a whole; its tables have gone, and no table is left of a copy.
    const tables = await tablesNow();
    for (const gone of [
      'operation_1',
      'generation_1',
      'operation_2',
      `snapshot_${first?.id}`,
      `snapshot_${second?.id}`,
    ])
      expect(tables).not.toContain(gone);
    expect(tables).toContain(`snapshot_${newest?.id}`);
    const { rows: kept } = await journal.admin.query<{
      name: string;
      rows_kept: string;
      members: string | null;
    }>(
      `select 'kept_' || r.run_id || '_' || r.kept_in as name, rows_kept, s.members from retl.run r
       left join retl.log_snapshot_run s on s.run_id = r.run_id and s.snapshot_id = $1 where rows_kept > 0 order by 1`,
      [newest?.id],
    );
    expect(tables.filter((name) => name.startsWith('kept_'))).toEqual(kept.map(({ name }) => name).sort());
    // Fourteen members of an older run of each mirror, and the two rejections of each.
    expect(kept.map(({ rows_kept }) => rows_kept)).toEqual(expect.arrayContaining(['14', '14', '2', '2']));
    for (const { name, rows_kept } of kept) {
      const { rows: found } = await journal.admin.query(`select count(*) as n from retl.${name}`);
      expect(found[0]?.n).toBe(rows_kept);
    }
  });

  test('removals-from-snapshot: members that an old run added are removed with the bytes stored then', async () => {
    const last = await ScriptedRun.open(journal.runtime, { mirror: 'b' });
    const { target } = await last.record();
    const held = await memberOf(journal.runtime, target, sha256FromHex(identityHash('k30').toString('hex')));
    expect(held).toMatchObject({ kind: 'held', identity: identityOf('k30'), removal: '{"gone":"k30 4"}' });
    await last.upToAdditions([]);
    await last.deliver('upsert');
    await last.beginRemovals();
    const { rows: removals } = await journal.admin.query<{ remove: string }>(
      `select remove from retl.operation_${last.run} where change = 'r' order by 1`,
    );
    const held34 = [...rows(0, 2, '4'), ...STEADY].flatMap(({ members }) => members.map((m) => m.remove));
    expect(removals.map(({ remove }) => remove)).toEqual(held34.sort());
    await closeRun(journal.runtime, last.attempt, 'aborted', null);
  });
});

describe('people who look', () => {
  test('are told of an older run that its plan is gone, and of rejections what they were told before', async () => {
    const { rows: runs } = await journal.admin.query<{ run_id: string; target_id: string; thinned: boolean }>(
      `select run_id, target_id, rows_kept is not null as thinned from retl.run join retl.mirror using (mirror_id)
       where name = 'b' order by run_id desc`,
    );
    const { rows: traced } = await journal.runtime.query<{ run_id: string; plan: string }>(
      'select run_id, plan from retl.trace_member($1, $2, null, 100)',
      [runs[0]?.target_id, identityHash('k30')],
    );
    expect(traced.map(({ run_id }) => run_id)).toEqual(runs.map(({ run_id }) => run_id));
    const thinned = new Set(runs.flatMap((run) => (run.thinned ? [run.run_id] : [])));
    expect(thinned.size).toBeGreaterThan(2);
    const before = traced.filter(({ run_id }) => thinned.has(run_id));
    expect(new Set(before.map(({ plan }) => plan))).toEqual(new Set(['gone']));
    expect(traced.map(({ plan }) => plan)).toContain('present');
    const { rejections } = await listRejections(journal.runtime, {
      mirror: 'b',
      run: null,
      before: null,
      limit: 20,
      values: true,
    });
    expect(rejections.map(({ values }) => values?.identity).sort()).toEqual(
      ['k1', 'k36'].map(identityOf).sort(),
    );
  });
});

describe('verification across a snapshot', () => {
  const tampered = (sql: string, effects = true) => tamperedWith(journal, sql, effects);

  test('a changed, swapped or relinked snapshot is found, and named by its boundary', async () => {
    const newest = await latestSnapshot(journal.runtime);
    if (newest === null) throw new Error('no snapshot');
    const table = `retl.snapshot_${newest.id}`;
    const { boundary: position } = newest;
    const broken = (rule: string) => ({ kind: 'broken', position, rule });
    const one = `where identity_hash = (select min(identity_hash) from ${table})`;
    for (const change of ['since = since + 1', 'position = position + 1', 'target_id = 3 - target_id'])
      expect(await tampered(`update ${table} set ${change} ${one}`), change).toEqual(
        broken('snapshot-digest'),
      );
    const other = `update ${table} set payload_hash = sha256(payload_hash) ${one}`;
    expect(await tampered(other)).toMatchObject({ kind: 'broken', rule: 'snapshot-payload' });
    expect(await tampered(`delete from ${table} where identity_hash < '\\x20'`)).toEqual(
      broken('snapshot-digest'),
    );
    expect(
      await tampered("update retl.log_snapshot set boundary_hash = sha256('x') where state = 'complete'"),
    ).toEqual(broken('snapshot-boundary'));
    // One whose digest is right by itself is not the one that the chain is linked to.
    const first = (await logSnapshots(journal.runtime))[0];
    const swapped = `update retl.log_snapshot set digest = sha256('x') where snapshot_id = ${first?.id}`;
    expect(await tampered(swapped)).toEqual({
      kind: 'broken',
      position: (first?.linkedAt ?? 0n) + 1n,
      rule: 'previous-hash',
    });
    expect(await tampered('update retl.log_head set earliest = earliest + 1')).toEqual({
      kind: 'broken',
      position: position + 2n,
      rule: 'earliest',
    });
    expect(await tampered('delete from retl.log_entry where position = 3')).toMatchObject({ position: 3n });
  });

  test('a payload that is held is proven, wherever its bytes have been taken', async () => {
    const { rows: kept } = await journal.admin.query<{ kept: string }>(
      "select format('retl.kept_%s_%s', run_id, kept_in) as kept from retl.run where rows_kept > 11 limit 1",
    );
    const forged = `update ${kept[0]?.kept} set upsert = '{"id":"mallory"}'`;
    expect(await tampered(forged, false)).toMatchObject({ kind: 'intact' });
    expect(await tampered(forged)).toMatchObject({ kind: 'broken', rule: 'snapshot-payload' });
    expect(await tampered(`delete from ${kept[0]?.kept}`)).toMatchObject({ rule: 'snapshot-payload' });
  });
});

describe('indexes that need the full log', () => {
  test('hold compaction back, before it begins and while it is being built', async () => {
    const { position, earliest } = await logHead(journal.runtime);
    const first = logPosition(earliest - 1n);
    expect(await holdCompaction(journal.runtime, 'history', first)).toEqual({ kind: 'held' });
    expect(await beginCompaction(journal.runtime, position)).toMatchObject({ kind: 'held', by: 'history' });
    await holdCompaction(journal.runtime, 'history', logPosition(earliest + 1n));
    const begun = await beginCompaction(journal.runtime, position);
    expect(begun).toMatchObject({ kind: 'begun', boundary: earliest + 1n });
    await holdCompaction(journal.runtime, 'late', first);
    let step = await compactStep(journal.runtime, 1000);
    while (step.kind === 'building') step = await compactStep(journal.runtime, 1000);
    expect(step).toMatchObject({ kind: 'held', by: 'late', boundary: earliest + 1n });
    expect((await logHead(journal.runtime)).earliest).toBe(earliest);
    await releaseCompaction(journal.runtime, 'late');
    expect(await compactStep(journal.runtime, 1000)).toMatchObject({ kind: 'complete' });
    expect(await holdCompaction(journal.runtime, 'late', first)).toEqual({
      kind: 'compacted',
      earliest: earliest + 2n,
    });
    expect(await beginCompaction(journal.runtime, logPosition(3))).toEqual({
      kind: 'nothing',
      earliest: earliest + 2n,
    });
  });
});

test('a replacement by nobody, whose snapshot has gone since, is thinned like any other run', async () => {
  const replaced = async (of: readonly TestRow[]): Promise<ScriptedRun> => {
    const more = { mirror: 'emptied', strategy: 'native-replace', atFinish: true } as const;
    const run = await ScriptedRun.open(journal.runtime, more);
    await run.upToAdditions(of);
    await run.deliver('upsert');
    await run.beginRemovals();
    await run.beginFinish();
    await run.step('finish');
    await promoted(journal.runtime, run);
    await prune(journal.runtime, run.run, 100);
    return run;
  };
  // The index above has let go.
  await releaseCompaction(journal.runtime, 'history');
  await replaced(rows(0, 12, '1'));
  const nobody = await replaced([]);
  await replaced(rows(0, 12, '2'));
  expect(await tablesNow()).not.toContain(`generation_${nobody.run}`);
  const { position } = await logHead(journal.runtime);
  const before = (await ReplayedIndex.replay(journal.runtime)).dump();
  await compact(position, 100);
  expect(await sweep(100)).toBe(0);
  expect(await tablesNow()).not.toContain(`operation_${nobody.run}`);
  expect((await ReplayedIndex.replay(journal.runtime)).dump()).toBe(before);
  expect(await verifyLog(journal.runtime, { effects: true })).toMatchObject({ kind: 'intact' });
});
