/** Several jobs for one request of `http`: what one of them says proves nothing of what another has applied (rule 5). */

import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { members, openWriter } from '../support/fake-audience-writer.ts';
import { FakeJobs } from '../support/fake-jobs.ts';

let fake: FakeJobs;
beforeAll(async () => {
  fake = await FakeJobs.start();
});
afterEach(() => fake.reset());
afterAll(() => fake.stop());

const PER_ROW = {
  per_row: {
    list: '/results',
    id: 'id',
    match: 'email_sha256',
    ok: { field: 'status', values: ['ok'], rejected: ['bad'] },
    reason: 'reason',
  },
};

interface Job {
  readonly state: string;
  /** What each row says, by its place in the request; absent: no list of rows. */
  readonly rows?: { readonly [place: number]: string };
}

/** Four members in one request that became two jobs, each as it is polled. */
async function polled(jobs: readonly Job[], failed: 'unknown' | 'not_applied', results: object = PER_ROW) {
  const { writer, request } = await openWriter(fake.url, {
    options: {
      upsert: { method: 'POST', path: '/members' },
      remove: { method: 'DELETE', path: '/members' },
      asynchronous: {
        poll: { path: '/jobs/{job}' },
        state: { at: '/state', running: ['processing'], done: ['finished'], failed: ['failed'] },
        results,
        failed,
      },
    },
  });
  const sent = request('upsert', members(4));
  const ids = sent.operations.map(({ identity }) => JSON.parse(identity).email_sha256);
  for (const { state, rows } of jobs) {
    const list = Object.entries(rows ?? {}).map(([place, status]) => ({ id: ids[Number(place)], status }));
    fake.reads.push({ status: 200, body: JSON.stringify({ state, ...(rows && { results: list }) }) });
  }
  const outcome = await writer.poll(sent, ['job-1', 'job-2'], {});
  if (outcome.kind !== 'settled') return outcome;
  return { kind: outcome.kind, outcomes: outcome.outcomes.map(({ kind }) => kind) };
}

const DONE: Job = { state: 'finished', rows: { 0: 'ok', 1: 'bad' } };
const FAILED: Job = { state: 'failed' };
const MISSING = { kind: 'missing', code: 'job-failed' };

test('rule 5: a job that has failed refuses nothing of what another has applied: without a word on each member a person decides', async () => {
  for (const failed of ['not_applied', 'unknown'] as const) {
    expect(await polled([DONE, FAILED], failed)).toEqual(MISSING);
    expect(await polled([FAILED, DONE], failed)).toEqual(MISSING);
  }
  // Neither does a word on some of its own.
  expect(await polled([DONE, { state: 'failed', rows: { 2: 'bad' } }], 'not_applied')).toEqual(MISSING);
});

test('rule 5: while one job runs the request is staged, whatever the others came to', async () => {
  for (const other of [FAILED, DONE]) {
    expect(await polled([other, { state: 'processing' }], 'not_applied')).toMatchObject({ kind: 'staged' });
  }
});

test('rule 5: a job that is not known is asked about again as long as another runs', async () => {
  fake.reads.push({ status: 404 });
  expect(await polled([{ state: 'processing' }], 'not_applied')).toMatchObject({ kind: 'staged' });
});

test('rule 4: members that a failed job names without an outcome were not applied, on the user’s word, and the others are settled', async () => {
  const named: Job = { state: 'failed', rows: { 2: 'pending', 3: 'bad' } };
  expect(await polled([DONE, named], 'not_applied')).toEqual({
    kind: 'settled',
    outcomes: ['accepted', 'rejected', 'not-applied', 'rejected'],
  });
  expect(await polled([DONE, named], 'unknown')).toEqual(MISSING);
  // It says that it has applied something: the word on it does not hold.
  const contradicts: Job = { state: 'failed', rows: { 2: 'pending', 3: 'ok' } };
  expect(await polled([DONE, contradicts], 'not_applied')).toEqual(MISSING);
});

test('rule 5: a request is refused only where every job has failed and no row claims success', async () => {
  expect(await polled([FAILED, FAILED], 'not_applied')).toMatchObject({
    kind: 'refused',
    code: 'job-failed',
  });
  expect(await polled([FAILED, FAILED], 'unknown')).toEqual(MISSING);
  const claims: Job = { state: 'failed', rows: { 1: 'ok' } };
  expect(await polled([FAILED, claims], 'not_applied')).toEqual(MISSING);
});

test('counts-only: what a done job says of a whole request is no word on what another took', async () => {
  const results = { per_request: { expect: { '/state': 'finished' } } };
  expect(await polled([{ state: 'finished' }, FAILED], 'not_applied', results)).toEqual(MISSING);
});
