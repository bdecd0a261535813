/** Read-only views of the journal for people: what `status` and `runs` show. No values, no identities. */

import type { Phase, RunCounts } from '../domain/run.ts';

/** One logical run, counts over all its attempts. */
export interface RunSummary {
  readonly runId: string;
  readonly mirror: string;
  /** `open`, or how it was closed (`completed`, `aborted`, `rejected`, `guard-rejected`, …). */
  readonly state: string;
  readonly phase: Phase;
  /** Value-free code of why it stopped or waits; `null` where nothing is wrong. */
  readonly reason: string | null;
  /** Where Temporal holds it: `namespace/workflow id`. */
  readonly holder: string;
  /** `cancelled`, `failed`, … where an open run was let go and can be resumed; `null` while it is held. */
  readonly released: string | null;
  readonly openedAt: Date;
  readonly closedAt: Date | null;
  readonly counts: RunCounts;
  readonly unresolvedBatches: number;
}

/** One mirror with what its target is known to hold. */
export interface MirrorSummary {
  readonly mirror: string;
  readonly strategy: string;
  /** Members durably accepted by the destination. */
  readonly held: number;
  readonly baseline: string | null;
  readonly lastRun: RunSummary | null;
}
