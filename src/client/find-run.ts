/**
 * Finds the run of a mirror that is under way, however it was started, and keeps clear of another project's or environment's:
 * two of them may share a namespace, and both call their mirrors alike. What is ours runs on our task queue.
 */

import { ServiceError } from '@temporalio/client';
import { MIRROR_WORKFLOW, mirrorWorkflowId, RUN_ATTRIBUTES } from '../domain/messages.ts';
import type { TemporalClient } from './connect.ts';
import { describeHolder } from './describe.ts';
import { temporalFailure } from './failure.ts';

export type UnderWay =
  | { readonly kind: 'ours'; readonly workflowId: string }
  /** It belongs to the workers of another task queue, and is not to be spoken to from here. */
  | { readonly kind: 'other-queue'; readonly workflowId: string; readonly taskQueue: string }
  | { readonly kind: 'none'; readonly workflowId: string };

/**
 * @param workflowId where somebody knows it (the journal names a holder); else the usual one is looked at, then those of
 *   schedules and of people.
 * @throws RetlError `temporal.connect`
 */
export async function findRun(
  temporal: TemporalClient,
  mirror: string,
  workflowId?: string,
): Promise<UnderWay> {
  const usual = workflowId ?? mirrorWorkflowId(mirror);
  const found = await describeHolder(temporal, mirror, usual);
  if (found.kind === 'open' && found.taskQueue === temporal.taskQueue)
    return { kind: 'ours', workflowId: usual };
  const [other] = workflowId === undefined ? await otherRuns(temporal, mirror) : [];
  if (other !== undefined) return { kind: 'ours', workflowId: other };
  return found.kind === 'open'
    ? { kind: 'other-queue', workflowId: usual, taskQueue: found.taskQueue }
    : { kind: 'none', workflowId: usual };
}

/**
 * Ids of our runs of the mirror that have another id than the usual one, oldest first. Temporal's list lags by moments, and
 * tells of a run with an id of somebody's own only where the search attributes are registered.
 * @throws RetlError `temporal.connect`
 */
export async function otherRuns(temporal: TemporalClient, mirror: string): Promise<readonly string[]> {
  const byId = `WorkflowId STARTS_WITH "${mirrorWorkflowId(mirror)}-"`;
  try {
    return await listed(temporal, mirror, `(${byId} OR ${RUN_ATTRIBUTES.mirror} = "${mirror}")`);
  } catch (error) {
    if (!isRefused(error)) throw temporalFailure(error, 'list');
  }
  return listed(temporal, mirror, byId).catch((error: unknown) => {
    throw temporalFailure(error, 'list');
  });
}

const MOST = 100;

async function listed(
  { client, taskQueue }: TemporalClient,
  mirror: string,
  which: string,
): Promise<readonly string[]> {
  const query = `WorkflowType = "${MIRROR_WORKFLOW}" AND ExecutionStatus = "Running" AND ${which}`;
  const found: { readonly id: string; readonly at: number }[] = [];
  for await (const run of client.workflow.list({ query, pageSize: MOST })) {
    const named = run.searchAttributes[RUN_ATTRIBUTES.mirror]?.[0];
    // A run that says whose it is, is believed; one that does not must have an id that a schedule has made.
    const isIts = named === undefined ? isScheduled(run.workflowId, mirror) : named === mirror;
    const isUsual = run.workflowId === mirrorWorkflowId(mirror);
    if (isIts && !isUsual && run.taskQueue === taskQueue)
      found.push({ id: run.workflowId, at: run.startTime.getTime() });
    if (found.length === MOST) break;
  }
  return found.sort((a, b) => a.at - b.at).map(({ id }) => id);
}

/** Temporal appends the time: `mirror/vip-2026-11-30T15:00:00Z` is of `vip`, `mirror/vip-north` is not. */
function isScheduled(workflowId: string, mirror: string): boolean {
  const usual = mirrorWorkflowId(mirror);
  return workflowId.startsWith(usual) && /^-\d{4}-\d\d-\d\dT[\d:.]+Z$/.test(workflowId.slice(usual.length));
}

/** gRPC's INVALID_ARGUMENT: the attribute is not registered. */
const INVALID_ARGUMENT = 3;

function isRefused(error: unknown): boolean {
  const cause = error instanceof ServiceError ? error.cause : error;
  return cause instanceof Error && 'code' in cause && cause.code === INVALID_ARGUMENT;
}
