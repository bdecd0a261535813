/** docs/guarantees.md is held to the tests that it names: each is there, under that title, in that file. */

import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { ROOT } from '../architecture/sources.ts';
import { page } from './pages.ts';
import { titlesOf } from './test-titles.ts';

interface Entry {
  readonly number: number;
  readonly tests: readonly { readonly file: string; readonly title: string }[];
}

const PAGE = page('docs/guarantees.md');
const ENTRIES = entriesOf(PAGE);

/** An entry begins with its number in bold, and ends with a list of tests: file, then title. */
function entriesOf(text: string): readonly Entry[] {
  return text
    .split(/^(?=\*\*S\d)|^(?=## )/m)
    .filter((part) => part.startsWith('**S'))
    .map((part) => ({
      number: Number(/^\*\*S(\d+)\. /.exec(part)?.[1] ?? Number.NaN),
      tests: [...part.matchAll(/^- `([^`]+)`: (.+)$/gm)].map(([, file = '', title = '']) => ({
        file,
        title,
      })),
    }));
}

/** What the page says of a test that is not so. */
function wrong({ file, title }: Entry['tests'][number]): string | null {
  if (!/^test\/.+\.(?:test|contract)\.ts$/.test(file) || !existsSync(join(ROOT, file))) return 'no such file';
  const found = titlesOf(page(file)).filter((one) => one === title).length;
  return found === 1 ? null : `${found} tests of that title`;
}

test('the entries are numbered from 1 without a gap', () => {
  expect(ENTRIES.length).toBeGreaterThan(50);
  expect(ENTRIES.map((entry) => entry.number)).toEqual(ENTRIES.map((_, i) => i + 1));
});

test('every entry names a test, and every test that is named exists under its title', () => {
  const faults = ENTRIES.flatMap(({ number, tests }) =>
    tests.length === 0
      ? [`S${number}: no test`]
      : tests.flatMap((one) => {
          const why = wrong(one);
          return why === null ? [] : [`S${number}: ${one.file}: ${one.title}: ${why}`];
        }),
  );
  expect(faults).toEqual([]);
});

test('every line of the lists is understood, and nothing else is a list', () => {
  const lines = PAGE.split('\n').filter((line) => /^\s*[-*+] /.test(line));
  expect(lines).toHaveLength(ENTRIES.reduce((sum, { tests }) => sum + tests.length, 0));
});

test('the one departure is marked as such', () => {
  const marked = PAGE.split(/^(?=\*\*S\d)/m).filter((part) => part.includes('**Departure.**'));
  expect(marked).toHaveLength(1);
  expect(marked[0]).toContain('`visible: at_finish`');
  expect(marked[0]?.slice(2).split('.')[0]).toBe(/there is one, (S\d+)\./.exec(PAGE)?.[1]);
});

test('titles are read from every form in which a test is written, and from nowhere else', () => {
  const source = [
    "test('one', () => {});",
    'test("two (\'quoted\')", () => {});',
    'it(`three`, () => {});',
    "  test.each([['a)', /[)'(]/]])(\n    'four: %s',\n    () => {},\n  );",
    "test.for(cases)('five', { timeout: 1 }, () => {});",
    "// test('a comment', () => {});",
    'const text = "test(\'in a text\')";',
    "if (/x/.test('six')) pattern.test('seven');",
    'test(name, () => {});',
    "test('it’s \\'eight\\'', () => {});",
  ].join('\n');
  expect(titlesOf(source)).toEqual(['one', "two ('quoted')", 'three', 'four: %s', 'five', "it’s 'eight'"]);
});
