/** Ingest jobs of `salesforce`, step by step: what each lost, late or bad answer proves, and that no job is made twice. */

import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import type { BatchOutcome } from '../../src/destinations/port.ts';
import { FakeSalesforce, type Step } from '../support/fake-salesforce.ts';
import { type JobEnd, KEY } from '../support/fake-salesforce-org.ts';
import { CLIENT, openSalesforce, poll, reconcile, record, records } from '../support/salesforce-writer.ts';

let fake: FakeSalesforce;

beforeAll(async () => {
  fake = await FakeSalesforce.start(CLIENT);
});
afterEach(() => fake.reset());
afterAll(() => fake.stop());

const jobs = () => [...fake.org.jobs.values()];
const keys = () => fake.org.live.map(({ fields }) => fields[KEY]).sort();

/** A job of `count` upserts that ends like this. */
async function staged(end: JobEnd = {}, count = 5) {
  const open = await openSalesforce(fake.url);
  fake.ends.push(end);
  const sent = open.request('upsert', records(count));
  const outcome = await open.writer.upsert(sent);
  return { open, sent, outcome, poll: () => poll(open, sent, outcome) };
}

describe('an upsert', () => {
  test('is one job: created, its ID saved, data uploaded, begun; and staged, not accepted', async () => {
    const saved: (readonly [string, Step | undefined])[] = [];
    const open = await openSalesforce(
      fake.url,
      {},
      {
        progress: (_, value) => Promise.resolve(void saved.push([value, fake.steps.at(-1)])),
      },
    );
    const outcome = await open.writer.upsert(open.request('upsert', records(2)));
    const job = '750000000000001AAA';
    expect(outcome).toEqual({ kind: 'staged', jobIds: [job], receipt: { job }, pollAfterMs: 10_000 });
    expect(fake.steps).toEqual(['create', 'upload', 'close']);
    expect(saved).toEqual([
      [JSON.stringify({ job, step: 'created', targets: null }), 'create'],
      [JSON.stringify({ job, step: 'uploaded', targets: null }), 'upload'],
    ]);
    expect(JSON.parse(fake.calls.find(({ step }) => step === 'create')?.body ?? '')).toEqual({
      object: 'Member__c',
      operation: 'upsert',
      externalIdFieldName: KEY,
      contentType: 'CSV',
      columnDelimiter: 'COMMA',
      lineEnding: 'LF',
    });
    expect(keys()).toEqual([]);
  });

  test('null-clears, ragged-rows: null and "" clear a field, an absent one is left alone', async () => {
    const open = await openSalesforce(fake.url);
    fake.org.add({ [KEY]: 'a', Plan__c: 'old', Name: 'Ann' });
    fake.org.add({ [KEY]: 'b', Plan__c: 'old', Name: 'Bob' });
    fake.org.add({ [KEY]: 'c', Plan__c: 'old', Name: 'Cid' });
    const sent = open.request('upsert', [
      record('a', { Plan__c: null }),
      record('b', { Plan__c: '', Name: ' "B", ob\r\n' }),
      record('c', { Variant__c: 7 }),
    ]);
    const outcome = await open.writer.upsert(sent);
    expect(jobs()[0]?.data).toBe(
      `${KEY},Name,Plan__c,Variant__c\n"a",,#N/A,\n"b"," ""B"", ob\r\n",#N/A,\n"c",,,"7"\n`,
    );
    expect((await poll(open, sent, outcome)).kind).toBe('settled');
    expect(fake.org.live.map(({ fields }) => fields)).toEqual([
      { [KEY]: 'a', Plan__c: null, Name: 'Ann' },
      { [KEY]: 'b', Plan__c: null, Name: ' "B", ob\r\n' },
      { [KEY]: 'c', Plan__c: 'old', Name: 'Cid', Variant__c: '7' },
    ]);
  });
});

