/** Who holds a run: take-overs, releases, expiry, and what a mirror keeps for life (design.md section 4). */

import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type Epoch, epoch } from '../../src/domain/ids.ts';
import { settleBatch } from '../../src/journal/batches.ts';
import { heldRun, releaseLost } from '../../src/journal/release.ts';
import { loadRun } from '../../src/journal/run-record.ts';
import {
  type AdmitRequest,
  admit,
  beginAttempt,
  closeRun,
  type Holder,
  releaseRun,
} from '../../src/journal/runs.ts';
import { standingOf } from '../../src/journal/standing.ts';
import { createTestJournal, stateOf, type TestJournal } from '../support/journal.ts';
import { admission, holderNamed, rowsOf, ScriptedRun } from '../support/journal-run.ts';

const FENCED = 'RM001';
const NOT_HOLDER = 'RM002';
const RULE = 'RM003';

let journal: TestJournal;

beforeAll(async () => {
  journal = await createTestJournal();
});
afterAll(() => journal.close());

describe('holders', () => {
  test('nobody but the holder begins an attempt, and a holder that leaves parts of its name out is nobody', async () => {
    const run = await ScriptedRun.open(journal.runtime, { mirror: 'holder' });
    const h = run.request.holder;
    const strangers = [
      { ...h, namespace: 'other' },
      { ...h, cluster: 'other' },
      { ...h, workflowId: 'other' },
      { ...h, firstRunId: 'other' },
    ];
    for (const s of strangers) {
      expect(await stateOf(beginAttempt(journal.runtime, run.run, s, 'test'))).toBe(NOT_HOLDER);
    }
    const some = [null, h.namespace, h.cluster, h.workflowId, h.firstRunId];
    for (let gap = 1; gap <= 5; gap++) {
      const values = some.map((v, i) => (gap === 5 || i === gap ? null : v)).slice(1);
      const call = journal.runtime.query('select retl.begin_attempt($1, $2, $3, $4, $5, $6)', [
        run.run,
        ...values,
        'test',
      ]);
      expect(await stateOf(call)).toBe(NOT_HOLDER);
    }
  });

  test('busy while the holder is open; taken over where it is closed, fenced at once', async () => {
    const run = await ScriptedRun.open(journal.runtime, { mirror: 'takeover' });
    await run.upToAdditions(rowsOf({ a: '1' }));
    const newcomer = admission({ mirror: 'takeover' });
    const { holder } = run.request;
    expect(await admit(journal.runtime, newcomer)).toEqual({ kind: 'busy', holder });
    expect(await admit(journal.runtime, { ...newcomer, closedHolder: 'somebody else' })).toEqual({
      kind: 'busy',
      holder,
    });
    expect(await admit(journal.runtime, run.request)).toMatchObject({ resume: 'held', run: run.run });
    expect(await admit(journal.runtime, { ...newcomer, closedHolder: holder.firstRunId })).toEqual({
      kind: 'admitted',
      run: run.run,
      resume: 'sealed',
    });
    expect(await stateOf(run.prepare('upsert', 1))).toBe(FENCED);
    expect(await stateOf(run.again())).toBe(NOT_HOLDER);
    // Only once: the closed holder is not the holder any more.
    expect(
      await admit(journal.runtime, admission({ mirror: 'takeover', closedHolder: holder.firstRunId })),
    ).toEqual({
      kind: 'busy',
      holder: newcomer.holder,
    });
  });

  test('a released run is taken over without asking, and whoever released it has written its last', async () => {
    const run = await ScriptedRun.open(journal.runtime, { mirror: 'released' });
    await run.upToAdditions(rowsOf({ a: '1' }));
    await releaseRun(journal.runtime, run.attempt, 'cancelled', null);
    expect(await stateOf(run.prepare('upsert', 1))).toBe(FENCED);
    expect(await stateOf(run.again())).toBe(NOT_HOLDER);
    expect(await admit(journal.runtime, admission({ mirror: 'released' }))).toMatchObject({
      resume: 'sealed',
      run: run.run,
    });
  });

  test('what was never sealed comes back to be discarded, what was sealed too long ago as expired', async () => {
    const unsealed = await ScriptedRun.open(journal.runtime, { mirror: 'unsealed' });
    await unsealed.init();
    await releaseRun(journal.runtime, unsealed.attempt, 'failed', null);
    expect(await admit(journal.runtime, admission({ mirror: 'unsealed' }))).toMatchObject({
      resume: 'discard',
    });

    const old = await ScriptedRun.open(journal.runtime, { mirror: 'old' });
    await old.upToAdditions(rowsOf({ a: '1' }));
    const [batch] = await old.prepare('upsert', 1);
    if (batch === undefined) throw new Error('no batch');
    await old.sending(batch.id);
    await releaseRun(journal.runtime, old.attempt, 'failed', null);
    const resumeAfter = new Date(Date.now() + 60_000);
    const second = admission({ mirror: 'old', resumeAfter });
    expect(await admit(journal.runtime, second)).toMatchObject({ resume: 'expired' });
    const attempt = await beginAttempt(journal.runtime, old.run, second.holder, 'test');
    // What is unresolved is resolved first, however old it is; then the run closes with what was accepted of it.
    const close = () => stateOf(closeRun(journal.runtime, attempt, 'expired', null));
    expect(await close()).toBe(RULE);
    await settleBatch(journal.runtime, attempt, batch.id, '{}', [], new Map());
    expect(await close()).toBeNull();
    expect(await old.record()).toMatchObject({ closing: 'expired' });
    expect(await admit(journal.runtime, admission({ mirror: 'old', resumeAfter }))).toMatchObject({
      resume: 'fresh',
    });
  });

  test('an admission whose answer was lost is answered again as it was, until the holder has begun an attempt', async () => {
    const first = admission({ mirror: 'unanswered' });
    const again = async (request: AdmitRequest) => {
      const before = await admit(journal.runtime, request);
      expect(await admit(journal.runtime, { ...request, closedHolder: null })).toEqual(before);
      if (before.kind !== 'admitted') throw new Error('not admitted');
      return before;
    };
    expect(await again(first)).toMatchObject({ resume: 'fresh' });
    const run = await ScriptedRun.open(journal.runtime, first);
    expect(await again(first)).toMatchObject({ resume: 'held' });
    const takeover = (holder: Holder, more: Partial<AdmitRequest> = {}) => {
      const request = admission({ mirror: 'unanswered', closedHolder: holder.firstRunId, ...more });
      return again(request).then(({ resume }) => ({ resume, holder: request.holder }));
    };
    const unsealed = await takeover(first.holder);
    expect(unsealed.resume).toBe('discard');
    run.attempt = await beginAttempt(journal.runtime, run.run, unsealed.holder, 'test');
    await run.upToAdditions(rowsOf({ a: '1' }));
    const sealed = await takeover(unsealed.holder);
    expect(sealed.resume).toBe('sealed');
    const expired = await takeover(sealed.holder, { resumeAfter: new Date(Date.now() + 60_000) });
    expect(expired.resume).toBe('expired');
  });

  test('rule 10: an expired generation whose finish has started is resumed all the same', async () => {
    const run = await ScriptedRun.open(journal.runtime, { mirror: 'finishing' });
    await run.upToAdditions(rowsOf({ a: '1' }));
    await run.deliver('upsert');
    await run.beginRemovals();
    await run.beginFinish();
    await releaseRun(journal.runtime, run.attempt, 'failed', null);
    const late = admission({ mirror: 'finishing', resumeAfter: new Date(Date.now() + 60_000) });
    expect(await admit(journal.runtime, late)).toMatchObject({ resume: 'sealed' });
  });
});

