/**
 * What the program that asks indexes is told, as JSON, and what it says, a JSON text a line; a u64 is decimal text there. Lines
 * with values go through a pipe to whoever may see them, and nowhere else.
 */

import type { ErrorCode, ErrorDetails } from './errors.ts';
import type { ChangeAction } from './found.ts';
import type { TextMatch } from './identity-text.ts';

export type AskOrder =
  | {
      readonly kind: 'find';
      readonly hashes: readonly string[];
      /** As it was typed; `null`: by hashes alone. */
      readonly text: string | null;
      readonly match: TextMatch;
      readonly mirrors: readonly string[] | null;
      readonly limit: number;
      /** Positions that an index may be behind. */
      readonly maxLag: number;
    }
  | {
      /** What indexes alone know of one member or the other: the journal is not asked. */
      readonly kind: 'recall';
      readonly target: string;
      readonly mirror: string;
      readonly hashes: readonly string[];
      readonly limit: number;
      readonly maxLag: number;
    };

/** Who has answered, as of which position of the log, and how far that was behind then. */
export interface Source {
  /** `null`: the journal itself. */
  readonly index: string | null;
  readonly position: string;
  readonly lag: { readonly positions: string; readonly ms: number };
}

export interface ToldMember {
  readonly mirror: string;
  readonly target: string;
  readonly identityHash: string;
  /** `null`: the journal has lost it. */
  readonly identity: string | null;
  readonly payloadHash: string;
  readonly runId: string;
  readonly position: string;
  readonly acceptedAt: string;
  readonly since: string;
  readonly sinceAt: string;
}

export interface ToldChange {
  readonly action: ChangeAction;
  readonly position: string;
  readonly at: string;
  readonly runId: string;
  readonly payloadHash: string | null;
}

export type AskLine =
  /** An index that cannot answer, and why. */
  | { readonly kind: 'passed-over'; readonly index: string; readonly code: ErrorCode }
  | { readonly kind: 'member'; readonly member: ToldMember }
  /** The journal could not be looked through in this time, and says nothing. */
  | { readonly kind: 'too-long'; readonly ms: number }
  /** Ends what was found. */
  | { readonly kind: 'found'; readonly source: Source; readonly more: boolean }
  | {
      readonly kind: 'changes';
      readonly identityHash: string;
      readonly source: Source;
      readonly changes: readonly ToldChange[];
      readonly more: boolean;
    }
  | {
      readonly kind: 'since';
      readonly identityHash: string;
      readonly source: Source;
      /** `null`: it does not hold the member. */
      readonly since: { readonly position: string; readonly at: string } | null;
    }
  | { readonly kind: 'refused'; readonly code: ErrorCode; readonly details: ErrorDetails };
