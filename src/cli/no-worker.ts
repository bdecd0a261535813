/**
 * What is said where nobody works on what Temporal holds. Every command that has Temporal start something goes through here:
 * at an address that nobody has named whatever answers may be another project's Temporal, and there it would wait for ever.
 */

import type { TemporalClient } from '../client/connect.ts';
import type { Invocation } from './command.ts';
import { EXIT } from './exit-codes.ts';
import { Refusal } from './failures.ts';
import { withTemporal } from './temporal.ts';

/** Of a workflow that runs, and is not answered for. */
export function noWorkerWords(taskQueue: string): string {
  return `no worker answers on task queue ${taskQueue}; start one with \`retl worker\``;
}

/**
 * As {@link withTemporal}, for what starts workflows, or has schedules start them. Where no worker of the project is there to
 * take them up, a person is told.
 * @throws Refusal `no-worker` where, besides, nobody has said where Temporal is: then nothing is started
 */
export function startingOnTemporal<T>(
  { output, project }: Invocation,
  work: (temporal: TemporalClient) => Promise<T>,
): Promise<T> {
  return withTemporal(project, async (temporal) => {
    const warning = await missingWorker(temporal);
    if (warning !== null) output.note(`${output.style('yellow', 'warning')}: ${warning}`);
    return work(temporal);
  });
}

/** In words; `null`: a worker is there, or Temporal does not say. @throws Refusal as above */
export async function missingWorker(temporal: TemporalClient): Promise<string | null> {
  const { isPolled } = await import('../client/pollers.ts');
  if ((await isPolled(temporal)) !== false) return null;
  const { address, isNamed, taskQueue } = temporal;
  if (isNamed)
    return `no worker polls task queue ${taskQueue}; what is started waits for one: \`retl worker\``;
  throw new Refusal(
    EXIT.refused,
    'no-worker',
    `Nobody has said where Temporal is, and at ${address}, where something answers, no worker polls task queue ${taskQueue}: it may be another project’s. Nothing was started.`,
    'Name it, by TEMPORAL_ADDRESS or `temporal.address` of retl.yaml, or start this project’s worker there first: `retl worker`.',
  );
}
