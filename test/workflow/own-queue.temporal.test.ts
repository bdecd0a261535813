/** Whose task queue it is: workers of two journals on one queue would take up each other's runs. */

import { afterAll, beforeAll, expect, test } from 'vitest';
import { requireOwnQueue, workerIdentity } from '../../src/worker-queue.ts';
import { type DevServer, startDevServer } from '../support/temporal.ts';

let server: DevServer;
beforeAll(async () => {
  server = await startDevServer();
});
afterAll(() => server?.stop());

/** Asks for work, as a worker of this identity does, until Temporal knows of it; there is none. */
async function poll(taskQueue: string, identity: string): Promise<void> {
  const { connection } = server.env;
  const queue = { namespace: 'default', taskQueue: { name: taskQueue } };
  const { workflowService } = connection;
  void connection
    .withDeadline(Date.now() + 20_000, () => workflowService.pollWorkflowTaskQueue({ ...queue, identity }))
    .catch(() => undefined);
  const known = async () =>
    (await workflowService.describeTaskQueue({ ...queue, taskQueueType: 1 })).pollers.length;
  await expect.poll(known).toBe(1);
}

const begins = (taskQueue: string, journal: string) =>
  requireOwnQueue(server.env.nativeConnection, { namespace: 'default', taskQueue }, journal);

test('two-writers: a worker does not begin on a queue that another journal’s polls, and begins beside those of its own', async () => {
  await expect(begins('nobody’s', 'mine')).resolves.toBeUndefined();
  await poll('shared', workerIdentity('theirs'));
  await expect(begins('shared', 'mine')).rejects.toMatchObject({
    code: 'temporal.queue-shared',
    details: { namespace: 'default', 'task queue': 'shared' },
  });
  await expect(begins('shared', 'theirs')).resolves.toBeUndefined();
  await expect(begins('elsewhere', 'mine')).resolves.toBeUndefined();
  // What says nothing of a journal is no worker of this program.
  await poll('foreign', '123@somewhere');
  await expect(begins('foreign', 'mine')).resolves.toBeUndefined();
});
