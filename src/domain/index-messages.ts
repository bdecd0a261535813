/** Everything that crosses the border of the workflow `index`: names, positions, counts and codes; no row, no secret. */

/** Workflow type. Started by `retl index run`, a schedule, or by hand with `{"index": "<name>"}`. */
export const INDEX_WORKFLOW = 'index';

export function indexWorkflowId(index: string): string {
  return `index/${index}`;
}

/** Names that an index may have: the journal's, and those of a view in PostgreSQL. */
export const INDEX_NAME = /^[a-z0-9][a-z0-9-]{0,62}$/;

/** What a person types, but for `carried`, which one execution hands to the next. */
export interface IndexInput {
  readonly index: string;
  readonly carried?: IndexCarried;
}

/** All that survives continue-as-new: what else there is stands in the index and the journal. */
export interface IndexCarried {
  readonly paused: boolean;
  readonly rebuild: boolean;
}

/**
 * `rebuild`: begin a new build from the beginning of the log. `wake`: look now whether the log has grown; whoever commits
 * sends it, and nothing depends on it. `resume`: go on after `pause`, or try once more what was refused.
 */
export const INDEX_SIGNALS = ['rebuild', 'stop', 'pause', 'resume', 'wake'] as const;
export type IndexSignal = (typeof INDEX_SIGNALS)[number];

/** Positions and counts are decimal strings: a u64 does not fit a JSON number. */
export interface IndexPlace {
  readonly build: string;
  readonly state: 'live' | 'building';
  /** `null`: the log snapshot is being read. */
  readonly position: string | null;
  readonly rows: string;
  /** How far the head is ahead, and the age of the first entry that is missing, when this was seen. */
  readonly lag: { readonly positions: string; readonly ms: number };
}

/** What one window of work came to. */
export type IndexStep =
  | ({ readonly kind: 'caught-up' | 'more' | 'frozen' } & IndexPlace)
  /** `stop`: a person must look. */
  | { readonly kind: 'refused'; readonly code: string; readonly message: string };

/** Answer of the query `progress`. */
export interface IndexProgress {
  readonly index: string;
  readonly phase: 'replaying' | 'caught-up' | 'frozen' | 'paused' | 'refused' | 'unavailable' | 'stopped';
  readonly place: IndexPlace | null;
  /** Why it waits, where it was refused or something is away. */
  readonly code: string | null;
  /** Whether it is asking its index at the moment, so that all of this may change at once. */
  readonly looking: boolean;
}

export type IndexResult =
  | { readonly outcome: 'stopped'; readonly place: IndexPlace | null }
  /** It had another id than the index's own, under which the index is followed; `started`: from now on. */
  | { readonly outcome: 'handed-over'; readonly workflowId: string; readonly started: boolean };
