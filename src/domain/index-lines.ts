/** What the process that works for `retl index` says, a JSON text a line; a u64 becomes decimal text there. */

import type { CheckpointJson } from './checkpoint.ts';
import type { ErrorCode, ErrorDetails } from './errors.ts';

export type IndexLine =
  | {
      readonly kind: 'status';
      readonly index: string;
      readonly head: bigint;
      readonly earliest: bigint;
      readonly builds: readonly {
        readonly build: bigint;
        readonly state: 'live' | 'building';
        readonly schemaVersion: number;
        readonly rows: bigint;
        readonly position: bigint | null;
        readonly goal: bigint | null;
        readonly checkpoint: string | null;
        /** `null`: it is refused. */
        readonly lag: { readonly positions: bigint; readonly ms: number } | null;
        readonly refused: { readonly code: ErrorCode; readonly details: ErrorDetails } | null;
      }[];
    }
  | {
      readonly kind: 'followed';
      readonly index: string;
      readonly end: 'caught-up' | 'frozen';
      readonly build: bigint;
      readonly position: bigint | null;
      readonly rows: bigint;
    }
  | {
      readonly kind: 'begun';
      readonly index: string;
      readonly build: bigint;
      /** The position of a rollback; `null`: it follows the log. */
      readonly goal: bigint | null;
    }
  | {
      readonly kind: 'verified';
      readonly index: string;
      readonly position: bigint;
      readonly rows: bigint;
      /** How many of these were compared with a row of the log's; all, where there is no boundary. */
      readonly oneByOne: bigint;
      /** Up to there the log keeps only who was held, which was compared. */
      readonly boundary: bigint | null;
      readonly missing: bigint;
      readonly unexpected: bigint;
      /** How many the build, and its checkpoint, say there are. */
      readonly counted: bigint;
      readonly artifactCount: bigint | null;
      /** What keeps readers from these rows, as a rule of docs/indexes.md; `null`: nothing does. */
      readonly astray: string | null;
    }
  | {
      /** What holding an index's checkpoints to artifacts and log has found; it comes before the comparison of rows. */
      readonly kind: 'audited';
      readonly index: string;
      readonly checkpoints: number;
      readonly faults: readonly {
        readonly position: bigint;
        readonly reference: string;
        readonly code: ErrorCode;
      }[];
    }
  | {
      readonly kind: 'checkpoint';
      readonly index: string;
      readonly build: bigint;
      readonly schemaVersion: number;
      readonly position: bigint;
      readonly reference: string;
      readonly recordedAt: string;
    }
  | { readonly kind: 'shown'; readonly reference: string; readonly checkpoint: CheckpointJson }
  | {
      readonly kind: 'forgotten';
      readonly index: string;
      /** Dropped with their rows. */
      readonly builds: number;
      /** Of the same name there, from another journal: they stay. */
      readonly foreign: number;
      /** The position after which the log was kept for it; `null`: it was not held back. */
      readonly held: bigint | null;
    }
  | { readonly kind: 'refused'; readonly code: ErrorCode; readonly details: ErrorDetails };
