/**
 * The workflow `mirror`: one logical run at a time, phase by phase (design.md section 4). It carries names, ids, counts and
 * phases; what a phase does is in its activity, and what a phase may do is in the journal.
 */

import {
  ActivityFailure,
  allHandlersFinished,
  CancellationScope,
  CancelledFailure,
  condition,
  continueAsNew,
  workflowInfo,
} from '@temporalio/workflow';
import type { AdmitResult, CloseArgs, RunRef } from '../activities/results.ts';
import { assertNever } from '../domain/assert-never.ts';
import type { Carried, MirrorInput, MirrorResult } from '../domain/messages.ts';
import { isSealed, PHASES, type Phase } from '../domain/run.ts';
import { Control } from './control.ts';
import { planStale } from './ending-words.ts';
import { causeOf, defect, Ending, fail } from './endings.ts';
import { decodeInput } from './input.ts';
import { Parking } from './parking.ts';
import { admit, deliver, extract, finish, guard, init, promote, release, seal } from './proxies.ts';
import { type PollWish, Run } from './run.ts';
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
  const parking = new Parking(input.carried, control);
  const stage: Stage = { control, parking, view: new View(input.mirror, control, parking) };
  // Cancellation is a request to stop in good order, not an exception in the middle of a receipt.
  const result = await CancellationScope.nonCancellable(async () => {
    try {
      return await runs(input, stage);
    } finally {
      // Whoever has answered is told what became of it.
      await condition(allHandlersFinished);
    }
  });
  if (control.cancelledByTemporal && result.outcome !== 'completed') throw new CancelledFailure('cancelled');
  return result;
}

/** What all runs of an execution share. */
interface Stage {
  readonly control: Control;
  readonly parking: Parking;
  readonly view: View;
}

/** Runs until one is fresh: an execution that resumed an earlier run goes on with a new one. */
async function runs(input: MirrorInput, stage: Stage): Promise<MirrorResult> {
  const { control, parking, view } = stage;
  const { firstExecutionRunId } = workflowInfo();
  let resumed = input.carried?.resumed ?? false;
  let said: MirrorInput = input;
  let last: MirrorResult | null = null;
  for (;;) {
    const admission = await admitted(input.mirror, firstExecutionRunId, control, view);
    if (admission === null) return last ?? neverAdmitted(view);
    const ref: RunRef = { run: admission.run, firstRunId: firstExecutionRunId };
    const resume = foundAs(admission, input.carried);
    resumed ||= resume === 'sealed';
    const run = new Run(ref, control, parking, view, () => carryOn(said, admission.run, resumed, stage));
    const closing = closedFirst(resume, admission.phase, said);
    if (closing !== null) {
      const stopped = await run.discard(admission.phase, closing);
      if (stopped !== null) return stopped;
      resumed = false;
      continue;
    }
    if (said.plan !== undefined && resume === 'sealed') {
      await release({ ...ref, how: 'cancelled', reason: 'run.plan-stale' }).catch(() => {});
      view.ended('refused');
      throw planStale(
        'An unfinished run of this mirror comes first, and has sent members already: run it without a plan.',
      );
    }
    last = await run.guarded(() =>
      phases(run, admission.phase, said, (approved) => {
        said = lessApproved(said, approved);
      }),
    );
    if (last.outcome !== 'completed' || !resumed || control.request !== 'none') return last;
    resumed = false;
  }
}

/**
 * A run that this execution holds and knows nothing of is one from before Temporal reset it: it is found as another
 * execution's would be, so that what was never sealed is read anew (rule 8), and a fresh run follows what was.
 */
function foundAs({ run, resume, phase }: Admitted, carried: Carried | undefined): Admitted['resume'] {
  if (resume !== 'held' || run === carried?.runId) return resume;
  return isSealed(phase) ? 'sealed' : 'discard';
}

/** How the run that was found is to be closed before a fresh one; `null`: it is this execution's to go on with. */
function closedFirst(
  resume: Admitted['resume'],
  phase: Phase,
  { plan }: MirrorInput,
): CloseArgs['closing'] | null {
  switch (resume) {
    case 'discard':
      return 'discarded';
    case 'expired':
    case 'guard-rejected':
    case 'guard-expired':
      return resume;
    case 'sealed':
      // A saved plan is of the source as it is now; a snapshot of which nothing was sent makes room for it.
      return plan !== undefined && phase === 'guard' ? 'discarded' : null;
    case 'fresh':
    case 'held':
      return null;
    default:
      return assertNever(resume);
  }
}

