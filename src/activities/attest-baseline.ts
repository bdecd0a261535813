/**
 * An operator's word that a target is new and empty (design.md section 4, "Strategies": `new-empty`), where the adapter cannot
 * look. It is of one target, by its key. The destination is asked first, and goes before what anybody says.
 */

import type { BaselineWord } from '../domain/baseline.ts';
import { RetlError } from '../domain/errors.ts';
import type { MirrorSettings } from '../domain/settings.ts';
import { attestEmpty } from '../journal/baseline.ts';
import { transaction } from '../journal/pool.ts';
import type { JournalPool } from '../journal/runs.ts';
import { baselineRefused } from './baseline-refusal.ts';
import { bindDestination } from './binding.ts';
import type { Dependencies } from './deps.ts';
import { lookingContext } from './looking.ts';

type Deps = Pick<Dependencies, 'destinations' | 'configuration' | 'logger'>;

/** Resolves to the target's key, where its emptiness is to be attested. @throws RetlError: it is not, or cannot be */
export async function attestable(deps: Deps, settings: MirrorSettings, signal: AbortSignal): Promise<string> {
  const { mirror, baseline } = settings;
  if (baseline.kind !== 'new-empty')
    throw new RetlError('run.baseline-not-new-empty', { baseline: baseline.kind });
  const { adapter, connection, options, targetKey } = bindDestination(deps, settings);
  const writer = await adapter.open(connection, options, lookingContext(deps, settings, signal));
  try {
    const seen = await writer.checkEmpty();
    switch (seen.kind) {
      case 'cannot-look':
        return targetKey;
      case 'empty':
        throw new RetlError('run.baseline-seen', { mirror });
      case 'not-empty':
        throw new RetlError('destination.not-empty', { mirror });
      case 'misconfigured':
        throw new RetlError('destination.misconfigured', { check: seen.code });
      case 'failed':
        throw new RetlError('destination.unavailable', { mirror, reason: seen.code });
    }
  } finally {
    await writer.close();
  }
}

/** @param targetKey as it was shown to the person. @throws RetlError, JournalError: nothing was recorded */
export async function attestBaseline(
  journal: JournalPool,
  mirror: string,
  targetKey: string,
  word: BaselineWord,
): Promise<void> {
  await transaction(journal, async (db) => {
    const answer = await attestEmpty(db, { mirror, targetKey, ...word });
    if (answer.kind === 'refused') throw baselineRefused(mirror, answer.code, answer.other);
  });
}
