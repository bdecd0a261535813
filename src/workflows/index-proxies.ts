/** Time-outs and retries of the activities of the workflow `index`. */

import { proxyActivities } from '@temporalio/workflow';
import type { IndexActivities } from '../activities/index-follow.ts';
import { CANCELLATION, HEARTBEAT, RETRY } from './activity-options.ts';

const options = {
  startToCloseTimeout: '2 hours',
  // A merge of one page is the longest that is not heard of; its own timer beats meanwhile.
  heartbeatTimeout: HEARTBEAT,
  cancellationType: CANCELLATION,
  retry: { ...RETRY, maximumAttempts: 8 },
} as const;

export const { followIndex } = proxyActivities<IndexActivities>({
  ...options,
  summary: 'Replay the log into the index',
});
export const { rebuildIndex } = proxyActivities<IndexActivities>({
  ...options,
  summary: 'Begin a new build of the index',
});
