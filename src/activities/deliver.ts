/** Delivers a window of additions or removals, and moves the run on once all of them are accepted (rule 1). */

import { largestPayloadAllowed } from '../domain/request.ts';
import { openBatches, refusals } from '../journal/batch-record.ts';
import { beginFinish, type GuardAnswer } from '../journal/runs.ts';
import { type OpenWriter, type RunAttempt, withAttempt, withWriter } from './attempt.ts';
import { planRemovals } from './begin-removals.ts';
import { bindDestination } from './binding.ts';
import { DIVIDED } from './delivery/policy.ts';
import { Rejections } from './delivery/rejections.ts';
import { mustSend } from './delivery/remaining.ts';
import { DeliveryWindow } from './delivery/window.ts';
import type { Dependencies } from './deps.ts';
import { guarded } from './guarded.ts';
import { attachWriter } from './init.ts';
import type { DeliverArgs, StepResult } from './results.ts';

const ASYNCHRONOUS_WINDOW_MS = 600_000;

/** @throws RetlError, JournalError */
export async function deliver(deps: Dependencies, args: DeliverArgs): Promise<StepResult> {
  return withAttempt(deps, args, args.action === 'upsert' ? 'additions' : 'removals', async (a) => {
    const phase = args.action === 'upsert' ? 'additions' : 'removals';
    // The phase is over already: an earlier attempt's answer was lost.
    if (a.record.phase !== phase) return { kind: 'done', counts: await a.counts() };
    const { stops } = await refusals(deps.journal, a.attempt, DIVIDED);
    const told = { ...args, resolveOnly: args.resolveOnly || stops };
    const result = await withWriter(a, (w) => deliverAll(a, w, told));
    if (result.kind !== 'done') return result;
    // Rule 5: where the run goes on after rejections, everything else is delivered by now. Beyond what it tolerates it holds.
    const refused = await refusals(deps.journal, a.attempt, DIVIDED);
    if (!refused.tolerated)
      return { kind: 'rejected', code: refused.code ?? 'rejected', counts: await a.counts() };
    const held = args.resolveOnly ? null : await moveOn(a, args.action);
    const counts = await a.counts();
    return held === null ? { kind: 'done', counts } : guarded(held, counts);
  });
}

/**
 * Jobs are asked about first, and need no session. It is rejoined by an attempt that has something to send, and not by one
 * that only waits.
 */
async function deliverAll(a: RunAttempt, w: OpenWriter, args: DeliverArgs): Promise<StepResult> {
  const open = await openBatches(a.deps.journal, a.attempt);
  if (open.every((batch) => batch.state === 'staged')) {
    const asked = await deliverWindow(a, w, { ...args, resolveOnly: true });
    if (asked.kind !== 'done' || args.resolveOnly) return asked;
    // Who is told to stop begins no other phase either.
    if (!(await mustSend(a, args.action)))
      return a.stop.aborted ? { kind: 'stopped', counts: asked.counts } : asked;
  }
  return (await attachWriter(a, w)) ?? deliverWindow(a, w, args);
}

async function deliverWindow(a: RunAttempt, w: OpenWriter, args: DeliverArgs): Promise<StepResult> {
  // The next attempt may only ask about what this one stages: it goes on for as long as it can (rule 5).
  const asynchronous = w.destination.capabilities.batchDelivery === 'asynchronous';
  const windowMs = asynchronous ? Math.max(ASYNCHRONOUS_WINDOW_MS, args.windowMs) : args.windowMs;
  const pollNow = args.pollNow ?? false;
  const { resolveOnly } = args;
  const limits = { until: performance.now() + windowMs, resolveOnly, pollNow };
  const { divided } = await refusals(a.deps.journal, a.attempt, DIVIDED);
  const rejections = new Rejections(a.settings.onRejection, divided);
  const end = await new DeliveryWindow(a, w, args.action, limits, rejections).run();
  return { ...end, counts: await a.counts() };
}

/** The guard looks again: `null` where the next phase has begun. */
async function moveOn(a: RunAttempt, action: 'upsert' | 'remove'): Promise<GuardAnswer | null> {
  if (action === 'remove') return beginFinish(a.deps.journal, a.attempt);
  const { adapter, options, limits } = bindDestination(a.deps, a.settings);
  return planRemovals(a, largestPayloadAllowed(adapter.frame('remove', options), limits.bytes));
}
