/** What the guard says, as the workflow hears it. */

import type { RunCounts } from '../domain/run.ts';
import type { GuardAnswer } from '../journal/runs.ts';
import type { Held, Unapproved } from './results.ts';

export function guarded(answer: GuardAnswer, counts: RunCounts): Held | Unapproved {
  if (answer.kind === 'held') return { ...answer, counts };
  return { kind: `guard-${answer.kind}`, code: answer.code, counts };
}
