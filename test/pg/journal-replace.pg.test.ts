/**
 * Native replacement in the journal: every desired member once per run, the finish, and what follows it, each step durable
 * and repeated by recovery (rules 1, 4, 6 and 10).
 */

import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { sha256FromHex } from '../../src/domain/ids.ts';
import { tellRuns } from '../../src/domain/member-story.ts';
import { settledUploads } from '../../src/journal/batch-record.ts';
import { logHead, readEffects, readEntries } from '../../src/journal/log.ts';
import { holdingOf, tracesOf } from '../../src/journal/member-trace.ts';
import { memberOf } from '../../src/journal/membership.ts';
import { applyUploads, confirmReplacement, recordReplaced } from '../../src/journal/replacement.ts';
import { countRun } from '../../src/journal/run-record.ts';
import type { AdmitRequest } from '../../src/journal/runs.ts';
import { admit, closeRun, promote, recordBaseline } from '../../src/journal/runs.ts';
import { verifyLog } from '../../src/journal/verify-log.ts';
import { createTestJournal, stateOf, type TestJournal } from '../support/journal.ts';
import { admission, identityHash, rowsOf, ScriptedRun } from '../support/journal-run.ts';
import { complete as completed, promoted as promotedRun } from '../support/replaced-run.ts';

const RULE = 'RM003';
let journal: TestJournal;
let names = 0;

beforeAll(async () => {
  journal = await createTestJournal();
});
afterAll(() => journal.close());

type Visible = 'on_accept' | 'at_finish';
type Members = Readonly<Record<string, string>>;

function nameNew(): string {
  names += 1;
  return `r${names}`;
}

async function open(mirror: string, visible: Visible): Promise<ScriptedRun> {
  const more: Partial<AdmitRequest> = { strategy: 'native-replace', atFinish: visible === 'at_finish' };
  return ScriptedRun.open(journal.runtime, { mirror, ...more });
}

async function uploaded(mirror: string, visible: Visible, members: Members, size = 2): Promise<ScriptedRun> {
  const run = await open(mirror, visible);
  await run.upToAdditions(rowsOf(members));
  await run.deliver('upsert', { size });
  return run;
}

async function finished(mirror: string, visible: Visible, members: Members): Promise<ScriptedRun> {
  const run = await uploaded(mirror, visible, members);
  await run.beginRemovals();
  await run.beginFinish();
  await run.step('finish');
  return run;
}

const complete = (run: ScriptedRun, stops = false) => completed(journal.runtime, run, stops);
const promoted = (run: ScriptedRun) => promotedRun(journal.runtime, run);

async function held(run: ScriptedRun, ids: readonly string[]): Promise<readonly string[]> {
  const { target } = await run.record();
  const found: string[] = [];
  for (const id of ids) {
    const member = await memberOf(journal.runtime, target, sha256FromHex(identityHash(id).toString('hex')));
    if (member.kind === 'held') found.push(`${id}${JSON.parse(member.payload).v}`);
  }
  return found;
}

/** The run's entries, in the order of the log: kind and members. */
async function logged(run: ScriptedRun): Promise<readonly string[]> {
  const head = await logHead(journal.runtime);
  const entries = await readEntries(journal.runtime, 0n as typeof head.position, 10_000);
  const lines: string[] = [];
  for (const entry of entries.filter((e) => e.run === run.run)) {
    const effects = await readEffects(journal.runtime, entry);
    const ids = effects.map((e) => JSON.parse(e.identity).id).sort();
    lines.push(`${entry.kind} ${ids.join('')}`.trim());
  }
  return lines;
}

const BOTH: readonly Visible[] = ['on_accept', 'at_finish'];
const FIRST = { a: '1', b: '1', c: '1', d: '1', e: '1' };
const SECOND = { a: '1', b: '2', f: '1' };
const ALL = ['a', 'b', 'c', 'd', 'e', 'f'];

