/** README is held to the code: its tables are the code’s, its links lead somewhere, its examples are valid. */

import { existsSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { expect, test } from 'vitest';
import { buildProgram } from '../../src/cli/program.ts';
import { ROOT } from '../architecture/sources.ts';
import { problemsOf, SECRETS } from '../config/support.ts';
import { blocks, page, pages, rows, section } from './pages.ts';
import { errorRows, exitRows } from './tables.ts';

const README = page('README.md');

// After a change of either table: npx tsx test/docs/write-tables.ts
test('README has every error code, with its meaning and remedy, and no other', () => {
  expect(rows(section(README, 'Error codes'))).toEqual(errorRows());
});

test('README has the exit codes of the program, in its words', () => {
  expect(rows(section(README, 'Exit codes'))).toEqual(exitRows());
});

test('README can be read in one go', () => {
  expect(README.split('\n').length).toBeLessThan(360);
});

test('the mirror in README is valid as it stands', async () => {
  const [retlYaml = ''] = blocks(page('docs/configuration.md'), 'yaml');
  const mirror = blocks(README, 'yaml').find((block) => block.includes('# mirrors/vip-customers.yaml')) ?? '';
  const files = { 'retl.yaml': retlYaml, 'mirrors/vip-customers.yaml': mirror };
  expect(await problemsOf(files, { env: SECRETS })).toEqual([]);
});

test.each([
  ['docs/configuration.md', 1],
  ['docs/indexes.md', 3],
])(
  'every example of indexes and of artifacts in %s is valid beside the one of retl.yaml',
  async (path, count) => {
    const [retlYaml = ''] = blocks(page('docs/configuration.md'), 'yaml');
    const examples = blocks(page(path), 'yaml').filter((block) => /^(?:indexes|artifacts):/m.test(block));
    expect(examples).toHaveLength(count);
    const env: { [name: string]: string } = { ...SECRETS };
    for (const name of ['REPORTS_URL', 'SEARCH_USER', 'SEARCH_PASSWORD', 'SEARCH_KEY']) env[name] = 'set';
    for (const example of examples)
      expect(
        await problemsOf(
          { 'retl.yaml': `${retlYaml}\n${example}` },
          { env, files: { 'search-ca.pem': 'set' } },
        ),
      ).toEqual([]);
  },
);

test.each(pages())('every link of %s leads to a file', (path) => {
  const links = [...page(path).matchAll(/\]\(([^)#]+)(?:#[^)]*)?\)/g)].map((match) => match[1] ?? '');
  const files = links.filter((link) => !/^[a-z]+:/.test(link));
  expect(files.filter((link) => !existsSync(join(ROOT, dirname(path), link)))).toEqual([]);
});

test.each(pages())('%s names no command of retl that there is not', (path) => {
  const commands = buildProgram(true).commands.map((command) => command.name());
  const named = [...page(path).matchAll(/(?:^|`|\$ )retl ([a-z]+)/gm)].map((match) => match[1]);
  expect(named.filter((name) => name === undefined || !commands.includes(name))).toEqual([]);
});
