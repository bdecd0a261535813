/** Rule 9: epochs and races, as an older attempt, a careless session or a second attempt at once would try them. */

import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { openBatches } from '../../src/journal/batch-record.ts';
import { settleBatch } from '../../src/journal/batches.ts';
import { loadCandidate } from '../../src/journal/candidate.ts';
import { transaction } from '../../src/journal/pool.ts';
import { admit, beginAttempt, closeRun, releaseRun } from '../../src/journal/runs.ts';
import { createTestJournal, stateOf, type TestJournal } from '../support/journal.ts';
import { addRow, admission, rowsOf, ScriptedRun } from '../support/journal-run.ts';

const FENCED = 'RM001';
const RULE = 'RM003';

let journal: TestJournal;

beforeAll(async () => {
  journal = await createTestJournal();
});
afterAll(() => journal.close());

/** Every function of the border that takes a run and an epoch, called with nulls for all else. */
async function fencedCalls(): Promise<readonly string[]> {
  const { rows } = await journal.admin.query<{ call: string }>(`
    select format('select retl.%I($1, $2%s)', p.proname,
      (select string_agg(format(', null::%s', format_type(t, null)), '' order by n)
       from unnest(p.proargtypes) with ordinality a(t, n) where n > 2)) as call
    from pg_proc p
    where p.pronamespace = 'retl'::regnamespace and p.prosecdef and p.proargnames[1:2] = '{p_run,p_epoch}'
    order by 1`);
  return rows.map((row) => row.call);
}

describe('epochs', () => {
  test('rule 9: an older attempt, a future one and a null one can commit nothing, by no function', async () => {
    const run = await ScriptedRun.open(journal.runtime, { mirror: 'epochs' });
    await run.upToAdditions(rowsOf({ a: '1' }));
    const old = run.attempt.epoch;
    await run.again();
    const calls = await fencedCalls();
    expect(calls.length).toBeGreaterThan(20);
    for (const wrong of [old, 0n, run.attempt.epoch + 1n, null]) {
      for (const sql of calls) {
        expect(await stateOf(journal.runtime.query(sql, [run.run, wrong])), `${sql} ${wrong}`).toBe(FENCED);
      }
    }
  });

  test('rule 9: a closed run takes nothing any more, and no attempt begins on it', async () => {
    const run = await ScriptedRun.open(journal.runtime, { mirror: 'closed' });
    await closeRun(journal.runtime, run.attempt, 'aborted', null);
    for (const sql of await fencedCalls()) {
      expect(await stateOf(journal.runtime.query(sql, [run.run, run.attempt.epoch])), sql).toBe(FENCED);
    }
    expect(await stateOf(run.again())).toBe(FENCED);
  });

  test('nulls for everything but run and epoch are refused by every function, and change nothing', async () => {
    const run = await ScriptedRun.open(journal.runtime, { mirror: 'nulls' });
    await run.upToAdditions(rowsOf({ a: '1', b: '1' }));
    await run.deliver('upsert', { size: 1, count: 1 });
    await run.prepare('upsert', 1);
    const look = async () =>
      (
        await journal.admin.query(
          `select (select to_jsonb(r) from retl.run r where run_id = $1) as run,
            (select jsonb_agg(to_jsonb(b) order by b.batch_id) from retl.batch b where run_id = $1) as batches,
            (select jsonb_agg(to_jsonb(t)) from retl.target t) as targets`,
          [run.run],
        )
      ).rows;
    const before = await look();
    // These two take no further argument and are due in another phase, or change nothing here.
    for (const sql of await fencedCalls()) {
      const state = await stateOf(journal.runtime.query(sql, [run.run, run.attempt.epoch]));
      expect(['RM003', 'RM004', 'RM001', '23502', '23514'], sql).toContain(state);
    }
    expect(await look()).toEqual(before);
  });

  test('a run that does not exist has no attempt', async () => {
    for (const sql of await fencedCalls()) {
      expect(['RM001', 'RM004'], sql).toContain(await stateOf(journal.runtime.query(sql, [999_999, 1])));
    }
  });

  test('rule 9: an older snapshot of the journal writes nothing', async () => {
    const run = await ScriptedRun.open(journal.runtime, { mirror: 'isolation' });
    await run.upToAdditions(rowsOf({ a: '1', b: '1' }));
    for (const level of ['repeatable read', 'serializable']) {
      const client = await journal.runtime.connect();
      try {
        await client.query(`begin isolation level ${level}`);
        await client.query('select from retl.run');
        // Another connection of the same attempt sends meanwhile; this one would not see it, and close the run.
        expect(await stateOf(closeRun(client, run.attempt, 'aborted', null))).toBe(RULE);
      } finally {
        client.release(true);
      }
    }
  });

  test('rule 3: a session that would not wait for the disk is made to', async () => {
    const run = await ScriptedRun.open(journal.runtime, { mirror: 'durable' });
    await run.upToAdditions(rowsOf({ a: '1' }));
    const [batch] = await run.prepare('upsert', 1);
    const client = await journal.runtime.connect();
    try {
      await client.query('set synchronous_commit = off; begin');
      await client.query('select retl.mark_sending($1, $2, decode($3, $4), 1000)', [
        run.run,
        run.attempt.epoch,
        batch?.id.slice(7),
        'hex',
      ]);
      expect((await client.query('show synchronous_commit')).rows).toEqual([{ synchronous_commit: 'on' }]);
      await client.query('commit');
    } finally {
      client.release(true);
    }
  });

  test('whoever holds the head of the log and falls asleep is cut off', async () => {
    const run = await ScriptedRun.open(journal.runtime, { mirror: 'asleep' });
    await run.upToAdditions(rowsOf({ a: '1' }));
    const [batch] = await run.prepare('upsert', 1);
    if (batch === undefined) throw new Error('no batch');
    await run.sending(batch.id);
    await transaction(journal.runtime, async (client) => {
      await settleBatch(client, run.attempt, batch.id, '{}', [], new Map());
      const { rows } = await client.query('show idle_in_transaction_session_timeout');
      expect(rows).toEqual([{ idle_in_transaction_session_timeout: '10s' }]);
    });
  });
});

