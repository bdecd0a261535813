/**
 * What the audience must hold, worked out a second time, in SQL, apart from all code of the mirror: so that a fault there
 * cannot hide itself.
 */

import type { Client } from 'pg';
import { z } from 'zod';

/** Member by identity; the value is the member's JSON with sorted keys. */
export type MemberSet = ReadonlyMap<string, string>;

export interface Difference {
  readonly missing: number;
  readonly leftOver: number;
  readonly different: number;
}

export interface ExpectedCounts {
  readonly added: number;
  readonly changed: number;
  readonly removed: number;
  readonly unchanged: number;
}

const EXPECTED = `
  SELECT encode(sha256(convert_to(lower(btrim(email, E' \\t\\n\\r')), 'UTF8')), 'hex') AS email_sha256,
         full_name, plan, points::text AS points,
         replace((updated_at AT TIME ZONE 'UTC')::text, ' ', 'T') || 'Z' AS seen_at
    FROM customers
   WHERE plan = 'vip' AND email IS NOT NULL`;

const MemberSchema = z.looseObject({ email_sha256: z.string() });

export async function expectedMembers(client: Client): Promise<MemberSet> {
  const { rows } = await client.query(EXPECTED);
  return memberSet(rows);
}

/** Members as the audience API lists them, or as the query above gives them. */
export function memberSet(members: readonly unknown[]): MemberSet {
  const set = new Map<string, string>();
  for (const member of members) {
    const fields = MemberSchema.parse(member);
    if (set.has(fields.email_sha256)) throw new Error('one member is listed twice');
    set.set(fields.email_sha256, JSON.stringify(Object.entries(fields).sort(byName)));
  }
  return set;
}

export function difference(expected: MemberSet, held: MemberSet): Difference {
  const missing = [...expected.keys()].filter((key) => !held.has(key)).length;
  const leftOver = [...held.keys()].filter((key) => !expected.has(key)).length;
  const different = [...expected].filter(([key, member]) => held.has(key) && held.get(key) !== member).length;
  return { missing, leftOver, different };
}

/** What a run from one set to the other has to do. */
export function expectedCounts(before: MemberSet, after: MemberSet): ExpectedCounts {
  const { missing, leftOver, different } = difference(after, before);
  return {
    added: missing,
    changed: different,
    removed: leftOver,
    unchanged: after.size - missing - different,
  };
}

function byName([a]: readonly [string, unknown], [b]: readonly [string, unknown]): number {
  return a < b ? -1 : a > b ? 1 : 0;
}
