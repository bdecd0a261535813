/** Seals the candidate, then lets the guard look at the plan; nothing has been sent until both have passed (rule 1). */

import { ERROR_CODES, type ErrorCode } from '../domain/errors.ts';
import { largestPayloadAllowed } from '../domain/request.ts';
import { fold, guard, plan, seal } from '../journal/runs.ts';
import { goOn, withAttempt } from './attempt.ts';
import { bindDestination } from './binding.ts';
import type { Dependencies } from './deps.ts';
import { FOLD_BATCHES } from './promote.ts';
import type { GuardResult, RunRef, SealResult } from './results.ts';

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

function inWords(code: string, count: number, keys: readonly string[]): string {
  const info = ERROR_CODES[code as ErrorCode];
  const what = code === 'data.conflicting-payloads' ? 'identity hashes' : 'key hashes';
  const named = keys.length === 0 ? '' : `; ${what}: ${keys.map((k) => `sha256:${k}`).join(', ')}`;
  return `${code}: ${info.meaning} ${info.remedy} (count=${count}${named})`;
}

/** Plans the additions, counts the removals, and compares them with the safety limits. @throws JournalError */
export async function guardRun(deps: Dependencies, ref: RunRef): Promise<GuardResult> {
  return withAttempt(deps, ref, 'guard', async (a) => {
    if (a.record.phase !== 'guard') return { kind: 'passed', counts: await a.counts() };
    // What closed runs of this target had accepted takes part in the diff (rule 6).
    while ((await fold(deps.journal, a.attempt, FOLD_BATCHES)) > 0) goOn(a);
    await plan(deps.journal, a.attempt);
    const result = await guard(deps.journal, a.attempt);
    const counts = await a.counts();
    if (result.kind === 'passed') return { kind: 'passed', counts };
    if (result.kind === 'oversized') {
      const code = 'data.operation-too-large';
      return { kind: 'invalid', code, message: inWords(code, result.count, []), counts };
    }
    const { held } = await a.reload();
    return { kind: 'held', code: result.code, held, counts };
  });
}
