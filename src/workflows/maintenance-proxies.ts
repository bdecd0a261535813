/** Time-outs and retries of the activity of the workflow `maintenance`. */

import { ActivityCancellationType, proxyActivities } from '@temporalio/workflow';
import type { MaintenanceActivities } from '../activities/maintain.ts';
import { MAINTENANCE_WORDS, type MaintenanceTask } from '../domain/maintenance.ts';

/** The activities, with a summary for the UI that says what this call is about. */
export function maintaining(task: MaintenanceTask): MaintenanceActivities {
  return proxyActivities<MaintenanceActivities>({
    // A window ends by itself; a single step of it may be long.
    startToCloseTimeout: '2 hours',
    heartbeatTimeout: '10 seconds',
    cancellationType: ActivityCancellationType.WAIT_CANCELLATION_COMPLETED,
    retry: {
      initialInterval: '1 second',
      backoffCoefficient: 2,
      maximumInterval: '1 minute',
      maximumAttempts: 20,
    },
    summary: `Tidy up: ${MAINTENANCE_WORDS[task]}`,
  });
}
