/**
 * Takes what a destination lists for the baseline of a `tracked` target (design.md section 4, "Strategies": "imported or verified").
 * It becomes true as an imported file does. Payloads are not taken over, for a target does not tell what they were before they
 * became its own: the first run sends every member that stays once.
 */

import type { Listing } from '../destinations/listing.ts';
import type { BaselineSummary, BaselineWord } from '../domain/baseline.ts';
import { canonicalJson } from '../domain/canonical-json.ts';
import { RetlError } from '../domain/errors.ts';
import { hexOf } from '../domain/ids.ts';
import { encodeMember } from '../domain/projection.ts';
import type { MirrorSettings } from '../domain/settings.ts';
import type { JournalPool } from '../journal/runs.ts';
import { DesiredSet } from '../planning/desired-set.ts';
import { listedIdentity } from '../planning/listed-identity.ts';
import { MemberTable } from '../planning/member-table.ts';
import { type RowSink, rowReader } from '../planning/row-reader.ts';
import { type BoundDestination, bindSource, memberForm } from './binding.ts';
import type { Dependencies } from './deps.ts';
import { boundTo, importMembers, largestPayloads } from './import-baseline.ts';
import { listedMembers, withListing } from './listing.ts';

type Deps = Pick<Dependencies, 'sources' | 'destinations' | 'configuration' | 'logger'>;

export interface AdoptOptions {
  readonly signal: AbortSignal;
  /** Hears how many members have been listed. */
  readonly onProgress: (members: number) => void;
}

/** What is listed now. @throws RetlError */
export async function inspectListing(
  deps: Deps,
  settings: MirrorSettings,
  options: AdoptOptions,
): Promise<BaselineSummary> {
  const destination = boundTo(deps, settings);
  return withListing(deps, settings, destination, options.signal, async (listing) => {
    const members = new MemberTable();
    const limits = { ...largestPayloads(destination), keyTypes: null, removesEach: true };
    const set = new DesiredSet(members, limits, null);
    const read = await reader(deps, settings, destination, options);
    await read(listing, set, async () => undefined);
    set.check('[]');
    const { added, collapsed } = members.counts;
    const digest = members.generationDigest();
    return { rows: set.sourceRows, members: added, collapsed, unknown: ['*'], digest };
  });
}

/** Lists again, and imports it where it is what was shown. @throws RetlError, JournalError: nothing was imported */
export async function adoptListing(
  deps: Deps,
  journal: JournalPool,
  settings: MirrorSettings,
  order: BaselineWord & { readonly digest: string },
  options: AdoptOptions,
): Promise<number> {
  const destination = boundTo(deps, settings);
  const read = await reader(deps, settings, destination, options);
  const { by, because, digest } = order;
  return withListing(deps, settings, destination, options.signal, (listing) =>
    importMembers(deps, journal, settings, destination, {
      word: { by, because },
      listed: true,
      load: (sink, drain) => read(listing, sink, drain),
      check({ generationDigest }) {
        if (generationDigest === null || hexOf(generationDigest) !== digest)
          throw new RetlError('run.baseline-moved', { mirror: settings.mirror });
      },
    }),
  );
}

type Read = (listing: Listing, sink: RowSink, drain: () => Promise<void>) => Promise<void>;

async function reader(
  deps: Deps,
  settings: MirrorSettings,
  destination: BoundDestination,
  { signal, onProgress }: AdoptOptions,
): Promise<Read> {
  const source = bindSource(deps, settings);
  const columns = await source.adapter.describe(source.connection, settings.source.query, signal);
  const identityOf = listedIdentity(settings.mapping, columns);
  return async (listing, sink, drain) => {
    let members = 0;
    const map = (identity: ReturnType<typeof identityOf>) => {
      members += 1;
      return {
        sourceKey: `["${members}"]`,
        members: [encodeMember({ identity, upsert: identity, remove: identity })],
      };
    };
    // The payload is not known, and is never sent: it need not be one.
    const { payloadSchemas, ...form } = memberForm(destination);
    const schemas =
      payloadSchemas?.remove === undefined ? {} : { payloadSchemas: { remove: payloadSchemas.remove } };
    const add = rowReader(map, { ...form, ...schemas }, sink, UNFORGIVING);
    for await (const page of listing.pages()) {
      const listed = listedMembers(page);
      const identities = listed.map(({ identity }) => identityOf(identity));
      await requireSame(listing, identities, listed);
      for (const identity of identities) {
        add(identity);
        await drain();
      }
      onProgress(members);
    }
    // A target that lists nobody is one whose rows are hidden far more often than one that is empty.
    if (members === 0) throw new RetlError('data.baseline-listing', { rule: 'no-rows' });
  };
}

/** The first row that breaks a rule ends it. */
const UNFORGIVING = {
  any: false,
  add(error: unknown): never {
    throw error;
  },
};

/** The mapping's form of an identity must lead back to the member that was listed. */
async function requireSame(
  listing: Listing,
  identities: readonly Readonly<Record<string, string | number | boolean>>[],
  listed: readonly { readonly identity: string }[],
): Promise<void> {
  const sent = identities.map((identity) => {
    const text = canonicalJson(identity);
    return { identity: text, payload: text };
  });
  const back = listedMembers(await listing.asListed(sent));
  const same = listed.every(({ identity }, index) => back[index]?.identity === identity);
  if (!same) throw new RetlError('data.baseline-listing', { rule: 'identity-form' });
}
