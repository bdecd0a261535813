/** Answers a parked run on a machine that reaches Temporal alone: by the workflow's own query and updates. */

import type { TemporalClient } from '../client/connect.ts';
import type { UpdateName } from '../domain/messages.ts';
import type { Answered, Asked } from './answered.ts';
import { foreignRefusal } from './foreign-run.ts';

const ANSWER_WITHIN_MS = 5_000;

/**
 * The first parked run of the mirror: the usual one, else one that a schedule or a person has started under another id.
 * `null` where nothing is parked, or nobody answers.
 * @throws Refusal where what runs is not ours; RetlError `temporal.connect`
 */
export async function askedByTemporal(temporal: TemporalClient, mirror: string): Promise<Asked | null> {
  const { findRun, otherRuns } = await import('../client/find-run.ts');
  const found = await findRun(temporal, mirror);
  if (found.kind === 'other-queue') throw foreignRefusal(mirror, found);
  if (found.kind === 'none') return null;
  const others = (await otherRuns(temporal, mirror)).filter((id) => id !== found.workflowId);
  for (const workflowId of [found.workflowId, ...others]) {
    const asked = await askedBy(temporal, mirror, workflowId);
    if (asked !== null) return asked;
  }
  return null;
}

async function askedBy(temporal: TemporalClient, mirror: string, workflowId: string): Promise<Asked | null> {
  const { readProgress } = await import('../client/watch.ts');
  const progress = await readProgress(temporal, workflowId, ANSWER_WITHIN_MS);
  if (progress === null || progress.parked === null || progress.mirror !== mirror) return null;
  const { runId, parked, counts } = progress;
  const { toAdd, toChange } = counts;
  return { mirror, runId, parked, workflowId, since: null, toAdd, toChange, verdict: null };
}

export async function decideByTemporal(
  temporal: TemporalClient,
  { mirror, parked, workflowId }: Asked,
  answer: UpdateName,
): Promise<Answered> {
  const { answerParked } = await import('../client/answer.ts');
  const result = await answerParked(temporal, mirror, answer, { shown: parked.shown }, workflowId);
  if (result.kind === 'answered') return { kind: 'recorded', mirror, told: 'told' };
  return { kind: 'refused', mirror, why: result.kind === 'refused' ? result.why : result.kind };
}
