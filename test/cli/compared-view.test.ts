/** What people are told of an index that was compared with the log. */

import { expect, test } from 'vitest';
import { type Compared, showCompared } from '../../src/cli/compared-view.ts';

const SAME: Compared = {
  kind: 'verified',
  index: 'changes',
  position: '165',
  rows: '151937',
  oneByOne: '151937',
  boundary: null,
  missing: '0',
  unexpected: '0',
  counted: '151937',
  artifactCount: '151937',
  astray: null,
};

function told(compared: Partial<Compared>): { readonly isGood: boolean; readonly said: string } {
  const lines: string[] = [];
  const output = { line: (text: string) => void lines.push(text), style: (_: unknown, text: string) => text };
  const isGood = showCompared(output, { ...SAME, ...compared });
  return { isGood, said: lines.join('\n') };
}

test('rows that were all compared one by one are told in one line', () => {
  expect(told({})).toEqual({ isGood: true, said: '151937 rows at position 165, as the log has them.' });
});

test('of rows from before the log snapshot it is told how many were compared, and how the others were', () => {
  const { isGood, said } = told({ oneByOne: '931', boundary: '160' });
  expect(isGood).toBe(true);
  expect(said).toMatch(
    /^151937 rows at position 165,.*\n931 of 151937 rows were compared row by row\. Of what came up to position 160 /,
  );
});

test.each<[string, Partial<Compared>, string]>([
  ['other rows', { missing: '2', unexpected: '1' }, '2 rows are missing or other, 1 ought not to be there.'],
  ['another number of rows', { counted: '151938' }, 'the build says 151938, its checkpoint 151937.'],
  [
    'a checkpoint of another number',
    { artifactCount: '151936' },
    'the build says 151937, its checkpoint 151936.',
  ],
  ['readers who are not led there', { astray: 'view-gone' }, 'view-gone Readers are not led'],
])('%s are a difference', (_, compared, words) => {
  const { isGood, said } = told(compared);
  expect(isGood).toBe(false);
  expect(said).toContain(words);
});
