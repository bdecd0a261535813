/**
 * Lets the adapter remove what a promoted set has superseded: after the promotion, and by maintenance, for what readers needed
 * still. No run depends on it, so that nothing that goes wrong here is a failure of one; whoever comes next tidies again.
 */

import { type RunAttempt, withWriter } from './attempt.ts';

/** Steps of one promotion at most; each is bounded by the adapter. */
const STEPS = 20;

export interface TidiedTarget {
  /** `failed`: the destination is away, or its settings are broken. */
  readonly kind: 'done' | 'more' | 'failed';
  /** Steps in which something was removed. */
  readonly removals: number;
}

export async function tidyTarget(
  a: Pick<RunAttempt, 'deps' | 'attempt' | 'record' | 'settings' | 'stop'>,
): Promise<TidiedTarget> {
  const warn = (code: string) =>
    a.deps.logger.warn('what was superseded could not be removed', { mirror: a.record.mirror, code });
  let removals = 0;
  try {
    return await withWriter(a, async ({ writer }): Promise<TidiedTarget> => {
      for (let steps = 0; steps < STEPS && !a.stop.aborted; steps++) {
        const tidied = (await writer.tidy?.()) ?? { kind: 'done' };
        if (tidied.kind === 'failed') warn(tidied.code);
        if (tidied.kind !== 'more') return { kind: tidied.kind, removals };
        removals += 1;
      }
      return { kind: 'more', removals };
    });
  } catch (error) {
    warn(error instanceof Error ? error.name : 'error');
    return { kind: 'failed', removals };
  }
}
