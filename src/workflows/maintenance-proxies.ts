/** Time-outs and retries of the activity of the workflow `maintenance`. */

import { proxyActivities } from '@temporalio/workflow';
import type { MaintenanceActivities } from '../activities/maintain.ts';
import { MAINTENANCE_WORDS, type MaintenanceTask } from '../domain/maintenance.ts';
import { CANCELLATION, HEARTBEAT, RETRY } from './activity-options.ts';

/** The activities, with a summary for the UI that says what this call is about. */
export function maintaining(task: MaintenanceTask): MaintenanceActivities {
  return proxyActivities<MaintenanceActivities>({
    // A window ends by itself; a single step of it may be long.
    startToCloseTimeout: '2 hours',
    heartbeatTimeout: HEARTBEAT,
    cancellationType: CANCELLATION,
    retry: RETRY,
    summary: `Tidy up: ${MAINTENANCE_WORDS[task]}`,
  });
}
