import { expect, test } from 'vitest';
import { MIRROR, mirrorWith, PROJECT, settingsOf } from './support.ts';

async function mirrorOf(old: string, replacement: string) {
  const { mirrors } = await settingsOf(mirrorWith(old, replacement));
  const [mirror] = mirrors;
  if (mirror === undefined) throw new Error('no mirror was read');
  return mirror;
}

test('a mirror is read into plain settings, its secrets left as references', async () => {
  const settings = await settingsOf({ 'retl.yaml': PROJECT, 'mirrors/vip.yaml': MIRROR });
  expect(settings).toEqual({
    journal: { url: `\${env:RETL_JOURNAL_URL}`, readerUrl: null, ownerUrl: null, runtimeRole: null },
    temporal: { profile: null, address: null, namespace: null, taskQueue: 'retl-mirror' },
    metrics: { kind: 'off' },
    indexes: [],
    retiredIndexes: [],
    artifacts: { current: { type: 'journal' }, former: [] },
    maintenance: {
      schedule: expect.objectContaining({ times: { kind: 'every', everyMs: 86_400_000 }, overlap: 'skip' }),
      keepReceiptsMs: 30 * 86_400_000,
      keepCandidatesMs: 7 * 86_400_000,
      compactMs: null,
    },
    connections: expect.objectContaining({
      shop: { type: 'postgres', options: { url: `\${env:SHOP_URL}` } },
    }),
    mirrors: [
      {
        mirror: 'vip',
        strategy: 'snapshot-diff',
        source: {
          type: 'postgres',
          connection: 'shop',
          connectionOptions: { url: `\${env:SHOP_URL}` },
          query: "select id, email, plan, updated_at from customers where plan = 'vip'",
          key: ['id'],
        },
        mapping: {
          kind: 'rules',
          members: [
            {
              identity: { email_sha256: { column: 'email', normalize: ['email'], hash: 'sha256' } },
              payload: { plan: { column: 'plan' }, seen_at: { column: 'updated_at' } },
              when: [{ column: 'email', is: 'not_null' }],
            },
          ],
        },
        destination: {
          type: 'http',
          connection: 'crm',
          connectionOptions: {
            base_url: 'https://api.example.com',
            auth: { bearer: `\${env:CRM_TOKEN}` },
          },
          options: {
            upsert: { method: 'POST', path: '/audiences/42/members' },
            remove: { method: 'DELETE', path: '/audiences/42/members' },
          },
        },
        baseline: { kind: 'new-empty', attested: null },
        batch: { rows: 1000, bytes: 1_000_000, inFlight: 4, pollDeadlineMs: 86_400_000 },
        safety: {
          maxRemovalShare: 0.2,
          maxRemovals: null,
          emptySnapshot: 'hold',
          approvalDeadlineMs: 86_400_000,
        },
        onRejection: { kind: 'stop' },
        refreshAfterMs: null,
        resumeMaxAgeMs: 86_400_000,
      },
    ],
    schedules: {},
    tags: { vip: [] },
    environment: null,
    defaultKeys: [],
  });
});

test('what is left out has the documented defaults, written or not', async () => {
  const written = await mirrorOf('baseline', 'strategy: snapshot-diff\nresume_max_age: 24h\nbaseline');
  const end = MIRROR.slice(MIRROR.indexOf('baseline'));
  expect(await mirrorOf(end, '')).toEqual(written);
});

test.each([
  ['key: [id]', 'key: id', ['id']],
  ['key: [id]', 'key: [id, email]', ['id', 'email']],
])('%s may be written %s', async (old, replacement, key) => {
  expect((await mirrorOf(old, replacement)).source.key).toEqual(key);
});

test.each([
  ['20%', { maxRemovalShare: 0.2, maxRemovals: null }],
  ['0.5%', { maxRemovalShare: 0.005, maxRemovals: null }],
  ['500', { maxRemovalShare: null, maxRemovals: 500 }],
  ['0', { maxRemovalShare: null, maxRemovals: 0 }],
  ['{ share: 10%, count: 50 }', { maxRemovalShare: 0.1, maxRemovals: 50 }],
  ['{ count: 50 }', { maxRemovalShare: null, maxRemovals: 50 }],
])('max_removals: %s', async (text, limits) => {
  expect((await mirrorOf('max_removals: 20%', `max_removals: ${text}`)).safety).toMatchObject(limits);
});

