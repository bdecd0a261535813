/** The conformance kit, run on the `http` destination; and on adapters with one fault each, which it must find. */

import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type ConformanceHarness, conformanceChecks } from '../../src/destinations/conformance.ts';
import { type HttpConnection, type HttpOptions, httpDestination } from '../../src/destinations/http/index.ts';
import type { BatchOutcome, DestinationAdapter, Writer } from '../../src/destinations/port.ts';
import type { JsonObject } from '../../src/domain/member.ts';
import { FakeAudience } from '../support/fake-audience.ts';
import { member, PATH, PER_ROW, parsed, type Written } from '../support/fake-audience-writer.ts';

type Adapter = DestinationAdapter<HttpConnection, HttpOptions>;
type Harness = ConformanceHarness<HttpConnection, HttpOptions>;

const TOKEN = 'kit-secret-token';
const CONNECTION = { auth: { bearer: TOKEN } };
const IDEMPOTENT = { outcomes: PER_ROW, idempotent: true, idempotency: { header: 'Idempotency-Key' } };

let fake: FakeAudience;
let gone: string;

beforeAll(async () => {
  fake = await FakeAudience.start({ bearer: TOKEN });
  const other = await FakeAudience.start();
  gone = other.url;
  await other.stop();
});

afterAll(() => fake.stop());

function harness(adapter: Adapter, written: Written, faults: Harness['faults'] = FAULTS): Harness {
  const full = { ...written, connection: CONNECTION };
  return {
    adapter,
    ...parsed(fake.url, full),
    sameTargets: [
      parsed(`${fake.url}/`, full),
      parsed(fake.url.toUpperCase().replace('HTTP', 'http'), written),
    ],
    otherTargets: [
      parsed('http://127.0.0.1:1', full),
      parsed(`${fake.url}/v2`, full),
      parsed(fake.url, {
        options: {
          upsert: { method: 'POST', path: '/audiences/43/members' },
          remove: { method: 'DELETE', path: '/audiences/43/members' },
        },
      }),
      parsed(fake.url, { connection: { account: 'another' } }),
    ],
    unreachable: parsed(gone, full),
    secrets: [TOKEN],
    member: (n, variant) => member(`member-${n}`, { variant, name: 'Zoë 😀 "quoted"' }),
    held: () => Promise.resolve([...fake.state.members.values()] as JsonObject[]),
    bodies: () => Promise.resolve(fake.requests.map(({ body }) => body)),
    reset: () => Promise.resolve(fake.reset()),
    faults,
  };
}

const FAULTS: Harness['faults'] = {
  'answer-lost': () => fake.fault({ kind: 'reset', applied: true }),
  'nothing-applied': () => fake.fault({ kind: 'status', status: 429 }),
  'reject-first': () => fake.fault({ kind: 'rows', status: 207, reject: [0] }),
  'reply-shuffled': () => fake.fault({ kind: 'rows', reject: [0], shuffle: true }),
  'reply-lacks-id': () => fake.fault({ kind: 'rows', missing: [1] }),
  'reply-repeats-id': () => fake.fault({ kind: 'rows', repeat: [1] }),
  'reply-adds-id': () => fake.fault({ kind: 'rows', foreign: ['nobody'] }),
  'never-answers': () => fake.fault({ kind: 'delay', ms: 60_000 }),
};

const WHOLE: Harness['faults'] = {
  'answer-lost': FAULTS['answer-lost'] ?? (() => undefined),
  'nothing-applied': FAULTS['nothing-applied'] ?? (() => undefined),
};

const FORMS: readonly (readonly [string, Written, () => Harness['faults']])[] = [
  ['per-row outcomes, idempotent', { options: IDEMPOTENT }, () => FAULTS],
  ['per-row outcomes, manual recovery', { options: { outcomes: PER_ROW } }, () => FAULTS],
  [
    'operation ids, in a wrapped body',
    {
      options: {
        outcomes: { per_row: { ...PER_ROW.per_row, match: 'operation_id' } },
        operation_id: 'operation_id',
        body: { wrap: 'members', fields: { schema: 'v1' } },
      },
    },
    () => FAULTS,
  ],
  ['whole requests as NDJSON', { options: { outcomes: 'per_request', body: 'ndjson' } }, () => WHOLE],
  [
    'one member a request',
    {
      options: {
        upsert: { method: 'PUT', path: `${PATH}/{email_sha256}` },
        remove: { method: 'DELETE', path: `${PATH}/{email_sha256}`, body: 'none' },
        outcomes: 'per_request',
      },
    },
    () => WHOLE,
  ],
];

