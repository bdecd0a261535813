import fc from 'fast-check';
import { expect, test } from 'vitest';
import { EXIT, exitOfFailure } from '../../src/cli/exit-codes.ts';
import { tableLines } from '../../src/cli/output.ts';
import { barLine, fractionOf, phaseWords, span, waitingWords } from '../../src/cli/progress-view.ts';
import { reasonOf, stateOf, stateStyle } from '../../src/cli/run-view.ts';
import type { Progress } from '../../src/domain/messages.ts';
import { PHASES, type RunCounts } from '../../src/domain/run.ts';
import type { RunSummary } from '../../src/journal/inspect.ts';

const COUNTS: RunCounts = {
  sourceRows: 0,
  members: 0,
  excluded: 0,
  toAdd: 0,
  toChange: 0,
  toRemove: 0,
  unchanged: 0,
  added: 0,
  changed: 0,
  removed: 0,
  rejected: 0,
};

function progress(part: Partial<Progress>): Progress {
  return {
    mirror: 'm',
    runId: '1',
    phase: 'additions',
    counts: COUNTS,
    waiting: null,
    control: 'none',
    paused: false,
    parked: null,
    ...part,
  };
}

test('a bar is shown only where the size of the phase is known', () => {
  expect(fractionOf(progress({ phase: 'extract', counts: { ...COUNTS, sourceRows: 5 } }))).toBeNull();
  expect(fractionOf(progress({}))).toBeNull();
  expect(fractionOf(progress({ counts: { ...COUNTS, toAdd: 8, added: 2 } }))).toBe(0.25);
  expect(fractionOf(progress({ phase: 'removals', counts: { ...COUNTS, toRemove: 4, removed: 4 } }))).toBe(1);
});

test('rejected members count as dealt with in the bar, and never as sent in the words', () => {
  const seen = progress({ counts: { ...COUNTS, toAdd: 4, added: 2, rejected: 2 } });
  expect(fractionOf(seen)).toBe(1);
  expect(phaseWords(seen)).toContain('2 of 4');
});

test('the redrawn line never wraps, whatever the terminal and the phase', () => {
  const phase = fc.constantFrom(...PHASES, 'admit' as const, 'closed' as const);
  fc.assert(
    fc.property(phase, fc.integer({ min: 11, max: 300 }), fc.nat(1_000_000_000), (at, columns, n) => {
      const line = barLine(
        progress({ phase: at, counts: { ...COUNTS, toAdd: n, added: n, sourceRows: n } }),
        columns,
        0,
      );
      expect(line.length).toBeLessThan(columns);
      expect(line.length).toBeGreaterThan(0);
    }),
  );
});

test('a wait says why, until when, and what to do', () => {
  const waiting = { code: 'http-429', untilMs: 65_000, batch: null } as const;
  expect(waitingWords({ kind: 'retry', ...waiting }, 5_000)).toBe(
    'waiting to try again: http-429, next look in 60s',
  );
  expect(waitingWords({ kind: 'blocked', code: 'http-401', untilMs: null, batch: null }, 0)).toMatch(
    /blocked: http-401; mend it, then `retl resume`/,
  );
  expect(waitingWords({ kind: 'blocked', code: 'reset', untilMs: null, batch: 'b1' }, 0)).toMatch(
    /blocked: reset \(batch b1\).*retl resolve/,
  );
});

test.each([
  [0, '0s'],
  [89_000, '89s'],
  [600_000, '10m'],
  [7_200_000, '2h'],
  [7_500_000, '2h 5m'],
  [172_800_000, '2d'],
  [183_600_000, '2d 3h'],
])('a span of %i ms reads %s', (ms, text) => {
  expect(span(ms)).toBe(text);
});

test('counts-last-attempt: an open run that nobody holds is never shown as running', () => {
  const run: RunSummary = {
    runId: '1',
    mirror: 'm',
    state: 'open',
    phase: 'additions',
    reason: null,
    holder: 'default/mirror/m',
    released: null,
    openedAt: new Date(0),
    closedAt: null,
    parked: null,
    changedTarget: false,
    counts: COUNTS,
    unresolvedBatches: 0,
    unknownBatches: 0,
    doing: { state: 'running', code: null, batch: null, since: null },
  };
  const waiting = {
    ...run,
    doing: { state: 'waiting', code: 'http-503', batch: null, since: null },
  } as const;
  expect(stateOf(run)).toBe('running (additions)');
  expect([stateOf(waiting), reasonOf(waiting)]).toEqual(['waiting (additions)', 'http-503']);
  expect(stateOf({ ...run, released: 'cancelled' })).toBe('cancelled, resumable');
  expect(stateOf({ ...run, state: 'guard-rejected' })).toBe('guard-rejected');
  expect(reasonOf({ ...run, unresolvedBatches: 2 })).toBe('2 batches under way');
  const unknown = { ...run, reason: 'failed', unresolvedBatches: 3, unknownBatches: 2 };
  expect(reasonOf(unknown)).toBe('failed, 2 outcomes unknown, 1 batch under way');
  expect(reasonOf({ ...waiting, released: 'failed', reason: 'worker.lost' })).toBe('worker.lost');
  // Rule 5: completed in spite of rejections is not as green as completed.
  const tolerant = { ...run, state: 'completed', counts: { ...COUNTS, rejected: 2 } };
  expect(reasonOf(tolerant)).toBe('2 rejections tolerated');
  expect([stateStyle(tolerant), stateStyle({ ...tolerant, counts: COUNTS })]).toEqual(['yellow', 'green']);
});

test('a held, rejected or blocked run never exits with 0', () => {
  for (const type of ['refused', 'guard-held', 'rejected', 'invalid', 'blocked', 'unavailable'] as const)
    expect(exitOfFailure(type)).not.toBe(EXIT.ok);
});

test('tables line up', () => {
  expect(
    tableLines([
      ['A', 'LONG'],
      ['abc', 'x'],
      ['d', ''],
    ]),
  ).toEqual(['A    LONG', 'abc  x', 'd']);
});
