/** What the journal refuses a baseline for, as the error that a person reads. */

import { RetlError } from '../domain/errors.ts';
import type { ImportRefusal } from '../journal/baseline.ts';

const REFUSED: { readonly [C in ImportRefusal]: RetlError['code'] } = {
  'strategy-changed': 'run.strategy-changed',
  'target-owned': 'run.target-owned',
  'identity-moved': 'run.identity-moved',
  'open-run': 'run.baseline-open-run',
  'baseline-known': 'run.baseline-known',
};

/** @param other the mirror that owns the target, or the strategy that the mirror keeps; `null`: it is neither of these. */
export function baselineRefused(mirror: string, code: ImportRefusal, other: string | null): RetlError {
  const named = code === 'target-owned' ? 'owner' : 'its strategy';
  return new RetlError(REFUSED[code], { mirror, ...(other === null ? {} : { [named]: other }) });
}
