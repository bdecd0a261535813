/** A destination that is asked what its target holds: opened only to look, with foreseen failures as errors that a person reads. */

import type { Listed, ListedMember, Listing } from '../destinations/listing.ts';
import { RetlError } from '../domain/errors.ts';
import type { MirrorSettings } from '../domain/settings.ts';
import type { BoundDestination } from './binding.ts';
import type { Dependencies } from './deps.ts';
import { lookingContext } from './looking.ts';

/** @throws RetlError `destination.cannot-list`; what `work` throws */
export async function withListing<T>(
  deps: Pick<Dependencies, 'logger'>,
  settings: MirrorSettings,
  { adapter, connection, options, capabilities }: BoundDestination,
  signal: AbortSignal,
  work: (listing: Listing) => Promise<T>,
): Promise<T> {
  const cannot = () =>
    new RetlError('destination.cannot-list', { mirror: settings.mirror, type: adapter.type });
  if (capabilities.lists !== true) throw cannot();
  const writer = await adapter.open(connection, options, lookingContext(deps, settings, signal));
  try {
    if (writer.list === undefined) throw cannot();
    return await work(writer.list());
  } finally {
    await writer.close();
  }
}

/** @throws RetlError `destination.misconfigured`, `destination.unavailable` */
export function listedMembers(listed: Listed): readonly ListedMember[] {
  switch (listed.kind) {
    case 'listed':
      return listed.members;
    case 'misconfigured':
      throw new RetlError('destination.misconfigured', { listing: listed.code });
    case 'failed':
      throw new RetlError('destination.unavailable', { listing: listed.code });
  }
}
