/** What activities answer to the workflow: counts, codes and ids only. Imported by the workflow as types. */

import type { ErrorCode } from '../domain/errors.ts';
import type { GuardCode, PlanRef } from '../domain/messages.ts';
import type { Closing, Phase, RunCounts } from '../domain/run.ts';

/** Names one run and who holds it: the argument of every activity after `admit`. */
export interface RunRef {
  /** Decimal text: a u64 does not fit a JSON number. */
  readonly run: string;
  /** First run id of the chain of workflow executions. */
  readonly firstRunId: string;
}

export interface AdmitArgs {
  readonly mirror: string;
  readonly firstRunId: string;
}

export type AdmitResult =
  | {
      readonly kind: 'admitted';
      readonly run: string;
      readonly resume:
        | 'fresh'
        | 'held'
        | 'sealed'
        | 'discard'
        | 'expired'
        | 'guard-rejected'
        | 'guard-expired';
      readonly phase: Phase;
      /** Something of it is sending, staged or unknown. */
      readonly unresolved: boolean;
      readonly counts: RunCounts;
      readonly searchAttributes: boolean;
    }
  | {
      readonly kind: 'refused';
      /** `run.busy`, `run.target-owned`, `run.removes-elsewhere`, `run.strategy-changed`, `run.baseline-missing`, `run.identity-moved`. */
      readonly code: ErrorCode;
      /** Meaning, remedy, and who holds or owns it; no values. */
      readonly message: string;
      /** Whether the search attributes are registered; absent: a worker of an earlier release has not said so. */
      readonly searchAttributes?: boolean;
    };

/** How a step of a run ended. */
export type StepResult =
  | { readonly kind: 'done'; readonly counts: RunCounts }
  /** The window is over; there is more to do. */
  | { readonly kind: 'more'; readonly counts: RunCounts }
  /** Nothing to do before `ms` have passed. */
  | Wait
  /** Staged work is asked about again after `ms`. */
  | Pending
  /** The outcome of `batch` is unknown and cannot be verified. */
  | Blocked
  /** The destination refused members, or a whole request, for good. `ms`: when others that are unresolved are asked about again. */
  | { readonly kind: 'rejected'; readonly code: string; readonly ms?: number; readonly counts: RunCounts }
  /** Configuration must change first; nothing was applied. `code` is the adapter's. */
  | { readonly kind: 'misconfigured'; readonly code: string; readonly counts: RunCounts }
  /** Told to stop launching; what was in flight is recorded. */
  | { readonly kind: 'stopped'; readonly counts: RunCounts }
  /** The guard has looked again, before removals or finish. */
  | Held
  | Unapproved;

/** Parked: the guard asks, and nothing goes on before an answer. */
export interface Held {
  readonly kind: 'held';
  readonly code: GuardCode;
  readonly removals: number;
  /** Members held before the run. */
  readonly held: number;
  /** What an answer must name. */
  readonly shown: string;
  /** Ms until the deadline, by the journal's clock. */
  readonly leftMs: number;
  /** The deadline itself, in ms since the epoch; absent: a worker of an earlier release has not told it. */
  readonly deadlineMs?: number;
  readonly counts: RunCounts;
}

/** Rejected, or not answered in time: the run is to be closed so. */
export interface Unapproved {
  readonly kind: 'guard-rejected' | 'guard-expired';
  readonly code: GuardCode;
  readonly counts: RunCounts;
}

export interface Wait {
  readonly kind: 'wait';
  readonly code: string;
  readonly ms: number;
  readonly batch: string | null;
  readonly counts: RunCounts;
}

export interface Pending {
  readonly kind: 'pending';
  /** `staged`, or why the last question went unanswered. */
  readonly code: string;
  readonly ms: number;
  /** The oldest of them. */
  readonly batch: string;
  /** Ms since that one was staged. */
  readonly ageMs: number;
  readonly counts: RunCounts;
}

export interface Blocked {
  readonly kind: 'blocked';
  readonly code: string;
  readonly batch: string;
  /** Other batches are asked about again after so long, whether or not somebody has come. */
  readonly ms?: number;
  readonly counts: RunCounts;
}

/** Nothing is sent before the seal: what it finds wrong ends the run. */
export type SealResult =
  | { readonly kind: 'sealed'; readonly counts: RunCounts }
  | {
      readonly kind: 'invalid';
      readonly code: string;
      readonly message: string;
      readonly counts: RunCounts;
    };

export interface GuardArgs extends RunRef {
  /** Removals that whoever started the run approves beforehand. */
  readonly approveUpTo?: number;
  /** The saved plan that the run is to carry out, and no other. */
  readonly plan?: PlanRef;
}

export type GuardResult =
  /** `approved`: how many removals were approved by `approveUpTo`. */
  | { readonly kind: 'passed'; readonly approved: number; readonly counts: RunCounts }
  | Held
  | Unapproved
  /** The run's plan is not the saved one; nothing was sent. */
  | { readonly kind: 'plan-stale'; readonly counts: RunCounts }
  /** A removal over the byte limit, which was lowered since that member was accepted. */
  | { readonly kind: 'invalid'; readonly code: string; readonly message: string; readonly counts: RunCounts };

/** A step of the session. */
export interface StepArgs extends RunRef {
  /** Only resolve what is open; send nothing that is not under way. */
  readonly resolveOnly?: boolean;
  /** Ask about staged work now, whether or not its time has come. */
  readonly pollNow?: boolean;
}

export interface DeliverArgs extends RunRef {
  readonly action: 'upsert' | 'remove';
  /** How long the window may launch requests, in ms. */
  readonly windowMs: number;
  /** Only resolve what is open; launch nothing new. */
  readonly resolveOnly: boolean;
  /** Ask about staged batches now, whether or not their time has come. */
  readonly pollNow?: boolean;
}

/** An answer to what the guard asks, through Temporal: no names and no reasons. */
export interface DecideArgs {
  readonly run: string;
  readonly shown: string;
  readonly verdict: 'approved' | 'rejected';
}

export type DecideResult =
  | { readonly kind: 'decided' }
  /** Nothing was recorded. */
  | { readonly kind: 'refused'; readonly why: 'not-parked' | 'stale' | 'expired' | 'answered' | 'closed' };

export interface CloseArgs extends RunRef {
  readonly closing: Exclude<Closing, 'completed'>;
  readonly reason: string | null;
}

export interface ReleaseArgs extends RunRef {
  readonly how: 'cancelled' | 'failed';
  readonly reason: string | null;
}

export type CloseResult =
  | { readonly kind: 'closed'; readonly counts: RunCounts }
  /** Rule 10: a request is sending, staged or unknown; it is resolved first. */
  | { readonly kind: 'unresolved'; readonly counts: RunCounts }
  /** Rule 10: the finish has been accepted; the run completes. */
  | { readonly kind: 'too-late'; readonly counts: RunCounts };
