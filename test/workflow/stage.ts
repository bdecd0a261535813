/** A Temporal server and one worker for a test file, whose workflows are real and whose activities are scripts. */

import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { Context } from '@temporalio/activity';
import type { WorkflowClient, WorkflowHandleWithFirstExecutionRunId } from '@temporalio/client';
import { bundleWorkflowCode, type NativeConnection, Worker, type WorkflowBundle } from '@temporalio/worker';
import { type Ending, endingFrom, endingOf } from '../../src/client/failure.ts';
import { MIRROR_WORKFLOW, PROGRESS_QUERY, type Progress } from '../../src/domain/messages.ts';
import { type Name, type Plan, Script } from './script.ts';

const PROJECT = join(import.meta.dirname, '..', '..');
const TASK_QUEUE = 'scripted';
const NAMES: readonly Name[] = [
  'admit',
  'init',
  'extract',
  'seal',
  'guard',
  'decide',
  'deliver',
  'finish',
  'promote',
  'close',
  'release',
];

/** What a stage needs of a server: either kind of test environment has it. */
export interface Server {
  readonly client: { readonly workflow: WorkflowClient };
  readonly nativeConnection: NativeConnection;
}

export type Handle = WorkflowHandleWithFirstExecutionRunId;

export async function bundleOf(workflows: string): Promise<WorkflowBundle> {
  const quiet = (): void => undefined;
  const logger = { log: quiet, trace: quiet, debug: quiet, info: quiet, warn: quiet, error: quiet };
  return bundleWorkflowCode({ workflowsPath: join(PROJECT, workflows), logger });
}

let serial = 0;

export class Stage {
  readonly #scripts = new Map<string, Script>();
  #running: Promise<void> = Promise.resolve();
  #worker: Worker | null = null;

  constructor(readonly client: WorkflowClient) {}

  static async open({ client, nativeConnection }: Server): Promise<Stage> {
    const stage = new Stage(client.workflow);
    const play = (name: Name) => [name, (args: never) => stage.#scriptOf(name, args)] as const;
    stage.#worker = await Worker.create({
      connection: nativeConnection,
      taskQueue: TASK_QUEUE,
      workflowBundle: await bundleOf('src/workflows/index.ts'),
      activities: Object.fromEntries(NAMES.map(play)),
      maxHeartbeatThrottleInterval: '50 milliseconds',
      defaultHeartbeatThrottleInterval: '50 milliseconds',
    });
    stage.#running = stage.#worker.run();
    return stage;
  }

  /** Starts a mirror whose activities follow the plan. */
  async start(plan: Plan | Script = {}, ...input: readonly [unknown?]): Promise<Act> {
    const script = plan instanceof Script ? plan : new Script(plan);
    serial += 1;
    const workflowId = `mirror/${serial}`;
    this.#scripts.set(workflowId, script);
    const options = {
      workflowId,
      taskQueue: TASK_QUEUE,
      args: input.length === 0 ? [{ mirror: 'vip-customers' }] : [...input],
    };
    return new Act(await this.client.start(MIRROR_WORKFLOW, options), script);
  }

  /** Starts a mirror whose first workflow task already has the signal. */
  async startWith(signal: string, plan: Plan): Promise<Act> {
    const script = new Script(plan);
    serial += 1;
    const workflowId = `mirror/${serial}`;
    this.#scripts.set(workflowId, script);
    const handle = await this.client.signalWithStart(MIRROR_WORKFLOW, {
      workflowId,
      taskQueue: TASK_QUEUE,
      args: [{ mirror: 'vip-customers' }],
      signal,
    });
    const whole = Object.assign(handle, { firstExecutionRunId: handle.signaledRunId });
    return new Act(whole, script);
  }

  async close(): Promise<void> {
    this.#worker?.shutdown();
    await this.#running;
  }

  async #scriptOf(name: Name, args: never): Promise<unknown> {
    const id = Context.current().info.workflowExecution?.workflowId ?? '';
    const script = this.#scripts.get(id);
    if (script === undefined) throw new Error(`no script for ${id}`);
    return script.play(name, args);
  }
}

/** One execution, or a chain of them, and its script. */
export class Act {
  constructor(
    readonly handle: Handle,
    readonly script: Script,
  ) {}

  async ending(): Promise<Ending> {
    try {
      return endingFrom(await this.handle.result());
    } catch (error) {
      const found = endingOf(error);
      if (found === null) throw error;
      return found;
    }
  }

  /** Ms of the server's time between the first and the last event of the execution that was started. */
  async lasted(): Promise<number> {
    const { events } = await this.handle.fetchHistory();
    const times = (events ?? []).map(
      (e) => Number(e.eventTime?.seconds ?? 0) * 1_000 + (e.eventTime?.nanos ?? 0) / 1e6,
    );
    return (times.at(-1) ?? 0) - (times[0] ?? 0);
  }

  progress(): Promise<Progress> {
    return this.handle.query<Progress>(PROGRESS_QUERY);
  }

  /** What the UI shows on top of the page. */
  async details(): Promise<string> {
    const metadata = await this.handle.query<{ currentDetails?: string }>('__temporal_workflow_metadata');
    return metadata.currentDetails ?? '';
  }

  async until(wanted: (progress: Progress) => boolean): Promise<Progress> {
    for (let tries = 0; tries < 500; tries += 1) {
      const progress = await this.progress();
      if (wanted(progress)) return progress;
      await sleep(20);
    }
    throw new Error(`it never came that far: ${JSON.stringify(await this.progress())}`);
  }

  async untilWaiting(kind: NonNullable<Progress['waiting']>['kind']): Promise<Progress> {
    return this.until((p) => p.waiting?.kind === kind);
  }
}
