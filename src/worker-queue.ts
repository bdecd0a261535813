/**
 * Whose task queue it is. A run knows its mirror's name alone, so that workers of two journals on one queue would each take
 * up the other's runs: a worker tells Temporal its journal in its identity, and does not begin where another journal's polls.
 */

import { hostname } from 'node:os';
import type { NativeConnection } from '@temporalio/worker';
import { RetlError } from './domain/errors.ts';
import { type Queue, workflowPolls } from './domain/task-queue.ts';

/** A worker that polls is heard of once a minute; Temporal remembers one that is gone for longer. */
const POLLS_WITHIN_MS = 90_000;

const MARK = ' journal=';

/** As Temporal's own default, and by which journal. @param logId random id of the journal's log */
export function workerIdentity(logId: string): string {
  return `${process.pid}@${hostname()}${MARK}${logId}`;
}

/** Where Temporal does not say who polls, nothing is known. @throws RetlError `temporal.queue-shared` */
export async function requireOwnQueue(
  connection: NativeConnection,
  { namespace, taskQueue }: Queue,
  logId: string,
): Promise<void> {
  const since = Date.now() - POLLS_WITHIN_MS;
  const others = (await pollers(connection, { namespace, taskQueue }))
    .filter(({ at }) => at > since)
    .map(({ identity }) => identity.split(MARK)[1])
    .filter((journal) => journal !== undefined && journal !== logId);
  if (others.length > 0)
    throw new RetlError('temporal.queue-shared', {
      namespace,
      'task queue': taskQueue,
      journals: [...new Set(others)].length,
    });
}

async function pollers(
  connection: NativeConnection,
  queue: Queue,
): Promise<readonly { readonly identity: string; readonly at: number }[]> {
  try {
    const found = await connection.workflowService.describeTaskQueue(workflowPolls(queue));
    return (found.pollers ?? []).map(({ identity, lastAccessTime }) => ({
      identity: identity ?? '',
      at: Number(lastAccessTime?.seconds ?? 0) * 1000,
    }));
  } catch {
    return [];
  }
}
