/** Finds the files of `mirrors/`, one per mirror, and takes the mirror's name from the file's. */

import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { MIRROR_NAME } from './mirror-schema.ts';
import type { Problem } from './problem.ts';

export const MIRRORS_FOLDER = 'mirrors';
const EXTENSION = /\.ya?ml$/i;

export interface MirrorFile {
  readonly mirror: string;
  /** Relative to the project's folder, with `/`. */
  readonly file: string;
  readonly bytes: Uint8Array;
}

export interface MirrorFiles {
  /** In order of their names. */
  readonly found: readonly MirrorFile[];
  readonly problems: readonly Problem[];
}

/** Other files (modules, notes) and hidden ones may stand beside the mirrors. No folder means no mirrors yet. */
export async function mirrorFiles(projectDir: string): Promise<MirrorFiles> {
  const folder = join(projectDir, MIRRORS_FOLDER);
  const names = (await readdir(folder).catch(() => [])).filter(
    (name) => EXTENSION.test(name) && !name.startsWith('.'),
  );
  const found: MirrorFile[] = [];
  const problems: Problem[] = [];
  for (const name of names.sort()) {
    const file = `${MIRRORS_FOLDER}/${name}`;
    const mirror = name.replace(EXTENSION, '');
    const problem = (message: string, remedy: string) =>
      problems.push({ file, line: null, column: null, path: '', message, remedy });
    if (!name.endsWith('.yaml'))
      problem('The file does not end in `.yaml`.', `Rename it to \`${mirror}.yaml\`.`);
    else if (!MIRROR_NAME.test(mirror))
      problem(
        'The file’s name is not a valid name of a mirror.',
        'Use 1 to 63 lower-case letters, digits and `-`, not beginning with `-`, then `.yaml`.',
      );
    else {
      const bytes = await readFile(join(folder, name)).catch(() => null);
      if (bytes === null) problem('The file cannot be read.', 'Check its permissions.');
      else found.push({ mirror, file, bytes });
    }
  }
  return { found, problems };
}
