import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { parse } from 'yaml';
import { SKELETON } from '../../src/cli/skeleton.ts';
import { MIRROR, PROJECT, problemsOf, SECRETS, settingsOf } from '../config/support.ts';
import { createTestProject, type TestProject } from '../support/project.ts';
import { retl } from './support.ts';

const SKELETON_FILES = Object.fromEntries(SKELETON.map(({ path, content }) => [path, content]));
const SKELETON_ENV = {
  RETL_JOURNAL_URL: 'postgres://w@localhost/retl',
  PLAYGROUND_URL: 'postgres://p@localhost/playground',
};

let project: TestProject;
beforeEach(async () => {
  project = await createTestProject();
});
afterEach(() => project.remove());

test('init writes a project, and leaves every file alone that is there already', async () => {
  await project.write('retl.yaml', '# mine\n');
  const first = await retl(['init', '--json'], { cwd: project.folder });
  expect(first.code).toBe(0);
  expect(JSON.parse(first.stdout)).toMatchObject({
    written: ['mirrors/example.yaml', '.env.example', '.gitignore'],
    kept: ['retl.yaml'],
  });
  await project.write('mirrors/example.yaml', '# mine too\n');
  const second = await retl(['init'], { cwd: project.folder });
  expect(second.code).toBe(0);
  expect(second.stdout).not.toContain('written');
  expect(await readFile(join(project.folder, 'retl.yaml'), 'utf8')).toBe('# mine\n');
  expect(await readFile(join(project.folder, 'mirrors/example.yaml'), 'utf8')).toBe('# mine too\n');
});

test('init writes into a folder that it makes, with the schemas that its files name', async () => {
  const { code } = await retl(['init', 'a/b'], { cwd: project.folder });
  expect(code).toBe(0);
  for (const file of ['retl.yaml', 'mirrors/example.yaml']) {
    const text = await readFile(join(project.folder, 'a/b', file), 'utf8');
    const schema = /^# yaml-language-server: \$schema=(.+)$/m.exec(text)?.[1] ?? 'none';
    const found: unknown = JSON.parse(
      await readFile(join(project.folder, 'a/b', file, '..', schema), 'utf8'),
    );
    expect(found).toHaveProperty('properties');
  }
});

test('a folder that cannot be written to is named as that', async () => {
  await project.write('file', '');
  const { code, stderr } = await retl(['init', 'file'], { cwd: project.folder });
  expect(code).toBe(1);
  expect(stderr).toMatch(/cannot be written to \(\w+\)/);
});

test('what init writes is a valid project once its variables are set', async () => {
  const settings = await settingsOf(SKELETON_FILES, { env: SKELETON_ENV });
  expect(settings.mirrors.map(({ mirror }) => mirror)).toEqual(['example']);
});

test('the HTTP destination that the skeleton shows in its comments is valid as well', async () => {
  const uncommented = (path: string, from: string) =>
    (SKELETON_FILES[path] ?? '').replace(new RegExp(`^ {2}# (?=${from}|  )`, 'gm'), '  ');
  const retlYaml = uncommented('retl.yaml', 'crm:');
  const mirror = uncommented('mirrors/example.yaml', 'connection: crm|upsert|remove').replace(
    '  connection: playground\n  table: audience\n',
    '',
  );
  expect(parse(retlYaml)).toHaveProperty('connections.crm.auth.bearer');
  expect(parse(mirror)).toHaveProperty('destination.upsert.path');
  expect(
    await problemsOf(
      { 'retl.yaml': retlYaml, 'mirrors/example.yaml': mirror },
      { env: { ...SKELETON_ENV, CRM_TOKEN: 't' } },
    ),
  ).toEqual([]);
});

test('errors of retl.yaml are listed with place and remedy, and exit with 2', async () => {
  await project.write('retl.yaml', PROJECT.replace('journal:', 'jurnal:'));
  const { code, stderr } = await retl(['status'], { cwd: project.folder });
  expect(code).toBe(2);
  expect(stderr).toMatch(
    /retl.yaml:1:1 jurnal\n {2}The key `jurnal` is unknown.\n {2}Did you mean `journal`\?/,
  );
  expect(stderr).toContain('2 errors in 1 file; nothing was started.');
});

test('with --json the errors are one document', async () => {
  const { code, stdout } = await retl(['runs', '--json', '--project', project.folder], { cwd: '/' });
  expect(code).toBe(2);
  expect(JSON.parse(stdout)).toMatchObject({
    error: { code: 'config.invalid', problems: [{ file: 'retl.yaml', line: null }] },
  });
});

test('the project is found from a folder below it', async () => {
  await project.write('retl.yaml', PROJECT);
  await project.write('mirrors/vip.yaml', MIRROR);
  const { code, stderr } = await retl(['run', 'vpi'], { cwd: join(project.folder, 'mirrors') });
  expect(code).toBe(2);
  expect(stderr).toMatch(/config.unknown-mirror[\s\S]*did you mean: vip/);
});