describe.each(BOTH)('visible %s', (visible) => {
  test('every desired member is uploaded, unchanged ones too, each once in a run', async () => {
    const mirror = nameNew();
    await promoted(await finished(mirror, visible, FIRST));
    const run = await uploaded(mirror, visible, SECOND);
    const uploads = await settledUploads(journal.runtime, run.attempt, 0n, 100);
    expect(uploads.reduce((sum, upload) => sum + upload.accepted, 0)).toBe(3);
    expect(await countRun(journal.runtime, run.run)).toMatchObject({
      uploaded: 3,
      unchanged: 1,
      toRemove: 3,
    });
    await run.again();
    expect(await run.prepare('upsert', 2)).toEqual([]);
  });

  test('after the finish the target holds the sealed set, the log tells it with the removals, and so is it proven', async () => {
    const mirror = nameNew();
    await promoted(await finished(mirror, visible, FIRST));
    const run = await finished(mirror, visible, SECOND);
    await promoted(run);
    expect(await held(run, ALL)).toEqual(['a1', 'b2', 'f1']);
    const additions = ['additions ab', 'additions f'];
    expect(await logged(run)).toEqual(
      visible === 'on_accept'
        ? [...additions, 'finish', 'removals cde']
        : ['finish', ...additions, 'removals cde'],
    );
    expect(await countRun(journal.runtime, run.run)).toMatchObject({ added: 1, changed: 1, removed: 3 });
    expect((await run.record()).held).toBe(3);
    expect(await verifyLog(journal.runtime, { effects: true })).toMatchObject({ kind: 'intact' });
  });

  test('an empty snapshot is finished, and everybody is recorded as removed', async () => {
    const mirror = nameNew();
    await promoted(await finished(mirror, visible, FIRST));
    const run = await finished(mirror, visible, {});
    await promoted(run);
    expect(await held(run, ALL)).toEqual([]);
    expect(await logged(run)).toEqual(['finish', 'removals abcde']);
  });

  test('rule 1: no finish is prepared before every member of the sealed snapshot has an accepted upload', async () => {
    const run = await open(nameNew(), visible);
    await run.upToAdditions(rowsOf(FIRST));
    await run.deliver('upsert', { size: 2, count: 2 });
    expect(await stateOf(run.beginRemovals())).toBe(RULE);
    // As if a bug had let it get that far.
    await journal.admin.query(`update retl.run set phase = 'finish' where run_id = $1`, [run.run]);
    expect(await stateOf(run.prepareStep('finish'))).toBe(RULE);
    await journal.admin.query(`update retl.run set phase = 'additions' where run_id = $1`, [run.run]);
    await run.deliver('upsert', { size: 2 });
    await run.beginRemovals();
    await run.beginFinish();
    expect(await stateOf(run.prepareStep('finish'))).toBeNull();
  });

  test('rule 10: status, uploads, removals, promotion, in that order, and each repeated by recovery', async () => {
    const mirror = nameNew();
    await promoted(await finished(mirror, visible, FIRST));
    const run = await finished(mirror, visible, SECOND);
    const db = journal.runtime;
    const before = await held(run, ALL);
    expect(before).toEqual(
      visible === 'on_accept'
        ? ['a1', 'b2', 'c1', 'd1', 'e1', 'f1']
        : Object.keys(FIRST).map((id) => `${id}1`),
    );
    for (const early of [
      () => applyUploads(db, run.attempt, 1),
      () => recordReplaced(db, run.attempt, []),
      () => promote(db, run.attempt),
    ])
      expect(await stateOf(early())).toBe(RULE);
    await confirmReplacement(db, run.attempt);
    expect(await stateOf(promote(db, run.attempt))).toBe(RULE);
    await run.again();
    await confirmReplacement(db, run.attempt);
    if (visible === 'at_finish') {
      expect(await applyUploads(db, run.attempt, 1)).toBe(1);
      await expect(complete(run, true)).rejects.toThrow('told to stop');
      await run.again();
    }
    await complete(run);
    expect(await stateOf(promote(db, run.attempt))).toBe(RULE);
    await run.again();
    await complete(run);
    await run.foldAll();
    await promote(db, run.attempt);
    expect(await held(run, ALL)).toEqual(['a1', 'b2', 'f1']);
    expect((await logged(run)).filter((line) => line.startsWith('removals'))).toEqual(['removals cde']);
  });

  test('only what is planned as removed is recorded so, once, without a gap', async () => {
    const mirror = nameNew();
    await promoted(await finished(mirror, visible, FIRST));
    const run = await finished(mirror, visible, SECOND);
    await confirmReplacement(journal.runtime, run.attempt);
    while ((await applyUploads(journal.runtime, run.attempt, 10)) > 0);
    const end = (await run.record()).removalsEnd ?? 0n;
    const client = await journal.runtime.connect();
    const record = (last: bigint) =>
      stateOf(
        recordReplaced(client, run.attempt, [
          { id: sha256FromHex(last.toString().padStart(64, '0')) as never, last: last as never },
        ]),
      );
    for (const last of [end + 1n, end - 3n, 0n]) expect(await record(last)).toBe(RULE);
    await client.query('begin');
    expect(await record(end - 1n)).toBeNull();
    await client.query('savepoint once');
    expect(await record(end - 1n)).toBe(RULE);
    await client.query('rollback to once');
    expect(await record(end)).toBeNull();
    await client.query('rollback');
    client.release();
  });

  test('rule 10: once the finish is accepted the run can only be completed', async () => {
    const run = await finished(nameNew(), visible, FIRST);
    expect(await stateOf(closeRun(journal.runtime, run.attempt, 'aborted', null))).toBe(RULE);
    await promoted(run);
    expect((await run.record()).closing).toBe('completed');
  });
});

