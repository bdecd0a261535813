/** Schemas of quantities that people write as text. */

import { z } from 'zod';
import { DURATION_PATTERN, parseDuration } from './quantities.ts';

/** A text of the given form whose meaning is within bounds; a wrong form is told once, not twice. */
export function quantity(
  pattern: RegExp,
  parsed: (text: string) => number | null,
  [least, most]: readonly [number, number],
  error: string,
) {
  const isWithin = (text: string) => {
    const value = parsed(text);
    return !pattern.test(text) || (value !== null && value >= least && value <= most);
  };
  return z.string().regex(pattern).refine(isWithin, { error });
}

export const LONGEST_DURATION_MS = 366 * 86_400_000;

/** A duration from `leastMs` to 366 days. */
export function durationFrom(leastMs: number, leastText: string) {
  const bounds = [leastMs, LONGEST_DURATION_MS] as const;
  const error = `The duration must be between ${leastText} and 366d.`;
  return quantity(DURATION_PATTERN, parseDuration, bounds, error);
}
