/** Finds the files of `mirrors/`, one per mirror, and takes the mirror's name from the file's. */

import { readdir, readFile } from 'node:fs/promises';
import { join, posix } from 'node:path';
import { valueAt } from './issue-problems.ts';
import { MODULE_EXTENSION } from './mapping-module.ts';
import { MIRROR_NAME } from './mirror-schema.ts';
import type { Problem } from './problem.ts';
import { parseYamlFile } from './yaml-file.ts';

export const MIRRORS_FOLDER = 'mirrors';
const YAML_EXTENSION = /\.ya?ml$/i;
const NAME_WORDS = '1 to 63 lower-case letters, digits and `-`, not beginning with `-`';

export interface MirrorFile {
  readonly kind: 'yaml' | 'module';
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

/**
 * Notes, hidden files and those whose names begin with `_` may stand beside the mirrors, and so may modules that a mirror
 * names as its mapping; every other module is a mirror itself. No folder means no mirrors yet.
 */
export async function mirrorFiles(projectDir: string): Promise<MirrorFiles> {
  const folder = join(projectDir, MIRRORS_FOLDER);
  const names = (await readdir(folder).catch(() => [])).filter((name) => !/^[._]/.test(name)).sort();
  const yaml = await readAll(
    folder,
    names.filter((name) => YAML_EXTENSION.test(name)),
    'yaml',
  );
  const mappings = yaml.found.flatMap(mappingsOf);
  const modules = names.filter((name) => isModule(name) && !mappings.includes(`${MIRRORS_FOLDER}/${name}`));
  const code = await readAll(folder, modules, 'module');
  const twins = code.found.flatMap((file) => {
    const twin = [...yaml.found, ...code.found].find(
      (other) => other !== file && other.mirror === file.mirror,
    );
    return twin === undefined ? [] : [twinProblem(file, twin)];
  });
  const told = new Set(twins.map((problem) => problem.file));
  return {
    found: [...yaml.found, ...code.found.filter(({ file }) => !told.has(file))].sort(byName),
    problems: [...yaml.problems, ...code.problems, ...twins],
  };
}

function byName(a: MirrorFile, b: MirrorFile): number {
  return a.mirror < b.mirror ? -1 : 1;
}

/** Types and tests are not mirrors. */
function isModule(name: string): boolean {
  return MODULE_EXTENSION.test(name) && !/\.(d|test|spec)\.m?[tj]s$/.test(name);
}

/** The mirror that a file of the folder belongs to by its name. */
export function mirrorOfFile(file: string): string {
  return posix.basename(file).replace(YAML_EXTENSION, '').replace(MODULE_EXTENSION, '');
}

/** Modules that this mirror has for its mapping, relative to the project. */
function mappingsOf({ file, bytes }: MirrorFile): readonly string[] {
  const parsed = parseYamlFile(file, bytes);
  const named = parsed.kind === 'ok' ? valueAt(parsed.file.value, ['mapping', 'module']) : null;
  return typeof named === 'string' ? [posix.join(MIRRORS_FOLDER, named)] : [];
}

function twinProblem({ file }: MirrorFile, twin: MirrorFile): Problem {
  const message = `\`${twin.file}\` is a mirror of the same name.`;
  const remedy = 'Keep one of the two; a module of helpers goes into another folder, or begins with `_`.';
  return { file, line: null, column: null, path: '', message, remedy };
}

async function readAll(
  folder: string,
  names: readonly string[],
  kind: MirrorFile['kind'],
): Promise<MirrorFiles> {
  const found: MirrorFile[] = [];
  const problems: Problem[] = [];
  for (const name of names) {
    const file = `${MIRRORS_FOLDER}/${name}`;
    const mirror = mirrorOfFile(name);
    const problem = (message: string, remedy: string) =>
      problems.push({ file, line: null, column: null, path: '', message, remedy });
    if (kind === 'yaml' && !name.endsWith('.yaml'))
      problem('The file does not end in `.yaml`.', `Rename it to \`${mirror}.yaml\`.`);
    else if (!MIRROR_NAME.test(mirror))
      problem(
        'The file’s name is not a valid name of a mirror.',
        kind === 'yaml'
          ? `Use ${NAME_WORDS}, then \`.yaml\`.`
          : `Use ${NAME_WORDS}; a module of helpers goes into another folder, or begins with \`_\`.`,
      );
    else {
      const bytes = await readFile(join(folder, name)).catch(() => null);
      if (bytes === null) problem('The file cannot be read.', 'Check its permissions.');
      else found.push({ kind, mirror, file, bytes });
    }
  }
  return { found, problems };
}
