/** What activities answer to the workflow: counts, codes and ids only. Imported by the workflow as types. */

import type { Phase, RunCounts } from '../domain/run.ts';

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
      readonly resume: 'fresh' | 'held' | 'sealed' | 'discard' | 'expired';
      readonly phase: Phase;
      /** Something of it is sending, staged or unknown. */
      readonly unresolved: boolean;
      readonly counts: RunCounts;
      readonly searchAttributes: boolean;
    }
  | {
      readonly kind: 'refused';
      readonly code: 'run.busy' | 'run.target-owned' | 'run.strategy-changed';
      /** In words: who holds it; no values. */
      readonly message: string;
    };

/** How a step of a run ended. */
export type StepResult =
  | { readonly kind: 'done'; readonly counts: RunCounts }
  /** The window is over; there is more to do. */
  | { readonly kind: 'more'; readonly counts: RunCounts }
  /** Nothing to do before `ms` have passed. */
  | Wait
  /** The outcome of `batch` is unknown and cannot be verified. */
  | Blocked
  /** The destination refused members, or a whole request, for good. */
  | { readonly kind: 'rejected'; readonly code: string; readonly counts: RunCounts }
  /** Configuration must change first; nothing was applied. `code` is the adapter's. */
  | { readonly kind: 'misconfigured'; readonly code: string; readonly counts: RunCounts }
  /** Told to stop launching; what was in flight is recorded. */
  | { readonly kind: 'stopped'; readonly counts: RunCounts };

export interface Wait {
  readonly kind: 'wait';
  readonly code: string;
  readonly ms: number;
  readonly batch: string | null;
  readonly counts: RunCounts;
}

export interface Blocked {
  readonly kind: 'blocked';
  readonly code: string;
  readonly batch: string;
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

export type GuardResult =
  | { readonly kind: 'passed'; readonly counts: RunCounts }
  | {
      readonly kind: 'held';
      readonly code: 'empty-snapshot' | 'max-removals' | 'max-removal-share';
      readonly held: number;
      readonly counts: RunCounts;
    }
  /** A removal over the byte limit, which was lowered since that member was accepted. */
  | { readonly kind: 'invalid'; readonly code: string; readonly message: string; readonly counts: RunCounts };

/** A step of the session. */
export interface StepArgs extends RunRef {
  /** Only resolve what is open; send nothing that is not under way. */
  readonly resolveOnly?: boolean;
}

export interface DeliverArgs extends RunRef {
  readonly action: 'upsert' | 'remove';
  /** How long the window may launch requests, in ms. */
  readonly windowMs: number;
  /** Only resolve what is open; launch nothing new. */
  readonly resolveOnly: boolean;
}

export interface CloseArgs extends RunRef {
  readonly closing: 'rejected' | 'aborted' | 'guard-rejected' | 'invalid' | 'discarded' | 'expired';
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
