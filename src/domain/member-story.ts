/**
 * What became of one member, run by run: decided from what the journal still has (design.md section 5), newest run first.
 * Accepted operations are never lost (rule 6), so that whether it was held after each run is known exactly, even where a
 * run's rows are gone; what a run desired is known while its rows are there, or from what followed.
 */

import type { Sha256 } from './ids.ts';
import type { BatchState, Phase } from './run.ts';

/** `resend`: an unchanged member that is sent again, by a native replacement or because it was accepted too long ago. */
export type Change = 'add' | 'change' | 'resend' | 'remove';

/** One request that carried the operation; its counts are those of the whole request. */
export interface MemberBatch {
  readonly id: Sha256;
  readonly state: BatchState;
  /** Ordinal of the attempt to send these operations, from 1. */
  readonly sending: number;
  readonly resends: number;
  /** Value-free code of what is known of its answer. */
  readonly code: string | null;
  readonly members: number;
  readonly accepted: number | null;
  readonly rejected: number | null;
  readonly preparedAt: Date;
  readonly sentAt: Date | null;
  readonly settledAt: Date | null;
  /** Log position of its acceptance; `null` where nothing of it was accepted. */
  readonly position: string | null;
  /** Whether a person decided the outcome. */
  readonly resolvedByOperator: boolean;
}

export interface MemberOperation {
  readonly change: Change;
  readonly sequence: string;
  /** `null` for a removal. */
  readonly payloadHash: Sha256 | null;
  /** In the order of their preparation: those before the last are proven not to have been applied. */
  readonly batches: readonly MemberBatch[];
  /** The destination refused this operation by itself. */
  readonly rejection: { readonly code: string; readonly recordedAt: Date } | null;
}

/** `gone`: there were such rows, and they have been dropped; `none`: there never were any. */
export type Rows = 'present' | 'gone' | 'none';

/** What the journal has of one run about one member. */
export interface RunTrace {
  readonly runId: string;
  /** `open`, or how it was closed. */
  readonly state: string;
  readonly phase: Phase;
  readonly code: string | null;
  readonly released: string | null;
  readonly openedAt: Date;
  readonly closedAt: Date | null;
  /** Its sealed snapshot. */
  readonly snapshot: Rows;
  /** Of the payload that the snapshot gives the member; `null`: it gives none, or is not there. */
  readonly desiredHash: Sha256 | null;
  readonly plan: Rows;
  readonly operation: MemberOperation | null;
}

export type Did =
  | 'added'
  | 'changed'
  | 'sent-again'
  | 'removed'
  /** The destination refused this operation, by itself. */
  | 'rejected'
  /** The destination refused the whole request that carried it. */
  | 'refused'
  /** Planned, and not answered yet; the run is open. */
  | 'pending'
  /** Planned, and never applied: the run ended before. */
  | 'never-sent'
  /** Desired and held as it is: nothing to do. */
  | 'unchanged'
  /** Neither desired nor held. */
  | 'left-out'
  /** Held, and not desired by the open run: it goes once the additions are accepted and the guard lets it. */
  | 'removal-due'
  /** Held, and not desired, by a run that ended before its removals. */
  | 'kept'
  /** Desired by a run that ended, or has not come that far, without planning it. */
  | 'not-planned'
  /** The run sealed no snapshot. */
  | 'no-snapshot'
  /** The run's rows are gone, and nothing that is left says what it wanted. */
  | 'rows-gone';

export interface RunStory extends RunTrace {
  readonly did: Did;
  /** `null`: not known. */
  readonly desired: boolean | null;
  /** Its rows are gone; what it desired follows from what it did, or from its completion. */
  readonly isInferred: boolean;
  readonly heldBefore: boolean;
  readonly heldAfter: boolean;
}

/** How it stands now, in one word. */
export type Verdict =
  | 'held'
  | 'removed'
  /** Looked at, and not desired by any run that can still say so. */
  | 'left-out'
  | 'removal-due'
  | `${Change}-pending`
  | `${Change}-refused`
  /** Nothing in the journal is about it. */
  | 'unknown';

/**
 * @param traces newest first, without a gap.
 * @param heldAfter whether the member is held after the newest of them.
 */
export function tellRuns(traces: readonly RunTrace[], heldAfter: boolean): readonly RunStory[] {
  let held = heldAfter;
  return traces.map((trace) => {
    const story = tellRun(trace, held);
    held = story.heldBefore;
    return story;
  });
}

