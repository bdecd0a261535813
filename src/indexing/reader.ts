/**
 * The port by which indexes are asked (design.md section 7), apart from the one by which they are built: whoever asks has fewer
 * rights. Each answer says as of which position it is; whether that will do is for src/indexing/usable.ts to judge. What an index
 * answers is what the journal would, as of that position: a contract suite holds each kind to it.
 */

import type { IndexDefinition } from '../domain/checkpoint-validation.ts';
import type { SearchedText } from '../domain/identity-text.ts';
import type { LogPosition, Sha256 } from '../domain/ids.ts';
import type { OwnBuild } from './indexer.ts';

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
  /** Canonical JSON. */
  readonly identity: string;
  readonly payloadHash: Sha256;
  /** Of its last acceptance. */
  readonly run: bigint;
  readonly position: LogPosition;
  readonly acceptedAt: Date;
  /** Since when it is held without a break. */
  readonly since: LogPosition;
  readonly sinceAt: Date;
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

export type Answer<Found> =
  | {
      readonly kind: 'answered';
      /** The build that was asked; its mark says as of which position. */
      readonly build: OwnBuild;
      readonly found: readonly Found[];
      /** Whether there are more than were asked for. */
      readonly more: boolean;
    }
  /** There is no build that readers see yet, or it is of another release, whose rows this one cannot read. */
  | { readonly kind: 'not-built' | 'other-version' };

interface Reader {
  /** Of this release. */
  readonly definition: IndexDefinition;
  close(): Promise<void>;
}

/** An index of the kind `membership-search`. */
export interface SearchReader extends Reader {
  readonly kind: 'membership-search';
  /**
   * In order of identity hash and target, so that the mirrors of one identity stand together.
   * @throws RetlError `index.unavailable` or `index.misconfigured` where its system is away or refuses
   */
  search(search: Search): Promise<Answer<FoundMember>>;
}

/** An index of the kind `membership-history`. */
export interface HistoryReader extends Reader {
  readonly kind: 'membership-history';
  /** What happened to one member, the newest first. @throws as {@link SearchReader.search} */
  changes(target: bigint, identityHash: Sha256, limit: number): Promise<Answer<FoundChange>>;
}

export type IndexReader = SearchReader | HistoryReader;
