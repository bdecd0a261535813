/**
 * The workflow `mirror`: one logical run at a time, phase by phase (design.md section 4). It carries names, ids, counts and
 * phases; what a phase does is in its activity, and what a phase may do is in the journal.
 */

import {
  ActivityFailure,
  CancellationScope,
  CancelledFailure,
  continueAsNew,
  workflowInfo,
} from '@temporalio/workflow';
import type { AdmitResult, RunRef } from '../activities/results.ts';
import type { MirrorInput, MirrorResult } from '../domain/messages.ts';
import { PHASES, type Phase } from '../domain/run.ts';
import { Control } from './control.ts';
import { causeOf, defect, Ending, fail } from './endings.ts';
import { decodeInput } from './input.ts';
import { admit, deliver, extract, finish, guard, init, promote, seal } from './proxies.ts';
import { Run } from './run.ts';
import { View } from './view.ts';

/** @throws ApplicationFailure with a type of domain/messages.ts; CancelledFailure where Temporal was asked to cancel. */
export async function mirror(input: MirrorInput): Promise<MirrorResult> {
  try {
    return await execution(decodeInput(input));
  } catch (error) {
    throw defect(error);
  }
}

async function execution(input: MirrorInput): Promise<MirrorResult> {
  const control = new Control(input.carried);
  const view = new View(input.mirror, control);
  // Cancellation is a request to stop in good order, not an exception in the middle of a receipt.
  const result = await CancellationScope.nonCancellable(() => runs(input, control, view));
  if (control.cancelledByTemporal && result.outcome !== 'completed') throw new CancelledFailure('cancelled');
  return result;
}

/** Runs until one is fresh: an execution that resumed an earlier run goes on with a new one. */
async function runs(input: MirrorInput, control: Control, view: View): Promise<MirrorResult> {
  const { firstExecutionRunId } = workflowInfo();
  let resumed = input.carried?.resumed ?? false;
  let last: MirrorResult | null = null;
  for (;;) {
    const admission = await admitted(input.mirror, firstExecutionRunId, control, view);
    if (admission === null) return last ?? neverAdmitted(view);
    const ref: RunRef = { run: admission.run, firstRunId: firstExecutionRunId };
    resumed ||= admission.resume === 'sealed';
    const run = new Run(ref, control, view, () => carryOn(input.mirror, admission.run, resumed, control));
    if (admission.resume === 'discard' || admission.resume === 'expired') {
      const stopped = await run.discard(admission);
      if (stopped !== null) return stopped;
      continue;
    }
    last = await run.guarded(() => phases(run, admission.phase));
    if (last.outcome !== 'completed' || !resumed || control.request !== 'none') return last;
    resumed = false;
  }
}

/** The phase table. A run that is taken up again enters at the phase it had reached. */
async function phases(run: Run, from: Phase): Promise<void> {
  const { ref } = run;
  const due = (phase: Phase) => PHASES.indexOf(from) <= PHASES.indexOf(phase);

  if (due('init')) await run.step('init', () => init(ref));
  if (due('extract')) await run.step('extract', () => extract(ref));
  if (due('seal')) await run.once('seal', () => seal(ref), sealed);
  if (due('guard')) await run.once('guard', () => guard(ref), passed);
  if (due('additions')) await run.step('additions', (windowMs) => delivery(ref, 'upsert', windowMs));
  if (due('removals')) await run.step('removals', (windowMs) => delivery(ref, 'remove', windowMs));
  if (due('finish')) await run.step('finish', () => finish(ref));
  await run.promoted(() => promote(ref));
}

function delivery(ref: RunRef, action: 'upsert' | 'remove', windowMs: number) {
  return deliver({ ...ref, action, windowMs, resolveOnly: false });
}

function sealed(result: Awaited<ReturnType<typeof seal>>): void {
  if (result.kind === 'invalid') throw new Ending('invalid', result.code, result.message);
}

function passed(result: Awaited<ReturnType<typeof guard>>): void {
  if (result.kind === 'passed') return;
  if (result.kind === 'invalid') throw new Ending('invalid', result.code, result.message);
  const { counts, held, code } = result;
  throw new Ending(
    'guard-held',
    code,
    `run.guard-held (${code}): the run would remove ${counts.toRemove} of ${held} members. Nothing was sent, nobody was ` +
      'removed. Check the query; where the removal is meant, raise `safety` for one run.',
  );
}

/** Resolves to `null` where somebody cancelled before the journal had answered. */
async function admitted(
  mirror: string,
  firstRunId: string,
  control: Control,
  view: View,
): Promise<Extract<AdmitResult, { kind: 'admitted' }> | null> {
  let result: AdmitResult | null;
  try {
    result = await control.unlessCancelled(() => admit({ mirror, firstRunId }));
  } catch (error) {
    if (!(error instanceof ActivityFailure)) throw error;
    const cause = causeOf(error);
    throw fail(cause.type === 'unavailable' ? 'unavailable' : 'invalid', cause.code, cause.message);
  }
  if (result?.kind === 'refused') throw fail('refused', result.code, `${result.code}: ${result.message}`);
  if (result !== null) view.admitted(result.run, result.counts, result.searchAttributes);
  return result;
}

function neverAdmitted(view: View): MirrorResult {
  view.ended('cancelled');
  return { outcome: 'cancelled', runId: null, counts: view.counts, abortTooLate: false };
}

/** Continues as new when Temporal suggests it, losing no message: all of them are in what is carried. */
async function carryOn(name: string, runId: string, resumed: boolean, control: Control): Promise<void> {
  if (!workflowInfo().continueAsNewSuggested) return;
  await continueAsNew<typeof mirror>({
    mirror: name,
    carried: { runId, paused: control.paused, control: control.request, resumed },
  });
}
