/**
 * Opens the provider's session: baseline known first, then `init` as a journaled step. `attachWriter` rejoins it in later
 * attempts and never opens a second one.
 */

import type { EmptyCheck } from '../destinations/port.ts';
import { RetlError } from '../domain/errors.ts';
import { stepBatch } from '../journal/batch-record.ts';
import { recordBaseline } from '../journal/runs.ts';
import { answered } from './answered.ts';
import { type OpenWriter, type RunAttempt, withAttempt, withWriter } from './attempt.ts';
import { BACKOFF_FIRST_MS, BACKOFF_MAX_MS, backoffMs } from './delivery/policy.ts';
import type { Dependencies } from './deps.ts';
import type { StepArgs, StepResult } from './results.ts';
import { runStep } from './step.ts';

/** @throws RetlError `destination.not-empty`, `destination.baseline-unknown`, `destination.misconfigured`, … */
export async function initRun(deps: Dependencies, ref: StepArgs): Promise<StepResult> {
  return withAttempt(deps, ref, 'init', async (a) => {
    if (a.record.phase !== 'init') return { kind: 'done', counts: await a.counts() };
    return withWriter(a, async (w) => {
      const underWay = ref.resolveOnly || (await isUnderWay(a));
      const wait = underWay ? null : ((await notReady(a, w)) ?? (await baselineNotProven(a, w)));
      if (wait !== null) return wait;
      return runStep(a, w, {
        action: 'init',
        resolveOnly: ref.resolveOnly ?? false,
        pollNow: ref.pollNow ?? false,
        request: () => null,
        send: () => w.writer.init(),
        reconcile: (_, batch) =>
          w.writer.reconcileInit(batch.receipt === null ? null : JSON.parse(batch.receipt)),
      });
    });
  });
}

/** Whether a session may be open already: then all there is to do is to find out. */
async function isUnderWay(a: RunAttempt): Promise<boolean> {
  const init = await stepBatch(a.deps.journal, a.attempt, 'init');
  return init?.state === 'staged';
}

/** Missing rights surface here, before anything is read or written; `null`: it is ready. */
async function notReady(a: RunAttempt, w: OpenWriter): Promise<StepResult | null> {
  const problems = await w.writer.preflight();
  const [first] = problems;
  if (first === undefined) return null;
  if (problems.every((p) => p.transient === true)) return away(a, first.code);
  throw new RetlError('destination.misconfigured', {
    problems: problems.map((p) => `${p.code}: ${p.message} ${p.remedy}`),
  });
}

/**
 * Rule for `new-empty`: the adapter looks where it can, else an operator vouches; `null`: it is on record. A native
 * replacement needs only the right to replace, which the preflight has verified; but what a target holds that nobody has
 * vouched for the guard asks about first.
 */
async function baselineNotProven(a: RunAttempt, w: OpenWriter): Promise<StepResult | null> {
  const { kind, attested } = a.settings.baseline;
  if (a.record.baseline !== null) {
    // Somebody vouches later for what the first run has found.
    if (kind === 'replace' && attested !== null) await replaced(a, attested);
    return null;
  }
  // What it holds was imported before the run was admitted; looking whether it is empty proves nothing here.
  if (kind === 'tracked') throw new RetlError('run.baseline-missing', { mirror: a.record.mirror });
  const check: EmptyCheck = await w.writer.checkEmpty();
  switch (check.kind) {
    case 'empty':
      await recordBaseline(a.deps.journal, a.attempt, kind, 'verified', null);
      return null;
    case 'not-empty':
      if (kind === 'replace') return replaced(a, attested);
      throw new RetlError('destination.not-empty', { mirror: a.record.mirror });
    case 'misconfigured':
      throw new RetlError('destination.misconfigured', { check: check.code });
    case 'failed':
      return away(a, check.code);
    case 'cannot-look':
      if (kind === 'replace') return replaced(a, attested);
      return vouched(a, attested);
  }
}

/** Nobody can look: the word of the mirror's file stands for it, and for one target alone. */
async function vouched(a: RunAttempt, attested: string | null): Promise<null> {
  const { mirror } = a.record;
  if (attested === null) throw new RetlError('destination.baseline-unknown', { mirror });
  if (await recordBaseline(a.deps.journal, a.attempt, 'new-empty', 'attested', attested)) return null;
  throw new RetlError('destination.baseline-unknown', { mirror, rule: 'vouched-for-another-target' });
}

/**
 * Something is there, or may be, that the journal has never seen accepted. Words that have let another target be replaced say
 * nothing about this one: the guard asks.
 */
async function replaced(a: RunAttempt, attested: string | null): Promise<null> {
  const { journal } = a.deps;
  const isVouched =
    attested !== null && (await recordBaseline(journal, a.attempt, 'replace', 'attested', attested));
  if (!isVouched) await recordBaseline(journal, a.attempt, 'replace', 'unknown', null);
  return null;
}

/** Nothing has been sent yet: the run waits, visibly, each time for about as long as it has waited already. */
async function away(a: RunAttempt, code: string): Promise<StepResult> {
  const ms = Math.min(BACKOFF_MAX_MS, Math.max(BACKOFF_FIRST_MS, a.record.ageMs));
  return { kind: 'wait', code, ms, batch: null, counts: await a.counts() };
}

/** Rejoins the session that `init` opened; resolves to `null` when the writer is ready. */
export async function attachWriter(a: RunAttempt, w: OpenWriter): Promise<StepResult | null> {
  const init = await stepBatch(a.deps.journal, a.attempt, 'init');
  if (init === null || init.state !== 'settled') throw new Error('the session of this run was never opened');
  const outcome = await answered(() => w.writer.attach(JSON.parse(init.receipt ?? '{}')));
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
