/** What the journal would refuse a run for, found out beforehand and without writing (design.md section 4, Configuration). */

import { RetlError } from '../domain/errors.ts';
import type { MirrorSettings } from '../domain/settings.ts';
import type { Queryable } from '../journal/pool.ts';
import { ownerAmong, type Standing } from '../journal/standing.ts';

type Asked = Pick<MirrorSettings, 'mirror' | 'strategy' | 'baseline'>;

/** @throws RetlError `run.strategy-changed` */
export function requireStrategy(standing: Standing, { mirror, strategy }: Asked): void {
  if (standing.strategy !== null && standing.strategy !== strategy)
    throw new RetlError('run.strategy-changed', { mirror, 'its strategy': standing.strategy });
}

/** @throws RetlError `run.target-owned` */
export function requireOwnTarget({ target }: Standing, { mirror }: Asked): void {
  if (target !== null && target.owner !== mirror)
    throw new RetlError('run.target-owned', { mirror, owner: target.owner });
}

/** @param removesFrom keys of other targets that its removals would go into. @throws RetlError `run.removes-elsewhere`; JournalError */
export async function requireOwnRemovals(
  db: Queryable,
  { mirror }: Asked,
  removesFrom: readonly string[],
): Promise<void> {
  const owner = await ownerAmong(db, mirror, removesFrom);
  if (owner !== null) throw new RetlError('run.removes-elsewhere', { mirror, owner });
}

/** @param form of the mirror as it is now; empty: identities speak for themselves. @throws RetlError `run.identity-moved` */
export function requireIdentity({ target }: Standing, { mirror }: Asked, form: string): void {
  const held = target?.identityForm ?? '';
  if (held !== '' && form !== '' && held !== form) throw new RetlError('run.identity-moved', { mirror });
}

/** @throws RetlError `run.baseline-missing` */
export function requireBaseline({ target }: Standing, { mirror, baseline }: Asked): void {
  if (baseline.kind === 'tracked' && (target === null || target.proof === null))
    throw new RetlError('run.baseline-missing', { mirror });
}
