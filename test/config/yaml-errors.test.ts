import { expect, test } from 'vitest';
import { problemText } from '../../src/config/problem.ts';
import { parseYamlFile } from '../../src/config/yaml-file.ts';

function problemsOf(text: string | Uint8Array): readonly string[] {
  const bytes = typeof text === 'string' ? new TextEncoder().encode(text) : text;
  const result = parseYamlFile('f.yaml', bytes);
  return result.kind === 'ok' ? [] : result.problems.map(problemText);
}

const CASES: readonly (readonly [string, string | Uint8Array])[] = [
  ['an empty file', ''],
  ['a file of comments', '# nothing\n'],
  ['a key that stands twice', 'a: 1\nb: 2\na: 3\n'],
  ['a tab as indentation', 'a:\n\t- b\n'],
  ['bytes that are no UTF-8', new Uint8Array([0x61, 0x3a, 0x20, 0xff, 0xfe])],
  ['text in UTF-16', new Uint8Array(Buffer.from('a: 1\n', 'utf16le'))],
  ['two documents', 'a: 1\n---\nb: 2\n'],
  ['a quote that is not closed', "a: 'x\n"],
  ['a reference in a flow mapping without quotes', 'j: { url: $' + '{env:X}, b: 1 }\n'],
  ['a value with a colon', 'a: b: c\n'],
  ['a tag', 'a: !secret x\n'],
  ['a reserved character', 'a: @x\n'],
  ['uneven indentation', '  a: 1\n b: 2\n'],
  ['an alias to nothing', 'a: *gone\n'],
  ['an alias to what holds aliases', 'a: &a [1]\nb: &b [*a, *a]\nc: *b\n'],
  ['more aliases than anybody needs', `a: &a 1\nb: [${'*a, '.repeat(101)}]\n`],
  ['a merge key', 'x: &x { a: 1 }\ny: { <<: *x }\n'],
  ['a mapping as a key', '? { a: 1 }\n: 2\n'],
  ['the key __proto__', '__proto__: { a: 1 }\n'],
  ['a number that a double does not hold', 'a: 9007199254740993\n'],
  ['a number that is not a number', 'a: .nan\nb: -.inf\n'],
  ['an escaped NUL', 'a: "x\\0y"\n'],
  ['half of a surrogate pair', 'a: "\\ud83d"\n'],
  ['a file of more than a megabyte', `a: ${'x'.repeat(1_000_001)}\n`],
  ['nesting without end', '['.repeat(20_000)],
];

test.each(CASES)('%s is one clear error', (_name, text) => {
  const problems = problemsOf(text);
  expect(problems).not.toEqual([]);
  expect(problems).toMatchSnapshot();
});

test('every slip of a file is told, one per line', () => {
  expect(problemsOf('a: 1\na: 2\nb:\n\t- c\nd: !x 1\n')).toHaveLength(3);
});

test('no part of a broken line is shown: it may hold a password', () => {
  const canary = 'hunter22';
  for (const text of [
    `url: 'x ${canary}\n`,
    `a: { p: ${canary} ${canary}: }\n]${canary}`,
    `a: !${canary} x\n`,
    `? [${canary}]\n`,
  ]) {
    const lines = problemsOf(text);
    expect(lines.length).toBeGreaterThan(0);
    expect(lines.join()).not.toContain(canary);
  }
});

test('a byte order mark, an alias to a value and quotes are fine', () => {
  expect(problemsOf('\uFEFFa: &a "x"\nb: *a\nc: {"d": [1, 2.5, -3, true, null]}\n')).toEqual([]);
});
