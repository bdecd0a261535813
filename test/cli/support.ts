/** Runs `retl` as a real process. */

import { spawn } from 'node:child_process';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';

export interface Ran {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

// Not bin/retl.js: where the project has been built, that would try yesterday's code.
export const RETL = fileURLToPath(new URL('../../src/cli/main.ts', import.meta.url));

/** What a developer's own shell may hold must not decide a test. */
export function cleanEnvironment(): NodeJS.ProcessEnv {
  const own = /^(RETL_|TEMPORAL_|NO_COLOR|FORCE_COLOR)/;
  return Object.fromEntries(Object.entries(process.env).filter(([name]) => !own.test(name)));
}

export interface RunOptions {
  readonly cwd: string;
  readonly env?: { readonly [name: string]: string };
}

export function retl(args: readonly string[], options: RunOptions): Promise<Ran> {
  return startRetl(args, options).ended;
}

export interface Running {
  readonly ended: Promise<Ran>;
  /** Resolves once the text stands in its output; rejects where the process ends without it. */
  says(text: string): Promise<void>;
  /** The first line of its output that holds the text, once it stands there; rejects where the process ends without it. */
  line(text: string): Promise<string | undefined>;
  signal(signal: NodeJS.Signals): void;
}

export function startRetl(args: readonly string[], { cwd, env = {} }: RunOptions): Running {
  const child = spawn(process.execPath, ['--import', import.meta.resolve('tsx'), RETL, ...args], {
    cwd,
    env: { ...cleanEnvironment(), ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const text = { stdout: '', stderr: '' };
  child.stdout.setEncoding('utf8').on('data', (chunk: string) => {
    text.stdout += chunk;
  });
  child.stderr.setEncoding('utf8').on('data', (chunk: string) => {
    text.stderr += chunk;
  });
  const ended = new Promise<Ran>((resolve, reject) => {
    child.once('error', reject);
    child.once('close', (code) => resolve({ code, ...text }));
  });
  return {
    ended,
    says: (words) => said(() => text.stdout + text.stderr, words, ended),
    async line(words) {
      await said(() => text.stdout, words, ended);
      return text.stdout.split('\n').find((line) => line.includes(words));
    },
    signal: (signal) => void child.kill(signal),
  };
}

async function said(output: () => string, words: string, ended: Promise<Ran>): Promise<void> {
  let isOver = false;
  ended.finally(() => {
    isOver = true;
  });
  while (!output().includes(words)) {
    if (isOver) throw new Error(`ended without saying ${words}: ${output()}`);
    await sleep(50);
  }
}
