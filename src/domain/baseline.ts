/** What the CLI asks of the process that sees to baselines, and what it is told: counts, names and codes only. */

import type { ErrorCode, ErrorDetails } from './errors.ts';

/** Who decides, and why: kept in the journal. */
export interface BaselineWord {
  readonly by: string;
  readonly because: string;
}

export type BaselineOrder =
  | {
      readonly verb: 'import';
      readonly mirror: string;
      readonly path: string;
      /** Rows are members already, and not rows of the query. */
      readonly isMapped: boolean;
      /** `null`: only look at the file. `digest`: of the file that was looked at, SHA-256, 64 hex digits. */
      readonly confirmed: (BaselineWord & { readonly digest: string }) | null;
    }
  | {
      readonly verb: 'attest';
      readonly mirror: string;
      /** `null`: only find out whether there is something to attest. `targetKey`: of the target that was shown. */
      readonly confirmed: (BaselineWord & { readonly targetKey: string }) | null;
    }
  | {
      readonly verb: 'verify';
      readonly mirror: string;
      /** The most members of each kind to show by their values; `null`: none. */
      readonly identities: number | null;
    }
  | {
      readonly verb: 'adopt';
      readonly mirror: string;
      /** `null`: only list. `digest`: of what was listed. */
      readonly confirmed: (BaselineWord & { readonly digest: string }) | null;
    };

/** What a target says that it holds, against what the journal knows of it. */
export interface Verification {
  readonly mirror: string;
  readonly targetKey: string;
  /** Whether the journal knows what the target held before the first run. */
  readonly known: boolean;
  /** Members that the journal holds, and that the target tells of. */
  readonly held: number;
  readonly listed: number;
  readonly same: number;
  readonly missing: number;
  readonly unexpected: number;
  readonly different: number;
  /** There, and their payloads could not be compared: the journal does not know them whole, or the target does not tell. */
  readonly uncompared: number;
  /** Told of more than once. */
  readonly repeated: number;
  /** A run was under way: what it was sending may be among the differences. */
  readonly moving: boolean;
  /** Requests of an open run of which nobody knows whether they were applied. */
  readonly unresolvedBatches: number;
  readonly identities: VerifiedIdentities | null;
}

/** JSON values; for `retl_reader` alone. */
export interface VerifiedIdentities {
  readonly limit: number;
  readonly missing: readonly unknown[];
  readonly unexpected: readonly unknown[];
  readonly different: readonly unknown[];
}

/** What a file, or a listing, says. */
export interface BaselineSummary {
  readonly rows: number;
  readonly members: number;
  /** Rows that say of a member what another one has said. */
  readonly collapsed: number;
  /** Columns of payloads that the file lacks: the first run sends every member as a change where there are any. */
  readonly unknown: readonly string[];
  /** SHA-256 of the file, or of the members listed, 64 hex digits. */
  readonly digest: string;
}

export type BaselineLine =
  | { readonly kind: 'summary'; readonly summary: BaselineSummary }
  | { readonly kind: 'imported'; readonly members: number }
  | { readonly kind: 'attestable'; readonly targetKey: string }
  | { readonly kind: 'attested' }
  | { readonly kind: 'progress'; readonly rows: number }
  | { readonly kind: 'verified'; readonly verification: Verification }
  | { readonly kind: 'refused'; readonly code: 'plan-not-allowed' | 'values-not-allowed' }
  /** Told to stop; nothing was changed. */
  | { readonly kind: 'stopped' }
  | { readonly kind: 'failed'; readonly code: ErrorCode; readonly details: ErrorDetails }
  | { readonly kind: 'unexpected'; readonly name: string };
