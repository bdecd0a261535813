/** What a row means to the destination (design.md section 2). */

import type { SourceRow, SourceValue } from './source-row.ts';

export type JsonObject = { readonly [key: string]: SourceValue };

/** A member as a mapping returns it. `remove` may depend on `identity` and the configuration only. */
export interface Member {
  readonly identity: JsonObject;
  readonly upsert: JsonObject;
  readonly remove: JsonObject;
}

/**
 * A mapping written in TypeScript. It must be deterministic for one configuration revision: no clock, no randomness,
 * no input but the row. `[]` excludes the row on purpose; an error fails the run.
 */
export interface MirrorProjection<Row extends SourceRow = SourceRow> {
  /** Validates a row before it is projected; may not alter it. A zod schema fits. */
  readonly rowType: { safeParse(row: unknown): { success: true; data: Row } | { success: false } };
  project(row: Row): readonly Member[];
}

/** The most members that one row may give. */
export const MAX_MEMBERS_PER_ROW = 64;

/** A member ready for the journal: canonical JSON texts. */
export interface EncodedMember {
  readonly identity: string;
  readonly upsert: string;
  /** `null` when the removal payload is the identity itself, byte for byte. */
  readonly remove: string | null;
}

/** A mapped row: its source key, and the members it gives (none: excluded on purpose). */
export interface MappedRow {
  /** Canonical JSON array of the exact key texts, so that parts can never run together. */
  readonly sourceKey: string;
  readonly members: readonly EncodedMember[];
}
