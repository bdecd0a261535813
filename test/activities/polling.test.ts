/** Rule 5: when staged work is asked about again, and when the run asks for help instead. */

import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { nameJobs } from '../../src/activities/delivery/checked.ts';
import { isDue, pollAfterMs, type Staged, stillStaged } from '../../src/activities/delivery/polling.ts';
import type { BatchId } from '../../src/domain/ids.ts';
import { sha256FromHex } from '../../src/domain/ids.ts';

const DAY = 86_400_000;
const id = sha256FromHex('1'.repeat(64)) as unknown as BatchId;

function staged(more: Partial<Staged> = {}): Staged {
  return { id, pollInMs: 0, stagedForMs: 0, polls: 0, reason: null, ...more };
}

describe('the cadence of polls', () => {
  test('begins at a second, doubles, and ends at five minutes', () => {
    const waits = [0, 1, 2, 8, 9, 50, 100_000].map((polls) => pollAfterMs(polls, null, DAY));
    expect(waits).toEqual([1_000, 2_000, 4_000, 256_000, 300_000, 300_000, 300_000]);
  });

  test('the provider’s own pause is kept, backed off from, and never shortened', () => {
    expect([0, 1, 2, 9].map((polls) => pollAfterMs(polls, 60_000, DAY))).toEqual([
      60_000, 120_000, 240_000, 300_000,
    ]);
    expect(pollAfterMs(9, 3_600_000, DAY)).toBe(3_600_000);
  });

  test('the deadline is noticed in time, and past it the question goes on in its own time', () => {
    expect(pollAfterMs(9, null, 5_000)).toBe(5_000);
    expect(pollAfterMs(9, null, 0)).toBe(300_000);
    expect(pollAfterMs(9, null, -1)).toBe(300_000);
  });

  test('whatever is asked for, it is a wait that the journal can keep', () => {
    const odd = fc.oneof(fc.double(), fc.constantFrom(undefined, null, Number.NaN, -1, Infinity));
    fc.assert(
      fc.property(fc.nat(), odd, fc.integer({ min: -DAY, max: DAY }), (polls, asked, left) => {
        const ms = pollAfterMs(polls, asked, left);
        expect(ms).toBeGreaterThan(0);
        expect(ms).toBeLessThanOrEqual(DAY);
      }),
    );
  });
});

describe('a staged batch', () => {
  test('is asked about when its time has come, when somebody asks, and past its deadline whenever somebody looks', () => {
    expect(isDue(staged({ pollInMs: 1 }), false, DAY)).toBe(false);
    expect(isDue(staged(), false, DAY)).toBe(true);
    expect(isDue(staged({ pollInMs: 1 }), true, DAY)).toBe(true);
    expect(isDue(staged({ pollInMs: 1, stagedForMs: DAY }), false, DAY)).toBe(true);
  });

  test('rule 5: past its deadline it blocks the run, and is neither failed nor sent again', () => {
    expect(stillStaged(staged({ stagedForMs: DAY - 1 }), DAY, 'staged', 5)).toEqual({
      kind: 'pending',
      code: 'staged',
      ms: 5,
      batch: id,
      ageMs: DAY - 1,
    });
    expect(stillStaged(staged({ stagedForMs: DAY }), DAY, 'staged', 5)).toEqual({
      kind: 'blocked',
      code: 'poll-deadline',
      batch: id,
    });
  });
});

test('staged-as-done: job ids that cannot be asked for name nothing', () => {
  expect(nameJobs(['a', 'b'])).toBe(true);
  for (const ids of [[], [''], ['a', ''], ['a\0'], ['\ud800'], ['x'.repeat(2_000)]]) {
    expect(nameJobs(ids), JSON.stringify(ids)).toBe(false);
  }
});
