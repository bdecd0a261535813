/** Seals the candidate, then lets the guard look at the plan; nothing has been sent until both have passed (rule 1). */

import { ERROR_CODES, type ErrorCode } from '../domain/errors.ts';
import { largestPayloadAllowed } from '../domain/request.ts';
import { approvedByInput } from '../journal/approvals.ts';
import { transaction } from '../journal/pool.ts';
import { type Overlap, removalsOfWanted } from '../journal/removal-overlap.ts';
import { fold, guard, plan, seal } from '../journal/runs.ts';
import { goOn, type RunAttempt, withAttempt } from './attempt.ts';
import { bindDestination } from './binding.ts';
import type { Dependencies } from './deps.ts';
import { guarded } from './guarded.ts';
import { FOLD_BATCHES } from './promote.ts';
import type { GuardArgs, GuardResult, RunRef, SealResult } from './results.ts';

/** @throws RetlError, JournalError */
export async function sealRun(deps: Dependencies, ref: RunRef): Promise<SealResult> {
  return withAttempt(deps, ref, 'seal', async (a) => {
    if (a.record.phase !== 'seal') return { kind: 'sealed', counts: await a.counts() };
    const { adapter, options, limits } = bindDestination(deps, a.settings);
    const largest = (action: 'upsert' | 'remove') =>
      largestPayloadAllowed(adapter.frame(action, options), limits.bytes);
    const result = await seal(deps.journal, a.attempt, largest('upsert'), largest('remove'));
    const counts = await a.counts();
    if (result.kind === 'sealed') return { kind: 'sealed', counts };
    return {
      kind: 'invalid',
      code: result.code,
      message: inWords(result.code, result.count, result.keys),
      counts,
    };
  });
}

/** Codes of which the hashes are those of identities. */
const OF_MEMBERS: ReadonlySet<string> = new Set([
  'data.conflicting-payloads',
  'data.shared-removal',
  'data.removal-of-wanted',
]);

function inWords(code: string, count: number, keys: readonly string[]): string {
  const info = ERROR_CODES[code as ErrorCode];
  const what = OF_MEMBERS.has(code) ? 'identity hashes' : 'key hashes';
  const named = keys.length === 0 ? '' : `; ${what}: ${keys.map((k) => `sha256:${k}`).join(', ')}`;
  return `${code}: ${info.meaning} ${info.remedy} (count=${count}${named})`;
}

/** Plans the additions, counts the removals, and compares them with the safety limits. @throws JournalError */
export async function guardRun(deps: Dependencies, args: GuardArgs): Promise<GuardResult> {
  return withAttempt(deps, args, 'guard', async (a) => {
    // The phase is over already: an earlier attempt's answer was lost.
    if (a.record.phase !== 'guard') return passed(a);
    // What closed runs of this target had accepted takes part in the diff (rule 6).
    while ((await fold(deps.journal, a.attempt, FOLD_BATCHES)) > 0) goOn(a);
    await plan(deps.journal, a.attempt);
    const counts = await a.counts();
    const wrong = await wrongRemovals(deps, a, counts.toRemove);
    if (wrong.count > 0) {
      const code = 'data.removal-of-wanted';
      return {
        kind: 'invalid',
        code,
        message: inWords(code, wrong.count, wrong.keys),
        counts,
      };
    }
    const result = await guard(deps.journal, a.attempt, args);
    switch (result.kind) {
      case 'passed':
        return passed(a);
      case 'stale':
        return { kind: 'plan-stale', counts };
      case 'oversized': {
        const code = 'data.operation-too-large';
        return { kind: 'invalid', code, message: inWords(code, result.count, []), counts };
      }
      default:
        return guarded(result, counts);
    }
  });
}

async function wrongRemovals(deps: Dependencies, a: RunAttempt, toRemove: number): Promise<Overlap> {
  const { target, generation, identityFoldings, strategy } = a.record;
  if (generation === null || toRemove === 0 || strategy === 'native-replace') return { count: 0, keys: [] };
  return transaction(deps.journal, (client) =>
    removalsOfWanted(client, target, generation, identityFoldings),
  );
}

async function passed(a: RunAttempt): Promise<GuardResult> {
  const approved = await approvedByInput(a.deps.journal, a.attempt.run);
  return { kind: 'passed', approved, counts: await a.counts() };
}
