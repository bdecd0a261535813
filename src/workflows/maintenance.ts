/**
 * The workflow `maintenance` (design.md sections 5 and 8): what runs have left behind goes, task by task, in bounded pieces of
 * work. It carries counts and codes; what is left to do stands in the journal, so that an execution that is lost loses nothing,
 * and two at once do no harm.
 */

import {
  CancellationScope,
  CancelledFailure,
  continueAsNew,
  defineQuery,
  isCancellation,
  setCurrentDetails,
  setHandler,
  workflowInfo,
} from '@temporalio/workflow';
import {
  addCounts,
  countLines,
  type FailedTask,
  MAINTENANCE_TASKS,
  MAINTENANCE_WORDS,
  type MaintenanceCarried,
  type MaintenanceCounts,
  type MaintenanceInput,
  type MaintenanceProgress,
  type MaintenanceResult,
  type MaintenanceTask,
  NOTHING_DONE,
} from '../domain/maintenance.ts';
import { causeOf, defect, fail } from './endings.ts';
import { fieldsOf } from './input.ts';
import { maintaining } from './maintenance-proxies.ts';

/** How long one activity works. */
const WINDOW_MS = 30_000;

const progressQuery = defineQuery<MaintenanceProgress>('progress');

/** @throws ApplicationFailure `invalid` or `unavailable`, which names the tasks that failed; CancelledFailure */
export async function maintenance(input: MaintenanceInput): Promise<MaintenanceResult> {
  try {
    return await new Maintenance(decoded(input)).run();
  } catch (error) {
    throw defect(error);
  }
}

function decoded(input: unknown): MaintenanceInput {
  const { only, carried, ...rest } = fieldsOf(input);
  if (Object.keys(rest).length > 0 || (only !== undefined && !isTasks(only)))
    throw fail(
      'invalid',
      'input',
      `the input is {}, or {"only": [...]} with some of: ${MAINTENANCE_TASKS.join(', ')}`,
    );
  return {
    ...(only === undefined ? {} : { only }),
    ...(carried === undefined ? {} : { carried: carried as MaintenanceCarried }),
  };
}

function isTasks(value: unknown): value is readonly MaintenanceTask[] {
  return (
    Array.isArray(value) && value.length > 0 && value.every((one) => MAINTENANCE_TASKS.some((t) => t === one))
  );
}

class Maintenance {
  readonly #left: MaintenanceTask[];
  #cursor: string | null;
  #counts: MaintenanceCounts;
  #failed: readonly FailedTask[];
  /** In this project's own words. */
  #why = '';
  #isAway = false;

  constructor(private readonly input: MaintenanceInput) {
    const { only, carried } = input;
    this.#left = [...(carried?.left ?? MAINTENANCE_TASKS.filter((task) => only?.includes(task) ?? true))];
    this.#cursor = carried?.cursor ?? null;
    this.#counts = carried?.counts ?? NOTHING_DONE;
    this.#failed = carried?.failed ?? [];
    setHandler(progressQuery, () => this.#progress());
  }

  async run(): Promise<MaintenanceResult> {
    for (let [task] = this.#left; task !== undefined && !this.#isAway; [task] = this.#left) {
      this.#show();
      if (await this.#window(task)) {
        this.#left.shift();
        this.#cursor = null;
      }
      if (CancellationScope.current().consideredCancelled) throw new CancelledFailure('cancelled');
      await this.#carryOn();
    }
    this.#show();
    const [first] = this.#failed;
    if (first === undefined) return { outcome: 'completed', counts: this.#counts };
    const named = this.#failed.map(({ task, code }) => `${task} (${code})`).join(', ');
    throw fail(
      this.#isAway ? 'unavailable' : 'invalid',
      first.code,
      `not done: ${named}. ${this.#why}`.trim(),
    );
  }

  /** Whether the task is over: done, or not to be done this time. */
  async #window(task: MaintenanceTask): Promise<boolean> {
    const { firstExecutionRunId: firstRunId } = workflowInfo();
    try {
      const step = await maintaining(task).maintain({
        task,
        cursor: this.#cursor,
        windowMs: WINDOW_MS,
        firstRunId,
      });
      this.#counts = addCounts(this.#counts, step.counts);
      this.#cursor = step.cursor;
      return step.kind === 'done';
    } catch (error) {
      if (isCancellation(error)) throw error;
      const { type, code, message } = causeOf(error);
      this.#failed = [...this.#failed, { task, code }];
      this.#why ||= message;
      // What has been away for so long is so for the next task as well.
      this.#isAway = type === 'unavailable';
      return true;
    }
  }

  #progress(): MaintenanceProgress {
    return { task: this.#left[0] ?? null, counts: this.#counts, failed: this.#failed };
  }

  #show(): void {
    const { task, counts, failed } = this.#progress();
    const lines = [
      task === null ? 'Everything has been looked at.' : `Now: **${MAINTENANCE_WORDS[task]}** (${task})`,
      '',
      ...countLines(counts).map((line) => `- ${line}`),
      ...failed.map(({ task: name, code }) => `- not done: ${name}, **${code}**`),
    ];
    setCurrentDetails(lines.join('\n'));
  }

  async #carryOn(): Promise<void> {
    if (!workflowInfo().continueAsNewSuggested || this.#left.length === 0) return;
    const carried: MaintenanceCarried = {
      left: this.#left,
      cursor: this.#cursor,
      counts: this.#counts,
      failed: this.#failed,
    };
    await continueAsNew<typeof maintenance>({ ...this.input, carried });
  }
}