describe('admission', () => {
  test('a mirror keeps its strategy, except a name that has never had a target', async () => {
    const run = await ScriptedRun.open(journal.runtime, { mirror: 'strategy' });
    const changed = admission({ mirror: 'strategy', strategy: 'native-replace' });
    const refusal = { kind: 'refused', code: 'strategy-changed', strategy: 'snapshot-diff' };
    expect(await admit(journal.runtime, changed)).toEqual(refusal);

    const { targetKey } = run.request;
    const intruder = admission({ mirror: 'intruder', strategy: 'native-replace', targetKey });
    expect(await admit(journal.runtime, intruder)).toEqual({
      kind: 'refused',
      code: 'target-owned',
      owner: 'strategy',
    });
    expect(await admit(journal.runtime, admission({ mirror: 'intruder' }))).toMatchObject({
      resume: 'fresh',
    });
    await closeRun(journal.runtime, run.attempt, 'aborted', null);
    expect(await admit(journal.runtime, changed)).toEqual(refusal);
  });

  test('a changed target starts from its own baseline, and the old one stays the mirror’s', async () => {
    const first = await ScriptedRun.whole(journal.runtime, { mirror: 'moved' }, rowsOf({ a: '1' }));
    const moved = await ScriptedRun.open(journal.runtime, { mirror: 'moved', targetKey: 'elsewhere' });
    expect(await moved.record()).toMatchObject({ held: 0, baseline: null });
    expect((await loadRun(journal.runtime, first.run)).target).not.toBe((await moved.record()).target);
    const { targetKey } = first.request;
    expect(await admit(journal.runtime, admission({ mirror: 'other', targetKey }))).toMatchObject({
      code: 'target-owned',
    });
  });

  test('what identities mean at a target stays as it is while the target holds members, or may', async () => {
    const as = (identityForm?: string) => ({
      mirror: 'formed',
      ...(identityForm === undefined ? {} : { identityForm }),
    });
    const refused = { kind: 'refused', code: 'identity-moved' };
    const close = (run: ScriptedRun) => closeRun(journal.runtime, run.attempt, 'aborted', null);
    // Nothing is held yet: the newest word counts.
    await close(await ScriptedRun.open(journal.runtime, as('email')));
    const run = await ScriptedRun.open(journal.runtime, as('alt'));
    await run.upToAdditions(rowsOf({ a: '1' }));
    await run.deliver('upsert');
    await close(run);
    expect((await run.record()).held).toBe(0); // accepted, and not folded yet
    expect(await admit(journal.runtime, admission(as('email')))).toEqual(refused);
    const { target } = await standingOf(journal.runtime, 'formed', run.request.targetKey);
    expect(target).toMatchObject({ identityForm: 'alt' });
    // An adapter that says nothing of it refuses nobody, and takes nothing back.
    await close(await ScriptedRun.open(journal.runtime, as()));

    await ScriptedRun.whole(journal.runtime, as('alt'), rowsOf({ a: '1', b: '1' }));
    expect(await admit(journal.runtime, admission(as('email')))).toEqual(refused);
    await ScriptedRun.whole(journal.runtime, as('alt'), []);
    expect(await admit(journal.runtime, admission(as('email')))).toMatchObject({ resume: 'fresh' });
  });

  test('settings whose digest is not theirs, and missing or impossible limits, are refused', async () => {
    const good = admission({ mirror: 'limits' });
    const wrong = { ...good, settings: '{"mirror":"other"}' };
    expect(await stateOf(admit(journal.runtime, wrong))).toBe(RULE);
    for (const limits of [
      { maxBatchRows: 0 },
      { maxBatchRows: 100_001 },
      { maxRequestBytes: 0 },
      { maxRemovalShare: -0.1 },
      { maxRemovalShare: Number.NaN },
      { maxRemovalShare: 1.5 },
      { maxRemovals: -1 },
      { mirror: 'No Such Name' },
      { mirror: '' },
    ]) {
      const state = await stateOf(admit(journal.runtime, { ...good, ...limits }));
      expect(state, JSON.stringify(limits)).toBe('23514');
    }
    expect(await admit(journal.runtime, good)).toMatchObject({ resume: 'fresh' });
    const { holder } = good;
    expect(await admit(journal.runtime, { ...good, holder: { ...holder, firstRunId: 'another' } })).toEqual({
      kind: 'busy',
      holder,
    });
  });

  test('each raising of an epoch is on record', async () => {
    const run = await ScriptedRun.open(journal.runtime, { mirror: 'recorded' });
    await run.again();
    await releaseRun(journal.runtime, run.attempt, 'failed', null);
    await admit(journal.runtime, admission({ mirror: 'recorded', holder: holderNamed('x') }));
    const { rows } = await journal.runtime.query<{ epoch: string; step: string }>(
      'select epoch, step from retl.attempt where run_id = $1 order by epoch',
      [run.run],
    );
    expect(rows.map((row) => row.step)).toEqual(['admit', 'test', 'test', 'release', 'admit']);
    const newest: Epoch = epoch(rows.at(-1)?.epoch ?? 0n);
    const state = await journal.runtime.query('select epoch from retl.run where run_id = $1', [run.run]);
    expect(state.rows).toEqual([{ epoch: newest.toString() }]);
  });
});

