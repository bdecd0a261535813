/** Where downloaded programs are kept between projects. */

import { accessSync, constants, mkdirSync } from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';

/**
 * `$XDG_CACHE_HOME/retl-mirror`, else `~/.cache/retl-mirror`; `.retl/cache` of the project where the home folder cannot be
 * written. The folder exists afterwards.
 */
export function cacheFolder(projectFolder: string, env: NodeJS.ProcessEnv = process.env): string {
  const base =
    env.XDG_CACHE_HOME ?? (env.HOME === undefined ? join(homedir(), '.cache') : join(env.HOME, '.cache'));
  for (const folder of [join(base, 'retl-mirror'), join(projectFolder, '.retl', 'cache')]) {
    try {
      mkdirSync(folder, { recursive: true });
      accessSync(folder, constants.W_OK);
      return folder;
    } catch {
      // Not writable: the next one.
    }
  }
  throw new Error(
    `Neither ${base} nor ${projectFolder} can be written. Set XDG_CACHE_HOME to a folder that can.`,
  );
}
