/** What a destination is asked and given, over the attempts of a run and its recovery (design.md sections 3, 4 and 6). */

import { afterAll, beforeAll, expect, test } from 'vitest';
import type { FinishRequest } from '../../src/destinations/port.ts';
import { listRuns } from '../../src/journal/inspect.ts';
import { createTestJournal, type TestJournal } from '../support/journal.ts';
import { RecordedMirror } from '../support/recorded-mirror.ts';

let journal: TestJournal;
beforeAll(async () => {
  journal = await createTestJournal();
});
afterAll(() => journal.close());

const FIVE = ['a', 'b', 'c', 'd', 'e'].map((id) => [id, '1'] as const);
const LOST = () => ({ kind: 'unknown', code: 'lost' });
const job = (n = 1) => ({ kind: 'staged', jobIds: ['job'], receipt: { n } });
const again = async (mirror: RecordedMirror) => {
  await mirror.execution();
  return mirror.deliver('upsert');
};

test('rule 8: who takes over a sealed run reads no source, maps no row and opens no second session', async () => {
  const mirror = new RecordedMirror(journal, 'taken-over');
  mirror.answers.upsert = LOST;
  await mirror.sealed(FIVE);
  await mirror.deliver('upsert');
  const { mapped } = mirror;
  expect(mapped).toBeGreaterThan(0);
  expect(mirror.taken()).toEqual(['preflight', 'checkEmpty', 'init', 'attach', 'upsert']);
  mirror.answers = {};
  mirror.rows = [['z', '9']];
  expect(await mirror.execution()).toBe('sealed');
  for (const action of ['upsert', 'remove'] as const)
    expect(await mirror.deliver(action)).toMatchObject({ kind: 'done' });
  await mirror.finish();
  expect(await mirror.promote()).toMatchObject({ counts: { members: 5, added: 5, removed: 0 } });
  expect([mirror.reads, mirror.mapped]).toEqual([1, mapped]);
  expect(mirror.taken()).toEqual(['attach', 'reconcileBatch', 'upsert', 'upsert', 'attach', 'finish']);
});

test('a session is rejoined by the receipt of its opening, with what was stored meanwhile', async () => {
  const mirror = new RecordedMirror(journal, 'rejoined');
  mirror.answers.init = ({ store }) => {
    store.set('cursor', 'seven');
    return { kind: 'accepted', receipt: { session: 's-1' } };
  };
  await mirror.sealed(FIVE);
  const stored: unknown[] = [];
  mirror.answers.attach = ({ store }) => {
    stored.push(store.get('cursor'));
    return { kind: 'accepted', receipt: {} };
  };
  mirror.calls.length = 0;
  await mirror.deliver('upsert');
  expect(mirror.calls[0]).toEqual({ name: 'attach', args: [{ session: 's-1' }] });
  expect(stored).toEqual(['seven']);
});

test('rule 5: an attempt that finds jobs asks about each once; while one runs it rejoins no session and sends nothing', async () => {
  const mirror = new RecordedMirror(journal, 'only-asks', { batchDelivery: 'asynchronous', maxStaged: 2 });
  mirror.answers.upsert = () => job();
  await mirror.sealed(FIVE);
  expect(await mirror.deliver('upsert')).toMatchObject({ kind: 'pending', counts: { added: 0 } });
  expect(mirror.taken().slice(3)).toEqual(['attach', 'upsert', 'upsert']);
  mirror.answers.poll = () => job(2);
  for (let round = 0; round < 2; round += 1) {
    expect(await mirror.deliver('upsert')).toMatchObject({ kind: 'pending' });
    expect(mirror.taken()).toEqual(['poll', 'poll']);
  }
  delete mirror.answers.poll;
  await mirror.deliver('upsert');
  expect(mirror.taken()).toEqual(['poll', 'poll', 'attach', 'upsert']);
  expect(await mirror.deliver('upsert')).toMatchObject({ kind: 'done', counts: { added: 5 } });
  expect(mirror.taken()).toEqual(['poll']);
});

test('rule 10: a finish that is pending is asked about, and no session is rejoined for that', async () => {
  const mirror = new RecordedMirror(journal, 'pending-finish');
  await mirror.sealed(FIVE);
  await mirror.deliver('upsert');
  await mirror.deliver('remove');
  mirror.answers.finish = () => ({ kind: 'pending', jobIds: ['f-1'], receipt: { finishing: true } });
  expect(await mirror.finish()).toMatchObject({ kind: 'pending' });
  mirror.calls.length = 0;
  expect(await mirror.finish()).toMatchObject({ kind: 'done' });
  expect(mirror.calls).toMatchObject([
    { name: 'reconcileFinish', args: [{ members: 5 }, { finishing: true }] },
    { name: 'close' },
  ]);
});

