/** What activities of every workflow have in common: how soon a silent one is taken for dead, how they are tried again, and stopped. */

import { ActivityCancellationType } from '@temporalio/workflow';

export const HEARTBEAT = '10 seconds';

/** About a quarter of an hour in all. */
export const RETRY = {
  initialInterval: '1 second',
  backoffCoefficient: 2,
  maximumInterval: '1 minute',
  maximumAttempts: 20,
} as const;

/** Told to stop, an activity first records what it has in flight: the workflow waits for that. */
export const CANCELLATION = ActivityCancellationType.WAIT_CANCELLATION_COMPLETED;
