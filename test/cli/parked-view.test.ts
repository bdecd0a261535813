import { expect, test } from 'vitest';
import { EXIT, worstExit } from '../../src/cli/exit-codes.ts';
import { deadlineWords, parkedSummary, parkedWords } from '../../src/cli/parked-view.ts';
import { runId, sha256 } from '../../src/domain/ids.ts';
import type { ParkedRun } from '../../src/journal/approvals.ts';

const ASKED: ParkedRun = {
  run: runId(12n),
  mirror: 'vip',
  code: 'max-removal-share',
  removals: 999,
  held: 1000,
  toAdd: 0,
  toChange: 0,
  shown: sha256(`sha256:${'ab'.repeat(32)}`),
  parkedAt: new Date(0),
  deadline: new Date(86_400_000),
  leftMs: 3_600_000,
  verdict: null,
};

test.each([
  [999, 1000, '(99.9%)'],
  [1000, 1000, '(100%)'],
  [99_999, 100_000, '(99.9%)'],
  [1, 100_000, '(less than 0.1%)'],
  [200, 1000, '(20%)'],
])('the share of %i of %i is never rounded up to all nor down to none', (removals, held, words) => {
  expect(parkedWords({ ...ASKED, removals, held })).toContain(words);
});

test('empty-ok: an empty snapshot is told as that, for the share alone would hide the accident', () => {
  expect(parkedWords({ ...ASKED, code: 'empty-snapshot', removals: 1000 })).toMatch(
    /^the query gave no member/,
  );
});

test('a list says how long there is to answer, or that it was answered, or that it is too late', () => {
  expect(parkedSummary(ASKED)).toContain('answer within 60m');
  expect(parkedSummary({ ...ASKED, verdict: 'approved' })).toContain('approved already');
  expect(parkedSummary({ ...ASKED, leftMs: 0 })).toContain('the deadline has passed');
  expect(deadlineWords(0, 1)).toContain('passed; without an answer it counts as rejected');
});

test('of several runs, what waits for a person goes before what failed, and nothing goes before leaving', () => {
  expect(worstExit([EXIT.ok, EXIT.failure, EXIT.guardHeld])).toBe(EXIT.guardHeld);
  expect(worstExit([EXIT.guardHeld, EXIT.blocked])).toBe(EXIT.blocked);
  expect(worstExit([EXIT.stopped, EXIT.failure])).toBe(EXIT.failure);
  expect(worstExit([EXIT.blocked, EXIT.interrupted])).toBe(EXIT.interrupted);
  expect(worstExit([])).toBe(EXIT.ok);
});
