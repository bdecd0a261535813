/** Answers to what the guard asks: which are taken, which are refused, and what they close. */

import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type Sha256, sha256 } from '../../src/domain/ids.ts';
import { type Answer, decide, parkedRun } from '../../src/journal/approvals.ts';
import { type AdmitRequest, admit, closeRun, guard, releaseRun } from '../../src/journal/runs.ts';
import { GuardScene, question } from '../support/guard-scene.ts';
import { stateOf } from '../support/journal.ts';
import { admission, holderNamed, type ScriptedRun } from '../support/journal-run.ts';

const RULE = 'RM003';
const FINAL = 'RM006';
const DENIED = '42501';
const ELSE = sha256(`sha256:${'0'.repeat(64)}`);

const scene = new GuardScene();
beforeAll(() => scene.open());
afterAll(() => scene.close());

const answer = (run: ScriptedRun, shown: Sha256, more: Partial<Answer> = {}) =>
  decide(scene.journal.runtime, {
    run: run.run,
    shown,
    verdict: 'approved',
    by: 'ann',
    because: 'it is meant',
    via: 'cli',
    ...more,
  });
const close = (run: ScriptedRun, how: 'guard-rejected' | 'guard-expired' | 'aborted') =>
  stateOf(closeRun(scene.journal.runtime, run.attempt, how, null));
const judged = (run: ScriptedRun) => guard(scene.journal.runtime, run.attempt);

/** Another execution comes, with or without the former's letting go. */
async function takenOver(run: ScriptedRun, more: Partial<AdmitRequest> = {}) {
  const { mirror, holder } = run.request;
  const next = holderNamed(`mirror/${mirror}`);
  const request = admission({ mirror, holder: next, closedHolder: holder.firstRunId, ...more });
  return admit(scene.journal.runtime, request);
}

describe('an answer', () => {
  test('is taken once: the same again changes nothing, and the other is refused', async () => {
    for (const [verdict, other] of [
      ['approved', 'rejected'],
      ['rejected', 'approved'],
    ] as const) {
      const { run, asked } = await scene.parked('abc');
      expect(await answer(run, asked.shown, { verdict })).toEqual({ kind: 'recorded' });
      expect(await answer(run, asked.shown, { verdict, by: 'bob' })).toEqual({ kind: 'repeated' });
      expect(await answer(run, asked.shown, { verdict: other })).toEqual({ kind: 'answered', verdict });
      expect(await parkedRun(scene.journal.runtime, run.request.mirror)).toMatchObject({ verdict });
    }
  });

  test('is to what was shown and to nothing else', async () => {
    const { run, asked } = await scene.parked('abc');
    expect(await answer(run, ELSE)).toEqual({ kind: 'stale', shown: asked.shown });
    expect(await judged(run)).toMatchObject({ kind: 'held' });
  });

  test('is refused where nothing is asked: no such run, not parked yet, not any more, closed', async () => {
    const run = await scene.planned('abc');
    expect(await answer(run, ELSE)).toEqual({ kind: 'not-parked' });
    const asked = question(await run.plan());
    await answer(run, asked.shown);
    await judged(run);
    expect(await answer(run, ELSE)).toEqual({ kind: 'not-parked' });
    // Whoever lost the answer to an approval may ask again, however far the run has come.
    expect(await answer(run, asked.shown)).toEqual({ kind: 'repeated' });
    await close(run, 'aborted');
    expect(await answer(run, asked.shown)).toEqual({ kind: 'repeated' });
    expect(await answer(run, ELSE)).toEqual({ kind: 'closed', closing: 'aborted' });
    const values = [ELSE.slice(7)];
    const { rows } = await scene.journal.runtime.query(
      `select retl.decide(2000000000, decode($1, 'hex'), 'approved', 'ann', null, 'cli') as value`,
      values,
    );
    expect(rows).toEqual([{ value: { kind: 'no-such-run' } }]);
  });

  test('needs a verdict, a name, a token and a way that people have', async () => {
    const { run, asked } = await scene.parked('abc');
    const raw = (verdict: unknown, by: unknown, via: unknown, shown: unknown = asked.shown.slice(7)) =>
      stateOf(
        scene.journal.runtime.query(`select retl.decide($1, decode($2, 'hex'), $3, $4, null, $5)`, [
          run.run,
          shown,
          verdict,
          by,
          via,
        ]),
      );
    for (const verdict of [null, '', 'yes']) expect(await raw(verdict, 'ann', 'cli')).toBe(RULE);
    for (const by of [null, '']) expect(await raw('approved', by, 'cli')).toBe(RULE);
    for (const via of [null, 'input', 'plan', 'mail']) expect(await raw('approved', 'ann', via)).toBe(RULE);
    expect(await raw('approved', 'ann', 'cli', null)).toBe(RULE);
    expect(await judged(run)).toMatchObject({ kind: 'held' });
  });

  test('nul+surrogates: people’s words never fail it', async () => {
    const { run, asked } = await scene.parked('abc');
    const by = `${'x'.repeat(199)}😀`;
    expect(await answer(run, asked.shown, { by, because: 'a\0b \ud83d 😀' })).toEqual({ kind: 'recorded' });
    const { rows } = await scene.journal.admin.query('select because from retl.approval where run_id = $1', [
      run.run,
    ]);
    expect(rows).toEqual([{ because: 'a\ufffdb \ufffd 😀' }]);
  });

  test('rule 6: is never changed or taken back, not even by the owner', async () => {
    const { run, asked } = await scene.parked('abc');
    await answer(run, asked.shown, { verdict: 'rejected' });
    for (const sql of [
      "update retl.approval set verdict = 'approved'",
      'delete from retl.approval',
      'truncate retl.approval',
    ])
      expect(await stateOf(scene.journal.owner.query(sql)), sql).toBe(FINAL);
    expect(await stateOf(scene.journal.runtime.query('delete from retl.approval'))).toBe(DENIED);
  });

  test('who gave it and why is for those who may read values', async () => {
    const { run, asked } = await scene.parked('abc');
    await answer(run, asked.shown);
    const as = async (role: string, sql: string) => {
      const client = new pg.Client({ connectionString: scene.journal.adminUrl });
      await client.connect();
      await client.query(`set role ${role}`);
      const state = await stateOf(client.query(sql));
      await client.end();
      return state;
    };
    const shared = 'select run_id, removals, shown, verdict, via, decided_at from retl.approval';
    expect(await as('retl_inspector', shared)).toBeNull();
    expect(await as('retl_inspector', `select retl.shown_digest(${run.run})`)).toBeNull();
    for (const column of ['decided_by', 'because', '*']) {
      expect(await as('retl_inspector', `select ${column} from retl.approval`), column).toBe(DENIED);
      expect(await as('retl_reader', `select ${column} from retl.approval`), column).toBeNull();
    }
  });
});

