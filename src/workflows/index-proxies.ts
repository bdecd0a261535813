/** Time-outs and retries of the activities of the workflow `index`. */

import { ActivityCancellationType, proxyActivities } from '@temporalio/workflow';
import type { IndexActivities } from '../activities/index-follow.ts';

const options = {
  startToCloseTimeout: '2 hours',
  // A merge of one page is the longest that is not heard of; its own timer beats meanwhile.
  heartbeatTimeout: '10 seconds',
  cancellationType: ActivityCancellationType.WAIT_CANCELLATION_COMPLETED,
  retry: {
    initialInterval: '1 second',
    backoffCoefficient: 2,
    maximumInterval: '1 minute',
    maximumAttempts: 8,
  },
} as const;

export const { followIndex } = proxyActivities<IndexActivities>({
  ...options,
  summary: 'Replay the log into the index',
});
export const { rebuildIndex } = proxyActivities<IndexActivities>({
  ...options,
  summary: 'Begin a new build of the index',
});
