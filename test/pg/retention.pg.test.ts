/**
 * Retention (design.md section 5): superseded generations, receipts and abandoned candidates go, in bounded steps; each thing that
 * is protected stays.
 */

import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { logPosition, sha256FromHex } from '../../src/domain/ids.ts';
import { pruneClosed, sweepStep } from '../../src/journal/compaction.ts';
import { logHead, readEffects, readEntries } from '../../src/journal/log.ts';
import { memberOf } from '../../src/journal/membership.ts';
import {
  abandonedRuns,
  adoptAbandoned,
  nextReplaced,
  pruneGenerations,
  retentionBacklog,
} from '../../src/journal/retention.ts';
import { type AdmitRequest, admit, beginAttempt, closeRun, releaseRun } from '../../src/journal/runs.ts';
import { verifyLog } from '../../src/journal/verify-log.ts';
import { compactTo } from '../support/compact.ts';
import { createTestJournal, stateOf, type TestJournal } from '../support/journal.ts';
import { admission, holderNamed, identityHash, rowsOf, ScriptedRun } from '../support/journal-run.ts';
import { promoted } from '../support/replaced-run.ts';

const DAY_MS = 86_400_000;
const MANY: Readonly<Record<string, string>> = Object.fromEntries(
  Array.from({ length: 12 }, (_, i) => [`k${i}`, '1']),
);

let journal: TestJournal;
let names = 0;

beforeAll(async () => {
  journal = await createTestJournal();
});
afterAll(() => journal.close());

function named(): string {
  names += 1;
  return `m${names}`;
}

const whole = (mirror: string, members: Readonly<Record<string, string>>) =>
  ScriptedRun.whole(journal.runtime, { mirror }, rowsOf(members));

async function pruneAll(): Promise<void> {
  while ((await pruneGenerations(journal.runtime, 3)) > 0);
}

async function hasRows(run: ScriptedRun): Promise<boolean> {
  const sql = `select exists (select from retl.generation g join pg_tables t on t.schemaname = 'retl'
    and t.tablename = 'generation_' || g.generation_id where g.run_id = $1) as there`;
  const { rows } = await journal.admin.query<{ there: boolean }>(sql, [run.run]);
  return rows[0]?.there ?? false;
}

/** The position of its last entry. */
async function lastPosition(run: ScriptedRun): Promise<bigint> {
  const entries = await readEntries(journal.runtime, logPosition(0), 10_000);
  return entries.filter((entry) => entry.run === run.run).at(-1)?.position ?? 0n;
}

const member = async (run: ScriptedRun, id: string) =>
  memberOf(journal.runtime, (await run.record()).target, sha256FromHex(identityHash(id).toString('hex')));

/** As if everything about the run were `days` older. */
async function older(run: ScriptedRun, days: number): Promise<void> {
  await journal.admin.query(`begin; set local session_replication_role = replica;
    update retl.run set opened_at = opened_at - interval '${days} days', sealed_at = sealed_at - interval '${days} days',
      closed_at = closed_at - interval '${days} days' where run_id = ${run.run};
    update retl.attempt set started_at = started_at - interval '${days} days' where run_id = ${run.run}; commit`);
}

