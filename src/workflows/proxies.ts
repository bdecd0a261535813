/**
 * Time-outs and retries of every activity, in this one file.
 *
 * An attempt that is not heard of for HEARTBEAT is taken for dead and another begins; the journal's epoch makes the dead
 * one harmless (rule 9). Transport and database failures back off and retry for about a quarter of an hour; then the
 * workflow ends and the run can be resumed. Waits that a provider asks for are timers of the workflow, not retries.
 */

import { ActivityCancellationType, proxyActivities } from '@temporalio/workflow';
import type { Activities } from '../activities/index.ts';

const HEARTBEAT = '10 seconds';

const retry = {
  initialInterval: '1 second',
  backoffCoefficient: 2,
  maximumInterval: '1 minute',
  maximumAttempts: 20,
} as const;

/** Told to stop, an activity first records what it has in flight: the workflow waits for that. */
const cancellationType = ActivityCancellationType.WAIT_CANCELLATION_COMPLETED;

/** Has no attempt yet that would send heartbeats. Longer than the journal waits for a lock. */
export const { admit } = proxyActivities<Activities>({
  startToCloseTimeout: '40 seconds',
  cancellationType,
  retry,
});

/** A courtesy: nobody who cancels should have to wait for a journal that is away. */
export const { release } = proxyActivities<Activities>({
  startToCloseTimeout: '1 minute',
  scheduleToCloseTimeout: '1 minute',
  heartbeatTimeout: HEARTBEAT,
  cancellationType,
  retry,
});

/** An answer to what the guard asks: whoever sent the update waits for it, and so does the end of the execution. */
export const { decide } = proxyActivities<Activities>({
  startToCloseTimeout: '40 seconds',
  scheduleToCloseTimeout: '2 minutes',
  cancellationType,
  retry,
});

/** Requests of a session, and set-based work of the journal. */
export const { init, seal, guard, finish, promote, close } = proxyActivities<Activities>({
  startToCloseTimeout: '2 hours',
  heartbeatTimeout: HEARTBEAT,
  cancellationType,
  retry,
});

/** The whole query, in one go. */
export const { extract } = proxyActivities<Activities>({
  startToCloseTimeout: '24 hours',
  heartbeatTimeout: HEARTBEAT,
  cancellationType,
  retry,
});

/** A window of batches. */
export const { deliver } = proxyActivities<Activities>({
  startToCloseTimeout: '30 minutes',
  heartbeatTimeout: HEARTBEAT,
  cancellationType,
  retry,
});
