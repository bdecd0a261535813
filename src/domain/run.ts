/**
 * The life of a run: the phase table of design.md section 4, as a total record that can be checked against it.
 * Rule 1 is here as order; the journal's functions enforce it again on every write (migrations/).
 */

/** Phases of an admitted run, in the order of design.md section 4. `complete` is a closed run. */
export type Phase =
  | 'init'
  | 'extract'
  | 'seal'
  | 'guard'
  | 'additions'
  | 'removals'
  | 'finish'
  | 'promote'
  | 'complete';

/** The only moves there are. A run that is closed otherwise (aborted, rejected, …) leaves the table altogether. */
export const NEXT_PHASE: Readonly<Record<Phase, Phase | null>> = {
  init: 'extract',
  extract: 'seal',
  seal: 'guard',
  guard: 'additions',
  additions: 'removals',
  removals: 'finish',
  finish: 'promote',
  promote: 'complete',
  complete: null,
};

/** Every phase name, in order. */
export const PHASES = Object.keys(NEXT_PHASE) as readonly Phase[];

/** From this phase on, the generation is sealed: resuming needs no source and no mapping (rule 8). */
export function isSealed(phase: Phase): boolean {
  return PHASES.indexOf(phase) > PHASES.indexOf('seal');
}

/** How a run can be closed; an open run has no closing. */
export type Closing =
  | 'completed'
  | 'rejected' // the destination refused members, `on_rejection: stop`
  | 'aborted'
  | 'guard-rejected'
  | 'guard-expired' // nobody answered in time
  | 'invalid' // configuration or data: nothing was sent
  | 'discarded' // never sealed, and taken over
  | 'expired' // sealed too long ago to resume
  | 'imported'; // a baseline: accepted on a person's word, with nothing sent

/** What an open run is doing, as far as the journal can tell; a mirror has at most one open run. */
export const OPEN_STATES = [
  'running',
  'waiting', // tries again by itself: a destination that is away or slow, an answer that is being verified
  'pending', // the destination works on what it has taken
  'parked', // the guard asks
  'blocked', // a person must decide, or nobody looks any more
  'cancelled', // let go, and resumable, as the next
  'failed',
] as const;
export type OpenState = (typeof OPEN_STATES)[number];

/** How a run can stand, in the words people filter by: its closing, or what an open one is doing. */
export const RUN_STATES = [
  'open', // not closed, whatever it is doing
  ...OPEN_STATES,
  'completed',
  'rejected',
  'aborted',
  'guard-rejected',
  'guard-expired',
  'invalid',
  'discarded',
  'expired',
  'imported',
] as const satisfies readonly ('open' | OpenState | Closing)[];
export type RunState = (typeof RUN_STATES)[number];

/** Life of a batch. `settled` and `refused` are final; `not-applied` is final for this sending and may be retried. */
export type BatchState =
  | 'prepared' // provably unsent
  | 'sending' // an epoch-checked commit just before the first byte
  | 'unknown' // neither accepted nor absent
  | 'staged' // taken for asynchronous work
  | 'not-applied' // proven: nothing was applied
  | 'parted' // answered operation by operation, some of them not applied: they stand in its pieces
  | 'refused' // proven: nothing was applied, and it never will be
  | 'uploaded' // accepted, as evidence for a finish that makes it true: native replacement, visible at the finish
  | 'settled'; // every operation accepted or rejected

/** Counts of one logical run, over all its attempts. */
export interface RunCounts {
  readonly sourceRows: number;
  readonly members: number;
  readonly excluded: number;
  /** Planned, from the diff. */
  readonly toAdd: number;
  readonly toChange: number;
  readonly toRemove: number;
  /** Those that are sent again among them. */
  readonly unchanged: number;
  /** Durably accepted so far. */
  readonly added: number;
  readonly changed: number;
  readonly removed: number;
  /** Members that the destination refused, alone or with a whole request of which one was to blame and was not found. */
  readonly rejected: number;
  /** Unchanged members that were accepted too long ago: how many are sent again, and were accepted; absent: none ever are. */
  readonly toRefresh?: number;
  readonly refreshed?: number;
  /** Members whose upload is accepted, unchanged ones too; native replacement only. */
  readonly uploaded?: number;
}
