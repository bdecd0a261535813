/** The schedules that the files of a project want: those of its mirrors, and that of its maintenance. */

import { MAINTENANCE_NAME, type ScheduleTable } from '../domain/schedule.ts';
import type { ProjectSettings } from '../domain/settings.ts';

export function wantedSchedules({
  schedules,
  maintenance,
}: Pick<ProjectSettings, 'schedules' | 'maintenance'>): ScheduleTable {
  const { schedule } = maintenance;
  return { ...schedules, ...(schedule === null ? {} : { [MAINTENANCE_NAME]: schedule }) };
}

/** Why a schedule is left over. */
export function goneWords(name: string): string {
  return name === MAINTENANCE_NAME ? '`maintenance` is not enabled' : 'its mirror or its `schedule:` is gone';
}

/** Which command shows what it has started. */
export function shownBy(name: string): string {
  return name === MAINTENANCE_NAME ? '`retl maintenance status`' : `\`retl status ${name}\``;
}
