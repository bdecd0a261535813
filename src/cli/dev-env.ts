/**
 * What a running `retl dev` leaves for the other commands of its environment: where its servers are. It counts only while
 * that process runs: one that was killed leaves the file, and by then its ports may be another project's.
 */

import { mkdir, readdir, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';

/** By its name in the project's folder. */
export function devEnvFile(environment: string | null): string {
  return join('.retl', environment === null ? 'dev.env' : `dev.${environment}.env`);
}

/** Where the servers of `retl dev` keep their data, and the lock of the process that runs them. */
export function devDataDir(projectDir: string): string {
  return join(projectDir, '.retl', 'dev');
}

/** Whether the process that runs the project's servers is alive; another user's counts, too. */
export async function isDevRunning(projectDir: string): Promise<boolean> {
  const { stackHolder } = await import('../dev/stack-lock.ts');
  return (await stackHolder(devDataDir(projectDir))) !== null;
}

/** Readable by its owner alone. */
export async function writeDevEnvironment(
  projectDir: string,
  environment: string | null,
  variables: { readonly [name: string]: string },
): Promise<void> {
  const file = join(projectDir, devEnvFile(environment));
  await mkdir(join(projectDir, '.retl'), { recursive: true });
  const lines = Object.entries(variables).map(([name, value]) => `${name}=${value}\n`);
  await writeFile(file, lines.join(''), { mode: 0o600 });
  await writeFile(join(projectDir, '.retl', '.gitignore'), '*\n');
}

/** Those of every environment: only the process that runs the servers writes one, and whoever calls this is that process. */
export async function dropDevEnvironments(projectDir: string): Promise<void> {
  const folder = join(projectDir, '.retl');
  const names = await readdir(folder).catch(() => []);
  for (const name of names.filter((one) => /^dev(\..+)?\.env$/.test(one)))
    await rm(join(folder, name), { force: true });
}
