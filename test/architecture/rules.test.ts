import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { filesBelow, ROOT, type SourceFile, withoutComments } from './sources.ts';

const RULES = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10];
const MAX_LINES = 300;
const MAX_TEST_LINES = 400;

const CODE = [...filesBelow('src', ['.ts']), ...filesBelow('migrations', ['.sql'])];
const TESTS = filesBelow('test', ['.test.ts']);

test.each(RULES)('rule %i is cited where it is enforced', (rule) => {
  expect(citing(CODE, rule)).not.toEqual([]);
});

test.each(RULES)('rule %i is cited by a test', (rule) => {
  const elsewhere = TESTS.filter((file) => !file.path.startsWith('test/architecture/'));
  expect(citing(elsewhere, rule)).not.toEqual([]);
});

test('a citation is found in every form that is used, and only there', () => {
  const cites = (text: string, rule: number): boolean => citing([{ path: 'x', text }], rule).length === 1;
  expect(cites('enforces rule 4 of design.md', 4)).toBe(true);
  expect(cites('Rules 2, 3 and 9', 3)).toBe(true);
  expect(cites('rules 2, 3 and 9', 9)).toBe(true);
  expect(cites('(rule 10)', 10)).toBe(true);
  expect(cites('(rule 10)', 1)).toBe(false);
  expect(cites('a ruler 3', 3)).toBe(false);
});

test.each([
  ['src', MAX_LINES],
  ['test', MAX_TEST_LINES],
])('no file of %s has grown past %i lines, which is more than one noun needs', (folder, most) => {
  const long = filesBelow(folder, ['.ts'])
    .map((file) => ({ path: file.path, lines: file.text.split('\n').length - 1 }))
    .filter(({ lines }) => lines > most);
  expect(long).toEqual([]);
});

test('every file of src begins by saying what it is', () => {
  const silent = filesBelow('src', ['.ts'])
    .filter((file) => file.text.split('\n').length > 10)
    .filter((file) => !/^(?:#!.*\n)?\/\*\*/.test(file.text));
  expect(silent.map((file) => file.path)).toEqual([]);
});

test('no escape from the type checker or the linter', () => {
  const inCode = /\bas any\b|: any\b|<any>/;
  const inComments =
    /@ts-(?:ignore|expect-error|nocheck)|biome-ignore (?!lint\/suspicious\/noControlCharactersInRegex: )/;
  const found = filesBelow('src', ['.ts']).filter(
    ({ text }) => inCode.test(withoutComments(text)) || inComments.test(text),
  );
  expect(found.map((file) => file.path)).toEqual([]);
});

test.each([
  ['a mark of something unfinished', /\bT[O]DO\b|\bF[I]XME\b|\bX[X]X\b|\bH[A]CK\b/],
  ['the number of a ticket, which means nothing to a reader', /\b(?:issue|ticket)\s+#?\d/i],
  ['a path of somebody’s own machine', /["'`\s(]\/(?:home|root|Users)\/\w/],
  ['a test that is switched off or alone', /\b(?:test|it|describe)\.(?:only|skip|todo)\b/],
])('nowhere stands %s', (_, mark) => {
  const found = [...CODE, ...filesBelow('test', ['.ts']), ...prose()].filter((file) => mark.test(file.text));
  expect(found.map((file) => file.path)).toEqual([]);
});

/** What is written for people: beside the code, and in `docs/`. */
function prose(): SourceFile[] {
  const top = readdirSync(ROOT).filter((name) => name.endsWith('.md'));
  const files = top.map((path) => ({ path, text: readFileSync(join(ROOT, path), 'utf8') }));
  return existsSync(join(ROOT, 'docs')) ? [...files, ...filesBelow('docs', ['.md'])] : files;
}

/** Files that name the rule: `rule 4`, `rules 2, 3 and 9`. */
function citing(files: readonly SourceFile[], rule: number): string[] {
  return files.filter((file) => numbersCited(file.text).has(rule)).map((file) => file.path);
}

function numbersCited(text: string): Set<number> {
  const numbers = new Set<number>();
  for (const [, list] of text.matchAll(/\brules?\s+(\d+(?:(?:\s*,\s*|\s+and\s+|\s+or\s+|\s+to\s+)\d+)*)/gi)) {
    for (const digits of list?.match(/\d+/g) ?? []) numbers.add(Number(digits));
  }
  return numbers;
}
