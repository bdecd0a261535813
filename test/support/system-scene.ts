/** A mirror for one test: a source table, a destination that the test controls, and the words to run it and look on. */

import { setTimeout as sleep } from 'node:timers/promises';
import type { WorkflowHandleWithFirstExecutionRunId as Handle } from '@temporalio/client';
import { type Ending, endingFrom, endingOf } from '../../src/client/failure.ts';
import {
  type Decision,
  MIRROR_WORKFLOW,
  type MirrorInput,
  type MirrorResult,
  mirrorWorkflowId,
  type Parked,
  PROGRESS_QUERY,
  type Progress,
  type SignalName,
  TASK_QUEUE,
  type UpdateName,
} from '../../src/domain/messages.ts';
import type { BatchState } from '../../src/domain/run.ts';
import type { System } from './system.ts';

/** Longest wait for anything that a test expects: a dead worker is noticed after ten seconds. */
const PATIENCE_MS = 45_000;

export interface SceneOptions {
  /** Members to begin with, `m001` and so on; or statements of its own, `$table` filled in. */
  readonly rows?: number | string;
  readonly query?: string;
  readonly key?: readonly string[];
  /** Overrides of the mirror's file, section by section. */
  readonly mirror?: { readonly [section: string]: unknown };
  readonly destination?: object;
  /** A source connection of the scene's own, in place of `shop`. */
  readonly source?: string;
}

export interface BatchRow {
  readonly id: string;
  readonly action: string;
  readonly state: BatchState;
  readonly reason: string | null;
  readonly resends: number;
  readonly sending: number;
  readonly run: string;
}

let serial = 0;

/** The name of a source table that no other scene has. */
export function tableOf(mirror: string): string {
  serial += 1;
  return `${mirror.replaceAll('-', '_')}_${serial}`;
}

export class Scene {
  constructor(
    readonly system: System,
    readonly mirror: string,
    /** The source table. */
    readonly table: string,
  ) {}

  /** Writes the mirror's file anew; a run that is open keeps the settings it began with. */
  protected async write(destination: object, options: SceneOptions): Promise<void> {
    await this.system.write(`mirrors/${this.mirror}.yaml`, {
      source: {
        connection: options.source ?? 'shop',
        query: (options.query ?? 'select id, plan from $table order by id').replaceAll('$table', this.table),
        key: options.key ?? ['id'],
      },
      members: { identity: { id: 'id' }, payload: { plan: 'plan' } },
      destination: { ...destination, ...options.destination },
      batch: { rows: 5, in_flight: 1 },
      safety: { max_removals: '50%', empty_snapshot: 'hold' },
      ...options.mirror,
    });
  }

  /** Replaces a table of `id text primary key, plan text`, or runs the given statements with `$table` filled in. */
  async createSource(rows: number | string): Promise<void> {
    if (typeof rows === 'string') {
      await this.exec(rows);
      return;
    }
    await this.exec(
      `create table $table (id text primary key, plan text);
       insert into $table select 'm' || lpad(n::text, greatest(3, length(n::text)), '0'), 'vip' from generate_series(1, ${rows}) n`,
    );
  }

  /** Runs statements on the source, `$table` being the scene's table. */
  async exec(statements: string): Promise<void> {
    await this.system.source.query(statements.replaceAll('$table', this.table));
  }

  /** Starts a run; under the mirror's own workflow id unless another one is given. */
  async start(
    workflowId = mirrorWorkflowId(this.mirror),
    said: Omit<MirrorInput, 'mirror'> = {},
  ): Promise<Handle> {
    return this.system.temporal.client.workflow.start(MIRROR_WORKFLOW, {
      workflowId,
      taskQueue: TASK_QUEUE,
      args: [{ mirror: this.mirror, ...said }],
    });
  }

  async run(workflowId?: string): Promise<Ending> {
    return ending(await this.start(workflowId));
  }

  /** Runs, and insists that the run completes. */
  async completed(workflowId?: string): Promise<MirrorResult> {
    return completedBy(await this.start(workflowId));
  }