function tellRun(trace: RunTrace, heldAfter: boolean): RunStory {
  const wasAccepted = trace.operation !== null && isAccepted(trace.operation);
  const heldBefore = wasAccepted ? trace.operation?.change !== 'add' : heldAfter;
  const desired = desiredBy(trace, heldAfter);
  return {
    ...trace,
    did:
      trace.operation === null
        ? withoutOperation(trace, desired, heldAfter)
        : withOperation(trace, trace.operation),
    desired,
    isInferred: desired !== null && trace.snapshot === 'gone',
    heldBefore,
    heldAfter,
  };
}

/** A completed run has added whatever it desired and removed whatever it did not. */
function desiredBy(trace: RunTrace, heldAfter: boolean): boolean | null {
  if (trace.snapshot === 'present') return trace.desiredHash !== null;
  if (trace.operation !== null) return trace.operation.change !== 'remove';
  return trace.snapshot === 'gone' && trace.state === 'completed' ? heldAfter : null;
}

const DONE: { readonly [C in Change]: Did } = {
  add: 'added',
  change: 'changed',
  resend: 'sent-again',
  remove: 'removed',
};

function withOperation(trace: RunTrace, operation: MemberOperation): Did {
  const outcome = outcomeOf(operation);
  if (outcome === 'accepted') return DONE[operation.change];
  if (outcome !== 'unsettled') return outcome;
  return trace.state === 'open' ? 'pending' : 'never-sent';
}

/** Whether the destination has taken it: then it is in the log for good. */
export function isAccepted(operation: MemberOperation): boolean {
  return outcomeOf(operation) === 'accepted';
}

function outcomeOf({
  batches,
  rejection,
}: MemberOperation): 'accepted' | 'rejected' | 'refused' | 'unsettled' {
  if (rejection !== null) return 'rejected';
  const state = batches.at(-1)?.state;
  if (state === 'settled') return 'accepted';
  return state === 'refused' ? 'refused' : 'unsettled';
}

function withoutOperation(trace: RunTrace, desired: boolean | null, held: boolean): Did {
  if (trace.snapshot === 'none') return 'no-snapshot';
  if (desired === null) return 'rows-gone';
  if (desired) return held && isAsDesired(trace) ? 'unchanged' : 'not-planned';
  if (!held) return 'left-out';
  return trace.state === 'open' ? 'removal-due' : 'kept';
}

/** Without a plan nothing has been compared, so that nothing says that it is unchanged. */
function isAsDesired({ plan, snapshot }: RunTrace): boolean {
  return plan === 'present' || snapshot === 'gone';
}

/**
 * @param runs newest first; an operation that ended without an effect says nothing, and the run before it does.
 * @param isHeld now.
 */
export function verdictOf(runs: readonly RunStory[], isHeld: boolean): Verdict {
  for (const { did, operation } of runs) {
    if (did === 'pending' && operation !== null) return `${operation.change}-pending`;
    if ((did === 'rejected' || did === 'refused') && operation !== null) return `${operation.change}-refused`;
    if (did === 'removal-due') return did;
    if (HELD_BY.has(did)) return 'held';
    if (did === 'removed') return 'removed';
  }
  if (isHeld) return 'held';
  return runs.some((run) => run.did === 'left-out') ? 'left-out' : 'unknown';
}

const HELD_BY: ReadonlySet<Did> = new Set(['added', 'changed', 'sent-again', 'unchanged', 'kept']);

/** Runs beside each other in which nothing happened to the member, and all for one reason. */
export interface QuietRuns {
  readonly kind: 'quiet';
  readonly did: Did;
  readonly isInferred: boolean;
  readonly firstRunId: string;
  readonly lastRunId: string;
  readonly runs: number;
  /** Of the first. */
  readonly openedAt: Date;
}

export type StoryEntry = (RunStory & { readonly kind: 'run' }) | QuietRuns;

const QUIET: ReadonlySet<Did> = new Set(['unchanged', 'left-out', 'no-snapshot', 'rows-gone']);

/** Draws quiet neighbours together; a run that is open stands by itself. */
export function condense(runs: readonly RunStory[]): readonly StoryEntry[] {
  const entries: StoryEntry[] = [];
  for (const run of runs) {
    const last = entries.at(-1);
    if (!QUIET.has(run.did) || run.state === 'open') {
      entries.push({ ...run, kind: 'run' });
    } else if (last?.kind === 'quiet' && last.did === run.did && last.isInferred === run.isInferred) {
      entries[entries.length - 1] = {
        ...last,
        firstRunId: run.runId,
        runs: last.runs + 1,
        openedAt: run.openedAt,
      };
    } else {
      const { did, isInferred, runId, openedAt } = run;
      entries.push({
        kind: 'quiet',
        did,
        isInferred,
        firstRunId: runId,
        lastRunId: runId,
        runs: 1,
        openedAt,
      });
    }
  }
  return entries;
}
