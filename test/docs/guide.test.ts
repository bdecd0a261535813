import { expect, test } from 'vitest';
import { missing, stepsOf } from './guide.ts';

test('a guide’s commands, files and statements are read in order, and nothing else', () => {
  const text = [
    '# How?',
    '```yaml\n# mirrors/a.yaml\nsource: x\n```',
    '```yaml\nonly: a part\n```',
    '```console\n$ one --yes\nsays this\n\nand that\n$ two\n```',
    '```sql\nselect 1;\n```',
  ].join('\n');
  expect(stepsOf(text)).toEqual([
    { kind: 'file', path: 'mirrors/a.yaml', content: '# mirrors/a.yaml\nsource: x\n' },
    { kind: 'command', line: 'one --yes', shown: ['says this', 'and that'] },
    { kind: 'command', line: 'two', shown: [] },
    { kind: 'sql', text: 'select 1;\n' },
  ]);
});

test('output must have every shown line, in order; what is not shown may come between', () => {
  const output = 'start\n  3 added (in 2s)\nmore\nend\n';
  expect(missing(['  3 added (in …)', 'end'], output)).toBeNull();
  expect(missing(['end', '  3 added (in …)'], output)).toBe('  3 added (in …)');
  expect(missing(['  3 added'], output)).toBe('  3 added');
  expect(missing(['e.d'], output)).toBe('e.d');
});
