import { expect, test } from 'vitest';
import { loadBase, loadMirror, loadProject } from '../../src/config/load.ts';
import { problemText } from '../../src/config/problem.ts';
import { createTestProject } from '../support/project.ts';
import { type Files, MIRROR, PROJECT, problemsOf, SECRETS, settingsOf } from './support.ts';
import { SYSTEMS } from './systems.ts';

const ENVIRONMENTS = `temporal: { namespace: development }
environments:
  staging:
    journal: { url: "\${env:STAGING_JOURNAL}" }
    temporal: { namespace: staging }
  production:
    journal: { url: "\${env:PRODUCTION_JOURNAL}" }
    temporal: { namespace: production, task_queue: mirrors }
    connections:
      crm: { base_url: https://live.example.com }
      shop: { type: http, base_url: https://shop.example.com }
    defaults: { safety: { max_removals: 1% } }
defaults: { safety: { max_removals: 50%, empty_snapshot: allow }, batch: { rows: 9 } }
`;
const BARE = MIRROR.slice(0, MIRROR.indexOf('batch:'));
const FILES: Files = { 'retl.yaml': PROJECT + ENVIRONMENTS, 'mirrors/vip.yaml': BARE };
const ENV = { ...SECRETS, STAGING_JOURNAL: 'postgres://staging/x', PRODUCTION_JOURNAL: 'postgres://live/x' };
const NO_SYSTEMS = { types: null, env: ENV };

test('without a choice the file is what stands in it', async () => {
  const found = await settingsOf(FILES, { env: SECRETS });
  expect(found).toMatchObject({
    environment: null,
    journal: { url: `\${env:RETL_JOURNAL_URL}` },
    temporal: { namespace: 'development', taskQueue: 'retl-mirror' },
  });
});

test('an environment goes before the file, key by key, and keeps what it does not name', async () => {
  const found = await settingsOf(FILES, { ...NO_SYSTEMS, environment: 'production' });
  expect(found).toMatchObject({
    environment: 'production',
    journal: { url: `\${env:PRODUCTION_JOURNAL}`, ownerUrl: null },
    temporal: { namespace: 'production', taskQueue: 'mirrors' },
    connections: {
      crm: {
        type: 'http',
        options: { base_url: 'https://live.example.com', auth: { bearer: `\${env:CRM_TOKEN}` } },
      },
    },
  });
  // Of another type, and so with nothing of the keys of the first.
  expect(found.connections.shop).toEqual({ type: 'http', options: { base_url: 'https://shop.example.com' } });
  expect(found.mirrors[0]).toMatchObject({
    batch: { rows: 9 },
    safety: { maxRemovalShare: 0.01, emptySnapshot: 'allow' },
  });
});

test('every environment has a task queue of its own where none is written', async () => {
  const { temporal } = await settingsOf(FILES, { ...NO_SYSTEMS, environment: 'staging' });
  expect(temporal).toMatchObject({ namespace: 'staging', taskQueue: 'retl-mirror-staging' });
});

test('an unknown environment is refused, with the nearest known', async () => {
  expect(await problemsOf(FILES, { ...NO_SYSTEMS, environment: 'prodution' })).toEqual([
    'retl.yaml:14:3 environments: retl.yaml defines no environment `prodution` (--env, RETL_ENV). Did you mean `production`? Defined there: staging, production.',
  ]);
  expect(await problemsOf({ 'retl.yaml': PROJECT }, { ...NO_SYSTEMS, environment: 'production' })).toEqual([
    expect.stringContaining('It defines none.'),
  ]);
});

test('a file whose journals all stand in environments runs in these only', async () => {
  const without = PROJECT.replace(/^journal:\n.*\n/, '') + ENVIRONMENTS;
  const files = { 'retl.yaml': without, 'mirrors/vip.yaml': BARE };
  expect(await problemsOf(files, NO_SYSTEMS)).toEqual([
    expect.stringMatching(
      /journal: `journal` is missing\. Choose an environment with --env or RETL_ENV: staging, production\.$/,
    ),
  ]);
  expect(await problemsOf(files, { ...NO_SYSTEMS, environment: 'staging' })).toEqual([]);
});

test('a reference of an environment must lead somewhere in that environment alone', async () => {
  expect(await problemsOf(FILES, { types: null, env: SECRETS, environment: 'staging' })).toEqual([
    expect.stringMatching(/^retl\.yaml:15:21 environments\.staging\.journal\.url: \$\{env:STAGING_JOURNAL\}/),
  ]);
});

