/** The conformance kit, run on `http` with jobs; and on such adapters with one fault each, which it must find. */

import { afterAll, beforeAll, expect, test } from 'vitest';
import { type ConformanceHarness, conformanceChecks } from '../../src/destinations/conformance.ts';
import { type HttpConnection, type HttpOptions, httpDestination } from '../../src/destinations/http/index.ts';
import type { BatchRequest, DestinationAdapter, PollOutcome, Writer } from '../../src/destinations/port.ts';
import type { JsonObject } from '../../src/domain/member.ts';
import { member, parsed, type Written } from '../support/fake-audience-writer.ts';
import { FakeJobs } from '../support/fake-jobs.ts';

type Adapter = DestinationAdapter<HttpConnection, HttpOptions>;
type Harness = ConformanceHarness<HttpConnection, HttpOptions>;

const TOKEN = 'kit-secret-token';
const ROW = { list: '/results', id: 'id', match: 'email_sha256', ok: { field: 'status', values: ['ok'] } };
const OPTIONS = {
  upsert: { method: 'POST', path: '/members' },
  remove: { method: 'DELETE', path: '/members' },
  idempotency: { header: 'Idempotency-Key' },
  asynchronous: {
    poll: { path: '/jobs/{job}' },
    state: { at: '/state', running: ['processing'], done: ['finished'], failed: ['failed'] },
    results: { per_row: ROW },
    max_jobs: 3,
  },
};
const LOOKUP = { lookup: { by_key: { path: '/keys/{key}' } } };
const APART = {
  asynchronous: {
    ...OPTIONS.asynchronous,
    results: { per_row: ROW, request: { path: '/jobs/{job}/results' } },
  },
};
const ON_PAGES = {
  asynchronous: {
    ...OPTIONS.asynchronous,
    results: { per_row: ROW, request: { path: '/jobs/{job}/results' }, pages: { next: '/next' } },
  },
};

let fake: FakeJobs;
let gone: string;

beforeAll(async () => {
  fake = await FakeJobs.start();
  const other = await FakeJobs.start();
  gone = other.url;
  await other.stop();
});

afterAll(() => fake.stop());

function harness(adapter: Adapter, more: object, apart = false, pageRows: number | null = null): Harness {
  const full: Written = { options: { ...OPTIONS, ...more }, connection: { auth: { bearer: TOKEN } } };
  return {
    adapter,
    ...parsed(fake.url, full),
    sameTargets: [parsed(`${fake.url}/`, full)],
    otherTargets: [parsed(`${fake.url}/v2`, full)],
    unreachable: parsed(gone, full),
    secrets: [TOKEN],
    member: (n, variant) => member(`member-${n}`, { variant, name: 'Zoë 😀 "quoted"' }),
    held: () => Promise.resolve([...fake.members.values()] as JsonObject[]),
    bodies: () =>
      Promise.resolve(fake.requests.filter(({ method }) => method !== 'GET').map(({ body }) => body)),
    jobs: () => fake.jobs.length,
    reset: async () => {
      fake.reset();
      fake.resultsApart = apart;
      fake.pageRows = pageRows;
    },
    faults: {
      'answer-lost': () => void fake.writes.push({ answer: 'lost', applied: true }),
      'nothing-applied': () => void fake.writes.push({ answer: { status: 429 }, applied: false }),
      'never-answers': () => void fake.writes.push({ answer: 'never', applied: true }),
      'reject-first': () => void fake.ends.push({ reject: [0] }),
      'reply-shuffled': () => void fake.ends.push({ reject: [0], shuffle: true }),
      'reply-lacks-id': () => void fake.ends.push({ missing: [1] }),
      'reply-repeats-id': () => void fake.ends.push({ repeat: [1] }),
      'reply-adds-id': () => void fake.ends.push({ foreign: ['nobody'] }),
      'job-runs-on': () => void fake.slow.push(3),
      'job-tells-nothing': () => void fake.ends.push({ results: [] }),
      'poll-fails': () => void fake.reads.push({ status: 500 }),
      'job-unknown': () => void fake.reads.push({ status: 404 }),
    },
  };
}

