/**
 * Records an answer that came as an update of the workflow. Who sends one is Temporal's to know, and what they think of it is
 * not said here: names and reasons go to the journal through `retl approve` and `retl reject`.
 */

import { assertNever } from '../domain/assert-never.ts';
import { runId, sha256 } from '../domain/ids.ts';
import { decide } from '../journal/approvals.ts';
import type { Dependencies } from './deps.ts';
import type { DecideArgs, DecideResult } from './results.ts';

/** @throws JournalError; RangeError where `shown` is no digest. */
export async function decideRun(deps: Dependencies, args: DecideArgs): Promise<DecideResult> {
  const decided = await decide(deps.journal, {
    run: runId(args.run),
    shown: sha256(args.shown),
    verdict: args.verdict,
    by: 'temporal',
    because: null,
    via: 'update',
  });
  switch (decided.kind) {
    case 'recorded':
    case 'repeated':
      return { kind: 'decided' };
    case 'no-such-run':
      return { kind: 'refused', why: 'not-parked' };
    case 'not-parked':
    case 'stale':
    case 'expired':
    case 'answered':
    case 'closed':
      return { kind: 'refused', why: decided.kind };
    default:
      return assertNever(decided);
  }
}
