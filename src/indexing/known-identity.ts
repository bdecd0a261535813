/** Identities as rows of an index need them: a journal that has lost values is none that rows may come from. */

import { RetlError } from '../domain/errors.ts';
import type { EntryEffects } from '../journal/log-effects.ts';

/** @param position of the entry that it was accepted with. @throws RetlError `index.log-diverged`, rule `values-missing` */
export function knownIdentity(identity: string | null | undefined, position: bigint): string {
  if (identity === null || identity === undefined) throw valuesMissing(position);
  return identity;
}

/**
 * Values come as one text for an entry, without those that are missing, so that those behind would be taken for others'.
 * @throws RetlError as above
 */
export function requireIdentities({ entry, columns }: EntryEffects): void {
  if (columns.count > 0 && columns.identities?.length !== columns.count) throw valuesMissing(entry.position);
}

export function valuesMissing(position: bigint): RetlError {
  return new RetlError('index.log-diverged', { rule: 'values-missing', position: `${position}` });
}
