/**
 * Writing down what is known. An outcome is evidence: when the journal is away for a moment it is held and written again
 * (a settlement repeated exactly changes nothing, rule 6), and only given up when the journal stays away; the batch is
 * then found in `sending` and is unknown.
 */

import { setTimeout as sleep } from 'node:timers/promises';
import { journalError } from '../../journal/errors.ts';

const TRIES = 8;
const FIRST_PAUSE_MS = 100;

/** @throws JournalError: at once unless the journal is merely away, else after some 13 s of pauses. */
export async function withRetries(write: () => Promise<void>): Promise<void> {
  for (let attempt = 1; ; attempt++) {
    try {
      await write();
      return;
    } catch (error) {
      const failure = journalError(error);
      if (failure.kind !== 'unavailable' || attempt === TRIES) throw failure;
      await sleep(FIRST_PAUSE_MS * 2 ** (attempt - 1));
    }
  }
}
