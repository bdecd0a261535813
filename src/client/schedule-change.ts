/** What must be done about one schedule, decided from what the configuration wants and what Temporal has. */

import {
  differencesOf,
  type ScheduleDifference,
  type ScheduleForm,
  type ScheduleSettings,
  wantedForm,
} from '../domain/schedule.ts';

export type ScheduleOwner =
  | 'ours'
  /** Made by somebody else, under an id that would be ours. */
  | 'unmanaged'
  /** Made by retl, for the workers of another task queue: another project in the same namespace. */
  | 'other-queue';

export type ScheduleChange =
  | { readonly kind: 'create' | 'unchanged' | 'delete' | 'orphan'; readonly mirror: string }
  | {
      readonly kind: 'update';
      readonly mirror: string;
      readonly differences: readonly ScheduleDifference[];
      /** Whether somebody has changed it in Temporal since it was applied. */
      readonly edited: boolean;
    }
  | {
      readonly kind: 'conflict';
      readonly mirror: string;
      readonly owner: Exclude<ScheduleOwner, 'ours'>;
      readonly taskQueue: string;
    };

/** What the decision needs to know of a schedule that is there. */
export interface FoundSchedule {
  readonly owner: ScheduleOwner;
  readonly form: ScheduleForm;
  /** Whether it is still as it was applied; false also where nobody can tell. */
  readonly asApplied: boolean;
}

/** @param takeOver whether a schedule that is not ours may become ours. */
export function changeFor(
  mirror: string,
  settings: ScheduleSettings,
  found: FoundSchedule | null,
  { taskQueue, takeOver }: { readonly taskQueue: string; readonly takeOver: boolean },
): ScheduleChange {
  if (found === null) return { kind: 'create', mirror };
  if (found.owner !== 'ours' && !takeOver)
    return { kind: 'conflict', mirror, owner: found.owner, taskQueue: found.form.task_queue };
  const differences = differencesOf(found.form, wantedForm(mirror, settings, taskQueue));
  if (differences.length === 0 && found.asApplied) return { kind: 'unchanged', mirror };
  return { kind: 'update', mirror, differences, edited: found.owner === 'ours' && !found.asApplied };
}