test.each([
  ['stop', { kind: 'stop' }],
  ['continue', { kind: 'continue' }],
  ['{ tolerate: { max: 10 } }', { kind: 'tolerate', max: 10, maxShare: null }],
  ['{ tolerate: { max: 0.5% } }', { kind: 'tolerate', max: null, maxShare: 0.005 }],
])('on_rejection: %s', async (text, onRejection) => {
  expect((await mirrorOf('baseline', `on_rejection: ${text}\nbaseline`)).onRejection).toEqual(onRejection);
});

test('refresh_after is a time in milliseconds', async () => {
  expect((await mirrorOf('baseline', 'refresh_after: 30d\nbaseline')).refreshAfterMs).toBe(2_592_000_000);
});

test.each([
  ['1MB', 1_000_000],
  ['512KiB', 524_288],
  ['"2 MiB"', 2_097_152],
  ['65536', 65_536],
])('bytes: %s', async (text, bytes) => {
  expect((await mirrorOf('bytes: 1MB', `bytes: ${text}`)).batch.bytes).toBe(bytes);
});

test.each([
  ['{ column: email, is: null }', [{ column: 'email', is: 'null' }]],
  ['{ column: email, is: true }', [{ column: 'email', is: 'true' }]],
  ['{ column: email, is: "false" }', [{ column: 'email', is: 'false' }]],
  ['{ column: plan, equals: vip }', [{ column: 'plan', equals: 'vip' }]],
  ['{ column: plan, equals: 7 }', [{ column: 'plan', equals: '7' }]],
  ['{ column: plan, in: [1, "02"] }', [{ column: 'plan', in: ['1', '02'] }]],
  [
    '[{ column: a, is: empty }, { column: b, is: not_empty }]',
    [
      { column: 'a', is: 'empty' },
      { column: 'b', is: 'not_empty' },
    ],
  ],
])('when: %s', async (text, when) => {
  const { mapping } = await mirrorOf('{ column: email, is: not_null }', text);
  expect(mapping).toMatchObject({ members: [{ when }] });
});

test('normalize takes a list, in its order; a constant stands for itself', async () => {
  const { mapping } = await mirrorOf(
    'plan: plan',
    'plan: { column: plan, normalize: [trim, lower] }, source: { value: 7 }',
  );
  expect(mapping).toMatchObject({
    members: [{ payload: { plan: { column: 'plan', normalize: ['trim', 'lower'] }, source: { value: 7 } } }],
  });
});

test('a baseline can be attested', async () => {
  const { baseline } = await mirrorOf(
    'baseline: new-empty',
    'baseline: { kind: new-empty, attested: "K. made it today" }',
  );
  expect(baseline).toEqual({ kind: 'new-empty', attested: 'K. made it today' });
});

test('the type of the destination may be left to its connection', async () => {
  expect((await mirrorOf('  type: http\n', '')).destination.type).toBe('http');
});

test('mirrors come in the order of their names; other files and hidden ones are not read', async () => {
  const { mirrors } = await settingsOf({
    'retl.yaml': PROJECT,
    'mirrors/b.yaml': MIRROR,
    'mirrors/a.yaml': MIRROR,
    'mirrors/README.md': 'notes',
    'mirrors/.hidden.yaml': '][',
  });
  expect(mirrors.map(({ mirror }) => mirror)).toEqual(['a', 'b']);
});

test('retl.yaml overrides Temporal’s environment where it says so', async () => {
  const temporal = 'temporal: { profile: prod, address: "t:7233", namespace: n, task_queue: q }\n';
  const settings = await settingsOf({ 'retl.yaml': temporal + PROJECT });
  expect(settings.temporal).toEqual({ profile: 'prod', address: 't:7233', namespace: 'n', taskQueue: 'q' });
});
