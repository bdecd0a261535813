/** A worker (`src/worker.ts`) in a process of its own, which a test may kill, freeze and thaw. */

import { readFile } from 'node:fs/promises';
import { signalGroup } from '../../src/dev/guarded-child.ts';
import { type Program, startProgram } from '../../src/dev/node-program.ts';
import { workflowBundle } from './workflow-bundle.ts';

export interface WorkerProcessOptions {
  /** Relative to `src/`; the product's own worker where left out. */
  readonly program?: string;
  readonly projectFolder: string;
  readonly env: { readonly [name: string]: string };
  readonly logFile: string;
}

export class WorkerProcess {
  #frozen = false;

  private constructor(
    readonly program: Program,
    private readonly logFile: string,
  ) {}

  /** Resolves when the worker polls. */
  static async start(options: WorkerProcessOptions): Promise<WorkerProcess> {
    const program = await startProgram({
      program: options.program ?? 'worker',
      args: ['--project', options.projectFolder],
      env: { RETL_WORKFLOW_BUNDLE: await workflowBundle(), ...options.env },
      logFile: options.logFile,
      readyWithinMs: 60_000,
    });
    return new WorkerProcess(program, options.logFile);
  }

  /** Everything that it has written to stdout and stderr after its first line, and whatever shares its log file. */
  output(): Promise<string> {
    return readFile(this.logFile, 'utf8');
  }

  /** SIGKILL: nothing is flushed, closed or told. */
  async kill(): Promise<void> {
    signalGroup(this.program.child.process, 'SIGKILL');
    await this.program.child.exited;
  }

  freeze(): void {
    this.#frozen = true;
    signalGroup(this.program.child.process, 'SIGSTOP');
  }

  thaw(): void {
    this.#frozen = false;
    signalGroup(this.program.child.process, 'SIGCONT');
  }

  async stop(): Promise<void> {
    if (this.#frozen) this.thaw();
    await this.program.child.stop();
  }
}