  /** Waits until the run's progress is what the test waits for. */
  async until(handle: Handle, wanted: (progress: Progress) => boolean): Promise<Progress> {
    const deadline = Date.now() + PATIENCE_MS;
    let last: Progress | null = null;
    while (Date.now() < deadline) {
      last = await progress(handle);
      if (last !== null && wanted(last)) return last;
      await sleep(100);
    }
    throw new Error(`the run never came that far: ${JSON.stringify(last)}`);
  }

  /** Waits until the run waits for `kind`. */
  async untilWaiting(handle: Handle, kind: NonNullable<Progress['waiting']>['kind']): Promise<Progress> {
    return this.until(handle, (p) => p.waiting?.kind === kind);
  }

  /** Waits until the guard asks; resolves to what it shows. */
  async untilParked(handle: Handle): Promise<Parked> {
    const { parked } = await this.untilWaiting(handle, 'parked');
    if (parked === null) throw new Error('it is parked, and shows nothing');
    return parked;
  }

  /** Answers what was shown, by an update. */
  async answer(handle: Handle, update: UpdateName, { shown }: Pick<Parked, 'shown'>): Promise<void> {
    await handle.executeUpdate<void, [Decision]>(update, { args: [{ shown }] });
  }

  async signal(signal: SignalName, workflowId = mirrorWorkflowId(this.mirror)): Promise<void> {
    await this.system.temporal.client.workflow.getHandle(workflowId).signal(signal);
  }

  /** What the query returns now, by identity, as the audience should hold it. */
  async wanted(query = `select id, plan from ${this.table}`): Promise<ReadonlyMap<string, unknown>> {
    const { rows } = await this.system.source.query<{ id: string }>(query);
    return new Map(rows.map((row) => [row.id, row]));
  }

  /** The batches of all runs of this mirror, in order. */
  async batches(action: 'init' | 'upsert' | 'remove' | 'finish' | '%' = '%'): Promise<readonly BatchRow[]> {
    return this.system.rows<BatchRow & { [column: string]: unknown }>(
      `select encode(b.batch_id, 'hex') as id, b.action, b.state, b.reason, b.resends, b.sending, b.run_id::text as run
       from retl.batch b join retl.run r using (run_id) join retl.mirror m using (mirror_id)
       where m.name = $1 and b.action like $2
       order by b.run_id, b.action = 'finish', b.action = 'remove', b.operations, b.sending`,
      [this.mirror, action],
    );
  }

  /** The runs of this mirror: how each was closed, or its phase while it is open. */
  async runs(): Promise<
    readonly { readonly run: string; readonly closing: string | null; readonly phase: string }[]
  > {
    return this.system.rows(
      `select run_id::text as run, closing, phase from retl.run join retl.mirror m using (mirror_id)
       where m.name = $1 order by run_id`,
      [this.mirror],
    );
  }

  /** Identities that the journal says the target holds. */
  async held(): Promise<number> {
    const [row] = await this.system.rows<{ held: string }>(
      `select held from retl.target join retl.mirror using (mirror_id) where name = $1`,
      [this.mirror],
    );
    return Number(row?.held ?? 0);
  }
}

/** How an execution ended. */
export async function ending(handle: Handle): Promise<Ending> {
  try {
    return endingFrom(await handle.result());
  } catch (error) {
    const found = endingOf(error);
    if (found === null) throw error;
    return found;
  }
}

export async function completedBy(handle: Handle): Promise<MirrorResult> {
  const end = await ending(handle);
  if (end.kind !== 'result' || end.result.outcome !== 'completed') {
    throw new Error(`the run did not complete: ${JSON.stringify(end)}`);
  }
  return end.result;
}

async function progress(handle: Handle): Promise<Progress | null> {
  try {
    return await handle.query<Progress>(PROGRESS_QUERY);
  } catch {
    return null; // no worker, for the moment
  }
}

/** Waits until something is so. */
export async function eventually(
  isSo: () => boolean | Promise<boolean>,
  withinMs = PATIENCE_MS,
): Promise<void> {
  const deadline = Date.now() + withinMs;
  while (!(await isSo())) {
    if (Date.now() > deadline) throw new Error('it has not come about');
    await sleep(50);
  }
}
