/**
 * Opens the provider's session: baseline known first, then `init` as a journaled step. `attachWriter` rejoins it in later
 * attempts and never opens a second one.
 */

import type { EmptyCheck, StepOutcome } from '../destinations/port.ts';
import { RetlError } from '../domain/errors.ts';
import { stepBatch } from '../journal/batch-record.ts';
import { recordBaseline } from '../journal/runs.ts';
import { type OpenWriter, type RunAttempt, withAttempt, withWriter } from './attempt.ts';
import { backoffMs } from './delivery/policy.ts';
import type { Dependencies } from './deps.ts';
import type { RunRef, StepResult } from './results.ts';
import { runStep } from './step.ts';

/** @throws RetlError `destination.unavailable`, `destination.not-empty`, `destination.baseline-unknown`, `destination.misconfigured`, … */
export async function initRun(deps: Dependencies, ref: RunRef): Promise<StepResult> {
  return withAttempt(deps, ref, 'init', async (a) => {
    if (a.record.phase !== 'init') return { kind: 'done', counts: await a.counts() };
    return withWriter(a, async (w) => {
      await requireReady(w);
      if (a.record.baseline === null) await proveBaseline(a, w);
      return runStep(a, w, {
        action: 'init',
        request: () => null,
        send: () => w.writer.init(),
        reconcile: () => w.writer.reconcileInit(),
      });
    });
  });
}

/** Missing rights surface here, before anything is read or written. */
async function requireReady(w: OpenWriter): Promise<void> {
  const problems = await w.writer.preflight();
  if (problems.length === 0) return;
  if (problems.every((p) => p.transient === true)) {
    throw new RetlError('destination.unavailable', { problems: problems.map((p) => p.code) });
  }
  throw new RetlError('destination.misconfigured', {
    problems: problems.map((p) => `${p.code}: ${p.message} ${p.remedy}`),
  });
}

/** Rule for `new-empty`: the adapter looks where it can, else an operator vouches. */
async function proveBaseline(a: RunAttempt, w: OpenWriter): Promise<void> {
  const { kind, attested } = a.settings.baseline;
  const check: EmptyCheck = await w.writer.checkEmpty();
  switch (check.kind) {
    case 'empty':
      return recordBaseline(a.deps.journal, a.attempt, kind, 'verified', null);
    case 'not-empty':
      throw new RetlError('destination.not-empty', { mirror: a.record.mirror });
    case 'failed':
      throw new RetlError('destination.unavailable', { check: check.code });
    case 'cannot-look':
      if (attested === null) throw new RetlError('destination.baseline-unknown', { mirror: a.record.mirror });
      return recordBaseline(a.deps.journal, a.attempt, kind, 'attested', attested);
  }
}

/** Rejoins the session that `init` opened; resolves to `null` when the writer is ready. */
export async function attachWriter(a: RunAttempt, w: OpenWriter): Promise<StepResult | null> {
  const init = await stepBatch(a.deps.journal, a.attempt, 'init');
  if (init === null || init.state !== 'settled') throw new Error('the session of this run was never opened');
  const outcome = await attached(() => w.writer.attach(JSON.parse(init.receipt ?? '{}')));
  switch (outcome.kind) {
    case 'accepted':
      return null;
    case 'misconfigured':
      return { kind: 'misconfigured', code: outcome.code, counts: await a.counts() };
    case 'refused':
      return { kind: 'misconfigured', code: outcome.code, counts: await a.counts() };
    case 'not-applied': {
      const ms = Math.max(outcome.retryAfterMs ?? 0, backoffMs(3));
      return { kind: 'wait', code: outcome.code, ms, batch: null, counts: await a.counts() };
    }
    default:
      // Rejoining changes nothing at the destination, so that an answer that was lost is simply asked for again.
      return {
        kind: 'wait',
        code: 'attach-unknown',
        ms: backoffMs(3),
        batch: null,
        counts: await a.counts(),
      };
  }
}

async function attached(call: () => Promise<StepOutcome>): Promise<StepOutcome> {
  try {
    return await call();
  } catch {
    return { kind: 'unknown', code: 'adapter-threw' };
  }
}
