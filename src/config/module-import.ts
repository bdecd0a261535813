/**
 * Loads a module of the project, in TypeScript or JavaScript. A process that was started with tsx loads TypeScript by
 * itself (`retl worker`); another, such as the command line, gets tsx for this one module.
 */

import { pathToFileURL } from 'node:url';

/** What plain Node says of TypeScript: older releases know no types, newer ones not all of their syntax. */
const NEEDS_TSX = ['ERR_UNKNOWN_FILE_EXTENSION', 'ERR_UNSUPPORTED_TYPESCRIPT_SYNTAX'];

/** tsx loads anew at every call; what has been loaded under a digest stays what it is. */
const loadedWithTsx = new Map<string, Promise<object>>();

/**
 * @param digest hash of the file's content: a changed file is another module in a process that lives on.
 * @throws whatever the module throws, whose words may quote data.
 */
export async function importModule(path: string, digest: string): Promise<object> {
  const url = `${pathToFileURL(path).href}?${digest}`;
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
