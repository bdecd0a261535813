/** Runs `retl` as a real process. */

import { spawn } from 'node:child_process';
import { fileURLToPath } from 'node:url';

export interface Ran {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

const RETL = fileURLToPath(new URL('../../bin/retl.js', import.meta.url));

/** What a developer's own shell may hold must not decide a test. */
function cleanEnvironment(): NodeJS.ProcessEnv {
  const own = /^(RETL_|TEMPORAL_|NO_COLOR|FORCE_COLOR)/;
  return Object.fromEntries(Object.entries(process.env).filter(([name]) => !own.test(name)));
}

export interface RunOptions {
  readonly cwd: string;
  readonly env?: { readonly [name: string]: string };
}

export function retl(args: readonly string[], { cwd, env = {} }: RunOptions): Promise<Ran> {
  return new Promise((resolve, reject) => {
    const child = spawn(process.execPath, [RETL, ...args], {
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
    child.once('error', reject);
    child.once('close', (code) => resolve({ code, ...text }));
  });
}