describe('a holder whose Temporal is lost', () => {
  test('rule 9: it is let go with a reason that is kept, its attempts are fenced, and a newcomer takes the run over', async () => {
    const run = await ScriptedRun.open(journal.runtime, { mirror: 'lost' });
    await run.upToAdditions(rowsOf({ a: '1' }));
    const held = await heldRun(journal.runtime, 'lost');
    if (held === null) throw new Error('not held');
    expect(held).toEqual({ run: run.run, holder: run.request.holder });
    const stranger = { ...held, holder: { ...held.holder, firstRunId: 'another' } };
    expect(await releaseLost(journal.runtime, stranger, 'ada', 'gone')).toBe('other-holder');
    expect(await stateOf(releaseLost(journal.runtime, held, 'ada', ''))).toBe(RULE);
    expect(await releaseLost(journal.runtime, held, 'ada', 'the cluster was deleted')).toBe('released');
    expect(await stateOf(releaseRun(journal.runtime, run.attempt, 'failed', null))).toBe(FENCED);
    expect(await releaseLost(journal.runtime, held, 'ada', 'again')).toBe('not-held');
    expect(await heldRun(journal.runtime, 'lost')).toBeNull();
    const { rows } = await journal.admin.query(
      'select released_by, because from retl.release where run_id = $1',
      [run.run],
    );
    expect(rows).toEqual([{ released_by: 'ada', because: 'the cluster was deleted' }]);
    expect(await admit(journal.runtime, admission({ mirror: 'lost' }))).toMatchObject({
      kind: 'admitted',
      run: run.run,
      resume: 'sealed',
    });
  });
});
