/** How a schedule shows that it is this project's, and whether it still is what was applied. */

import { createHash } from 'node:crypto';
import { formText, MAINTENANCE_NAME, type ScheduleForm } from '../domain/schedule.ts';

/** Memo of the schedule itself; Temporal keeps it for the schedule's life. */
export const MANAGED_MEMO = { managed_by: 'retl' } as const;

/** Key of the fingerprint in the memo of what the schedule starts. */
export const FINGERPRINT_KEY = 'retl_schedule';

export function fingerprintOf(form: ScheduleForm): string {
  return `sha256:${createHash('sha256').update(formText(form)).digest('hex')}`;
}

/** What Temporal's UI shows beside the schedule. */
export function managedNote(mirror: string): string {
  if (mirror === MAINTENANCE_NAME)
    return 'Managed by retl: change `maintenance` in retl.yaml, then `retl schedules apply`.';
  return `Managed by retl: change \`schedule\` in mirrors/${mirror}.yaml, then \`retl schedules apply\`.`;
}

export function pausedNote(mirror: string): string {
  const named = mirror === MAINTENANCE_NAME ? '--maintenance' : mirror;
  return `Paused by \`retl schedules pause\`; \`retl schedules resume ${named}\` goes on. ${managedNote(mirror)}`;
}
