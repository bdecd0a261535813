/** Whether anybody takes up what is started on the client's task queue. */

import { setTimeout as sleep } from 'node:timers/promises';
import { workflowPolls } from '../domain/task-queue.ts';
import type { TemporalClient } from './connect.ts';

const ANSWER_WITHIN_MS = 2_500;
/** A worker that says that it is ready may still be about to ask for its first task. */
const LOOKS = 3;
const LOOK_EVERY_MS = 400;

/**
 * Whether a worker polls it, or has some minutes ago: Temporal remembers those that are gone for so long. `null`: Temporal
 * does not say, or may not be asked.
 */
export async function isPolled(temporal: TemporalClient): Promise<boolean | null> {
  for (let looked = 1; ; looked += 1) {
    const polled = await look(temporal);
    if (polled !== false || looked === LOOKS) return polled;
    await sleep(LOOK_EVERY_MS);
  }
}

async function look({ client, namespace, taskQueue }: TemporalClient): Promise<boolean | null> {
  try {
    const { pollers } = await client.connection.withDeadline(Date.now() + ANSWER_WITHIN_MS, () =>
      client.workflowService.describeTaskQueue(workflowPolls({ namespace, taskQueue })),
    );
    return pollers.length > 0;
  } catch {
    return null;
  }
}