describe('before the word that begins a job nothing has been applied', () => {
  test.each<[string, Step, number, string, Partial<BatchOutcome>]>([
    [
      'a busy org',
      'create',
      503,
      'SERVER_UNAVAILABLE',
      { kind: 'not-applied', retryAfterMs: 9_000 } as never,
    ],
    ['a used-up limit', 'create', 403, 'REQUEST_LIMIT_EXCEEDED', { kind: 'not-applied' }],
    ['missing rights', 'create', 403, 'INSUFFICIENT_ACCESS', { kind: 'misconfigured' }],
    ['a wrong object', 'create', 400, 'INVALIDENTITY', { kind: 'misconfigured' }],
    ['too much data', 'upload', 413, 'CONTENT_TOO_LARGE', { kind: 'not-applied', tooLarge: true } as never],
    ['a failing upload', 'upload', 500, 'UNKNOWN_EXCEPTION', { kind: 'not-applied' }],
    ['refused data', 'upload', 400, 'INVALIDJOB', { kind: 'refused' }],
  ])('%s', async (_, step, status, errorCode, expected) => {
    const open = await openSalesforce(fake.url);
    fake.fault(step, { status, errorCode, headers: { 'retry-after': '9' } });
    expect(await open.writer.upsert(open.request('upsert', records(2)))).toMatchObject(expected);
    expect(fake.steps).not.toContain('close');
    if (step === 'upload') expect(jobs()[0]?.state).toBe('Aborted');
  });

  test('create-unsure: a lost answer is unknown; nothing was uploaded, so that nothing can have been applied', async () => {
    for (const answer of [
      'lost',
      'never',
      { status: 200, body: '{"id":"","state":"Open"}' },
      { status: 500 },
    ] as const) {
      const open = await openSalesforce(fake.url);
      const sent = open.request('upsert', records(2));
      fake.fault('create', answer, true);
      expect((await open.writer.upsert(sent)).kind).toBe('unknown');
      expect(await reconcile(fake.url, open, sent)).toMatchObject({
        kind: 'not-applied',
        code: 'nothing-uploaded',
      });
    }
    expect(jobs().every(({ state, data }) => state === 'Open' && data === '')).toBe(true);
    expect(fake.org.effects).toEqual([]);
  });

  test('a job whose ID could not be saved is given no data', async () => {
    const open = await openSalesforce(
      fake.url,
      {},
      { progress: () => Promise.reject(new Error('journal away')) },
    );
    await expect(open.writer.upsert(open.request('upsert', records(1)))).rejects.toThrow('journal away');
    expect(fake.steps).toEqual(['create']);
  });

  test.each(['lost', 'never'] as const)(
    'an upload whose answer is %s ends the job before it has begun',
    async (answer) => {
      const open = await openSalesforce(fake.url);
      const sent = open.request('upsert', records(2));
      fake.fault('upload', answer, true);
      expect(await open.writer.upsert(sent)).toMatchObject({ kind: 'not-applied' });
      expect(jobs().map(({ state }) => state)).toEqual(['Aborted']);
      expect(fake.org.effects).toEqual([]);
    },
  );
});

