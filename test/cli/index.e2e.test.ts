/** `retl index` as people call it: processes, a real journal, and no Temporal. */

import { spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { text } from 'node:stream/consumers';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { workerCommandLine } from '../../src/cli/worker-process.ts';
import { ERROR_CODES } from '../../src/domain/errors.ts';
import { restoredJournal } from '../indexing/rebuild.contract.ts';
import { IndexScene, rows, SCHEMA } from '../support/index-scene.ts';
import { startOpenSearch, withoutOpenSearch } from '../support/opensearch/server.ts';
import { createTestProject, type TestProject } from '../support/project.ts';
import { retl } from './support.ts';

/** Each command is two processes, which compile themselves first. */
const PATIENT_MS = 240_000;

let scene: IndexScene;
let project: TestProject;

beforeAll(async () => {
  scene = await IndexScene.open();
  await scene.run('a', rows(0, 12, '1'));
  project = await createTestProject({
    'retl.yaml': {
      journal: { url: `\${env:JOURNAL_URL}` },
      temporal: { address: '127.0.0.1:1' },
      connections: {},
      indexes: { people: { kind: 'membership-search' }, changes: { kind: 'membership-history' } },
    },
  });
});
afterAll(async () => {
  await scene.close();
  await project.remove();
});

const index = (...args: readonly string[]) =>
  retl(['index', ...args], { cwd: project.folder, env: { JOURNAL_URL: scene.journal.runtimeUrl } });
async function told(...args: readonly string[]): Promise<unknown> {
  const { stdout, code, stderr } = await index(...args, '--json');
  expect(code, stderr).toBe(0);
  return JSON.parse(stdout);
}

test(
  'an index is built, shown, verified, rolled back to a checkpoint and rebuilt',
  async () => {
    expect((await index('verify', 'people')).stderr).toContain('index.not-built');
    expect((await index('run', 'people', '--once')).stdout).toMatch(
      /^people: caught up at position \d+, 12 rows\n$/,
    );
    const { checkpoints } = (await told('checkpoints', 'people')) as {
      readonly checkpoints: readonly { readonly reference: string; readonly position: string }[];
    };
    const [newest] = checkpoints;
    await scene.run('a', rows(0, 14, '1'));
    expect(await told('status', 'people')).toMatchObject({
      indexes: [
        {
          builds: [
            {
              state: 'live',
              position: newest?.position,
              lag: { positions: expect.not.stringMatching(/^0$/) },
            },
          ],
        },
      ],
    });
    await index('run', 'people', '--once');
    expect(await told('status', 'people')).toMatchObject({
      indexes: [{ builds: [{ rows: '14', lag: { positions: '0', ms: 0 } }], workflow: { state: 'unknown' } }],
    });
    expect(await told('verify', 'people')).toMatchObject({
      rows: '14',
      missing: '0',
      unexpected: '0',
      oneByOne: '14',
      boundary: null,
      counted: '14',
      artifactCount: '14',
      astray: null,
      faults: [],
    });
    expect(await told('show', newest?.reference ?? '')).toMatchObject({
      checkpoint: {
        checkpoint_version: 1,
        projection_name: 'people',
        asl_log_position: newest?.position,
        artifact_count: '12',
      },
    });
    expect(await told('rollback', 'people', newest?.reference ?? '')).toMatchObject({
      goal: newest?.position,
      running: false,
    });
    expect((await index('run', 'people', '--once')).stdout).toContain('rolled back, and stays');
    expect(await told('rebuild', 'people')).toMatchObject({ goal: null });
    await index('run', 'people', '--once');
    expect(await scene.shown('people')).toBe(await scene.expected());
    // What readers see meanwhile is broken: that is told beside the result, as a worker's log has it.
    await scene.tamper(`update ${SCHEMA}.index_build set entry_hash = 'sha256:' || repeat('ab', 32)`);
    expect(await told('rebuild', 'people')).toMatchObject({ goal: null });
    const { stdout, stderr } = await index('run', 'people', '--once', '--json');
    expect(JSON.parse(stdout)).toMatchObject({ end: 'caught-up', rows: '14' });
    expect(stderr).toMatch(/\[WARN\] the live build cannot follow.*'people'.*'index\.log-diverged'/);
  },
  PATIENT_MS,
);

test(
  'what is wrong is told by its code, and verify finds rows that somebody has changed',
  async () => {
    expect(await index('run', 'nobody', '--once')).toMatchObject({
      code: 1,
      stderr: expect.stringContaining('index.unknown'),
    });
    for (const args of [
      ['show', 'people'],
      ['rollback', 'people', 'sha256:12'],
    ])
      expect(await index(...args)).toMatchObject({
        code: 2,
        stderr: expect.stringContaining('`sha256:` and 64'),
      });
    expect((await index('show', `sha256:${'12'.repeat(32)}`)).stderr).toContain('index.unknown-checkpoint');
    expect((await index('run', 'changes', '--once')).code).toBe(0);
    const { rows: tables } = await scene.journal.admin.query<{ name: string }>(
      `select 'rows_' || table_id as name from ${SCHEMA}.index_build where index_name = 'changes' and state = 'live'`,
    );
    await scene.journal.admin.query(
      `delete from ${SCHEMA}.${tables[0]?.name} where identity = '{"id":"k3"}'`,
    );
    const verified = await index('verify', 'changes');
    expect(verified.code).toBe(1);
    expect(verified.stdout).toContain('1 rows are missing or other, 0 ought not to be there.');
    // What the audit finds is told beside the refusal to compare.
    await scene.tamper('delete from retl.artifact');
    const refused = await index('verify', 'changes');
    expect(refused).toMatchObject({ code: 1, stderr: expect.stringContaining('artifact.missing') });
    expect(refused.stdout).toMatch(/artifact\.missing \d+ sha256:[0-9a-f]{64}\n/);
  },
  PATIENT_MS,
);

test(
  'one index that is away hides none of the others, and a reader that goes away leaves no trace',
  async () => {
    const several = await createTestProject({
      'retl.yaml': {
        journal: { url: `\${env:JOURNAL_URL}` },
        temporal: { address: '127.0.0.1:1' },
        connections: {},
        indexes: {
          away: { kind: 'membership-search', url: 'postgres://nobody@127.0.0.1:1/nothing' },
          beside: { kind: 'membership-search' },
        },
      },
    });
    try {
      const at = { cwd: several.folder, env: { JOURNAL_URL: scene.journal.runtimeUrl } };
      const status = await retl(['index', 'status'], at);
      expect(status.code).toBe(1);
      expect(status.stdout).toMatch(/\naway +index\.unavailable +unknown\nbeside +not built .* unknown\n/);
      expect(status.stderr).toContain('index: away');
      expect(status.stderr).toContain('Temporal cannot be asked');
      const { stdout } = await retl(['index', 'status', '--json'], at);
      expect(JSON.parse(stdout)).toMatchObject({
        indexes: [{ index: 'beside' }],
        refused: [{ index: 'away', code: 'index.unavailable', workflow: { state: 'unknown' } }],
      });
      const worker = spawn(
        process.execPath,
        workerCommandLine(['--project', several.folder, '--index', 'status']),
        { env: { ...process.env, JOURNAL_URL: scene.journal.runtimeUrl }, stdio: ['ignore', 'pipe', 'pipe'] },
      );
      worker.stdout.destroy();
      expect(await text(worker.stderr)).toBe('');
    } finally {
      await several.remove();
    }
  },
  PATIENT_MS,
);

test(
  'a journal that was restored is told by its code, its remedy and the exit code, and by no lag, also once it has grown again',
  async () => {
    const restored = await restoredJournal(scene);
    const beside = await createTestProject({
      'retl.yaml': {
        journal: { url: `\${env:JOURNAL_URL}` },
        temporal: { address: '127.0.0.1:1' },
        connections: {},
        indexes: { kept: { kind: 'membership-search', url: `\${env:INDEX_URL}` } },
      },
    });
    try {
      await scene.follow(scene.indexer('kept'));
      const env = { JOURNAL_URL: restored.journal.runtimeUrl, INDEX_URL: scene.journal.runtimeUrl };
      const status = (...args: readonly string[]) =>
        retl(['index', 'status', ...args], { cwd: beside.folder, env });
      const ahead = await status();
      expect(ahead.code).toBe(1);
      expect(ahead.stdout).toMatch(/\nkept +live +\d+ +\d+ of 0 +\d+ +index\.ahead-of-log +unknown\n$/);
      expect(ahead.stderr).toContain(ERROR_CODES['index.ahead-of-log'].remedy);
      for (let n = 0; n < 2; n += 1) await restored.history();
      const grown = await status('--json');
      expect(grown.code).toBe(1);
      const code = 'index.log-diverged';
      expect(JSON.parse(grown.stdout)).toMatchObject({
        indexes: [{ index: 'kept', builds: [{ state: 'live', lag: null, refused: { code } }] }],
        refused: [{ index: 'kept', code, remedy: ERROR_CODES[code].remedy, details: { index: 'kept' } }],
      });
    } finally {
      await beside.remove();
      await restored.close();
    }
  },
  PATIENT_MS,
);

const why = await withoutOpenSearch();

test.skipIf(why !== null)(
  `an index in a search engine is handled by the same words ${why ?? ''}`,
  async () => {
    const server = await startOpenSearch();
    const role = `index_reader_${randomBytes(6).toString('hex')}`;
    await scene.journal.admin.query(`create role ${role} login in role retl_reader`);
    const reader = new URL(scene.journal.runtimeUrl);
    reader.username = role;
    const engine = await createTestProject({
      'retl.yaml': {
        journal: { url: `\${env:JOURNAL_URL}`, reader_url: `\${env:READER_URL}` },
        temporal: { address: '127.0.0.1:1' },
        connections: {},
        indexes: {
          searched: { kind: 'membership-search', engine: 'opensearch', url: server.url, replicas: 0 },
        },
      },
    });
    try {
      const there = (...args: readonly string[]) =>
        retl(args, {
          cwd: engine.folder,
          env: { JOURNAL_URL: scene.journal.runtimeUrl, READER_URL: reader.href },
        });
      expect((await there('index', 'run', 'searched', '--once')).stdout).toMatch(
        /^searched: caught up at position \d+, \d+ rows\n$/,
      );
      expect((await there('index', 'status')).stdout).toMatch(/searched +live .* 0 positions, 0 ms +unknown/);
      expect((await there('index', 'verify', 'searched')).code).toBe(0);
      expect((await there('index', 'rebuild', 'searched')).code).toBe(0);
      expect((await there('index', 'run', 'searched', '--once')).code).toBe(0);
      const found = await there('find', 'k3');
      expect(found.stdout).toContain('{"id":"k3"}');
      expect(found.stderr).toMatch(/As of log position \d+, from .*searched\./);
      await server.kill();
      const away = await there('index', 'status', 'searched');
      expect(away.code).not.toBe(0);
      expect(away.stderr).toContain('index.unavailable');
    } finally {
      await scene.journal.admin.query(`drop owned by ${role}; drop role ${role}`);
      await engine.remove();
      await server.stop();
    }
  },
  PATIENT_MS,
);
