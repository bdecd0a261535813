/**
 * The commit just before the first byte (rule 3), whose answer may be lost. What is found in `sending` later is unknown, and
 * may be so for ever; but the attempt that made the commit, and has not sent yet, knows that nothing has left.
 */

import type { BatchId } from '../../domain/ids.ts';
import { areSending } from '../../journal/batches.ts';
import type { Attempt, JournalPool } from '../../journal/runs.ts';
import { SEND_MARGIN_MS } from './policy.ts';
import { withRetries } from './record.ts';

/** Reason of a request that was cleared to leave, and was then held back too long to be let go. */
export const SENT_TOO_LATE = 'sent-too-late';

/** Readings in ms of two clocks: one that nobody sets, and one that goes on while the machine sleeps. */
export type Clocks = () => readonly [monotonic: number, wall: number];

const clocks: Clocks = () => [performance.now(), Date.now()];

/**
 * Begins just before the commit of `sending`, and says whether the request may still leave. A worker that was frozen or
 * suspended in between wakes up to a destination that may have moved on: it sends nothing (rule 9 names the window that this
 * narrows). A wall clock that is set forward meanwhile holds a request back for nothing, which is the harmless error.
 */
export class Clearance {
  readonly #begun: readonly [number, number];

  constructor(private readonly read: Clocks = clocks) {
    this.#begun = read();
  }

  get tooLate(): boolean {
    const now = this.read();
    return now.some((reading, i) => reading - (this.#begun[i] ?? 0) > SEND_MARGIN_MS);
  }
}

/**
 * Marks batches as sending by `commit`, tried again while the journal is away; resolves once they are, by this attempt, and
 * none has been sent. @throws JournalError
 */
export async function markedOnce(
  journal: JournalPool,
  attempt: Attempt,
  ids: readonly BatchId[],
  commit: () => Promise<void>,
): Promise<void> {
  let tried = false;
  await withRetries(async () => {
    if (tried && (await areSending(journal, attempt, ids))) return;
    try {
      await commit();
    } catch (error) {
      // The server may have gone on with the first try, and refuses the second one for that.
      if (tried && (await areSending(journal, attempt, ids))) return;
      throw error;
    } finally {
      tried = true;
    }
  });
}