describe('what is told of one member', () => {
  const hashOf = (id: string) => sha256FromHex(identityHash(id).toString('hex'));

  async function toldOf(run: ScriptedRun, id: string) {
    const { target } = await run.record();
    const holding = await holdingOf(journal.runtime, target, hashOf(id));
    const traces = await tracesOf(journal.runtime, target, hashOf(id), null, 10);
    return { holding, did: tellRuns(traces, holding !== null).map((story) => story.did) };
  }

  test.each(BOTH)(
    'visible %s: uploaded again, changed, added, and removed by the finish',
    async (visible) => {
      const mirror = nameNew();
      await promoted(await finished(mirror, visible, FIRST));
      const run = await finished(mirror, visible, SECOND);
      await promoted(run);
      const told = { a: 'sent-again', b: 'changed', f: 'added', c: 'removed' };
      for (const [id, did] of Object.entries(told)) expect((await toldOf(run, id)).did[0], id).toBe(did);
      expect((await toldOf(run, 'c')).holding).toBeNull();
      expect((await toldOf(run, 'a')).holding).toMatchObject({ runId: run.run.toString() });
    },
  );

  test('an upload that is not finished is under way; one that never will be was never sent', async () => {
    const mirror = nameNew();
    const first = await finished(mirror, 'at_finish', FIRST);
    await promoted(first);
    const run = await uploaded(mirror, 'at_finish', SECOND);
    expect((await toldOf(run, 'b')).did).toEqual(['pending', 'added']);
    expect((await toldOf(run, 'b')).holding).toMatchObject({ runId: first.run.toString() });
    await closeRun(journal.runtime, run.attempt, 'aborted', null);
    expect((await toldOf(run, 'b')).did[1]).toBe('added');
    expect((await toldOf(run, 'b')).holding).toMatchObject({ runId: first.run.toString() });
  });
});

describe('visible at the finish', () => {
  test('rule 6: an accepted upload is evidence only: an abort leaves membership and log as they were', async () => {
    const mirror = nameNew();
    await promoted(await finished(mirror, 'at_finish', FIRST));
    const head = await logHead(journal.runtime);
    const run = await uploaded(mirror, 'at_finish', SECOND);
    expect(await logHead(journal.runtime)).toEqual(head);
    expect(await held(run, ALL)).toEqual(Object.keys(FIRST).map((id) => `${id}1`));
    await closeRun(journal.runtime, run.attempt, 'aborted', null);
    expect(await logHead(journal.runtime)).toEqual(head);
    const next = await finished(mirror, 'at_finish', SECOND);
    await promoted(next);
    expect(await held(next, ALL)).toEqual(['a1', 'b2', 'f1']);
  });

  test('receipt-downgrade: what was answered to an upload stays, and an exact repeat changes nothing', async () => {
    const run = await open(nameNew(), 'at_finish');
    await run.upToAdditions(rowsOf(FIRST));
    const [batch] = await run.deliver('upsert', { size: 5 });
    if (batch === undefined) throw new Error('nothing was uploaded');
    expect(await stateOf(run.settle(batch))).toBeNull();
    expect(await stateOf(run.settle(batch, new Set(['a'])))).toBe('RM006');
    expect(await stateOf(run.sending(batch.id))).toBe('RM006');
    for (const change of [
      `state = 'sending'`,
      `accepted = 4, rejected = 1`,
      `receipt = '{}'`,
      `settled_epoch = 1`,
    ]) {
      const tamper = journal.admin.query(
        `update retl.batch set ${change} where run_id = $1 and action = 'upsert'`,
        [run.run],
      );
      expect(await stateOf(tamper), change).toBe('RM006');
    }
  });

  test('rule 5: a rejected member stops the run, names it, and finishes nothing', async () => {
    const run = await open(nameNew(), 'at_finish');
    await run.upToAdditions(rowsOf(FIRST));
    await run.deliver('upsert', { size: 5, reject: new Set(['c']) });
    expect(await stateOf(run.beginRemovals())).toBe(RULE);
    await closeRun(journal.runtime, run.attempt, 'rejected', 'row');
    const { rows } = await journal.runtime.query(
      `select o.identity_hash from retl.operation_${run.run} o join retl.rejection using (sequence)`,
    );
    expect(rows).toHaveLength(1);
  });
});

