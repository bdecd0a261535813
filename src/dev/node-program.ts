/** Starts one of this project's own programs in a process of its own, from TypeScript or from the built JavaScript alike. */

import { createWriteStream } from 'node:fs';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { type GuardedChild, spawnGuarded } from './guarded-child.ts';

export interface ProgramOptions {
  /** Relative to `src/`, without extension: `worker`, `dev/audience-api`. */
  readonly program: string;
  readonly args: readonly string[];
  readonly env: { readonly [name: string]: string };
  /** What it writes is appended here. */
  readonly logFile: string;
  readonly readyWithinMs: number;
}

export interface Program {
  readonly child: GuardedChild;
  /** The first line of its output: how it says that it is ready. */
  readonly firstLine: string;
  /** Asks it to end, and sees to it. */
  stop(): Promise<void>;
}

/** Resolves when the program has written its first line; rejects when it ends, or stays silent too long, before. */
export async function startProgram(options: ProgramOptions): Promise<Program> {
  const child = await spawnGuarded(process.execPath, commandLine(options), {
    spawn: { env: { ...process.env, ...options.env }, stdio: ['ignore', 'pipe', 'pipe'] },
    stopSignal: 'SIGTERM',
    stopWithinMs: 20_000,
  });
  const log = createWriteStream(options.logFile, { flags: 'a' });
  child.process.stdout?.pipe(log, { end: false });
  child.process.stderr?.pipe(log, { end: false });
  const firstLine = await Promise.race([
    firstLineOf(child),
    child.exited.then(() => null),
    new Promise<null>((resolve) => setTimeout(resolve, options.readyWithinMs, null).unref()),
  ]);
  if (firstLine !== null) return { child, firstLine, stop: () => child.stop() };
  await child.stop();
  throw new Error(`${options.program} did not get ready; what it said is in ${options.logFile}`);
}

function commandLine(options: ProgramOptions): string[] {
  const here = fileURLToPath(import.meta.url);
  const isSource = here.endsWith('.ts');
  const file = fileURLToPath(new URL(`../${options.program}${isSource ? '.ts' : '.js'}`, import.meta.url));
  const loader = isSource ? ['--import', import.meta.resolve('tsx')] : [];
  return [...loader, file, ...options.args];
}

async function firstLineOf(child: GuardedChild): Promise<string | null> {
  const { stdout } = child.process;
  if (stdout === null) return null;
  const lines = createInterface({ input: stdout });
  return new Promise((resolve) => {
    lines.once('line', (line) => {
      resolve(line);
      // The pipe to the log file goes on reading.
      lines.close();
      stdout.resume();
    });
  });
}
