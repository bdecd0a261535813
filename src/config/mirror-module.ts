/**
 * Reads a mirror that is a module: its default export has the keys of a mirror's YAML file, and is judged by the same
 * schema. Nothing that the module throws or holds is ever repeated: it may quote data.
 */

import { join, posix } from 'node:path';
import { isMapping } from './check-connections.ts';
import { digestOf } from './mapping-module.ts';
import type { MirrorFile } from './mirror-files.ts';
import { errorCode, importModule } from './module-import.ts';
import { type Path, type Problem, pathsAt } from './problem.ts';
import { isProjection } from './projection-module.ts';
import type { YamlFile, YamlResult } from './yaml-file.ts';

const EXPORT_REMEDY =
  'Write `export default defineMirror({…})`; a module of helpers goes into another folder, or begins with `_`.';

const PROJECTION_REMEDY =
  'Expected: {rowType, project}: `rowType.safeParse` judges a row (a zod schema fits), `project` gives its members.';

type Mapping = { readonly [key: string]: unknown };

export async function readMirrorModule({ file }: MirrorFile, projectDir: string): Promise<YamlResult> {
  const problemAt: YamlFile['problemAt'] = (path, message, remedy, target) => ({
    file,
    line: null,
    column: null,
    ...pathsAt(path, target),
    message,
    remedy,
  });
  const invalid = (message: string, remedy: string): YamlResult => ({
    kind: 'invalid',
    problems: [problemAt([], message, remedy)],
  });
  const path = join(projectDir, file);
  let loaded: object;
  try {
    loaded = await importModule(path, await digestOf(path));
  } catch (error) {
    return invalid(...loadWords(errorCode(error), file));
  }
  const exported: unknown = Reflect.get(loaded, 'default');
  if (exported === undefined) return invalid('The module has no default export.', EXPORT_REMEDY);
  if (!isMapping(exported)) return invalid('The default export is no mirror.', EXPORT_REMEDY);
  const value = inlineMappingNamed(exported, file);
  const problems =
    isMapping(value.mapping) && 'project' in value.mapping
      ? [problemAt(['mapping'], 'This is no MirrorProjection.', PROJECTION_REMEDY)]
      : strangers(value, [], problemAt);
  if (problems.length > 0) return { kind: 'invalid', problems };
  // A copy: what the module does with its own later changes nothing here, and keys without a value are gone.
  const plain: unknown = JSON.parse(JSON.stringify(value));
  return { kind: 'ok', file: { file, value: plain, problemAt } };
}

function loadWords(code: string | null, file: string): [string, string] {
  return code === 'ERR_MODULE_NOT_FOUND' || code === 'MODULE_NOT_FOUND'
    ? [
        'Something that the module imports is not there.',
        'Install what its imports name beside retl.yaml; `retl-mirror` itself from a checkout in which `npm run build` has run.',
      ]
    : [
        'The module cannot be loaded.',
        `\`npx --yes tsx ${file}\`, in the project’s folder, shows what it says.`,
      ];
}

/** A projection that stands in the mirror itself is a mapping by module like any other: this file's default export. */
function inlineMappingNamed(exported: Mapping, file: string): Mapping {
  return isProjection(exported.mapping)
    ? { ...exported, mapping: { module: `./${posix.basename(file)}`, export: 'default' } }
    : exported;
}

/** What a YAML file could not hold, by its place: functions, dates, cycles and the like. */
function strangers(
  value: unknown,
  path: Path,
  problemAt: YamlFile['problemAt'],
  above: readonly unknown[] = [],
): readonly Problem[] {
  if (value === null || typeof value === 'string' || typeof value === 'boolean') return [];
  if (typeof value === 'number' && Number.isFinite(value)) return [];
  if (isPlain(value) && !above.includes(value))
    return Object.entries(value).flatMap(([key, inner]) =>
      inner === undefined && !Array.isArray(value)
        ? []
        : strangers(inner, [...path, Array.isArray(value) ? Number(key) : key], problemAt, [...above, value]),
    );
  return [
    problemAt(
      path,
      'This is no plain value.',
      'Expected: text, a finite number, true, false, null, a list or a mapping of such.',
    ),
  ];
}

function isPlain(value: unknown): value is object {
  if (typeof value !== 'object' || value === null) return false;
  if (Array.isArray(value)) return true;
  const prototype: unknown = Object.getPrototypeOf(value);
  return prototype === Object.prototype || prototype === null;
}
