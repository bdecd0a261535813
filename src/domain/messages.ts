/**
 * Everything that crosses the border of the workflow `mirror`: its input, its result, its messages. Clients import
 * this file for its types and names; nothing here holds a row, an identity, a secret or an operator's free text.
 */

import type { Phase, RunCounts } from './run.ts';

/** Workflow type. Started by a schedule, the CLI, or by hand in the Temporal UI with `{"mirror": "<name>"}`. */
export const MIRROR_WORKFLOW = 'mirror';

/** Default task queue of workers and starters. */
export const TASK_QUEUE = 'retl-mirror';

export function mirrorWorkflowId(mirror: string): string {
  return `mirror/${mirror}`;
}

/** What a person types; the optional part is carried across continue-as-new and never typed. */
export interface MirrorInput {
  readonly mirror: string;
  readonly carried?: Carried;
}

/** All that survives continue-as-new. Ids are decimal strings: a u64 does not fit a JSON number. */
export interface Carried {
  readonly runId: string | null;
  readonly paused: boolean;
  readonly control: 'none' | 'cancel' | 'abort';
  /** Whether this execution began by resuming an earlier run, and so goes on with a fresh one. */
  readonly resumed: boolean;
}

/** Why a run is not moving, for people. `code` is stable; `untilMs` is set where a timer ends the wait. */
export interface Waiting {
  readonly kind: 'paused' | 'retry' | 'blocked' | 'pending' | 'draining';
  readonly code: string;
  readonly untilMs: number | null;
  /** The batch concerned, by id; `null` where none is. */
  readonly batch: string | null;
}

/** Answer of the query `progress`. */
export interface Progress {
  readonly mirror: string;
  readonly runId: string | null;
  readonly phase: Phase | 'admit' | 'closed';
  readonly counts: RunCounts;
  readonly waiting: Waiting | null;
  readonly control: 'none' | 'cancel' | 'abort';
  readonly paused: boolean;
}

export type Outcome = 'completed' | 'cancelled' | 'aborted';

/** Result of a workflow that ended well or was stopped on purpose; every other ending is a failure with a type. */
export interface MirrorResult {
  readonly outcome: Outcome;
  readonly runId: string | null;
  readonly counts: RunCounts;
  /** True where an abort came after the finish had been accepted: the run completed all the same. */
  readonly abortTooLate: boolean;
}

/** Types of the failures that end the workflow; all but the last are final until something changes. */
export type FailureType =
  | 'refused' // busy, target owned by another mirror, strategy changed
  | 'guard-held' // removals beyond the limits, or an empty snapshot
  | 'rejected' // the destination refused members
  | 'invalid' // configuration or data
  | 'blocked' // nothing can be verified
  | 'unavailable'; // retries are used up; resumable

/** Names of the signals, and of the query that answers {@link Progress}. */
export const SIGNALS = ['cancel', 'abort', 'pause', 'resume'] as const;
export type SignalName = (typeof SIGNALS)[number];
export const PROGRESS_QUERY = 'progress';

/** Names that a mirror may have. */
export const MIRROR_NAME = /^[a-z0-9][a-z0-9-]{0,62}$/;