/** What is replaced in the environments above, by what, and what is told; in a check of `environment`. */
const CASES: readonly (readonly [string, string, string, string | null, readonly string[]])[] = [
  [
    'an unknown key, also of an environment that is not chosen',
    `journal: { url: "\${env:PROD`,
    `jurnal: { url: "\${env:PROD`,
    null,
    [
      'retl.yaml:18:5 environments.production.jurnal: The key `jurnal` is unknown. Did you mean `journal`? Known keys: journal, temporal, metrics, indexes, artifacts, maintenance, connections, defaults.',
    ],
  ],
  [
    'an error in the chosen one is told once',
    'max_removals: 1%',
    'max_removal: 1%',
    'production',
    [
      'retl.yaml:23:27 environments.production.defaults.safety.max_removal: The key `max_removal` is unknown. Did you mean `max_removals`? Known keys: max_removals, empty_snapshot, approval_deadline.',
    ],
  ],
  [
    'a secret in plain text, also where it is not chosen',
    `"\${env:STAGING_JOURNAL}"`,
    'postgres://a:canary@staging/x',
    null,
    [
      expect.stringMatching(
        /^retl\.yaml:15:21 environments\.staging\.journal\.url: A secret stands here in plain text\./,
      ),
    ],
  ],
  [
    'a reference in a default of an environment',
    'max_removals: 1%',
    `max_removals: "\${env:X}"`,
    null,
    [
      expect.stringContaining('max_removals: Secret references are not resolved in `defaults`.'),
      expect.stringContaining('max_removals: This is not of the right form.'),
    ],
  ],
  [
    'a name that is none',
    'staging:',
    'Staging 1:',
    null,
    [expect.stringMatching(/^retl\.yaml:14:3 environments\["Staging 1"\]: This name is not valid here\./)],
  ],
  [
    'the same task queue in the same namespace',
    'namespace: production, ',
    'namespace: staging, task_queue: mirrors }\n  other:\n    temporal: { namespace: staging, ',
    null,
    [
      expect.stringMatching(
        /environments\.other\.temporal: This environment has the task queue of `production`/,
      ),
    ],
  ],
  [
    'the same journal, written out',
    `"\${env:STAGING_JOURNAL}" }`,
    'postgres://journal/x }\n  other: { journal: { url: postgres://journal/x } }\n  another:\n    journal: {}',
    null,
    [expect.stringMatching(/environments\.other\.journal: This environment has the journal of `staging`/)],
  ],
];

test.each(CASES)('environments: %s', async (_name, old, replacement, environment, told) => {
  expect(ENVIRONMENTS).toContain(old);
  const files = { ...FILES, 'retl.yaml': PROJECT + ENVIRONMENTS.replace(old, replacement) };
  const reading = environment === null ? NO_SYSTEMS : { ...NO_SYSTEMS, environment };
  const problems = await problemsOf(files, reading);
  expect(problems).toEqual(told);
  expect(problems.join('\n')).not.toContain('canary');
});

test('a task queue that all environments inherit in one namespace is told of each', async () => {
  const shared = `temporal: { namespace: all, task_queue: mirrors }
environments:
  staging: { journal: { url: "\${env:STAGING_JOURNAL}" } }
  production: { journal: { url: "\${env:PRODUCTION_JOURNAL}" } }
`;
  const problems = await problemsOf({ ...FILES, 'retl.yaml': PROJECT + shared }, NO_SYSTEMS);
  expect(problems.map((line) => line.split(': ')[0])).toEqual([
    expect.stringContaining('environments.staging.temporal'),
    expect.stringContaining('environments.production.temporal'),
  ]);
});

test('what one mirror does not use cannot stop it: connections, environments and mirrors that are broken', async () => {
  const broken = `${PROJECT}  old: { typ: postgres }\n  gone: { type: mysql, password: x }\n`;
  const project = await createTestProject({
    'retl.yaml': `${broken}environments:\n  staging: { jurnal: {} }\n`,
    'mirrors/vip.yaml': MIRROR,
    'mirrors/other.yaml': MIRROR.replace('connection: shop', 'connection: gone'),
  });
  const secrets = { env: SECRETS, readFile: () => '' };
  try {
    const told = async (loading: ReturnType<typeof loadMirror | typeof loadBase>) => {
      const loaded = await loading;
      return loaded.kind === 'ok'
        ? []
        : loaded.problems.map((problem) => problemText(problem).split(': ')[0]);
    };
    expect(await told(loadMirror(project.folder, 'vip', SYSTEMS, secrets, null))).toEqual([]);
    expect(await told(loadBase(project.folder, secrets, null))).toEqual([]);
    expect(await told(loadMirror(project.folder, 'other', SYSTEMS, secrets, null))).toEqual([
      'retl.yaml:13:17 connections.gone.type',
      'retl.yaml:13:34 connections.gone.password',
    ]);
    expect(await told(loadProject(project.folder, SYSTEMS, secrets, null))).toEqual([
      'retl.yaml:12:8 connections.old.type',
      'retl.yaml:13:17 connections.gone.type',
      'retl.yaml:13:34 connections.gone.password',
      'retl.yaml:15:14 environments.staging.jurnal',
    ]);
  } finally {
    await project.remove();
  }
});
