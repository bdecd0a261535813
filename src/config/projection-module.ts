/**
 * Loads the TypeScript function of a mapping. The file must still be the one that the settings were made from: a run
 * keeps its revision to the end, and another program is another mapping.
 *
 * Plain Node does not load `.ts`: the process must be started with tsx, as `retl worker` does.
 */

import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { RetlError } from '../domain/errors.ts';
import type { MirrorProjection } from '../domain/member.ts';
import { digestOf, type ModuleMapping } from './mapping-module.ts';

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
  if (!isProjection(exported)) throw refused(mapping, 'not-a-projection');
  return exported;
}

async function exportOf(mapping: ModuleMapping, path: string): Promise<unknown> {
  // The digest in the URL makes a changed file another module in a worker that lives on.
  const url = `${pathToFileURL(path).href}?${mapping.digest}`;
  let loaded: object;
  try {
    loaded = await import(url);
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? error.code : null;
    throw refused(
      mapping,
      code === 'ERR_UNKNOWN_FILE_EXTENSION' ? 'process-started-without-tsx' : 'cannot-be-loaded',
    );
  }
  return Reflect.get(loaded, mapping.export);
}

function refused(mapping: ModuleMapping, rule: string): RetlError {
  return new RetlError('config.mapping', { module: mapping.path, export: mapping.export, rule });
}

function isProjection(value: unknown): value is MirrorProjection {
  if (typeof value !== 'object' || value === null) return false;
  const project: unknown = Reflect.get(value, 'project');
  const rowType: unknown = Reflect.get(value, 'rowType');
  if (typeof rowType !== 'object' || rowType === null) return false;
  return typeof project === 'function' && typeof Reflect.get(rowType, 'safeParse') === 'function';
}