describe('superseded generations', () => {
  test('go for every target, a bounded number at a time; the promoted one stays', async () => {
    const runs = [];
    for (const mirror of [named(), named()])
      for (const k1 of ['1', '2', '3']) runs.push(await whole(mirror, { ...MANY, k1 }));
    expect(await Promise.all(runs.map(hasRows))).toEqual(Array(6).fill(true));
    expect(await pruneGenerations(journal.runtime, 1)).toBe(1);
    expect((await Promise.all(runs.map(hasRows))).filter((there) => there)).toHaveLength(5);
    await pruneAll();
    // The first of each wrote everything: membership and entries refer to its rows.
    expect(await Promise.all(runs.map(hasRows))).toEqual([true, false, true, true, false, true]);
    for (const run of runs)
      expect(await member(run, 'k5')).toMatchObject({ kind: 'held', payload: expect.any(String) });
  });

  test('one that an entry above `earliest` refers to stays until the log is compacted past it, and the entry reads the same', async () => {
    const mirror = named();
    const first = await whole(mirror, MANY);
    const changed = Object.fromEntries(Object.keys(MANY).map((id) => [id, '2']));
    await whole(mirror, changed);
    await whole(mirror, changed);
    const effects = async () => {
      const [entry] = (await readEntries(journal.runtime, logPosition(0), 10_000)).filter(
        ({ run, first: from }) => run === first.run && from !== null,
      );
      if (entry === undefined) throw new Error('no entry');
      return readEffects(journal.runtime, entry);
    };
    const told = await effects();
    await pruneAll();
    expect(await hasRows(first)).toBe(true);
    expect(await effects()).toEqual(told);
    // As of its own end, the log snapshot refers to all of its rows.
    const own = await lastPosition(first);
    for (const [boundary, there] of [
      [own, true],
      [(await logHead(journal.runtime)).position, false],
    ] as const) {
      await compactTo(journal.runtime, Number(boundary));
      while ((await sweepStep(journal.runtime, 1000, 0)).kind !== 'idle');
      expect(await hasRows(first)).toBe(there);
    }
    expect(await member(first, 'k3')).toMatchObject({ kind: 'held', payload: '{"id":"k3","v":"2"}' });
  });

  test('one that a membership row refers to stays, with the bytes that a removal will need, compacted or not', async () => {
    const mirror = named();
    const first = await whole(mirror, MANY);
    const next = { ...MANY, k1: '2', k2: '2' };
    await whole(mirror, next);
    await whole(mirror, next);
    const { rows } = await journal.admin.query<{ head: string }>(
      'select position as head from retl.log_head',
    );
    await pruneAll();
    await compactTo(journal.runtime, Number(rows[0]?.head));
    while ((await sweepStep(journal.runtime, 1000, 0)).kind !== 'idle');
    for (const id of Object.keys(MANY))
      expect(await member(first, id)).toMatchObject({
        kind: 'held',
        removal: `{"id":"${id}"}`,
        payload: `{"id":"${id}","v":"${id === 'k1' || id === 'k2' ? '2' : '1'}"}`,
      });
    expect((await verifyLog(journal.runtime, { effects: true })).kind).toBe('intact');
  });

  test('one that somebody reads stays for the next time, and nobody waits for it', async () => {
    const mirror = named();
    await whole(mirror, MANY);
    const read = await whole(mirror, { ...MANY, k1: '2' });
    await whole(mirror, { ...MANY, k1: '3' });
    const reader = await journal.runtime.connect();
    await reader.query(`begin; select count(*) from retl.generation_${(await read.record()).generation}`);
    await pruneAll();
    expect(await hasRows(read)).toBe(true);
    await reader.query('commit');
    reader.release();
    await pruneAll();
    expect(await hasRows(read)).toBe(false);
  });

  test('a candidate, and a run with an unresolved request, keep their rows', async () => {
    const mirror = named();
    await whole(mirror, MANY);
    const open = await ScriptedRun.open(journal.runtime, { mirror });
    await open.upToAdditions(rowsOf({ ...MANY, k1: '2', k2: '2' }));
    const [sent] = await open.prepare('upsert', 1, 1);
    if (sent === undefined) throw new Error('nothing to send');
    await open.sending(sent.id);
    await older(open, 400);
    await pruneAll();
    expect(await hasRows(open)).toBe(true);
    expect((await abandonedRuns(journal.runtime, DAY_MS, 0n, 100)).map(({ run }) => run)).not.toContain(
      open.run,
    );
    const holder = open.request.holder;
    expect(
      await adoptAbandoned(journal.runtime, open.run, DAY_MS, holder.firstRunId, holderNamed('maintenance')),
    ).toBe(false);
    await open.settle(sent);
    await open.complete();
  });
});

