/** Members of one row that share an identity: identical ones are one member, conflicting ones fail the row. */

import type { EncodedMember } from './member.ts';
import { RowFailure } from './row-failure.ts';

/** @throws RowFailure `data.conflicting-payloads`. */
export function collapse(members: readonly EncodedMember[]): readonly EncodedMember[] {
  if (members.length < 2) return members;
  const byIdentity = new Map<string, EncodedMember>();
  for (const member of members) {
    const seen = byIdentity.get(member.identity);
    if (seen === undefined) byIdentity.set(member.identity, member);
    else if (seen.upsert !== member.upsert || seen.remove !== member.remove) {
      throw new RowFailure('data.conflicting-payloads', { rule: 'within-one-row' });
    }
  }
  return [...byIdentity.values()];
}