/** Whoever starts an execution approves so many removals in all, whatever the number of its runs. */
function lessApproved(said: MirrorInput, approved: number): MirrorInput {
  const { approveUpTo } = said;
  return approveUpTo === undefined ? said : { ...said, approveUpTo: Math.max(0, approveUpTo - approved) };
}

/** The phase table. A run that is taken up again enters at the phase it had reached. */
async function phases(
  run: Run,
  from: Phase,
  { approveUpTo, plan }: MirrorInput,
  approvedBeforehand: (removals: number) => void,
): Promise<void> {
  const { ref } = run;
  const due = (phase: Phase) => PHASES.indexOf(from) <= PHASES.indexOf(phase);
  const said = {
    ...(approveUpTo === undefined ? {} : { approveUpTo }),
    ...(plan === undefined ? {} : { plan }),
  };

  if (due('init')) await run.step('init', (_, poll) => init({ ...ref, ...poll }));
  if (due('extract')) await run.step('extract', () => extract(ref));
  if (due('seal')) await run.once('seal', () => seal(ref), sealed);
  if (due('guard')) approvedBeforehand(await run.judged(() => guard({ ...ref, ...said })));
  if (due('additions')) await run.step('additions', (ms, poll) => delivery(ref, 'upsert', ms, poll));
  if (due('removals')) await run.step('removals', (ms, poll) => delivery(ref, 'remove', ms, poll));
  if (due('finish')) await run.step('finish', (_, poll) => finish({ ...ref, ...poll }));
  await run.promoted(() => promote(ref));
}

function delivery(ref: RunRef, action: 'upsert' | 'remove', windowMs: number, poll: PollWish) {
  return deliver({ ...ref, action, windowMs, resolveOnly: false, ...poll });
}

function sealed(result: Awaited<ReturnType<typeof seal>>): void {
  if (result.kind === 'invalid') throw new Ending('invalid', result.code, result.message);
}

type Admitted = Extract<AdmitResult, { kind: 'admitted' }>;

/** Resolves to `null` where somebody cancelled before the journal had answered. */
async function admitted(
  mirror: string,
  firstRunId: string,
  control: Control,
  view: View,
): Promise<Admitted | null> {
  let result: AdmitResult | null;
  try {
    result = await control.unlessCancelled(() => admit({ mirror, firstRunId }));
  } catch (error) {
    if (!(error instanceof ActivityFailure)) throw error;
    const { type, code, message, searchAttributes } = causeOf(error);
    const how = type === 'unavailable' ? 'unavailable' : 'invalid';
    view.notAdmitted(how, searchAttributes);
    throw fail(how, code, message);
  }
  if (result?.kind === 'refused') {
    view.notAdmitted('refused', result.searchAttributes ?? false);
    throw fail('refused', result.code, result.message);
  }
  if (result !== null) view.admitted(result.run, result.counts, result.searchAttributes);
  return result;
}

function neverAdmitted(view: View): MirrorResult {
  view.ended('cancelled');
  return { outcome: 'cancelled', runId: null, counts: view.counts, abortTooLate: false };
}

/** Continues as new when Temporal suggests it, losing no message: all of them are in what is carried, or in the journal. */
async function carryOn(
  { mirror: name, approveUpTo, plan }: MirrorInput,
  runId: string,
  resumed: boolean,
  { control, parking }: Stage,
): Promise<void> {
  if (!workflowInfo().continueAsNewSuggested) return;
  await condition(allHandlersFinished);
  await continueAsNew<typeof mirror>({
    mirror: name,
    ...(approveUpTo === undefined ? {} : { approveUpTo }),
    ...(plan === undefined ? {} : { plan }),
    carried: {
      runId,
      paused: control.paused,
      control: control.request,
      resumed,
      parked: parking.parked,
      ...(control.pollAsked ? { poll: true } : {}),
    },
  });
}
