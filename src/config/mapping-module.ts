/** Resolves `mapping: {module, export}`: a file inside the project, known by the hash of its content. */

import { createHash } from 'node:crypto';
import { readFile, realpath } from 'node:fs/promises';
import { dirname, isAbsolute, join, relative, sep } from 'node:path';
import { sha256FromHex } from '../domain/ids.ts';
import type { MappingSettings } from '../domain/settings.ts';
import { valueAt } from './issue-problems.ts';
import type { Problem } from './problem.ts';
import type { YamlFile } from './yaml-file.ts';

export type ModuleMapping = Extract<MappingSettings, { kind: 'module' }>;

export const MODULE_EXTENSION = /\.(ts|mts|js|mjs)$/;
const REMEDY = 'Name a .ts, .mts, .js or .mjs file of this project, relative to the mirror’s file.';

/** @param mirrorFile path of the mirror's file, relative to the project. */
export async function mappingModule(
  file: YamlFile,
  mirrorFile: string,
  projectDir: string,
): Promise<{ readonly mapping: ModuleMapping | null; readonly problems: readonly Problem[] }> {
  const written = valueAt(file.value, ['mapping', 'module']);
  if (typeof written !== 'string' || written === '') return { mapping: null, problems: [] };
  const problem = (message: string) => ({
    mapping: null,
    problems: [file.problemAt(['mapping', 'module'], message, REMEDY)],
  });
  if (isAbsolute(written)) return problem('The path of the module is absolute.');
  if (!MODULE_EXTENSION.test(written)) return problem('The file is not a module.');
  const absolute = join(projectDir, dirname(mirrorFile), written);
  const path = await pathInside(projectDir, absolute);
  if (path === null) return problem('The module is not there, or not inside the project.');
  const digest = await digestOf(absolute).catch(() => null);
  if (digest === null) return problem('The module cannot be read.');
  const name = valueAt(file.value, ['mapping', 'export']);
  return {
    mapping: { kind: 'module', path, export: typeof name === 'string' ? name : 'default', digest },
    problems: [],
  };
}

/** `sha256:` and the hex digits of the file's content. */
export async function digestOf(path: string): Promise<string> {
  return sha256FromHex(
    createHash('sha256')
      .update(await readFile(path))
      .digest('hex'),
  );
}

/** The path relative to the project, with `/`; `null` where it leads outside (links followed) or nowhere. */
async function pathInside(projectDir: string, path: string): Promise<string | null> {
  try {
    const inside = relative(await realpath(projectDir), await realpath(path));
    return inside.startsWith('..') || isAbsolute(inside) ? null : inside.split(sep).join('/');
  } catch {
    return null;
  }
}
