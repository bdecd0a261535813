/** Identities as rows of an index need them: a journal that has lost values is none that rows may come from. */

import { RetlError } from '../domain/errors.ts';
import type { TargetId } from '../domain/ids.ts';
import type { EntryEffects } from '../journal/log-effects.ts';
import type { SnapshotMember } from '../journal/log-snapshot.ts';
import type { RowProof, RowProofs } from '../journal/row-proof.ts';

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

/** @throws JournalError; RetlError `index.log-diverged`, rule `identity-changed`, where an identity is not what its hash was taken of */
export async function proveEffects(proofs: RowProofs, entries: readonly EntryEffects[]): Promise<void> {
  for (const { entry, effects } of entries) {
    const proof = await proofs.of(entry.target);
    for (const { identity, identityHash } of effects) prove(proof, identity, identityHash, entry.position);
  }
}

/** The same of members of a log snapshot. @throws as above */
export async function proveMembers(
  proofs: RowProofs,
  targets: readonly { readonly target: TargetId; readonly members: readonly SnapshotMember[] }[],
): Promise<void> {
  for (const { target, members } of targets) {
    const proof = await proofs.of(target);
    for (const { identity, identityHash, position } of members)
      prove(proof, identity, identityHash, position);
  }
}

function prove(proof: RowProof, identity: string | null, identityHash: Buffer, position: bigint): void {
  if (proof.fault({ identity, identityHash, removalHash: null }) === null) return;
  throw new RetlError('index.log-diverged', { rule: 'identity-changed', position: `${position}` });
}