describe('a crash between two steps goes on with the same job', () => {
  /** The worker dies as it makes the nth save; 0: as the answer to `create` arrives. */
  async function crash(saves: number) {
    let left = saves;
    const saved = new Map<string, string>();
    const open = await openSalesforce(
      fake.url,
      {},
      {
        progress: (batch, value) => {
          if (left === 0) return Promise.reject(new Error('killed'));
          left -= 1;
          return Promise.resolve(void saved.set(batch, value));
        },
      },
    );
    const sent = open.request('upsert', records(3));
    await expect(open.writer.upsert(sent)).rejects.toThrow('killed');
    const next = await openSalesforce(fake.url);
    return () => next.writer.reconcileBatch(sent, null, saved.get(sent.batchId) ?? null);
  }

  test('after create, before its ID is saved: nothing was uploaded', async () => {
    const again = await crash(0);
    expect(await again()).toMatchObject({ kind: 'not-applied', code: 'nothing-uploaded' });
  });

  test('after the upload, before that is saved: the job is ended, and stays ended', async () => {
    const again = await crash(1);
    expect(jobs()[0]?.data).not.toBe('');
    expect(await again()).toMatchObject({ kind: 'not-applied', code: 'job-abandoned' });
    expect(await again()).toMatchObject({ kind: 'not-applied', code: 'job-abandoned' });
    expect(jobs().map(({ state }) => state)).toEqual(['Aborted']);
    expect(fake.org.effects).toEqual([]);
  });

  test.each(['lost', 'never', { status: 500 }] as const)(
    'a lost end of an abandoned job (%j) is asked about again',
    async (answer) => {
      const again = await crash(1);
      fake.fault('abort', answer, answer !== 'never');
      expect((await again()).kind).toBe('unknown');
      expect(await again()).toMatchObject({ kind: 'not-applied', code: 'job-abandoned' });
    },
  );

  test.each([
    ['and the word was heard', true],
    ['and the word was not heard', false],
  ])('after the word that begins it, %s: one job, begun once', async (_, applied) => {
    const open = await openSalesforce(fake.url);
    const sent = open.request('upsert', records(3));
    fake.fault('close', 'lost', applied);
    expect((await open.writer.upsert(sent)).kind).toBe('unknown');
    const found = await reconcile(fake.url, open, sent);
    expect(found.kind).toBe('staged');
    expect((await poll(open, sent, found)).kind).toBe('settled');
    expect(fake.org.effects).toEqual(['upsert key-1', 'upsert key-2', 'upsert key-3']);
    expect(jobs().length).toBe(1);
  });

  test('a question that is not answered leaves it unknown', async () => {
    const open = await openSalesforce(fake.url);
    const sent = open.request('upsert', records(1));
    fake.fault('close', 'lost', true);
    await open.writer.upsert(sent);
    for (const answer of [{ status: 500 }, { status: 401 }, { status: 404 }, 'lost'] as const) {
      fake.fault('job', answer);
      if (typeof answer === 'object' && answer.status === 401) fake.fault('job', answer);
      expect((await reconcile(fake.url, open, sent)).kind).toBe('unknown');
    }
    expect((await reconcile(fake.url, open, sent)).kind).toBe('staged');
    expect(fake.steps.filter((step) => step === 'create').length).toBe(1);
  });
});

