import { mkdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { openProject } from '../../src/cli/environment.ts';
import { lockStack, type StackLock } from '../../src/dev/stack-lock.ts';
import { createTestProject, type TestProject } from '../support/project.ts';
import { retl } from './support.ts';

const PROJECT = `journal: { url: "\${env:CASE_JOURNAL}" }
connections: {}
environments: { staging: {}, production: { journal: { url: "\${env:CASE_LIVE}" } } }
`;

let project: TestProject;
let running: StackLock;
let before: NodeJS.ProcessEnv;
beforeEach(async () => {
  before = { ...process.env };
  delete process.env.RETL_ENV;
  project = await createTestProject({
    'retl.yaml': PROJECT,
    '.env': 'CASE_ALL=shared\nCASE_SOME=shared\nCASE_REAL=shared\n',
    '.env.staging': 'CASE_ALL=staging\nCASE_REAL=staging\n',
    '.retl/dev.env': 'CASE_DEV=base\n',
    '.retl/dev.staging.env': 'CASE_DEV=staging\n',
  });
  running = await lockStack(join(project.folder, '.retl', 'dev'));
});
afterEach(async () => {
  for (const name of Object.keys(process.env)) if (!Object.hasOwn(before, name)) delete process.env[name];
  Object.assign(process.env, before);
  await project.remove();
});

test('an environment’s variables go before the shared ones, and the real environment’s before both', async () => {
  process.env.CASE_REAL = 'real';
  const { environment, secrets } = await openProject(project.folder, 'staging');
  expect(environment).toBe('staging');
  expect(secrets.env).toMatchObject({
    CASE_ALL: 'staging',
    CASE_SOME: 'shared',
    CASE_REAL: 'real',
    CASE_DEV: 'staging',
    // For the processes that are started from here: the worker of `worker`, `dev` and `check`.
    RETL_ENV: 'staging',
  });
});

test('without a choice there are the shared variables alone', async () => {
  const { environment, secrets } = await openProject(project.folder);
  expect(environment).toBeNull();
  expect(secrets.env).toMatchObject({ CASE_ALL: 'shared', CASE_DEV: 'base' });
});

test('what `retl dev` has left for one environment does not reach another', async () => {
  const { secrets } = await openProject(project.folder, 'production');
  expect(secrets.env.CASE_DEV).toBeUndefined();
});

test('what `retl dev` has left counts while it runs: not after it, not after it was killed, and not for itself', async () => {
  const { secrets } = await openProject(project.folder, undefined, false);
  expect(secrets.env.CASE_DEV).toBeUndefined();
  await running.release();
  expect((await openProject(project.folder)).secrets.env.CASE_DEV).toBeUndefined();
  await project.write('.retl/dev/stack.lock', JSON.stringify({ pid: 1, start: 'never', children: [] }));
  expect((await openProject(project.folder)).secrets.env.CASE_DEV).toBeUndefined();
});

test('a file of variables that is there and cannot be read is an error that names it, and no empty file', async () => {
  await rm(join(project.folder, '.retl/dev.env'));
  await mkdir(join(project.folder, '.retl/dev.env'));
  await expect(openProject(project.folder)).rejects.toThrow(/\.retl\/dev\.env is there and cannot be read/);
  await running.release();
  await rm(join(project.folder, '.env'));
  await mkdir(join(project.folder, '.env'));
  const told = await retl(['status'], { cwd: project.folder });
  expect({ code: told.code, stdout: told.stdout }).toEqual({ code: 2, stdout: '' });
  expect(told.stderr).toContain(`${join(project.folder, '.env')} is there and cannot be read (EISDIR).`);
});

test('--env goes before RETL_ENV, which goes before that of .env', async () => {
  await project.write('.env', 'RETL_ENV=production\n');
  expect((await openProject(project.folder)).environment).toBe('production');
  process.env.RETL_ENV = 'staging';
  expect((await openProject(project.folder)).environment).toBe('staging');
  expect((await openProject(project.folder, 'production')).environment).toBe('production');
  expect((await openProject(project.folder, '')).environment).toBeNull();
});

test('a name that leads elsewhere reads no file', async () => {
  await project.write('.env.x/secret', 'CASE_STOLEN=1\n');
  const { secrets } = await openProject(project.folder, 'x/secret');
  expect(secrets.env.CASE_STOLEN).toBeUndefined();
});

test('every command refuses an unknown environment with the nearest known, and says which one it is in', async () => {
  for (const line of [['status'], ['migrate'], ['worker'], ['check'], ['schedules', 'list']]) {
    const wrong = await retl([...line, '--env', 'prodution'], { cwd: project.folder });
    expect([line, wrong.code]).toEqual([line, 2]);
    expect(wrong.stdout + wrong.stderr).toContain('Did you mean `production`?');
  }
  const missing = await retl(['check'], { cwd: project.folder, env: { RETL_ENV: 'production' } });
  expect(missing.stderr).toContain('Environment production');
  expect(missing.stdout + missing.stderr).toMatch(
    /environments\.production\.journal\.url[\s\S]*\$\{env:CASE_LIVE\}/u,
  );
}, 60_000);
