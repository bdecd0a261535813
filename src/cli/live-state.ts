/** What Temporal can add to the journal's word on a run: what it is doing now, or that nobody holds it any more. */

import type { Progress } from '../domain/messages.ts';
import type { RunSummary } from '../journal/inspect.ts';
import type { Project } from './environment.ts';
import { workflowOf } from './journal.ts';
import { lookAtTemporal } from './temporal.ts';

export type LiveState =
  | { readonly kind: 'answers'; readonly progress: Progress }
  /** Its workflow runs, and no worker answers for it. */
  | { readonly kind: 'no-worker'; readonly taskQueue: string }
  /** Its workflow is over without a word to the journal; `status` is Temporal's word for how. */
  | { readonly kind: 'abandoned'; readonly status: string }
  /** Nothing runs, or Temporal cannot be asked: the journal has said what is certain. */
  | { readonly kind: 'unknown' };

const ANSWER_WITHIN_MS = 2_000;
const UNKNOWN: LiveState = { kind: 'unknown' };

export async function liveState(project: Project, run: RunSummary | null): Promise<LiveState> {
  if (run === null || run.state !== 'open' || run.released !== null) return UNKNOWN;
  try {
    return await lookAtTemporal(project, async (temporal) => {
      const workflowId = workflowOf(run, temporal.namespace);
      if (workflowId === null) return UNKNOWN;
      const { describeHolder } = await import('../client/describe.ts');
      const { readProgress } = await import('../client/watch.ts');
      const holder = await describeHolder(temporal, run.mirror, workflowId);
      if (holder.kind === 'closed') return { kind: 'abandoned', status: holder.status };
      if (holder.kind === 'none') return UNKNOWN;
      const progress = await readProgress(temporal, workflowId, ANSWER_WITHIN_MS);
      if (progress === null) return { kind: 'no-worker', taskQueue: temporal.taskQueue };
      // An execution of the same id that is only now being admitted, or was refused, speaks of no run or of another.
      return progress.runId === run.runId ? { kind: 'answers', progress } : UNKNOWN;
    });
  } catch {
    return UNKNOWN;
  }
}