describe('an ended job', () => {
  test('staged-as-done: is staged for as long as it is queued or in progress', async () => {
    const { poll: ask } = await staged({ polls: 50 });
    for (let n = 0; n < 50; n += 1) expect((await ask()).kind).toBe('staged');
    expect(keys()).toEqual([]);
    expect((await ask()).kind).toBe('settled');
  });

  test('partial-as-all: tells of each row, by its external ID', async () => {
    const { poll: ask } = await staged({ reject: [1, 3], shuffle: true });
    const settled = await ask();
    expect(settled.kind === 'settled' && settled.outcomes).toEqual([
      { kind: 'accepted' },
      {
        kind: 'rejected',
        code: 'row-rejected:CUSTOM_VALIDATION',
        reason: 'CUSTOM_VALIDATION:row 2 is not valid:--',
      },
      { kind: 'accepted' },
      {
        kind: 'rejected',
        code: 'row-rejected:CUSTOM_VALIDATION',
        reason: 'CUSTOM_VALIDATION:row 4 is not valid:--',
      },
      { kind: 'accepted' },
    ]);
    expect(keys()).toEqual(['key-1', 'key-3', 'key-5']);
  });

  test('ambiguous-match: a row whose key several records have is rejected, and the rest proceed', async () => {
    fake.org.add({ [KEY]: 'key-1' });
    fake.org.add({ [KEY]: 'KEY-1' });
    const settled = await (await staged({}, 2)).poll();
    const kinds = settled.kind === 'settled' ? settled.outcomes.map(({ kind }) => kind) : [];
    expect(kinds).toEqual(['rejected', 'accepted']);
  });

  test.each<[string, JobEnd, string]>([
    ['a row in no table', { missing: [2] }, 'reply-lacks-ids'],
    ['a row told of twice', { repeat: [2] }, 'reply-repeats-ids'],
    ['a row of somebody else', { foreign: ['stranger'] }, 'reply-adds-ids'],
  ])('accepts nothing with %s', async (_, end, code) => {
    expect(await (await staged(end)).poll()).toEqual({ kind: 'unknown', code });
  });

  test('that failed half-way: what was processed stands, and the rest was not applied', async () => {
    const { poll: ask } = await staged({
      state: 'Failed',
      processed: 3,
      reject: [0],
      message: 'InternalServerError : 5',
    });
    const settled = await ask();
    expect(
      settled.kind === 'settled' && settled.outcomes.map((one) => ('code' in one ? one.code : one.kind)),
    ).toEqual([
      'row-rejected:CUSTOM_VALIDATION',
      'accepted',
      'accepted',
      'row-unprocessed',
      'row-unprocessed',
    ]);
    expect(settled.kind === 'settled' && settled.outcomes.map(({ kind }) => kind).slice(3)).toEqual([
      'not-applied',
      'not-applied',
    ]);
    expect(keys()).toEqual(['key-2', 'key-3']);
  });

  test('that somebody has aborted half-way: the rest is rejected, for to begin it again would be against their will', async () => {
    const { poll: ask } = await staged({ state: 'Aborted', processed: 3, message: 'stopped' });
    const settled = await ask();
    expect(settled.kind === 'settled' && settled.outcomes[4]).toMatchObject({
      kind: 'rejected',
      code: 'row-unprocessed',
    });
  });

  test.each(['Failed', 'Aborted'] as const)(
    'that %s with nothing processed was refused as a whole',
    async (state) => {
      const { poll: ask } = await staged({ state, processed: 0, message: 'InvalidBatch : no such field' });
      expect(await ask()).toEqual({
        kind: 'refused',
        code: state === 'Failed' ? 'job-failed' : 'job-aborted',
        reason: state === 'Failed' ? 'InvalidBatch : no such field' : '',
        ...(state === 'Failed' ? { divisible: true } : {}),
      });
    },
  );

  test('that failed and does not tell of every row proves nothing, and asking again would not help', async () => {
    const { poll: ask } = await staged({ state: 'Failed', processed: 3, missing: [4] });
    expect(await ask()).toEqual({ kind: 'missing', code: 'job-failed:reply-lacks-ids' });
  });

  test('poll-error: what is no answer leaves the job as it was; the last answer counts; one job', async () => {
    const { poll: ask } = await staged();
    fake.fault('job', { status: 500 });
    fake.fault('job', 'never');
    fake.fault('successfulResults', {
      status: 200,
      headers: { 'content-type': 'text/html' },
      body: '<html>',
    });
    fake.fault('failedResults', 'lost');
    fake.fault('failedResults', {
      status: 200,
      headers: { 'content-type': 'text/csv' },
      body: '"sf__Id","sf__Error',
    });
    const kinds: string[] = [];
    for (let n = 0; n < 6; n += 1) kinds.push((await ask()).kind);
    expect(kinds).toEqual(['unknown', 'unknown', 'unknown', 'unknown', 'unknown', 'settled']);
    expect(jobs().length).toBe(1);
  });

  test('429: an org that asks for patience is asked again then', async () => {
    const { poll: ask } = await staged();
    fake.fault('job', { status: 503, headers: { 'retry-after': '30' } });
    expect(await ask()).toMatchObject({ kind: 'staged', pollAfterMs: 30_000 });
  });

  test('an expired job (they are kept for seven days) proves nothing', async () => {
    const { poll: ask } = await staged();
    fake.org.jobs.clear();
    expect(await ask()).toEqual({ kind: 'missing', code: 'poll-http-404:NOT_FOUND' });
  });
});