describe('abandoned candidates', () => {
  async function abandoned(mirror = named()): Promise<ScriptedRun> {
    await whole(mirror, MANY);
    const run = await ScriptedRun.open(journal.runtime, { mirror });
    await run.upToAdditions(rowsOf({ ...MANY, k1: '2', k2: '2', k3: '2' }));
    await run.deliver('upsert', { size: 1, count: 1 });
    await releaseRun(journal.runtime, run.attempt, 'cancelled', null);
    return run;
  }
  const listed = async (run: ScriptedRun) =>
    (await abandonedRuns(journal.runtime, DAY_MS, run.run - 1n, 1)).some((one) => one.run === run.run);
  const me = holderNamed('maintenance');

  test('go once they are old enough; what was accepted of them stays, and takes part in the next diff', async () => {
    const run = await abandoned();
    expect(await listed(run)).toBe(false);
    expect(await adoptAbandoned(journal.runtime, run.run, DAY_MS, null, me)).toBe(false);
    await older(run, 2);
    expect(await listed(run)).toBe(true);
    expect(await adoptAbandoned(journal.runtime, run.run, DAY_MS, null, me)).toBe(true);
    // Killed here, the same maintenance goes on.
    expect(await adoptAbandoned(journal.runtime, run.run, DAY_MS, null, me)).toBe(true);
    const attempt = await beginAttempt(journal.runtime, run.run, me, 'close');
    await closeRun(journal.runtime, attempt, 'expired', 'abandoned');
    expect(await hasRows(run)).toBe(false);
    expect(await listed(run)).toBe(false);
    const payloads = await Promise.all(['k1', 'k2', 'k3'].map((id) => member(run, id)));
    const accepted = payloads.findIndex((held) => held.kind === 'held' && held.payload.includes('"v":"2"'));
    const left = ['k1', 'k2', 'k3'].filter((_, i) => i !== accepted);
    const next = await ScriptedRun.open(journal.runtime, { mirror: run.request.mirror });
    await next.upToAdditions(rowsOf({ ...MANY, k1: '2', k2: '2', k3: '2' }));
    expect((await next.prepare('upsert', 10)).flatMap(({ members }) => members).sort()).toEqual(left);
    expect(left).toHaveLength(2);
    await closeRun(journal.runtime, next.attempt, 'aborted', null);
  });

  test('stay while somebody holds them, or has taken them up lately, or their finish was begun', async () => {
    const held = await ScriptedRun.open(journal.runtime, { mirror: named() });
    await held.upToAdditions(rowsOf(MANY));
    await older(held, 400);
    for (const closed of [null, randomUUID()])
      expect(await adoptAbandoned(journal.runtime, held.run, DAY_MS, closed, me)).toBe(false);
    const taken = await abandoned();
    await older(taken, 400);
    await admit(journal.runtime, admission({ mirror: taken.request.mirror }));
    expect(await listed(taken)).toBe(false);
    const finishing = await ScriptedRun.open(journal.runtime, { mirror: named() });
    await finishing.upToAdditions(rowsOf(MANY));
    await finishing.deliver('upsert');
    await finishing.beginRemovals();
    await finishing.beginFinish();
    await releaseRun(journal.runtime, finishing.attempt, 'failed', null);
    await older(finishing, 400);
    expect(await adoptAbandoned(journal.runtime, finishing.run, DAY_MS, null, me)).toBe(false);
    // One whose holder Temporal says is closed is abandoned as well.
    const { firstRunId } = held.request.holder;
    expect(await adoptAbandoned(journal.runtime, held.run, DAY_MS, firstRunId, me)).toBe(true);
    expect(await stateOf(beginAttempt(journal.runtime, held.run, held.request.holder, 'deliver'))).toBe(
      'RM002',
    );
  });

  test('are kept for a day at least, whatever is asked for', async () => {
    expect(await stateOf(abandonedRuns(journal.runtime, DAY_MS - 1, 0n, 10))).toBe('RM003');
    expect(
      await stateOf(adoptAbandoned(journal.runtime, (await abandoned()).run, DAY_MS - 1, null, me)),
    ).toBe('RM003');
  });
});

test('receipts of a run that was closed less than a day ago stay', async () => {
  const run = await whole(named(), MANY);
  await journal.admin.query(
    `update retl.run set closed_at = clock_timestamp() - interval '23 hours 59 minutes' where run_id = ${run.run}`,
  );
  while ((await pruneClosed(journal.runtime, DAY_MS, 100)).more);
  const { rows } = await journal.admin.query<{ n: string }>(
    `select count(*) as n from retl.batch where run_id = ${run.run} and receipt = '{"pruned":true}'`,
  );
  expect(rows[0]?.n).toBe('0');
  expect(await stateOf(pruneClosed(journal.runtime, DAY_MS - 1, 100))).toBe('RM003');
});

test('what waits is counted, and replaced targets are found one by one', async () => {
  const mirror = named();
  for (const k1 of ['1', '2', '3']) await whole(mirror, { ...MANY, k1 });
  const keep = { keepCandidatesMs: DAY_MS, keepReceiptsMs: DAY_MS };
  const before = await retentionBacklog(journal.runtime, keep);
  expect(before.generations).toBeGreaterThan(0);
  await pruneAll();
  expect(await retentionBacklog(journal.runtime, keep)).toEqual({ ...before, generations: 0 });

  const replace: Partial<AdmitRequest> = { strategy: 'native-replace', atFinish: true };
  const newest = [];
  for (const name of [named(), named()])
    for (const _ of [1, 2]) {
      const run = await ScriptedRun.open(journal.runtime, { mirror: name, ...replace });
      await run.upToAdditions(rowsOf(MANY));
      await run.deliver('upsert');
      await run.beginRemovals();
      await run.beginFinish();
      await run.step('finish');
      await promoted(journal.runtime, run);
      newest.push(run.run);
    }
  const found = [];
  for (let next = await nextReplaced(journal.runtime, 0n); next !== null; ) {
    found.push(next.attempt.run);
    next = await nextReplaced(journal.runtime, next.target);
  }
  expect(found).toEqual([newest[1], newest[3]]);
});