describe('a target of which nobody knows what it holds', () => {
  async function planned(
    proof: 'unknown' | 'attested' | 'verified',
    mirror = nameNew(),
  ): Promise<ScriptedRun> {
    const run = await open(mirror, 'at_finish');
    await recordBaseline(journal.runtime, run.attempt, 'replace', proof, null);
    await run.step('init');
    await run.load(rowsOf(FIRST));
    await run.seal();
    return run;
  }

  test('the guard asks before the first replacement, whatever number was approved beforehand, and not before a later one', async () => {
    const mirror = nameNew();
    const run = await planned('unknown', mirror);
    const asked = await run.plan({ approveUpTo: 1_000_000 });
    expect(asked).toMatchObject({ kind: 'held', code: 'unknown-baseline', removals: 0 });
    const { rows } = await journal.admin.query<{ shown: Buffer }>('select retl.shown_digest($1) as shown', [
      run.run,
    ]);
    await journal.runtime.query(`select retl.decide($1, $2, 'approved', 'somebody', 'looked', 'cli')`, [
      run.run,
      rows[0]?.shown,
    ]);
    expect((await run.plan()).kind).toBe('passed');
    await run.deliver('upsert', { size: 5 });
    await run.beginRemovals();
    await run.beginFinish();
    await run.step('finish');
    await promoted(run);
    const next = await open(mirror, 'at_finish');
    await next.init();
    await next.load(rowsOf(SECOND));
    await next.seal();
    expect((await next.plan()).kind).toBe('passed');
  });

  test('nobody is asked where the target was seen to be empty, or somebody has vouched', async () => {
    for (const proof of ['verified', 'attested'] as const)
      expect((await (await planned(proof)).plan()).kind).toBe('passed');
  });

  test('a target that is diffed against is known, or is not written', async () => {
    const run = await ScriptedRun.open(journal.runtime, { mirror: nameNew() });
    const record = recordBaseline(journal.runtime, run.attempt, 'new-empty', 'unknown', null);
    expect(await stateOf(record)).toBe('23514');
  });
});

describe('what does not fit is refused', () => {
  test('uploads that count at the finish only cannot be diffed against', async () => {
    const request = admission({ mirror: nameNew(), atFinish: true });
    expect(await stateOf(admit(journal.runtime, request))).toBe(RULE);
  });

  test('a target whose baseline is of the other strategy is written by nobody', async () => {
    const run = await open(nameNew(), 'on_accept');
    await run.init();
    await journal.admin.query(
      `update retl.target set baseline = 'tracked' where mirror_id = (select mirror_id from retl.run where run_id = $1)`,
      [run.run],
    );
    await run.load(rowsOf(FIRST));
    await run.seal();
    await run.plan();
    expect(await stateOf(run.prepare('upsert', 2))).toBe(RULE);
  });

  test('nothing of a replacement may be done to a run that diffs', async () => {
    const run = await ScriptedRun.open(journal.runtime, { mirror: nameNew() });
    await run.upToAdditions(rowsOf(FIRST));
    await run.deliver('upsert');
    await run.beginRemovals();
    await run.beginFinish();
    await run.step('finish');
    expect(await stateOf(confirmReplacement(journal.runtime, run.attempt))).toBe(RULE);
    expect(await stateOf(applyUploads(journal.runtime, run.attempt, 1))).toBe(RULE);
  });
});
