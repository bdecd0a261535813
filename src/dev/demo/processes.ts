/** The demo's two programs: the audience API, whose state outlives it, and the worker. */

import { join } from 'node:path';
import { z } from 'zod';
import { type Program, startProgram } from '../node-program.ts';
import { AUDIENCE, type ProjectEnvironment } from './project.ts';

const READY_WITHIN_MS = 60_000;

const ReadySchema = z.object({ ready: z.literal(true) });
const AddressSchema = z.object({ url: z.url() });
const MembersSchema = z.object({ members: z.array(z.unknown()) });

export interface WorkerOptions {
  readonly projectFolder: string;
  readonly logFile: string;
  readonly environment: ProjectEnvironment;
}

/** Resolves when the worker polls. */
export async function startWorker(options: WorkerOptions): Promise<Program> {
  const program = await startProgram({
    program: 'worker',
    args: [],
    env: { RETL_PROJECT: options.projectFolder, ...options.environment },
    logFile: options.logFile,
    readyWithinMs: READY_WITHIN_MS,
  });
  ReadySchema.parse(JSON.parse(program.firstLine));
  return program;
}

export class AudienceApi {
  readonly url: string;
  readonly #program: Program;

  private constructor(url: string, program: Program) {
    this.url = url;
    this.#program = program;
  }

  /** `delayMs`: how long each request takes. `port` 0: any; the audiences are kept in a file of `folder`. */
  static async start(folder: string, port: number, delayMs: number): Promise<AudienceApi> {
    const data = join(folder, 'audiences.json');
    const program = await startProgram({
      program: 'dev/audience-api',
      args: ['--port', String(port), '--data', data, '--delay-ms', String(delayMs)],
      env: {},
      logFile: join(folder, 'audience-api.log'),
      readyWithinMs: READY_WITHIN_MS,
    });
    const { url } = AddressSchema.parse(JSON.parse(program.firstLine));
    return new AudienceApi(url.replace(/\/$/, ''), program);
  }

  get port(): number {
    return Number(new URL(this.url).port);
  }

  /** The audience as anyone can read it over HTTP. */
  async members(): Promise<readonly unknown[]> {
    const response = await fetch(`${this.url}/audiences/${AUDIENCE}/members`);
    // An audience that nobody has written to yet does not exist.
    if (response.status === 404) return [];
    if (!response.ok) throw new Error(`the audience API answers ${response.status} when it is read`);
    return MembersSchema.parse(await response.json()).members;
  }

  stop(): Promise<void> {
    return this.#program.stop();
  }
}