test('a secret that is not there is named, and what is there is not shown', async () => {
  await project.write('retl.yaml', PROJECT);
  const missing = await retl(['status'], { cwd: project.folder });
  expect(missing.code).toBe(2);
  expect(missing.stderr).toContain('config.secret');
  expect(missing.stderr).toContain('{env:RETL_JOURNAL_URL}');
  expect(missing.stderr).toMatch(/file: retl\.yaml\n {2}path: journal\.url\n/);
  expect(missing.stderr).toContain('here and where the worker runs');
});

test('a mistyped mirror is told as that where the journal cannot be asked', async () => {
  await project.write('retl.yaml', PROJECT);
  await project.write('mirrors/vip.yaml', MIRROR);
  const ran = [
    retl(['rejections', 'vpi', '--json'], { cwd: project.folder }),
    retl(['rejections', 'nope', '--json'], { cwd: project.folder }),
  ];
  for (const { code, stdout } of await Promise.all(ran)) {
    expect(code).toBe(2);
    expect(JSON.parse(stdout)).toMatchObject({
      error: { code: 'config.unknown-mirror', details: { known: ['vip'] } },
    });
  }
});

test('what is wrong with a file of members names the file, by which it was asked for', async () => {
  await project.write('retl.yaml', PROJECT);
  await project.write('mirrors/vip.yaml', MIRROR.replace('new-empty', 'tracked'));
  const cwd = project.folder;
  for (const [file, rule] of [
    ['nofile.csv', 'unreadable'],
    ['all.xls', 'unknown-format'],
  ] as const) {
    const args = ['baseline', 'import', 'vip', '--from', file, '--because', 'counted', '--json'];
    const { code, stdout } = await retl(args, { cwd, env: { CRM_TOKEN: 'token' } });
    expect(code).toBe(2);
    expect(JSON.parse(stdout)).toMatchObject({
      error: { code: 'data.baseline-file', details: { file, rule } },
    });
  }
});

test('.env is read, and stands behind the real environment', async () => {
  await project.write('retl.yaml', PROJECT);
  await project.write('.env', 'RETL_JOURNAL_URL=postgres://canary:canary@127.0.0.1:1/x\n');
  const { code, stderr, stdout } = await retl(['status', '--debug'], { cwd: project.folder });
  expect(code).toBe(1);
  expect(stderr).toContain('journal.unavailable');
  expect(stderr + stdout).not.toContain('canary');
  const real = await retl(['status'], { cwd: project.folder, env: { RETL_JOURNAL_URL: '' } });
  expect(real.code).toBe(2);
});

test('a Temporal that cannot be reached is one clear error, and exits with 1', async () => {
  await project.write('retl.yaml', PROJECT);
  const { code, stderr } = await retl(['cancel', 'vip'], {
    cwd: project.folder,
    env: { TEMPORAL_ADDRESS: '127.0.0.1:1' },
  });
  expect(code).toBe(1);
  expect(stderr).toContain('temporal.connect');
  expect(stderr).toContain('127.0.0.1:1');
});

test('check tells every error of every file, and exits with 2', async () => {
  await project.write('retl.yaml', PROJECT.replace('type: postgres', 'type: mysql'));
  await project.write('mirrors/vip.yaml', MIRROR.replace('rows: 1000', 'rows: 0'));
  const { code, stdout } = await retl(['check', '--json'], { cwd: project.folder, env: SECRETS });
  const lines = stdout
    .trim()
    .split('\n')
    .map((line): unknown => JSON.parse(line));
  expect(code).toBe(2);
  expect(lines).toMatchObject([
    { kind: 'problem', place: 'mirrors/vip.yaml:15:17', path: 'batch.rows' },
    { kind: 'problem', place: 'retl.yaml:5:11', path: 'connections.shop.type' },
  ]);
  for (const secret of Object.values(SECRETS)) expect(stdout).not.toContain(secret);
});

test('migrate without an owner says what is missing', async () => {
  await project.write('retl.yaml', PROJECT);
  const { code, stderr } = await retl(['migrate'], { cwd: project.folder, env: SECRETS });
  expect(code).toBe(2);
  expect(stderr).toContain('journal.owner_url');
});

test('colours are for terminals: neither a pipe nor NO_COLOR gets any', async () => {
  const piped = await retl(['status'], { cwd: project.folder });
  expect(piped.stderr).not.toContain('\u001b[');
  const forced = await retl(['status'], { cwd: project.folder, env: { FORCE_COLOR: '1' } });
  expect(forced.stderr).toContain('\u001b[');
  const refused = await retl(['status', '--no-color'], { cwd: project.folder, env: { FORCE_COLOR: '1' } });
  expect(refused.stderr).not.toContain('\u001b[');
});
