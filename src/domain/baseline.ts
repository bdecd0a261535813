/** What the CLI asks of the process that imports a baseline, and what it is told: counts, names and codes only. */

import type { ErrorCode, ErrorDetails } from './errors.ts';

export interface BaselineOrder {
  readonly mirror: string;
  readonly path: string;
  /** Rows are members already, and not rows of the query. */
  readonly isMapped: boolean;
  /** `null`: only look at the file. */
  readonly confirmed: {
    /** Of the file that was looked at: SHA-256, 64 hex digits. */
    readonly digest: string;
    readonly by: string;
    readonly because: string;
  } | null;
}

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
  | { readonly kind: 'failed'; readonly code: ErrorCode; readonly details: ErrorDetails }
  | { readonly kind: 'unexpected'; readonly name: string };
