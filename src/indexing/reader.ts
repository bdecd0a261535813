/**
 * The port by which indexes are asked (design.md section 7), apart from the one by which they are built: whoever asks has fewer
 * rights. Each answer says as of which position it is; whether that will do is for src/indexing/usable.ts to judge. What an index
 * answers is what the journal would, as of that position: a contract suite holds each kind to it.
 */

import type { IndexDefinition } from '../domain/checkpoint-validation.ts';
import type { FoundChange, IndexedMember, Search } from '../domain/found.ts';
import type { Sha256 } from '../domain/ids.ts';
import type { OwnBuild } from './indexer.ts';

export type { ChangeAction, FoundChange, IndexedMember, Search } from '../domain/found.ts';

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
  search(search: Search): Promise<Answer<IndexedMember>>;
}

/** An index of the kind `membership-history`. */
export interface HistoryReader extends Reader {
  readonly kind: 'membership-history';
  /** What happened to one member, the newest first. @throws as {@link SearchReader.search} */
  changes(target: bigint, identityHash: Sha256, limit: number): Promise<Answer<FoundChange>>;
}

export type IndexReader = SearchReader | HistoryReader;