describe('a rejection', () => {
  test('closes the run, and nothing else closes it so', async () => {
    const { run, asked } = await scene.parked('abc');
    expect(await close(run, 'guard-rejected')).toBe(RULE);
    await answer(run, asked.shown, { verdict: 'rejected' });
    expect(await close(run, 'guard-expired')).toBe(RULE);
    expect(await judged(run)).toEqual({ kind: 'rejected', code: 'max-removals' });
    expect(await close(run, 'guard-rejected')).toBeNull();
    const fresh = await scene.planned('abc', { mirror: scene.name() });
    expect(await close(fresh, 'guard-rejected')).toBe(RULE);
    expect(await close(fresh, 'guard-expired')).toBe(RULE);
  });

  test('that came while nobody had the run keeps its snapshot from being taken up', async () => {
    const { run, asked } = await scene.parked('abc');
    await releaseRun(scene.journal.runtime, run.attempt, 'cancelled', null);
    await answer(run, asked.shown, { verdict: 'rejected' });
    expect(await takenOver(run)).toMatchObject({ kind: 'admitted', resume: 'guard-rejected' });
  });
});

describe('the deadline', () => {
  const SHORT = { approvalDeadlineMs: 30 };

  test('is a rejection once it has passed, and not before', async () => {
    const { run, asked } = await scene.parked('abc', { approvalDeadlineMs: 1_500 });
    expect(await close(run, 'guard-expired')).toBe(RULE);
    expect(await judged(run)).toMatchObject({ kind: 'held' });
    await sleep(asked.leftMs + 20);
    expect(await judged(run)).toEqual({ kind: 'expired', code: 'max-removals' });
    expect(await answer(run, asked.shown)).toEqual({ kind: 'expired' });
    const plan = await scene.planOf(run);
    expect(await guard(scene.journal.runtime, run.attempt, { plan, approveUpTo: 10 })).toMatchObject({
      kind: 'expired',
    });
    expect(await close(run, 'guard-rejected')).toBe(RULE);
    expect(await close(run, 'guard-expired')).toBeNull();
  });

  test('an answer in time counts, however late the run looks', async () => {
    const { run, asked } = await scene.parked('abc', { approvalDeadlineMs: 1_500 });
    await answer(run, asked.shown);
    await sleep(asked.leftMs + 20);
    expect(await close(run, 'guard-expired')).toBe(RULE);
    expect(await judged(run)).toEqual({ kind: 'passed' });
  });

  test('stays what it was for whoever takes the run over; what was approved meanwhile passes', async () => {
    const { run, asked } = await scene.parked('abc');
    const before = await parkedRun(scene.journal.runtime, run.request.mirror);
    await releaseRun(scene.journal.runtime, run.attempt, 'cancelled', null);
    expect(await takenOver(run)).toMatchObject({ resume: 'sealed' });
    expect((await parkedRun(scene.journal.runtime, run.request.mirror))?.deadline).toEqual(before?.deadline);
    await answer(run, asked.shown);
    const { rows } = await scene.journal.runtime.query<{ epoch: string }>(
      'select epoch from retl.run where run_id = $1',
      [run.run],
    );
    const { rows: passed } = await scene.journal.runtime.query('select retl.guard($1, $2) as value', [
      run.run,
      rows[0]?.epoch,
    ]);
    expect(passed).toEqual([{ value: { kind: 'passed' } }]);
  });

  test('passed unanswered while nobody had the run, it keeps the snapshot from being taken up', async () => {
    const { run } = await scene.parked('abc', SHORT);
    await sleep(60);
    expect(await takenOver(run)).toMatchObject({ kind: 'admitted', resume: 'guard-expired' });
  });

  test('an approval that races it wins or loses, and never both', async () => {
    const runs = await Promise.all(
      Array.from({ length: 8 }, () => scene.parked('abc', { approvalDeadlineMs: 400 })),
    );
    const kinds = await Promise.all(
      runs.map(async ({ run, asked }, i) => {
        await sleep(Math.max(0, asked.leftMs - 40 + i * 10));
        const [decided, closed] = await Promise.all([answer(run, asked.shown), close(run, 'guard-expired')]);
        const isApproved = decided.kind === 'recorded';
        if (closed !== null) await sleep(100);
        const last = closed === null ? 'closed' : (await judged(run)).kind;
        expect(last).toBe(isApproved ? 'passed' : closed === null ? 'closed' : 'expired');
        return decided.kind;
      }),
    );
    for (const kind of kinds) expect(['recorded', 'expired', 'closed']).toContain(kind);
  });
});
