/** What a first native replacement would replace (design.md section 4, "Guard"). */

import type { Replaced } from '../domain/plan.ts';
import type { MirrorSettings } from '../domain/settings.ts';
import type { Standing } from '../journal/standing.ts';

/** As the first run records it (activities/init.ts), and retl.plan takes it. `isVouched`: by words that are of this target. */
export function replacedBy(
  strategy: MirrorSettings['strategy'],
  target: Standing['target'],
  isVouched: boolean,
): Replaced {
  if (strategy !== 'native-replace' || target?.promoted === true || isVouched) return 'known';
  switch (target?.proof ?? null) {
    case 'unknown':
      return 'unknown';
    case null:
      return 'unlooked';
    default:
      return 'known';
  }
}
