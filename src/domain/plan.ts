/** What a run would do: the document that `retl plan --json` prints, and the guard's verdict on it (design.md section 4). */

import type { ErrorCode, ErrorDetails } from './errors.ts';
import type { GuardCode, MovedCode } from './messages.ts';
import type { Phase } from './run.ts';
import type { SafetySettings } from './settings.ts';

/** What a snapshot changes of the membership, in members. */
export interface DiffCounts {
  /** Before the run. */
  readonly held: number;
  readonly added: number;
  readonly changed: number;
  readonly removed: number;
  readonly unchanged: number;
  /** Of the unchanged, those that were accepted too long ago, and are sent again; absent: none ever are. */
  readonly refreshed?: number;
}

/** Counts of one snapshot, held against the membership. */
export interface PlanCounts extends DiffCounts {
  readonly sourceRows: number;
  /** Rows that the mapping leaves out on purpose. */
  readonly excluded: number;
  /** Members that a further row gives, alike. */
  readonly collapsed: number;
  /** Members that the snapshot gives. */
  readonly members: number;
}

export type PlanGuard =
  /**
   * `unless`: the run is the first to look at the target, which it would replace; where it finds something there, it asks so
   * before anything is sent.
   */
  | { readonly kind: 'passes'; readonly unless?: 'unknown-baseline' }
  /** Nothing would be sent before the removals are approved. */
  | { readonly kind: 'holds'; readonly code: GuardCode };

/** What an approval of the removals is bound to: hashes, no identities. */
export interface PlanDigests {
  /** Both of the others and the number of removals in one: what a parked run shows, and an answer names. */
  readonly shown: string;
  /** `sha256:` and 64 hex digits: of the whole desired set. */
  readonly generation: string;
  /** The same: of the identities to be removed. */
  readonly removals: string;
}

/** What the next run would find in the source, read now. */
export interface SnapshotPlan {
  readonly counts: PlanCounts;
  /** Of the membership, 0 to 1; `null` where nothing is held. */
  readonly removedShare: number | null;
  readonly guard: PlanGuard;
  readonly digests: PlanDigests;
}

/** A run that is open, and would go on before anything else. */
export interface OpenRunPlan {
  readonly runId: string;
  readonly phase: Phase;
  /** `namespace/workflow id` of who holds it, or held it last. */
  readonly holder: string;
  /** Why it was let go (`cancelled`, `failed`, `blocked`); `null`: it is held, and perhaps running. */
  readonly released: string | null;
  /** Value-free code of why it stopped or waits. */
  readonly reason: string | null;
  /** Requests on their way, staged or unknown: they are resolved first. */
  readonly unresolvedBatches: number;
  /** Why the next run closes it instead of going on with it; `null`: it goes on first. */
  readonly givenUp: 'unsealed' | 'guard-rejected' | 'guard-expired' | 'too-old' | null;
  /** Of its sealed snapshot; `null`: it has sealed none. */
  readonly plan: {
    readonly members: number;
    /** `null` while it has not been compared with the membership. */
    readonly counts: Omit<PlanCounts, 'sourceRows' | 'excluded' | 'collapsed' | 'members'> | null;
    /** `null` where it was approved, or was not looked at yet. */
    readonly guard: PlanGuard | null;
  } | null;
}

/** A field is absent, `null` or a value: three different things. */
export interface FieldChange {
  readonly field: string;
  readonly from?: unknown;
  readonly to?: unknown;
}

/** Members by their values, in order of the identity hash. */
export interface PlanIdentities {
  /** The most that are listed of each kind. */
  readonly limit: number;
  readonly added: readonly { readonly identity: unknown; readonly payload: unknown }[];
  /** No fields: the same values, which would arrive in another form. */
  readonly changed: readonly { readonly identity: unknown; readonly fields: readonly FieldChange[] }[];
  readonly removed: readonly { readonly identity: unknown }[];
}

/** What the journal knows of the target. */
export type TargetStanding =
  /** The mirror has never run. */
  | 'never-run'
  /** The mirror has run, on another target: this one begins with nothing. */
  | 'new-target'
  | 'known';

export interface Plan {
  readonly format: 1;
  readonly mirror: string;
  readonly strategy: 'snapshot-diff' | 'native-replace';
  readonly targetKey: string;
  readonly target: TargetStanding;
  /** Of the mirror's settings as they are configured here: `sha256:` and 64 hex digits. */
  readonly settingsDigest: string;
  readonly safety: Omit<SafetySettings, 'approvalDeadlineMs'>;
  /** What `retl run` would do first. */
  readonly next: 'fresh-snapshot' | 'open-run';
  readonly openRun: OpenRunPlan | null;
  /** `null` where an open run comes first: what is fresh then is not known now. */
  readonly snapshot: SnapshotPlan | null;
  /** Of the fresh snapshot, or of what the open run has left; `null` unless asked for, and while that run has compared nothing. */
  readonly identities: PlanIdentities | null;
}

/**
 * What a run would replace: `known`: members that the journal has seen accepted, or that somebody has vouched for, or (without
 * native replacement) nothing; `unknown`: strangers may be there; `unlooked`: no run has looked yet.
 */
export type Replaced = 'known' | 'unknown' | 'unlooked';

/** As retl.beyond decides (migrations/0002). */
export function guardOf(
  counts: Pick<PlanCounts, 'held' | 'added' | 'changed' | 'removed' | 'unchanged'>,
  { maxRemovalShare, maxRemovals, emptySnapshot }: Omit<SafetySettings, 'approvalDeadlineMs'>,
  replaced: Replaced,
  moved: MovedCode | null = null,
): PlanGuard {
  if (replaced === 'unknown') return { kind: 'holds', code: 'unknown-baseline' };
  if (moved !== null) return { kind: 'holds', code: moved };
  const { held, removed, added, changed, unchanged } = counts;
  const isEmpty = held > 0 && removed >= held && added + changed + unchanged === 0;
  if (isEmpty && emptySnapshot === 'hold') return { kind: 'holds', code: 'empty-snapshot' };
  if (maxRemovals !== null && removed > maxRemovals) return { kind: 'holds', code: 'max-removals' };
  if (maxRemovalShare !== null && isMoreThan(removed, maxRemovalShare, held))
    return { kind: 'holds', code: 'max-removal-share' };
  return replaced === 'unlooked' ? { kind: 'passes', unless: 'unknown-baseline' } : { kind: 'passes' };
}

/** `part > share * whole`, in decimals as the journal counts them: no binary fraction is 29 %. */
function isMoreThan(part: number, share: number, whole: number): boolean {
  const [mantissa = '', exponent = '0'] = String(share).split('e');
  const [integer = '', fraction = ''] = mantissa.split('.');
  const power = Number(exponent) - fraction.length;
  const up = (n: number): bigint => 10n ** BigInt(Math.max(0, n));
  return BigInt(part) * up(-power) > BigInt(integer + fraction) * BigInt(whole) * up(power);
}

/** What the process that plans says, one JSON text a line; the last is not `progress`. */
export type PlanLine =
  | { readonly kind: 'progress'; readonly rows: number }
  | { readonly kind: 'plan'; readonly plan: Plan }
  | { readonly kind: 'refused'; readonly code: 'plan-not-allowed' | 'values-not-allowed' }
  | { readonly kind: 'failed'; readonly code: ErrorCode; readonly details: ErrorDetails }
  /** Its name only: nothing in it is known to be free of values. */
  | { readonly kind: 'unexpected'; readonly name: string };
