/**
 * Loads a module of the project, in TypeScript or JavaScript. A process that was started with tsx loads TypeScript by
 * itself (`retl worker`); another, such as the command line, gets tsx for this one module.
 */

import { realpath } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { pathToFileURL } from 'node:url';
import { digestOf } from './mapping-module.ts';

/** What plain Node says of TypeScript: older releases know no types, newer ones not all of their syntax. */
const NEEDS_TSX = ['ERR_UNKNOWN_FILE_EXTENSION', 'ERR_UNSUPPORTED_TYPESCRIPT_SYNTAX'];

/** tsx loads anew at every call; what has been loaded under a digest stays what it is. */
const loadedWithTsx = new Map<string, Promise<object>>();
/** How often a file has changed while it was loaded: what was loaded then may be of either content, and is not taken again. */
const torn = new Map<string, number>();

const require = createRequire(import.meta.url);

/**
 * @param digest hash of the file's content: a changed file is another module in a process that lives on.
 * @throws whatever the module throws, whose words may quote data; an error of its own where the file is no longer that.
 */
export async function importModule(path: string, digest: string): Promise<object> {
  const address = `${pathToFileURL(path).href}?${digest}`;
  const url = `${address}&${torn.get(address) ?? 0}`;
  // A module that is CommonJS (`.ts` where no package.json says otherwise) is kept by its path alone, whatever the URL says.
  delete require.cache[await realpath(path)];
  const loaded = await importUrl(url);
  if ((await digestOf(path)) === digest) return loaded;
  torn.set(address, (torn.get(address) ?? 0) + 1);
  throw new Error('the module has changed while it was loaded');
}

async function importUrl(url: string): Promise<object> {
  try {
    return await import(url);
  } catch (error) {
    if (!NEEDS_TSX.includes(errorCode(error) ?? '')) throw error;
  }
  const loaded = loadedWithTsx.get(url) ?? importWithTsx(url);
  loadedWithTsx.set(url, loaded);
  return loaded;
}

async function importWithTsx(url: string): Promise<object> {
  const { tsImport } = await import('tsx/esm/api');
  const loaded: object = await tsImport(url, import.meta.url);
  // Where no package.json says otherwise a `.ts` file is a CommonJS module, whose exports come as the default of it.
  const inner: unknown = Reflect.get(loaded, 'default');
  return typeof inner === 'object' && inner !== null && '__esModule' in inner ? inner : loaded;
}

/** Node's code of an error, `null` where it has none. */
export function errorCode(error: unknown): string | null {
  const code = error instanceof Error && 'code' in error ? error.code : null;
  return typeof code === 'string' ? code : null;
}
