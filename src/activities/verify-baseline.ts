/**
 * Compares what a target says that it holds with what the journal knows of it: the membership, or before a first run the imported
 * baseline (design.md section 4, "Strategies": `tracked`). Nothing is changed anywhere, nothing of the journal stays open while
 * the target is read, and what a run sends never depends on it.
 */

import { LISTING_PAGE, type Listing } from '../destinations/listing.ts';
import type { Verification, VerifiedIdentities } from '../domain/baseline.ts';
import { RetlError } from '../domain/errors.ts';
import type { MirrorSettings } from '../domain/settings.ts';
import {
  type AcceptedValues,
  acceptedValues,
  type HeldValues,
  heldValues,
  readHeld,
} from '../journal/held-members.ts';
import { consistently } from '../journal/pool.ts';
import type { JournalPool } from '../journal/runs.ts';
import { type Moment, momentOf, type Standing, standingOf } from '../journal/standing.ts';
import { requireIdentity, requireOwnTarget, requireStrategy } from '../planning/admissible.ts';
import { ListedSet } from '../planning/listed-set.ts';
import { MemberTable } from '../planning/member-table.ts';
import { type BoundDestination, bindDestination } from './binding.ts';
import type { Dependencies } from './deps.ts';
import { listedMembers, withListing } from './listing.ts';

type Deps = Pick<Dependencies, 'destinations' | 'configuration' | 'logger'>;

export interface VerifyOptions {
  /** The most members of each kind to show by their values; `null`: none. */
  readonly identities: number | null;
  readonly signal: AbortSignal;
  /** Hears how many members have been told of. */
  readonly onProgress: (members: number) => void;
}

/** @throws RetlError `destination.*`, `run.strategy-changed`, `run.target-owned`, `run.identity-moved`; JournalError */
export async function verifyBaseline(
  deps: Deps,
  journal: JournalPool,
  settings: MirrorSettings,
  options: VerifyOptions,
): Promise<Verification> {
  const bound = bindDestination(deps, settings);
  return withListing(deps, settings, bound, options.signal, async (listing) => {
    const { standing, before, sequences } = await lookUp(journal, settings, bound);
    const set = new ListedSet(bound.capabilities.identityFolding);
    const gone = await holdAll(journal, listing, sequences, set);
    const shown = await tellAll(listing, set, options);
    const after = await consistently(journal, (db) => momentOf(db, settings.mirror));
    const { held: _, ...counts } = set.counts;
    return {
      mirror: settings.mirror,
      targetKey: bound.targetKey,
      known: (standing.target?.proof ?? null) !== null,
      held: sequences.length,
      ...counts,
      listed: counts.same + counts.different + counts.uncompared + counts.unexpected + counts.repeated,
      moving: gone || before.isHeld || after.isHeld || before.stamp !== after.stamp,
      unresolvedBatches: standing.openRun?.unresolvedBatches ?? 0,
      identities: options.identities === null ? null : await tell(journal, set, shown, options.identities),
    };
  });
}

interface Known {
  readonly standing: Standing;
  readonly before: Moment;
  /** The operations by which members are held. */
  readonly sequences: BigUint64Array;
}

async function lookUp(
  journal: JournalPool,
  settings: MirrorSettings,
  { targetKey, identityForm }: BoundDestination,
): Promise<Known> {
  return consistently(journal, async (db) => {
    const standing = await standingOf(db, settings.mirror, targetKey);
    requireStrategy(standing, settings);
    requireOwnTarget(standing, settings);
    requireIdentity(standing, settings, identityForm);
    const before = await momentOf(db, settings.mirror);
    const members = new MemberTable();
    if (standing.target !== null) await readHeld(db, standing.target.id, members);
    return { standing, before, sequences: members.heldSequences() };
  });
}

/** Resolves to whether some are held no more by now: a run has moved on. */
async function holdAll(
  journal: JournalPool,
  listing: Listing,
  sequences: BigUint64Array,
  set: ListedSet,
): Promise<boolean> {
  let gone = false;
  for (let from = 0; from < sequences.length; from += LISTING_PAGE) {
    const wanted = [...sequences.subarray(from, from + LISTING_PAGE)];
    const values = await consistently(journal, (db) => acceptedValues(db, wanted));
    gone ||= values.size < wanted.length;
    const known = [...values];
    const listed = listedMembers(await listing.asListed(known.map(([, held]) => sentOf(held))));
    for (const [index, [sequence]] of known.entries()) {
      const member = listed[index];
      if (member === undefined)
        throw new Error('the destination has told of fewer members than were asked about');
      set.hold(member, sequence);
    }
  }
  return gone;
}

/** @throws RetlError `journal.damaged` */
function sentOf({ identity, payload }: AcceptedValues): HeldValues {
  if (identity === null || payload === null) throw new RetlError('journal.damaged', { rule: 'missing' });
  return { identity, payload };
}

/** What is shown of a listing as it goes by: the first of each kind. */
interface Shown {
  readonly unexpected: string[];
  readonly different: bigint[];
}

async function tellAll(
  listing: Listing,
  set: ListedSet,
  { identities, onProgress }: VerifyOptions,
): Promise<Shown> {
  const shown: Shown = { unexpected: [], different: [] };
  let members = 0;
  for await (const page of listing.pages()) {
    for (const member of listedMembers(page)) {
      const { match, sequence } = set.tell(member);
      const most = identities ?? 0;
      if (match === 'unexpected' && shown.unexpected.length < most) shown.unexpected.push(member.identity);
      if (match === 'different' && sequence !== null && shown.different.length < most)
        shown.different.push(sequence);
      members += 1;
    }
    onProgress(members);
  }
  return shown;
}

async function tell(
  journal: JournalPool,
  set: ListedSet,
  { unexpected, different }: Shown,
  limit: number,
): Promise<VerifiedIdentities> {
  const missing = set.missing(limit);
  const values = await consistently(journal, (db) => heldValues(db, [...missing, ...different]));
  const identities = (sequences: readonly bigint[]): readonly unknown[] =>
    sequences.flatMap((sequence) => {
      const found = values.get(sequence);
      return found === undefined ? [] : [JSON.parse(found.identity)];
    });
  return {
    limit,
    missing: identities(missing),
    unexpected: unexpected.map((identity): unknown => JSON.parse(identity)),
    different: identities(different),
  };
}
