/** Rule 3: how long a request may be on its way, and that one which was held back for too long stays here. */

import { describe, expect, test } from 'vitest';
import { SEND_MARGIN_MS, sendDeadlineMs } from '../../src/activities/delivery/policy.ts';
import { Clearance } from '../../src/activities/delivery/sending.ts';

describe('the send deadline', () => {
  test.each([
    [1_000, 300_000],
    [240_000, 300_000],
    [240_001, 300_001],
    [3_600_000, 3_660_000],
    [86_400_000, 86_400_000],
  ])('a request that takes %i ms at most may arrive for %i ms', (longestRequestMs, deadline) => {
    expect(sendDeadlineMs({ longestRequestMs })).toBe(deadline);
  });
});

describe('a request that is cleared to leave', () => {
  function clearedAt(monotonic: number, wall: number) {
    const now = { monotonic, wall };
    return { now, clearance: new Clearance(() => [now.monotonic, now.wall]) };
  }

  test('may leave within a minute', () => {
    const { now, clearance } = clearedAt(5, 1_000);
    expect(clearance.tooLate).toBe(false);
    now.monotonic += SEND_MARGIN_MS;
    now.wall += SEND_MARGIN_MS;
    expect(clearance.tooLate).toBe(false);
  });

  test('may not after a freeze, which both clocks see, or a sleep, which only the wall clock sees', () => {
    const frozen = clearedAt(5, 1_000);
    frozen.now.monotonic += SEND_MARGIN_MS + 1;
    expect(frozen.clearance.tooLate).toBe(true);
    const asleep = clearedAt(5, 1_000);
    asleep.now.wall += SEND_MARGIN_MS + 1;
    expect(asleep.clearance.tooLate).toBe(true);
  });

  test('a wall clock that is set back hides no freeze', () => {
    const { now, clearance } = clearedAt(5, 90_000_000);
    now.wall -= 3_600_000;
    now.monotonic += SEND_MARGIN_MS + 1;
    expect(clearance.tooLate).toBe(true);
  });
});
