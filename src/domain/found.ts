/** What is asked of members, and what is found: by an index, or by the journal, in the same words. */

import type { SearchedText } from './identity-text.ts';
import type { LogPosition, Sha256 } from './ids.ts';

/** Members are found that have one of the hashes, and those that have the text. */
export interface Search {
  readonly hashes: readonly Sha256[];
  readonly text: SearchedText | null;
  /** `null`: whichever mirror it is. */
  readonly mirrors: readonly string[] | null;
  readonly limit: number;
}

/** A member as a mirror's target holds it. */
export interface FoundMember {
  readonly mirror: string;
  readonly target: bigint;
  readonly identityHash: Sha256;
  /** Canonical JSON; `null`: the journal has lost it. */
  readonly identity: string | null;
  readonly payloadHash: Sha256;
  /** Of its last acceptance. */
  readonly run: bigint;
  readonly position: LogPosition;
  readonly acceptedAt: Date;
  /** Since when it is held without a break. */
  readonly since: LogPosition;
  readonly sinceAt: Date;
}

/** As an index has it, which makes no row of a member whose identity it was not given. */
export interface IndexedMember extends FoundMember {
  readonly identity: string;
}

/** `held`: how it stood when the history of the index begins; what was before has been compacted away. */
export type ChangeAction = 'add' | 'change' | 'remove' | 'held';

/** A change of one member; that it was sent again unchanged is none. */
export interface FoundChange {
  readonly action: ChangeAction;
  readonly position: LogPosition;
  readonly at: Date;
  readonly run: bigint;
  /** `null` for a removal. */
  readonly payloadHash: Sha256 | null;
}
