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

/** What a person types, but for `carried`, which one execution hands to the next. */
export interface MirrorInput {
  readonly mirror: string;
  /** Whoever starts the run approves removals beyond the limits, as long as they are no more than this. */
  readonly approveUpTo?: number;
  /** The plan that was looked at: the run sends exactly that set, or nothing. */
  readonly plan?: PlanRef;
  readonly carried?: Carried;
}

/** What a saved plan showed (`retl plan --out`): the sealed set and its removals, by digest. */
export interface PlanRef {
  /** Digest of the desired set: `sha256:` and 64 hex digits, as the seal computes it. */
  readonly generation: string;
  readonly removals: number;
  /** Digest of the identity hashes to be removed, as the plan of a run computes it. */
  readonly removalDigest: string;
}

/** All that survives continue-as-new. Ids are decimal strings: a u64 does not fit a JSON number. */
export interface Carried {
  readonly runId: string | null;
  readonly paused: boolean;
  readonly control: 'none' | 'cancel' | 'abort';
  /** Whether this execution began by resuming an earlier run, and so goes on with a fresh one. */
  readonly resumed: boolean;
  /** What the guard asks of a run that is parked, so that an answer finds the question at once. */
  readonly parked: Parked | null;
  /** Somebody asked to poll at once, and it has not been done yet. */
  readonly poll?: boolean;
}

/** Why a run is not moving, for people. `code` is stable; `untilMs` is set where a timer ends the wait. */
export interface Waiting {
  readonly kind: 'paused' | 'retry' | 'blocked' | 'pending' | 'draining' | 'parked';
  readonly code: string;
  readonly untilMs: number | null;
  /** The batch concerned, by id; `null` where none is. */
  readonly batch: string | null;
  /** `pending`: when the oldest of what is waited for was staged, ms since 1970. */
  readonly sinceMs?: number;
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
  /** What the guard asks; `null` where it asks nothing. */
  readonly parked: Parked | null;
}

/** A run beyond its safety limits: what it would do, and until when it waits for `approve` or `reject`. */
export interface Parked {
  readonly code: GuardCode;
  readonly removals: number;
  /** Members held before the run. */
  readonly held: number;
  /** Names what is shown, so that an answer is to this and nothing else: `sha256:` and 64 hex digits. */
  readonly shown: string;
  readonly deadlineMs: number;
}

/** Which limit a run is beyond. */
export type GuardCode =
  | 'unknown-baseline'
  | MovedCode
  | 'empty-snapshot'
  | 'max-removals'
  | 'max-removal-share';

/** What decides where a run's requests arrive, and is not what it was: credentials, the way of removals, or both. */
export type MovedCode = 'credentials-changed' | 'removals-moved' | 'route-changed';

const MOVED: readonly string[] = [
  'credentials-changed',
  'removals-moved',
  'route-changed',
] satisfies MovedCode[];

export function isMoved(code: GuardCode): code is MovedCode {
  return MOVED.includes(code);
}

/** What the guard says of it; goes on after "it would …". */
export function movedWords(code: MovedCode): string {
  switch (code) {
    case 'credentials-changed':
      return 'send by other credentials or headers than its target was sent to before, perhaps into another account';
    case 'removals-moved':
      return 'send removals elsewhere, or otherwise, than before';
    case 'route-changed':
      return 'send by other credentials or headers than before, and removals elsewhere or otherwise';
  }
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

/**
 * Names of the signals, and of the query that answers {@link Progress}. `look`: something was written into the journal that
 * the run may be waiting for; it looks again, and a pause goes on.
 */
export const SIGNALS = ['cancel', 'abort', 'pause', 'resume', 'poll', 'look'] as const;
export type SignalName = (typeof SIGNALS)[number];
export const PROGRESS_QUERY = 'progress';

/** Search attributes of the workflow; where they are not registered it does without. */
export const RUN_ATTRIBUTES = { mirror: 'RetlMirror', phase: 'RetlPhase', outcome: 'RetlOutcome' } as const;

/** Names that a mirror may have. */
export const MIRROR_NAME = /^[a-z0-9][a-z0-9-]{0,62}$/;

/**
 * Names of the updates that answer a parked run. Their one argument is a {@link Decision}; what people say of it goes to
 * the journal (`retl approve --because`), not through Temporal.
 */
export const UPDATES = ['approve', 'reject'] as const;
export type UpdateName = (typeof UPDATES)[number];

export interface Decision {
  /** {@link Parked.shown} of what was looked at. */
  readonly shown: string;
}