test.each([
  ['looked up by key', LOOKUP, false, null],
  ['with results of their own', { ...LOOKUP, ...APART }, true, null],
  ['with results on pages', { ...LOOKUP, ...ON_PAGES }, true, 1],
] as const)('http with jobs, %s, meets every check of the kit', async (_, more, apart, pageRows) => {
  const checks = conformanceChecks(harness(httpDestination, more, apart, pageRows));
  const failures: string[] = [];
  for (const check of checks)
    await check.run().catch((error: unknown) => failures.push(`${check.name}: ${String(error)}`));
  expect(failures).toEqual([]);
  expect(checks.map(({ name }) => name)).toEqual(
    expect.arrayContaining([
      'a batch is staged with a job id, once each',
      'a newer attempt asks about a job without rejoining the session',
      'jobs are settled by their own results, in whatever order they end',
      'a poll without an answer leaves the job as it was',
      'a job that is not known proves nothing',
      'a job that is done and tells of nobody accepts nothing',
      'reply-repeats-id: such a reply accepts nothing',
    ]),
  );
});

/** Polls answer otherwise than `http` would. */
function broken(
  change: (outcome: PollOutcome, request: BatchRequest, writer: Writer) => PollOutcome | Promise<PollOutcome>,
): Adapter {
  return {
    ...httpDestination,
    open: async (connection, options, context) => {
      const writer = await httpDestination.open(connection, options, context);
      const poll: Writer['poll'] = async (request, jobIds, receipt) =>
        change(await writer.poll(request, jobIds, receipt), request, writer);
      return new Proxy(writer, {
        get: (target, name) => {
          const value: unknown = name === 'poll' ? poll : Reflect.get(target, name);
          return typeof value === 'function' && name !== 'poll' ? value.bind(target) : value;
        },
      });
    },
  };
}

/** Knows the jobs of its own session only. */
const FORGETFUL: Adapter = {
  ...httpDestination,
  open: async (connection, options, context) => {
    const writer = await httpDestination.open(connection, options, context);
    const sent = new Set<string>();
    const upsert: Writer['upsert'] = (request) => {
      sent.add(request.batchId);
      return writer.upsert(request);
    };
    const poll: Writer['poll'] = async (request, ...more) =>
      sent.has(request.batchId) ? writer.poll(request, ...more) : { kind: 'missing', code: 'forgotten' };
    return new Proxy(writer, {
      get: (target, name) => {
        if (name === 'upsert') return upsert;
        if (name === 'poll') return poll;
        const value: unknown = Reflect.get(target, name);
        return typeof value === 'function' ? value.bind(target) : value;
      },
    });
  },
};

const ACCEPTED: PollOutcome = { kind: 'accepted', receipt: {} };

test.each<[string, Adapter, string]>([
  [
    'takes a running job for an acceptance',
    broken((o) => (o.kind === 'staged' ? ACCEPTED : o)),
    'a running job stays staged, under the same ids',
  ],
  [
    'takes a missing job for a refusal',
    broken((o) => (o.kind === 'missing' ? { kind: 'refused', code: 'x', reason: '' } : o)),
    'a job that is not known proves nothing',
  ],
  [
    'begins a second job where a poll fails',
    broken(async (o, request, writer) => (o.kind === 'unknown' ? await writer.upsert(request) : o)),
    'a poll without an answer leaves the job as it was',
  ],
  [
    'takes the word "done" for an acceptance',
    broken((o) => (o.kind === 'unknown' ? ACCEPTED : o)),
    'a job that is done and tells of nobody accepts nothing',
  ],
  [
    'knows a job only where it was begun',
    FORGETFUL,
    'a newer attempt asks about a job without rejoining the session',
  ],
])('the kit finds an adapter that %s', async (_, adapter, name) => {
  const check = conformanceChecks(harness(adapter, LOOKUP)).find((one) => one.name === name);
  await expect(check?.run()).rejects.toThrow('expected');
});