describe.each(FORMS)('http with %s', (_, written, faults) => {
  const checks = () => conformanceChecks(harness(httpDestination, written, faults()));
  const names = [
    'the target key is the same for the same target, and for no other, and holds no secret',
    'upserted members are held, exactly as sent',
    'a lost answer is unknown until it is reconciled',
  ];

  test('meets every check of the kit', async () => {
    const failures: string[] = [];
    for (const check of checks()) {
      await check.run().catch((error: unknown) => failures.push(`${check.name}: ${String(error)}`));
    }
    expect(failures).toEqual([]);
    expect(checks().map(({ name }) => name)).toEqual(expect.arrayContaining(names));
  });
});

/** The `http` adapter with its writer's methods replaced. */
function broken(change: (writer: Writer) => Partial<Writer>, more: Partial<Adapter> = {}): Adapter {
  return {
    ...httpDestination,
    ...more,
    open: async (connection, options, context) => {
      const writer = await httpDestination.open(connection, options, context);
      const names = [
        'preflight',
        'checkEmpty',
        'init',
        'reconcileInit',
        'attach',
        'upsert',
        'remove',
        'poll',
        'finish',
        'reconcileBatch',
        'reconcileFinish',
        'abort',
        'close',
      ] as const;
      const bound = Object.fromEntries(names.map((name) => [name, writer[name].bind(writer)]));
      return { ...(bound as unknown as Writer), ...change(writer) };
    },
  };
}

const mapped = (map: (outcome: BatchOutcome) => BatchOutcome) =>
  broken((writer) => ({ upsert: async (request) => map(await writer.upsert(request)) }));

const FAULTY: readonly (readonly [string, Adapter, string])[] = [
  [
    'takes a lost answer for an acceptance',
    mapped((o) => (o.kind === 'unknown' ? { kind: 'accepted', receipt: {} } : o)),
    'a lost answer is unknown until it is reconciled',
  ],
  [
    'takes a lost answer for nothing applied',
    mapped((o) =>
      o.kind === 'unknown' ? { kind: 'not-applied', code: 'x', retryAfterMs: null, tooLarge: false } : o,
    ),
    'a lost answer is unknown until it is reconciled',
  ],
  [
    'sends again by itself',
    broken((writer) => ({
      upsert: async (request) => {
        const outcome = await writer.upsert(request);
        return outcome.kind === 'unknown' ? writer.upsert(request) : outcome;
      },
    })),
    'reply-lacks-id: such a reply accepts nothing',
  ],
  [
    'matches outcomes by position',
    mapped((o) => (o.kind === 'settled' ? { ...o, outcomes: [...o.outcomes].reverse() } : o)),
    'outcomes are matched by id, not by position',
  ],
  [
    'sends other bytes than it was given',
    broken((writer) => ({ upsert: (request) => writer.upsert({ ...request, body: `${request.body} ` }) })),
    'the target receives exactly the bytes of the request, once',
  ],
  [
    'keeps a secret in its receipt',
    mapped((o) => (o.kind === 'settled' ? { ...o, receipt: { sent: `Bearer ${TOKEN}` } } : o)),
    'upserted members are held, exactly as sent',
  ],
  [
    'keeps half a surrogate pair in its receipt',
    mapped((o) => (o.kind === 'settled' ? { ...o, receipt: { words: '\ud83d' } } : o)),
    'upserted members are held, exactly as sent',
  ],
  [
    'reports a removal that it has not made',
    broken(() => ({ remove: () => Promise.resolve({ kind: 'accepted', receipt: {} }) })),
    'a removal removes its own members and no other',
  ],
  [
    'names its target by its credentials',
    broken(() => ({}), { targetKey: ({ auth }) => JSON.stringify(auth) }),
    'the target key is the same for the same target, and for no other, and holds no secret',
  ],
];

test.each(FAULTY)('the kit finds an adapter that %s', async (_, adapter, name) => {
  const check = conformanceChecks(harness(adapter, { options: IDEMPOTENT })).find((one) => one.name === name);
  await expect(check?.run()).rejects.toThrow('expected');
});
