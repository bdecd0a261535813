/**
 * Time-outs, retries and summaries (what the UI's history calls it) of every activity of a run, in this one file.
 *
 * An attempt that is not heard of for HEARTBEAT is taken for dead and another begins; the journal's epoch makes the dead
 * one harmless (rule 9). Transport and database failures back off and retry for about a quarter of an hour; then the
 * workflow ends and the run can be resumed. Waits that a provider asks for are timers of the workflow, not retries.
 */

import { proxyActivities } from '@temporalio/workflow';
import type { Activities } from '../activities/index.ts';
import { CANCELLATION, HEARTBEAT, RETRY } from './activity-options.ts';

/** Has no attempt yet that would send heartbeats. Longer than the journal waits for a lock. */
export const { admit } = proxyActivities<Activities>({
  startToCloseTimeout: '40 seconds',
  cancellationType: CANCELLATION,
  retry: RETRY,
  summary: 'Take the mirror and its target',
});

/** A courtesy: nobody who cancels should have to wait for a journal that is away. */
export const { release } = proxyActivities<Activities>({
  startToCloseTimeout: '1 minute',
  scheduleToCloseTimeout: '1 minute',
  heartbeatTimeout: HEARTBEAT,
  cancellationType: CANCELLATION,
  retry: RETRY,
  summary: 'Let the run go',
});

/** An answer to what the guard asks: whoever sent the update waits for it, and so does the end of the execution. */
export const { decide } = proxyActivities<Activities>({
  startToCloseTimeout: '40 seconds',
  scheduleToCloseTimeout: '2 minutes',
  cancellationType: CANCELLATION,
  retry: RETRY,
  summary: 'Record an answer to the guard',
});

/** Requests of a session, and set-based work of the journal. */
const step = (summary: string) =>
  proxyActivities<Activities>({
    startToCloseTimeout: '2 hours',
    heartbeatTimeout: HEARTBEAT,
    cancellationType: CANCELLATION,
    retry: RETRY,
    summary,
  });
export const { init } = step('Open the destination');
export const { seal } = step('Seal the snapshot');
export const { guard } = step('Hold the plan against the safety limits');
export const { finish } = step('Finish at the destination');
export const { promote } = step('Make this snapshot the one that is held');
export const { close } = step('Close the run');

/** The whole query, in one go. */
export const { extract } = proxyActivities<Activities>({
  startToCloseTimeout: '24 hours',
  heartbeatTimeout: HEARTBEAT,
  cancellationType: CANCELLATION,
  retry: RETRY,
  summary: 'Read the whole query',
});

/** A window of batches. */
export const { deliver } = proxyActivities<Activities>({
  startToCloseTimeout: '30 minutes',
  heartbeatTimeout: HEARTBEAT,
  cancellationType: CANCELLATION,
  retry: RETRY,
  summary: 'Send members, or ask about those that were sent',
});