test('rule 2: what is asked about is the very request that was sent, with the answer there was', async () => {
  const mirror = new RecordedMirror(journal, 'very-request', { batchDelivery: 'asynchronous' });
  mirror.answers.upsert = LOST;
  await mirror.sealed(FIVE.slice(0, 2));
  await mirror.deliver('upsert');
  const [sent] = mirror.calls.filter((call) => call.name === 'upsert').map((call) => call.args[0]);
  expect(sent).toMatchObject({ action: 'upsert', body: '[{"id":"a","v":"1"},{"id":"b","v":"1"}]' });
  mirror.answers.reconcileBatch = () => job(7);
  await mirror.execution();
  await mirror.deliver('upsert');
  await mirror.deliver('upsert');
  const asked = mirror.calls.filter((call) => call.name === 'reconcileBatch' || call.name === 'poll');
  expect(asked).toEqual([
    { name: 'reconcileBatch', args: [sent, null, null] },
    { name: 'poll', args: [sent, ['job'], { n: 7 }, null] },
  ]);
});

test('rule 3: a job of a copy that went again, refused, leaves it unknown: it is asked about with the answer that the job had', async () => {
  const mirror = new RecordedMirror(journal, 'job-refused', {
    batchDelivery: 'asynchronous',
    recovery: 'idempotent',
  });
  mirror.answers.upsert = LOST;
  mirror.answers.reconcileBatch = () => job(7);
  mirror.answers.poll = () => ({ kind: 'refused', code: 'job-failed', reason: 'no' });
  await mirror.sealed(FIVE.slice(0, 2));
  await mirror.deliver('upsert');
  const [sent] = mirror.calls.filter((call) => call.name === 'upsert').map((call) => call.args[0]);
  // Whoever looks again begins an attempt of its own: it repeats the request, asks about its job, and is blocked.
  expect(await again(mirror)).toMatchObject({ kind: 'pending' });
  expect(await again(mirror)).toMatchObject({ kind: 'blocked', code: 'job-failed' });
  delete mirror.answers.reconcileBatch;
  expect(await again(mirror)).toMatchObject({ kind: 'done', counts: { added: 2 } });
  const asked = mirror.calls.filter((call) => call.name === 'reconcileBatch');
  expect(asked.map((call) => call.args)).toEqual([
    [sent, null, null],
    [sent, { n: 7 }, null],
  ]);
});

test('what a look-up stores becomes true with the outcome that it finds, and not without one', async () => {
  const mirror = new RecordedMirror(journal, 'stored-found');
  mirror.answers.upsert = LOST;
  await mirror.sealed(FIVE.slice(0, 1));
  await mirror.deliver('upsert');
  const stored = async () => {
    const { rows } = await journal.admin.query("select value from retl.store where key = 'found'");
    return rows.map((row: { value: string }) => row.value);
  };
  mirror.answers.reconcileBatch = ({ store }) => {
    store.set('found', 'nothing');
    return { kind: 'unknown', code: 'lost', unanswered: true };
  };
  await mirror.deliver('upsert');
  expect(await stored()).toEqual([]);
  mirror.answers.reconcileBatch = ({ store }) => {
    store.set('found', 'all of it');
    return { kind: 'accepted', receipt: {} };
  };
  expect(await mirror.deliver('upsert')).toMatchObject({ kind: 'done', counts: { added: 1 } });
  expect(await stored()).toEqual(['all of it']);
});

test('rule 3: a session that may not be rejoined ends the attempt with what is unknown as it was; mended, it is asked about, and nothing is sent again', async () => {
  const mirror = new RecordedMirror(journal, 'shut-out');
  mirror.answers.upsert = LOST;
  await mirror.sealed(FIVE.slice(0, 2));
  await mirror.deliver('upsert');
  mirror.answers.attach = () => ({ kind: 'misconfigured', code: 'http-401', reason: 'expired' });
  mirror.taken();
  for (const resume of ['sealed', 'sealed']) {
    expect(await mirror.deliver('upsert')).toMatchObject({ kind: 'misconfigured', code: 'http-401' });
    // An abort can end nothing either, before it is known.
    expect(await mirror.abort()).toMatchObject({ kind: 'unresolved' });
    expect(mirror.taken()).toEqual(['attach']);
    const [run] = await listRuns(journal.runtime, { mirror: 'shut-out', limit: 1 });
    expect(run).toMatchObject({ state: 'open', phase: 'additions', unknownBatches: 1, unresolvedBatches: 1 });
    expect(await mirror.execution()).toBe(resume);
  }
  mirror.answers = {};
  expect(await mirror.deliver('upsert')).toMatchObject({ kind: 'done', counts: { added: 2 } });
  expect(mirror.taken()).toEqual(['attach', 'reconcileBatch']);
});

