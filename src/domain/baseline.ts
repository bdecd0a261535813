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
    };

/** What a file says. */
export interface BaselineSummary {
  readonly rows: number;
  readonly members: number;
  /** Rows that say of a member what another one has said. */
  readonly collapsed: number;
  /** Columns of payloads that the file lacks: the first run sends every member as a change where there are any. */
  readonly unknown: readonly string[];
  /** SHA-256 of the file, 64 hex digits. */
  readonly digest: string;
}

export type BaselineLine =
  | { readonly kind: 'summary'; readonly summary: BaselineSummary }
  | { readonly kind: 'imported'; readonly members: number }
  | { readonly kind: 'attestable'; readonly targetKey: string }
  | { readonly kind: 'attested' }
  | { readonly kind: 'failed'; readonly code: ErrorCode; readonly details: ErrorDetails }
  | { readonly kind: 'unexpected'; readonly name: string };
