/** Looks at processes by id, so that a recorded id which now belongs to another program is never taken for ours. */

import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { promisify } from 'node:util';

const run = promisify(execFile);

export function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return error instanceof Error && 'code' in error && error.code === 'EPERM';
  }
}

/** The command line of a live process; empty where there is none or it cannot be read. */
export async function commandOf(pid: number): Promise<string> {
  if (!isAlive(pid)) return '';
  if (existsSync('/proc/self/cmdline')) {
    const raw = await readFile(`/proc/${pid}/cmdline`, 'utf8').catch(() => '');
    return raw.replaceAll('\0', ' ').trim();
  }
  return run('ps', ['-o', 'command=', '-p', String(pid)]).then(
    ({ stdout }) => stdout.trim(),
    () => '',
  );
}

/** Something that a later process with the same id will not share: when it started. Empty where there is none. */
export async function startOf(pid: number): Promise<string> {
  if (!isAlive(pid)) return '';
  if (existsSync('/proc/self/stat')) {
    const raw = await readFile(`/proc/${pid}/stat`, 'utf8').catch(() => '');
    // The second field is a name in brackets, which may hold spaces; the start time is field 22.
    return raw.slice(raw.lastIndexOf(')') + 2).split(' ')[19] ?? '';
  }
  return run('ps', ['-o', 'lstart=', '-p', String(pid)]).then(
    ({ stdout }) => stdout.trim(),
    () => '',
  );
}

/** Who listens on a port of the loopback address; `null` where that cannot be told, as of another user's process. */
export async function listenerOn(port: number): Promise<number | null> {
  const asked = [
    ['lsof', '-nP', '-t', `-iTCP:${port}`, '-sTCP:LISTEN'],
    ['ss', '-Hltnp', `sport = :${port}`],
  ] as const;
  for (const [program, ...args] of asked) {
    const said = await run(program, args, { timeout: 5_000 }).then(
      ({ stdout }) => stdout,
      () => '',
    );
    const pid = /^(\d+)$/m.exec(said)?.[1] ?? /pid=(\d+)/.exec(said)?.[1];
    if (pid !== undefined) return Number(pid);
  }
  return null;
}

/** Ends a left-over process politely, then not; `true` once it is gone. */
export async function endProcess(pid: number, signal: NodeJS.Signals, withinMs: number): Promise<boolean> {
  for (const attempt of [signal, 'SIGKILL'] as const) {
    try {
      process.kill(pid, attempt);
    } catch {
      return !isAlive(pid);
    }
    const deadline = Date.now() + withinMs;
    while (Date.now() < deadline) {
      if ((await commandOf(pid)) === '') return true;
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
  }
  return false;
}
