/** Reads the project's TypeScript as text: which files there are, and what each imports. */

import { readdirSync, readFileSync } from 'node:fs';
import { isBuiltin } from 'node:module';
import { dirname, join, relative, resolve, sep } from 'node:path';

export const ROOT = resolve(import.meta.dirname, '..', '..');

export interface SourceFile {
  /** Relative to the project, with forward slashes. */
  readonly path: string;
  readonly text: string;
}

export interface Import {
  readonly specifier: string;
  /** `import type` and `export type`: erased, so nothing is loaded. */
  readonly typeOnly: boolean;
}

export type Target =
  | { readonly kind: 'file'; readonly path: string }
  | { readonly kind: 'builtin'; readonly name: string }
  | { readonly kind: 'package'; readonly name: string };

/** Every file below `folder` with one of the extensions, in a fixed order. */
export function filesBelow(folder: string, extensions: readonly string[]): SourceFile[] {
  const found: SourceFile[] = [];
  const walk = (current: string): void => {
    for (const entry of readdirSync(current, { withFileTypes: true })) {
      const path = join(current, entry.name);
      if (entry.isDirectory()) walk(path);
      else if (extensions.some((extension) => entry.name.endsWith(extension))) {
        found.push({ path: relative(ROOT, path).split(sep).join('/'), text: readFileSync(path, 'utf8') });
      }
    }
  };
  walk(join(ROOT, folder));
  return found.sort((a, b) => (a.path < b.path ? -1 : 1));
}

/**
 * The imports and re-exports of a file, and its `import('…')` with a literal. Statements begin a line, as the
 * formatter writes them; comments are taken out first.
 */
export function importsOf(text: string): Import[] {
  const code = withoutComments(text);
  const found: Import[] = [];
  const statements =
    /^(?:import|export)\s+(?<type>type\s+)?(?:[\w$*{][^;'"]*?\sfrom\s+)?['"](?<specifier>[^'"]+)['"]/gm;
  for (const { groups } of code.matchAll(statements)) {
    if (groups?.specifier !== undefined) {
      found.push({ specifier: groups.specifier, typeOnly: groups.type !== undefined });
    }
  }
  for (const { groups } of code.matchAll(/\bimport\(\s*['"](?<specifier>[^'"]+)['"]/g)) {
    if (groups?.specifier !== undefined) found.push({ specifier: groups.specifier, typeOnly: false });
  }
  return found;
}

/** Takes out block comments and line comments, leaving what stands inside quotes. */
export function withoutComments(text: string): string {
  const tokens = /'(?:\\.|[^'\\\n])*'|"(?:\\.|[^"\\\n])*"|`(?:\\.|[^`\\])*`|\/\*[\s\S]*?\*\/|\/\/[^\n]*/g;
  return text.replace(tokens, (token) => (token.startsWith('/') ? '' : token));
}

/** Where an import leads. */
export function resolveImport(from: string, specifier: string): Target {
  if (specifier.startsWith('.')) {
    const path = relative(ROOT, resolve(ROOT, dirname(from), specifier))
      .split(sep)
      .join('/');
    return { kind: 'file', path };
  }
  if (isBuiltin(specifier)) return { kind: 'builtin', name: specifier };
  const parts = specifier.split('/');
  const name = specifier.startsWith('@') ? parts.slice(0, 2).join('/') : (parts[0] ?? specifier);
  return { kind: 'package', name };
}
