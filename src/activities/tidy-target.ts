/**
 * After a promotion: lets the adapter remove what the promoted set has superseded. No run depends on it, so that nothing that
 * goes wrong here is a failure of the run; the next promotion tidies again.
 */

import { type RunAttempt, withWriter } from './attempt.ts';

/** Steps of one promotion at most; each is bounded by the adapter. */
const STEPS = 20;

export async function tidyTarget(a: RunAttempt): Promise<void> {
  const warn = (code: string) =>
    a.deps.logger.warn('what was superseded could not be removed', { mirror: a.record.mirror, code });
  try {
    await withWriter(a, async ({ writer }) => {
      for (let steps = 0; steps < STEPS && !a.stop.aborted; steps++) {
        const tidied = (await writer.tidy?.()) ?? { kind: 'done' };
        if (tidied.kind === 'failed') warn(tidied.code);
        if (tidied.kind !== 'more') return;
      }
    });
  } catch (error) {
    warn(error instanceof Error ? error.name : 'error');
  }
}