describe('races', () => {
  test('rule 9: a new attempt and an old one’s settlement: whoever comes second finds the other’s word', async () => {
    const outcomes = new Set<string>();
    for (let round = 0; round < 12; round++) {
      const run = await ScriptedRun.open(journal.runtime, { mirror: `race-${round}` });
      await run.upToAdditions(rowsOf({ a: '1' }));
      const [batch] = await run.prepare('upsert', 1);
      if (batch === undefined) throw new Error('no batch');
      await run.sending(batch.id);
      const old = run.attempt;
      const settle = () => stateOf(settleBatch(journal.runtime, old, batch.id, '{}', [], new Map()));
      const begin = () => run.again();
      const [settled] = await (round % 2 === 0
        ? Promise.all([settle(), begin()])
        : Promise.all([begin(), settle()]).then(([b, s]) => [s, b] as const));
      const open = await openBatches(journal.runtime, run.attempt);
      if (settled === null) expect(open).toEqual([]);
      else {
        expect(settled).toBe(FENCED);
        expect(open.map((b) => [b.state, b.reason])).toEqual([['unknown', 'found-sending']]);
      }
      outcomes.add(settled ?? 'settled');
    }
    expect(outcomes.size).toBeGreaterThan(0);
  });

  test('rule 9: two attempts begun at once have different epochs, and one of them is fenced', async () => {
    const run = await ScriptedRun.open(journal.runtime, { mirror: 'twins' });
    const { holder } = run.request;
    const [a, b] = await Promise.all([
      beginAttempt(journal.runtime, run.run, holder, 'one'),
      beginAttempt(journal.runtime, run.run, holder, 'two'),
    ]);
    expect(a.epoch).not.toBe(b.epoch);
    const newer = a.epoch > b.epoch ? a : b;
    const older = newer === a ? b : a;
    expect(await stateOf(releaseRun(journal.runtime, older, 'failed', null))).toBe(FENCED);
    expect(await stateOf(releaseRun(journal.runtime, newer, 'failed', null))).toBeNull();
  });

  test('rule 8: an extraction that was overtaken commits nothing of its candidate', async () => {
    const run = await ScriptedRun.open(journal.runtime, { mirror: 'overtaken' });
    await run.init();
    const old = run.attempt;
    const load = loadCandidate(journal.runtime, old, '[]', async (sink) => {
      addRow(sink, { key: 'a', members: [{ id: 'a', payload: '1' }] });
      await sink.drain();
      await run.again();
    });
    expect(await stateOf(load)).toBe(FENCED);
    const { rows } = await journal.admin.query(
      'select count(*)::int as n from retl.generation where run_id = $1',
      [run.run],
    );
    expect(rows).toEqual([{ n: 0 }]);
  });

  test('two-writers: of many admissions of one mirror at once exactly one wins, the rest are told who holds it', async () => {
    const requests = Array.from({ length: 8 }, () => admission({ mirror: 'rush' }));
    const answers = await Promise.all(requests.map((r) => admit(journal.runtime, r)));
    const winner = requests.find((_, i) => answers[i]?.kind === 'admitted');
    expect(answers.filter((a) => a.kind === 'admitted')).toHaveLength(1);
    for (const a of answers.filter((x) => x.kind !== 'admitted')) {
      expect(a).toEqual({ kind: 'busy', holder: winner?.holder });
    }
  });

  test('two-writers: of two mirrors on one target, admitted at once, one owns it and the other is refused', async () => {
    for (let round = 0; round < 4; round++) {
      const target = { targetKey: `shared ${round}` };
      const answers = await Promise.all([
        admit(journal.runtime, admission({ mirror: `left-${round}`, ...target })),
        admit(journal.runtime, admission({ mirror: `right-${round}`, ...target })),
      ]);
      expect(answers.map((a) => a.kind).sort()).toEqual(['admitted', 'refused']);
      expect(answers).toContainEqual({
        kind: 'refused',
        code: 'target-owned',
        owner: expect.stringMatching(`^(left|right)-${round}$`),
      });
    }
  });

  test('a newcomer and an attempt that appends to the log never deadlock', async () => {
    const run = await ScriptedRun.open(journal.runtime, { mirror: 'lock-order' });
    await run.upToAdditions(rowsOf({ a: '1' }));
    const [batch] = await run.prepare('upsert', 1);
    if (batch === undefined) throw new Error('no batch');
    await run.sending(batch.id);
    const takeOver = admission({ mirror: 'lock-order', closedHolder: run.request.holder.firstRunId });
    let admitted: Promise<string | null> = Promise.resolve(null);
    await transaction(journal.runtime, async (client) => {
      // Takes the run’s row; the newcomer then waits for it with the mirror’s row in hand, which the log entry refers to.
      await client.query('select retl.record_progress($1, $2, decode($3, $4), $5)', [
        run.run,
        run.attempt.epoch,
        batch.id.slice(7),
        'hex',
        'half',
      ]);
      admitted = stateOf(admit(journal.runtime, takeOver));
      await waitingForLock();
      await settleBatch(client, run.attempt, batch.id, '{}', [], new Map());
    });
    expect(await admitted).toBeNull();
  });

  test('a newcomer that can only be refused waits for nobody', async () => {
    const run = await ScriptedRun.open(journal.runtime, { mirror: 'long-seal' });
    await transaction(journal.runtime, async (client) => {
      await client.query('select retl.record_baseline($1, $2, $3, $4, null)', [
        run.run,
        run.attempt.epoch,
        'new-empty',
        'verified',
      ]);
      expect(await admit(journal.runtime, admission({ mirror: 'long-seal' }))).toMatchObject({
        kind: 'busy',
      });
    });
  });
});

async function waitingForLock(): Promise<void> {
  for (;;) {
    const { rows } = await journal.admin.query(
      "select from pg_stat_activity where wait_event_type = 'Lock' and datname = current_database()",
    );
    if (rows.length > 0) return;
  }
}