test('rule 10: once the finish is accepted the run is completed without a word to the destination', async () => {
  const mirror = new RecordedMirror(journal, 'no-word');
  await mirror.sealed(FIVE);
  await mirror.deliver('upsert');
  await mirror.deliver('remove');
  await mirror.finish();
  const opened = mirror.contexts.length;
  mirror.calls.length = 0;
  expect(await mirror.execution()).toBe('sealed');
  expect(await mirror.finish()).toMatchObject({ kind: 'done' });
  expect(await mirror.promote()).toMatchObject({ counts: { members: 5 } });
  expect(await mirror.promote()).toMatchObject({ counts: { members: 5 } });
  expect([mirror.contexts.length - opened, mirror.calls]).toEqual([0, []]);
});

test('cancel-late: who is told to stop sends nothing and begins no other phase, also where nothing is left to send', async () => {
  const mirror = new RecordedMirror(journal, 'told-to-stop');
  // The second run finds everything as it is.
  for (const added of [5, 0]) {
    await mirror.sealed(FIVE);
    mirror.taken();
    mirror.stopping = true;
    expect(await mirror.deliver('upsert')).toMatchObject({ kind: 'stopped' });
    expect(mirror.taken()).not.toContain('upsert');
    mirror.stopping = false;
    for (const action of ['upsert', 'remove'] as const)
      expect(await mirror.deliver(action)).toMatchObject({ kind: 'done' });
    await mirror.finish();
    expect(await mirror.promote()).toMatchObject({ counts: { added } });
  }
});

test('abort-erases: nothing is cleaned up while a call is uncertain, nor after a finish that has begun', async () => {
  const mirror = new RecordedMirror(journal, 'cleaned-up');
  mirror.answers.upsert = LOST;
  await mirror.sealed(FIVE.slice(0, 2));
  await mirror.deliver('upsert');
  expect(await mirror.abort()).toMatchObject({ kind: 'unresolved' });
  expect(mirror.taken()).not.toContain('abort');
  await mirror.deliver('upsert');
  expect(await mirror.abort()).toMatchObject({ kind: 'closed' });
  expect(mirror.taken()).toEqual(['attach', 'reconcileBatch', 'abort']);

  await mirror.sealed(FIVE.slice(0, 2));
  for (const action of ['upsert', 'remove'] as const) await mirror.deliver(action);
  mirror.answers.finish = LOST;
  await mirror.finish();
  expect(await mirror.abort()).toMatchObject({ kind: 'unresolved' });
  await mirror.finish();
  expect(await mirror.abort()).toMatchObject({ kind: 'too-late' });
  expect(mirror.taken()).not.toContain('abort');
});

test('rule 8: whoever discards what was never sealed has its session aborted first, and opens another one', async () => {
  const mirror = new RecordedMirror(journal, 'discarded');
  mirror.rows = FIVE;
  await mirror.execution();
  await mirror.act((a, ref) => a.init(ref));
  await mirror.act((a, ref) => a.extract(ref));
  expect(await mirror.execution()).toBe('discard');
  mirror.taken();
  expect(await mirror.abort('discarded')).toMatchObject({ kind: 'closed' });
  expect(mirror.taken()).toEqual(['abort']);
  expect(await mirror.execution()).toBe('fresh');
  await mirror.act((a, ref) => a.init(ref));
  expect(mirror.taken()).toContain('init');
});

test.each(['snapshot-diff', 'native-replace'] as const)(
  'an adapter of %s is given this and no more: no database, no snapshot, no difference',
  async (strategy) => {
    const mirror = new RecordedMirror(journal, `given-${strategy}`, { strategies: [strategy] });
    await mirror.sealed(FIVE);
    await mirror.deliver('upsert');
    await mirror.deliver('remove');
    await mirror.finish();
    for (const context of mirror.contexts)
      expect(Object.keys(context).sort()).toEqual(
        ['epoch', 'formerOwners', 'logger', 'now', 'owner', 'progress', 'run', 'signal', 'store'].sort(),
      );
    const [context] = mirror.contexts;
    expect(Object.values(context ?? {}).filter((value) => value === journal.runtime)).toEqual([]);
    const [sent] = mirror.calls.filter((call) => call.name === 'upsert');
    expect(Object.keys(sent?.args[0] ?? {}).sort()).toEqual(
      ['action', 'batchId', 'body', 'idempotencyKey', 'operations'].sort(),
    );
    const [finished] = mirror.calls.filter((call) => call.name === 'finish');
    const { uploads, ...finish } = (finished?.args[0] ?? {}) as FinishRequest;
    expect(Object.keys(finish).sort()).toEqual([
      'batchId',
      'digest',
      'generation',
      'idempotencyKey',
      'members',
    ]);
    // Neither identities nor payloads: what it answered itself, upload by upload.
    const answers = [];
    for await (const upload of uploads?.() ?? []) answers.push(upload);
    expect(answers).toEqual(
      [2, 2, 1].map((members) => ({ batchId: expect.any(String), members, receipt: {} })),
    );
  },
);
