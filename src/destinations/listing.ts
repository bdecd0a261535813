/**
 * What a target holds, as it tells it itself: an optional, read-only capability of a writer (design.md section 4, "Strategies":
 * a baseline may be verified). The core compares it with what the journal knows; it never decides what a run sends.
 */

/** A member in the target's own words. */
export interface ListedMember {
  /**
   * Canonical JSON that stands for the identity at the target: the same for a member, whoever tells of it. A field that is null says
   * that the target has none there: nobody's member, and not the same as any other such one.
   */
  readonly identity: string;
  /** A text that is equal where the target holds equal payloads; `null`: it does not say, or not for this member. */
  readonly payload: string | null;
}

/** A member as requests carry it: canonical JSON. */
export interface SentMember {
  readonly identity: string;
  readonly payload: string;
}

export type Listed =
  | { readonly kind: 'listed'; readonly members: readonly ListedMember[] }
  /** Asking again would bring the same. `code` is a stable word without a value, as in the port. */
  | { readonly kind: 'misconfigured'; readonly code: string }
  /** It may answer later. */
  | { readonly kind: 'failed'; readonly code: string };

/** Members in one page of {@link Listing.pages}, and in one call of {@link Listing.asListed}, at most. */
export const LISTING_PAGE = 1_000;

export interface Listing {
  /**
   * Every member that the target holds, in any order, from one state of it where it can tell one; nothing is kept in memory but a
   * page. What is no `listed` is the last one: the listing is not whole then. The context's signal ends it as `failed`.
   */
  pages(): AsyncIterable<Listed>;
  /** How the target would tell of these members if it held them, in their order. Changes nothing there. */
  asListed(members: readonly SentMember[]): Promise<Listed>;
}
