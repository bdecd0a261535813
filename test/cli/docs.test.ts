import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { EXIT, EXIT_MEANINGS } from '../../src/cli/exit-codes.ts';
import { buildProgram } from '../../src/cli/program.ts';
import { problemsOf, SECRETS } from '../config/support.ts';

const page = (name: string) => readFileSync(join(import.meta.dirname, '../../docs', name), 'utf8');

test('docs/cli.md has the exit codes of the program, in its words', () => {
  const rows = [...page('cli.md').matchAll(/^\| +(\d+) +\| (.+?) +\|$/gm)].map((match) => [
    Number(match[1]),
    match[2],
  ]);
  const table = Object.entries(EXIT).map(([name, code]) => [
    code,
    Object.entries(EXIT_MEANINGS).find(([key]) => key === name)?.[1],
  ]);
  expect(rows).toEqual(table);
});

test('docs/cli.md names every command, and no other', () => {
  const named = [...page('cli.md').matchAll(/^\| `retl (\w+)/gm)].map((match) => match[1]);
  expect(named).toEqual(buildProgram(false).commands.map((command) => command.name()));
});

test('the examples of docs/configuration.md are valid as they stand', async () => {
  const [retlYaml = '', defaults = '', environments = '', indexes = '', mirror = ''] = [
    ...page('configuration.md').matchAll(/```yaml\n([\s\S]*?)```/g),
  ].map((match) => match[1] ?? '');
  const project = { 'retl.yaml': retlYaml + defaults + indexes, 'mirrors/vip.yaml': mirror };
  const indexed = { REPORTS_URL: 'postgres://localhost/reports', SEARCH_USER: 'retl', SEARCH_PASSWORD: 'x' };
  expect(await problemsOf(project, { env: { ...SECRETS, ...indexed } })).toEqual([]);
  const env = { ...SECRETS, PRODUCTION_JOURNAL_URL: 'postgres://localhost/production' };
  const alone = { 'retl.yaml': environments };
  expect(await problemsOf(alone, { env, environment: 'production' })).toEqual([]);
  expect(await problemsOf(alone, { env: SECRETS })).toEqual([]);
});

test('docs/configuration.md has a row for every key of a mirror', () => {
  const schema: unknown = JSON.parse(
    readFileSync(join(import.meta.dirname, '../../schema/mirror.schema.json'), 'utf8'),
  );
  const { properties } = schema as { readonly properties: object };
  for (const key of Object.keys(properties))
    expect(page('configuration.md')).toMatch(new RegExp(`^\\| \`${key}[.\`]`, 'm'));
});
