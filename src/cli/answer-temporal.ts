/** Answers a parked run on a machine that reaches Temporal alone: by the workflow's own query and updates. */

import type { TemporalClient } from '../client/connect.ts';
import type { UpdateName } from '../domain/messages.ts';
import type { Answered, Asked } from './answered.ts';

const ANSWER_WITHIN_MS = 5_000;

/** `null` where nothing is parked, or nobody answers. */
export async function askedByTemporal(temporal: TemporalClient, mirror: string): Promise<Asked | null> {
  const { readProgress } = await import('../client/watch.ts');
  const { mirrorWorkflowId } = await import('../domain/messages.ts');
  const progress = await readProgress(temporal, mirrorWorkflowId(mirror), ANSWER_WITHIN_MS);
  if (progress === null || progress.parked === null) return null;
  const { runId, parked, counts } = progress;
  return {
    mirror,
    runId,
    parked,
    since: null,
    toAdd: counts.toAdd,
    toChange: counts.toChange,
    verdict: null,
  };
}

export async function decideByTemporal(
  temporal: TemporalClient,
  { mirror, parked }: Asked,
  answer: UpdateName,
): Promise<Answered> {
  const { answerParked } = await import('../client/answer.ts');
  const result = await answerParked(temporal, mirror, answer, { shown: parked.shown });
  if (result.kind === 'answered') return { kind: 'recorded', mirror, told: 'told' };
  return { kind: 'refused', mirror, why: result.kind === 'refused' ? result.why : result.kind };
}
