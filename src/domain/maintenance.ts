/** Everything that crosses the border of the workflow `maintenance`: names, counts and codes; no row, no secret. */

import { TASK_QUEUE } from './messages.ts';

/** Workflow type. Started by its schedule, `retl maintenance run`, or by hand with `{}`. */
export const MAINTENANCE_WORKFLOW = 'maintenance';

/** Also the id of its schedule. Projects that share a namespace tell theirs apart by their task queues. */
export function maintenanceWorkflowId(taskQueue: string): string {
  return taskQueue === TASK_QUEUE ? MAINTENANCE_WORKFLOW : `${MAINTENANCE_WORKFLOW}/${taskQueue}`;
}

/** What there is to do, in this order. */
export const MAINTENANCE_TASKS = ['candidates', 'generations', 'log', 'receipts', 'destinations'] as const;
export type MaintenanceTask = (typeof MAINTENANCE_TASKS)[number];

/** What each is about, for people. */
export const MAINTENANCE_WORDS: { readonly [T in MaintenanceTask]: string } = {
  candidates: 'runs that nobody goes on with',
  generations: 'superseded snapshots',
  log: 'what only served older entries of the log',
  receipts: 'old answers of providers, and attempts',
  destinations: 'what replaced sets have left at destinations',
};

/** What a person types, but for `carried`, which one execution hands to the next. */
export interface MaintenanceInput {
  /** These tasks alone; all of them where it is left out. */
  readonly only?: readonly MaintenanceTask[];
  readonly carried?: MaintenanceCarried;
}

/** All that survives continue-as-new; what is left to do stands in the journal. */
export interface MaintenanceCarried {
  readonly left: readonly MaintenanceTask[];
  /** How far the first of them has come. */
  readonly cursor: string | null;
  readonly counts: MaintenanceCounts;
  readonly failed: readonly FailedTask[];
}

export interface MaintenanceCounts {
  /** Runs that nobody went on with, closed. */
  readonly candidates: number;
  /** Superseded snapshots whose rows were dropped. */
  readonly generations: number;
  /** Log snapshots that were completed. */
  readonly compactions: number;
  /** Tables dropped that a compaction had made superfluous. */
  readonly tables: number;
  /** Runs whose providers' answers and attempts were taken away. */
  readonly receipts: number;
  /** Steps of tidying in which a destination has removed something. */
  readonly destinations: number;
  /** What could not be done this time: a destination that was away, or whose settings are broken. */
  readonly putOff: number;
}

export const NOTHING_DONE: MaintenanceCounts = {
  candidates: 0,
  generations: 0,
  compactions: 0,
  tables: 0,
  receipts: 0,
  destinations: 0,
  putOff: 0,
};

export type MaintenanceCount = keyof MaintenanceCounts;

/** For people, after a number. */
export const COUNT_WORDS: { readonly [C in MaintenanceCount]: string } = {
  candidates: 'runs closed that nobody went on with',
  generations: 'superseded snapshots dropped',
  compactions: 'log snapshots written',
  tables: 'tables dropped that a compaction has replaced',
  receipts: 'runs whose answers and attempts were taken away',
  destinations: 'steps in which a destination has removed what was superseded',
  putOff: 'put off until the next time',
};

/** One line for each count that is not 0, in this order. */
export function countLines(counts: MaintenanceCounts): readonly string[] {
  return (Object.keys(COUNT_WORDS) as readonly MaintenanceCount[])
    .filter((count) => counts[count] > 0)
    .map((count) => `${counts[count]} ${COUNT_WORDS[count]}`);
}

/** What one bounded piece of work came to. */
export interface MaintenanceStep {
  readonly kind: 'more' | 'done';
  /** Where the next one goes on. */
  readonly cursor: string | null;
  readonly counts: Partial<MaintenanceCounts>;
}

export interface FailedTask {
  readonly task: MaintenanceTask;
  readonly code: string;
}

export function addCounts(a: MaintenanceCounts, b: Partial<MaintenanceCounts>): MaintenanceCounts {
  const sum = (key: MaintenanceCount): number => a[key] + (b[key] ?? 0);
  return {
    candidates: sum('candidates'),
    generations: sum('generations'),
    compactions: sum('compactions'),
    tables: sum('tables'),
    receipts: sum('receipts'),
    destinations: sum('destinations'),
    putOff: sum('putOff'),
  };
}

/** Answer of the query `progress`. */
export interface MaintenanceProgress {
  /** `null`: it is at its end. */
  readonly task: MaintenanceTask | null;
  readonly counts: MaintenanceCounts;
  readonly failed: readonly FailedTask[];
}

/** Of a maintenance in which no task failed; otherwise it ends as a failure that names them. */
export interface MaintenanceResult {
  readonly outcome: 'completed';
  readonly counts: MaintenanceCounts;
}

/** How long things are kept, in ms. */
export interface RetentionSettings {
  /** After a run was closed; a day at least. */
  readonly keepReceiptsMs: number;
  /** Of a run that nobody goes on with, after its seal; a day at least, and never while it may be resumed. */
  readonly keepCandidatesMs: number;
  /** Single effects of the log; `null`: for good. */
  readonly compactMs: number | null;
}
