/**
 * Starts `worker.ts` as a process of its own: the CLI loads neither activities nor workflows. tsx comes along so that
 * mappings written in TypeScript load, in a built package too.
 */

import { type ChildProcess, spawn } from 'node:child_process';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { EXIT, type ExitCode } from './exit-codes.ts';

/**
 * Bounds the heap, for Node otherwise lets garbage grow with the machine's memory: a million rows then cost a hundred MB
 * more than a hundred thousand, and no time less (bench/RESULTS.md). NODE_OPTIONS has the last word.
 */
export function heapLimit(nodeOptions = process.env.NODE_OPTIONS ?? ''): readonly string[] {
  return /--max[-_]old[-_]space[-_]size/.test(nodeOptions) ? [] : ['--max-old-space-size=1024'];
}

/** The programs that may load the systems: the worker, the one that only reads mirrors, and the one that only asks indexes. */
export type WorkerProgram = 'worker' | 'worker-load' | 'worker-ask';

/** Arguments for `process.execPath`. */
export function workerCommandLine(args: readonly string[], program: WorkerProgram = 'worker'): string[] {
  const extension = import.meta.url.endsWith('.ts') ? 'ts' : 'js';
  const file = fileURLToPath(new URL(`../${program}.${extension}`, import.meta.url));
  return [...heapLimit(), '--import', import.meta.resolve('tsx'), file, ...args];
}

/** Its stdout is for the caller to read: one JSON text per line. */
export function spawnWorker(args: readonly string[], program?: WorkerProgram): ChildProcess {
  return spawn(process.execPath, workerCommandLine(args, program), { stdio: ['ignore', 'pipe', 'inherit'] });
}

/** The lines of a worker's stdout that are JSON; anything else a library may print is passed over. */
export async function* jsonLines(child: ChildProcess): AsyncGenerator<unknown, void> {
  if (child.stdout === null) return;
  for await (const line of createInterface({ input: child.stdout })) {
    const value = parsed(line);
    if (value !== undefined) yield value;
  }
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** Whether a line of a worker says that it polls. */
export function isReady(line: unknown): boolean {
  return typeof line === 'object' && line !== null && 'ready' in line && line.ready === true;
}

const STOPS: ReadonlySet<NodeJS.Signals | null> = new Set(['SIGINT', 'SIGTERM']);

/** How a worker has ended. */
export type WorkerEnd =
  | { readonly kind: 'exited'; readonly exit: ExitCode }
  /** Somebody stopped it, or this process, before it was done. */
  | { readonly kind: 'interrupted' }
  /** By another signal, such as SIGKILL where the machine has run out of memory. */
  | { readonly kind: 'killed'; readonly signal: NodeJS.Signals };

/**
 * Waits for the worker's end and passes signals on meanwhile. Ctrl-C in a terminal reaches the worker by itself, so
 * that it is passed on only where no terminal is.
 */
export async function endOfWorker(child: ChildProcess): Promise<WorkerEnd> {
  let isStopped = false;
  const pass = (signal: NodeJS.Signals) => {
    isStopped = true;
    if (signal !== 'SIGINT' || process.stdin.isTTY !== true) child.kill(signal);
  };
  process.on('SIGTERM', pass);
  process.on('SIGINT', pass);
  try {
    const code = await new Promise<number | null>((resolve, reject) => {
      child.once('error', reject);
      child.once('close', resolve);
    });
    // Whoever was stopped and yet got to the end has done all of it.
    if (code === EXIT.ok || code === EXIT.usage) return { kind: 'exited', exit: code };
    const { signalCode: signal } = child;
    if (isStopped || STOPS.has(signal)) return { kind: 'interrupted' };
    return signal === null ? { kind: 'exited', exit: EXIT.failure } : { kind: 'killed', signal };
  } finally {
    process.off('SIGTERM', pass);
    process.off('SIGINT', pass);
  }
}
