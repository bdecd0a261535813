/**
 * One stack per data folder. The lock names its process by id and start time; a lock whose process is gone is
 * taken over, and what that process left running is ended first.
 */

import { mkdir, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { z } from 'zod';
import { commandOf, endProcess, startOf } from './processes.ts';

export interface StackLock {
  /** Records a child, for whoever finds this lock after a crash. */
  record(pid: number): Promise<void>;
  release(): Promise<void>;
}

const LockSchema = z.object({ pid: z.number(), start: z.string(), children: z.array(z.number()) });
type LockFile = z.infer<typeof LockSchema>;

/** The servers of a folder belong to another process. */
export class StackInUse extends Error {
  override readonly name = 'StackInUse';
  constructor(
    readonly folder: string,
    readonly process: number | null,
    readonly file: string,
  ) {
    super(
      `The development servers of ${folder} are in use by process ${process ?? 'unknown'}. ` +
        `Stop it first (Ctrl-C), or remove ${file} if no such process is yours.`,
    );
  }
}

/** Who has the folder's servers; `null`: nobody. */
export async function stackHolder(folder: string): Promise<StackInUse | null> {
  const file = join(folder, 'stack.lock');
  const found = await read(file);
  return found !== null && (await isHeld(found)) ? new StackInUse(folder, found.pid, file) : null;
}

/** Takes the folder. @throws StackInUse */
export async function lockStack(folder: string): Promise<StackLock> {
  await mkdir(folder, { recursive: true });
  const file = join(folder, 'stack.lock');
  const mine: LockFile = { pid: process.pid, start: await startOf(process.pid), children: [] };
  for (let attempt = 0; !(await create(file, mine)); attempt += 1) {
    const found = await read(file);
    if (attempt === 3 || (found !== null && (await isHeld(found)))) {
      throw new StackInUse(folder, found?.pid ?? null, file);
    }
    for (const pid of found?.children ?? []) await endLeftOver(pid, folder);
    await rm(file, { force: true });
  }
  return {
    async record(pid) {
      mine.children.push(pid);
      await writeFile(file, JSON.stringify(mine));
    },
    release: () => rm(file, { force: true }),
  };
}

async function create(file: string, content: LockFile): Promise<boolean> {
  try {
    await writeFile(file, JSON.stringify(content), { flag: 'wx' });
    return true;
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'EEXIST') return false;
    throw error;
  }
}

/** `null` for a lock that was cut short while it was written. */
async function read(file: string): Promise<LockFile | null> {
  try {
    return LockSchema.parse(JSON.parse(await readFile(file, 'utf8')));
  } catch {
    return null;
  }
}

async function isHeld(lock: LockFile): Promise<boolean> {
  const start = await startOf(lock.pid);
  return start !== '' && start === lock.start;
}

/** Only a process whose command line names this folder is ours to end. */
async function endLeftOver(pid: number, folder: string): Promise<void> {
  if (!(await commandOf(pid)).includes(folder)) return;
  if (await endProcess(pid, 'SIGINT', 10_000)) return;
  throw new Error(`Process ${pid} is left over from an earlier start and cannot be ended; end it by hand.`);
}
