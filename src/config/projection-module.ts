/**
 * Loads the TypeScript function of a mapping. The file must still be the one that the settings were made from: a run
 * keeps its revision to the end, and another program is another mapping.
 */

import { join } from 'node:path';
import { RetlError } from '../domain/errors.ts';
import type { MirrorProjection } from '../domain/member.ts';
import { digestOf, type ModuleMapping } from './mapping-module.ts';
import { importModule } from './module-import.ts';

/**
 * @throws RetlError `config.mapping` whose detail `rule` says what is wrong; never with the module's own words, which
 * may quote data.
 */
export async function loadProjection(mapping: ModuleMapping, projectDir: string): Promise<MirrorProjection> {
  const path = join(projectDir, mapping.path);
  const digest = await digestOf(path).catch(() => null);
  if (digest === null) throw refused(mapping, 'missing');
  if (digest !== mapping.digest) throw refused(mapping, 'changed-since-the-revision');
  const exported = await exportOf(mapping, path);
  if (exported === undefined) throw refused(mapping, 'no-such-export');
  const projection = projectionIn(exported);
  if (projection === null) throw refused(mapping, 'not-a-projection');
  return projection;
}

async function exportOf(mapping: ModuleMapping, path: string): Promise<unknown> {
  try {
    return Reflect.get(await importModule(path, mapping.digest), mapping.export);
  } catch {
    throw refused(mapping, 'cannot-be-loaded');
  }
}

function refused(mapping: ModuleMapping, rule: string): RetlError {
  return new RetlError('config.mapping', { module: mapping.path, export: mapping.export, rule });
}

/** The projection itself, or the one in a mirror that is a module (`defineMirror({…, mapping})`). */
function projectionIn(exported: unknown): MirrorProjection | null {
  if (isProjection(exported)) return exported;
  const inline: unknown =
    typeof exported === 'object' && exported !== null ? Reflect.get(exported, 'mapping') : null;
  return isProjection(inline) ? inline : null;
}

export function isProjection(value: unknown): value is MirrorProjection {
  if (typeof value !== 'object' || value === null) return false;
  const project: unknown = Reflect.get(value, 'project');
  const rowType: unknown = Reflect.get(value, 'rowType');
  if (typeof rowType !== 'object' || rowType === null) return false;
  return typeof project === 'function' && typeof Reflect.get(rowType, 'safeParse') === 'function';
}
