/** `metrics` of retl.yaml: one place or none, references resolved by workers alone, and one worker's own word before it. */

import { describe, expect, test } from 'vitest';
import { loadBase } from '../../src/config/load.ts';
import { metricsPace, resolveMetrics } from '../../src/config/metrics-schema.ts';
import { createTestProject } from '../support/project.ts';
import { PROJECT, problemsOf, SECRETS, settingsOf } from './support.ts';

const files = (metrics: string) => ({ 'retl.yaml': `${PROJECT}metrics: ${metrics}\n` });
const COLLECTOR = `{ otel: { url: "http://collector:4317", headers: { authorization: "\${env:OTEL_TOKEN}" } } }`;

test.each([
  ['{}', { kind: 'off' }],
  ['{ prometheus: "127.0.0.1:9464" }', { kind: 'prometheus', address: '127.0.0.1:9464' }],
  ['{ prometheus: "[::1]:9464" }', { kind: 'prometheus', address: '[::1]:9464' }],
  [
    '{ otel: { url: "http://c:4318/v1/metrics", http: true } }',
    { kind: 'otel', url: 'http://c:4318/v1/metrics', http: true, headers: {} },
  ],
])('%s is read', async (written, metrics) => {
  expect((await settingsOf(files(written))).metrics).toEqual(metrics);
});

test('metrics that nobody has asked for go nowhere', async () => {
  expect((await settingsOf({ 'retl.yaml': PROJECT })).metrics).toEqual({ kind: 'off' });
});

test.each([
  ['{ prometheus: "localhost:9464" }', /metrics\.prometheus: .*IP address and port/],
  ['{ prometheus: 9464 }', /metrics\.prometheus: .*IP address and port/],
  ['{ otel: { url: collector } }', /metrics\.otel\.url: .*URL of an OpenTelemetry collector/],
  ['{ prometeus: "127.0.0.1:9464" }', /metrics\.prometeus: .*Did you mean `prometheus`\?/],
  ['{ prometheus: "127.0.0.1:1", otel: { url: "http://c:4317" } }', /metrics: Metrics go to one place/],
  [
    '{ otel: { url: "http://c:4317", headers: { authorization: canary } } }',
    /authorization: A secret stands here in plain text/,
  ],
  [COLLECTOR, /authorization: \$\{env:OTEL_TOKEN\}/],
])('%s is refused in a check', async (written, told) => {
  const problems = await problemsOf(files(written));
  expect(problems).toEqual([expect.stringMatching(told)]);
  expect(problems.join()).not.toContain('canary');
});

test('a command that has nothing to do with metrics does without the token of their collector', async () => {
  const project = await createTestProject(files(COLLECTOR));
  const loaded = await loadBase(project.folder, { env: SECRETS, readFile: () => '' }, null);
  await project.remove();
  expect(loaded).toMatchObject({ kind: 'ok', settings: { metrics: { kind: 'otel' } } });
});

test('an environment says where its own go, or that they go nowhere, as a whole', async () => {
  const environments = `environments:
  staging: { journal: { url: x }, metrics: {} }
  production: { journal: { url: y }, metrics: { otel: { url: "grpc://c:4317" } } }
`;
  const project = { 'retl.yaml': `${PROJECT}metrics: { prometheus: "127.0.0.1:9464" }\n${environments}` };
  const metricsIn = async (environment: string) => (await settingsOf(project, { environment })).metrics;
  expect(await metricsIn('staging')).toEqual({ kind: 'off' });
  expect(await metricsIn('production')).toMatchObject({ kind: 'otel', url: 'grpc://c:4317' });
});

describe('one worker', () => {
  const secrets = { env: { ADDRESS: '0.0.0.0:9464', TOKEN: 't', WRONG: 'canary' }, readFile: () => '' };
  const at = (address: string) => ({ kind: 'prometheus', address }) as const;

  test.each([
    ['what retl.yaml says', undefined, at('127.0.0.1:9464')],
    ['nothing, as an empty variable says it', '', at('127.0.0.1:9464')],
    ['an address of its own', '127.0.0.1:9465', at('127.0.0.1:9465')],
    ['that there are none', 'off', { kind: 'off' }],
  ])('takes %s', (_what, said, told) => {
    expect(resolveMetrics(at('127.0.0.1:9464'), secrets, said)).toEqual(told);
  });

  test('resolves references', () => {
    expect(resolveMetrics(at(`\${env:ADDRESS}`), secrets)).toEqual(at('0.0.0.0:9464'));
    const collector = { kind: 'otel', url: 'http://c:4317', http: false } as const;
    expect(resolveMetrics({ ...collector, headers: { x: `Bearer \${env:TOKEN}` } }, secrets)).toEqual({
      ...collector,
      headers: { x: 'Bearer t' },
    });
  });

  test.each([
    [at('127.0.0.1:1'), 'metrics', 'metrics.address'],
    [at('127.0.0.1:1'), '127.0.0.1:65536', 'metrics.address'],
    [at(`\${env:WRONG}`), undefined, 'metrics.address'],
    [{ kind: 'otel', url: `\${env:WRONG}`, http: false, headers: {} } as const, undefined, 'metrics.otel'],
    [at(`\${env:ABSENT}`), undefined, 'config.secret'],
  ])('%j with %s is refused with a code, and without what was given', (settings, said, code) => {
    const resolve = () => resolveMetrics(settings, secrets, said);
    expect(resolve).toThrow(
      expect.objectContaining({ code, message: expect.not.stringContaining('canary') }),
    );
  });
});

test('the pace is a duration, 15 seconds where nothing is said', () => {
  expect([metricsPace(undefined), metricsPace(''), metricsPace('1m')]).toEqual([15_000, 15_000, 60_000]);
  for (const said of ['15', '99ms', 'often'])
    expect(() => metricsPace(said)).toThrow(expect.objectContaining({ code: 'metrics.pace' }));
});
