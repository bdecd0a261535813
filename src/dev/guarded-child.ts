/**
 * Child processes that end with their parent. Each child gets a guard: a small shell that holds one end of a pipe whose
 * other end only the parent has. When the parent is gone, by whatever way, SIGKILL included, the pipe closes and the
 * guard ends the child. What remains: if the guard itself is killed by SIGKILL together with the parent, the child stays;
 * the next start finds it by its pid file (`stack-lock.ts`).
 *
 * Children run in a process group of their own, so that Ctrl-C reaches the parent alone, which stops them in order.
 */

import { type ChildProcess, type SpawnOptions, spawn } from 'node:child_process';
import { once } from 'node:events';

export interface GuardedChild {
  readonly process: ChildProcess;
  readonly pid: number;
  /** Resolves when the process has ended. */
  readonly exited: Promise<ExitInfo>;
  /** Sends `stopSignal`, waits, then SIGKILL. Safe to call more than once, and after the exit. */
  stop(): Promise<void>;
}

export interface ExitInfo {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
}

export interface GuardOptions {
  readonly spawn: SpawnOptions;
  /** How this program is asked to end. */
  readonly stopSignal: NodeJS.Signals;
  /** Milliseconds between the polite signal and SIGKILL. */
  readonly stopWithinMs: number;
  /** A temporary folder that the guard removes when the parent could not. */
  readonly removeFolder?: string;
}

/** $1 process group, $2 signal, $3 tenths of a second to wait, $4 folder. A line on stdin is "all is well"; its end is not. */
const GUARD_SCRIPT = `
trap '' INT TERM HUP
if read -r word; then exit 0; fi
kill -s "$2" -- "-$1" 2>/dev/null
i=0
while kill -s 0 -- "-$1" 2>/dev/null && [ "$i" -lt "$3" ]; do sleep 0.1; i=$((i+1)); done
kill -s KILL -- "-$1" 2>/dev/null
if [ -n "$4" ]; then rm -rf -- "$4"; fi
`;

/** Starts a program under guard; rejects when it cannot be started at all. */
export async function spawnGuarded(
  command: string,
  args: readonly string[],
  options: GuardOptions,
): Promise<GuardedChild> {
  const child = spawn(command, [...args], { ...options.spawn, detached: true });
  const exited = new Promise<ExitInfo>((resolve) => {
    child.once('exit', (code, signal) => resolve({ code, signal }));
  });
  await once(child, 'spawn');
  const { pid } = child;
  if (pid === undefined) throw new Error(`${command} has started without a pid`);
  const release = startGuard(pid, options);
  void exited.then(release);
  return { process: child, pid, exited, stop: () => stopChild(child, exited, options) };
}

function startGuard(pid: number, options: GuardOptions): () => void {
  const signal = options.stopSignal.replace(/^SIG/, '');
  const tenths = String(Math.ceil(options.stopWithinMs / 100));
  const guard = spawn(
    '/bin/sh',
    ['-c', GUARD_SCRIPT, 'guard', String(pid), signal, tenths, options.removeFolder ?? ''],
    { detached: true, stdio: ['pipe', 'ignore', 'ignore'], cwd: '/' },
  );
  // Without a shell there is no guard; the child then only ends with an orderly parent.
  guard.on('error', () => undefined);
  guard.unref();
  const { stdin } = guard;
  stdin.on('error', () => undefined);
  // The pipe must stay open but must not keep the parent alive.
  if ('unref' in stdin && typeof stdin.unref === 'function') stdin.unref();
  return () => stdin.end('done\n');
}

async function stopChild(
  child: ChildProcess,
  exited: Promise<ExitInfo>,
  options: GuardOptions,
): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  signalGroup(child, options.stopSignal);
  const timer = setTimeout(() => signalGroup(child, 'SIGKILL'), options.stopWithinMs);
  await exited;
  clearTimeout(timer);
}

/** The whole group, so that a program behind a wrapper script (a version manager's shim) is reached as well. */
export function signalGroup(child: ChildProcess, signal: NodeJS.Signals): void {
  if (child.pid === undefined) return;
  try {
    process.kill(-child.pid, signal);
  } catch {
    // Already gone.
  }
}
