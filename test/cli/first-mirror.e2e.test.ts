import { existsSync } from 'node:fs';
import { readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { parseEnv } from 'node:util';
import { Client } from 'pg';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { page } from '../docs/pages.ts';
import { createTestProject, type TestProject } from '../support/project.ts';
import { type Running, retl, startRetl } from './support.ts';

let project: TestProject;
let dev: Running;

beforeAll(async () => {
  project = await createTestProject();
  await retl(['init'], { cwd: project.folder });
  dev = startRetl(['dev', '--json'], { cwd: project.folder });
  await dev.says('worker-ready');
});

afterAll(async () => {
  dev?.signal('SIGTERM');
  await dev?.ended;
  await project?.remove();
});

const run = (...args: readonly string[]) => retl(args, { cwd: project.folder });

test('two-writers: check names both mirrors of one target that none owns yet', async () => {
  const text = await readFile(join(project.folder, 'mirrors/example.yaml'), 'utf8');
  await project.write('mirrors/twin.yaml', text);
  const codes = async (...names: readonly string[]) => {
    const { code, stdout } = await run('check', ...names, '--json');
    const found: { mirror: string; code?: string; message?: string }[] = stdout
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line));
    return { code, problems: found.filter((line) => line.code !== undefined) };
  };
  const before = await codes();
  expect(before).toMatchObject({
    code: 2,
    problems: [
      { mirror: 'example', code: 'config.target-shared', message: expect.stringContaining('twin') },
      { mirror: 'twin', code: 'config.target-shared', message: expect.stringContaining('example') },
    ],
  });
  expect((await codes('twin')).problems).toHaveLength(1);
  await rm(join(project.folder, 'mirrors/twin.yaml'));
});

test('what init writes is checked, mirrored and shown, without a word of configuration', async () => {
  const check = await run('check');
  expect(check.stdout).toContain('in order');
  expect(check.code).toBe(0);
  const first = await run('run', 'example');
  expect(first.stdout).toBe('example: completed\n  100 added, 0 changed, 0 removed, 0 unchanged\n');
  expect(first.code).toBe(0);
  const again = await run('run', 'example', '--json');
  expect(JSON.parse(again.stdout.trim().split('\n').at(-1) ?? '')).toMatchObject({
    outcome: 'completed',
    counts: { unchanged: 100 },
  });
  const status: unknown = JSON.parse((await run('status', 'example', '--json')).stdout);
  expect(status).toMatchObject({ mirrors: [{ held: 100, lastRun: { state: 'completed' } }] });
  const runs: unknown = JSON.parse((await run('runs', '--json')).stdout);
  expect(runs).toMatchObject({ runs: [{ runId: '2' }, { runId: '1' }] });
});

test('empty-ok: a query that suddenly returns nothing removes nobody, and the run exits with 4', async () => {
  const file = 'mirrors/example.yaml';
  const text = await readFile(join(project.folder, file), 'utf8');
  await project.write(file, text.replace("plan = 'vip'", "plan = 'no such plan'"));
  const held = await run('run', 'example');
  expect(held.code).toBe(4);
  // README shows this very thing.
  const [, shown = ''] = page('README.md').split('$ retl run example\nexample: parked');
  const alike = (output: string) =>
    output
      .replaceAll(/\d{4}-\S+Z/g, '<time>')
      .replaceAll(/sha256:[\da-f]+…?/g, '<digest>')
      .trim();
  expect(alike(held.stdout)).toBe(alike(`example: parked${shown.slice(0, shown.indexOf('```'))}`));
  expect(JSON.parse((await run('status', 'example', '--json')).stdout)).toMatchObject({
    mirrors: [{ held: 100, lastRun: { state: 'open', parked: 'empty-snapshot' } }],
  });
});

test('a first run that is refused owns nothing: another name has the target at once, and takes what it holds', async () => {
  const dev = parseEnv(await readFile(join(project.folder, '.retl/dev.env'), 'utf8'));
  const playground = new Client({ connectionString: dev.PLAYGROUND_URL });
  await playground.connect();
  await playground.query(
    'create table team (email_sha256 text primary key, plan text); insert into team values ($$x$$, $$old$$)',
  );
  await playground.end();
  const text = await readFile(join(project.folder, 'mirrors/example.yaml'), 'utf8');
  const team = text.replace('table: audience', 'table: team');
  await project.write('mirrors/first.yaml', team);
  const refused = await run('run', 'first');
  expect(refused.stdout + refused.stderr).toContain('destination.not-empty');
  await rm(join(project.folder, 'mirrors/first.yaml'));
  await project.write('mirrors/second.yaml', team.replace('baseline: new-empty', 'baseline: tracked'));
  const because = ['--because', 'the old job is stopped', '--yes'];
  const adopted = await run('baseline', 'verify', 'second', '--adopt', ...because);
  expect({ code: adopted.code, stderr: adopted.stderr }).toEqual({ code: 0, stderr: expect.any(String) });
  expect(JSON.parse((await run('status', 'second', '--json')).stdout)).toMatchObject({
    mirrors: [{ mirror: 'second', held: 1 }],
  });
});

test('migrate finds the journal of a running dev, and finds it up to date', async () => {
  const { code, stdout } = await run('migrate');
  expect(stdout).toContain('up to date');
  expect(code).toBe(0);
});

test('SIGTERM stops everything, and leaves no address behind', async () => {
  expect(existsSync(join(project.folder, '.retl/dev.env'))).toBe(true);
  dev.signal('SIGTERM');
  expect((await dev.ended).code).toBe(0);
  expect(existsSync(join(project.folder, '.retl/dev.env'))).toBe(false);
});
