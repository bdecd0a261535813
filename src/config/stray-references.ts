/** Secret references where none is resolved: what a mirror holds is stored, shown and compared as it stands. */

import type { Path, Problem } from './problem.ts';
import { referencesIn } from './secrets.ts';
import type { YamlFile } from './yaml-file.ts';

/**
 * @param value what stands at `base` of the file.
 * @param where what holds the reference, e.g. `a mirror`.
 */
export function strayReferences(
  file: YamlFile,
  base: Path,
  value: unknown,
  where: string,
): readonly Problem[] {
  if (typeof value === 'string')
    return referencesIn(value).length === 0
      ? []
      : [
          file.problemAt(
            base,
            `Secret references are not resolved in ${where}.`,
            'Move this setting to the connection in retl.yaml.',
          ),
        ];
  if (typeof value !== 'object' || value === null) return [];
  return Object.entries(value).flatMap(([key, inner]) =>
    strayReferences(file, [...base, Array.isArray(value) ? Number(key) : key], inner, where),
  );
}
