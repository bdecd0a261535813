import { expect, test } from 'vitest';
import { breach, ZONES } from './fence.ts';
import { filesBelow, importsOf, resolveImport, type SourceFile } from './sources.ts';

const FILES = filesBelow('src', ['.ts']);

test('every import in src stays inside the fence', () => {
  const breaches = FILES.flatMap((file) => importsOf(file.text).map((found) => breach(file, found)));
  expect(breaches.filter((found) => found !== null)).toEqual([]);
});

test('double-hash: nothing normalises but the mapping', () => {
  const using = FILES.filter((file) =>
    importsOf(file.text).some(({ specifier }) => {
      const target = resolveImport(file.path, specifier);
      return target.kind === 'file' && target.path === 'src/domain/normalize.ts';
    }),
  );
  expect(using.map((file) => file.path)).toEqual(['src/domain/field-rule.ts']);
});

test('no file of src imports itself by a detour', () => {
  expect(cyclesIn(FILES)).toEqual([]);
});

test('every import of a file names one that exists', () => {
  const known = new Set(FILES.map((file) => file.path));
  const dangling = FILES.flatMap((file) =>
    importsOf(file.text).flatMap(({ specifier }) => {
      const target = resolveImport(file.path, specifier);
      return target.kind === 'file' && !known.has(target.path) ? [`${file.path}: ${specifier}`] : [];
    }),
  );
  expect(dangling).toEqual([]);
});

test.each([
  ['src/domain/a.ts', "import { createHash } from 'node:crypto';", 'no node built-ins here'],
  ['src/domain/a.ts', "import { z } from 'zod';", 'not a package of domain'],
  ['src/workflows/a.ts', "import { open } from '../journal/pool.ts';", 'workflows may not use journal'],
  [
    'src/workflows/a.ts',
    "import { deliver } from '../activities/deliver.ts';",
    'workflows may not use activities',
  ],
  [
    'src/journal/a.ts',
    "import type { Writer } from '../destinations/port.ts';",
    'journal may not use destinations',
  ],
  ['src/destinations/http/a.ts', "export * from '../postgres/writer.ts';", 'adapters do not use each other'],
  ['src/cli/a.ts', "import { openRun } from '../journal/runs.ts';", 'cli may not use journal'],
  ['src/client/a.ts', "const x = await import('../activities/deliver.ts');", 'client may not use activities'],
  ['src/worker.ts', "import './dev/stack.ts';", 'never from here'],
  ['src/helpers/a.ts', "import './b.ts';", 'src/helpers is no zone of the fence'],
])('the fence refuses %s: %s', (path, text, why) => {
  const found = importsOf(text).map((one) => breach({ path, text }, one));
  expect(found).toEqual([expect.stringContaining(why)]);
});

test.each([
  ['src/workflows/a.ts', "import type { Activities } from '../activities/index.ts';"],
  ['src/cli/a.ts', "import { migrate } from '../journal/migrate.ts';"],
  ['src/destinations/http/a.ts', "import {\n  type Writer,\n  frame,\n} from '../port.ts';"],
  ['src/domain/a.ts', "// import { x } from 'pg';\n/* import 'pg'; */\nconst s = \"import 'pg'\";"],
])('the fence allows %s: %s', (path, text) => {
  expect(
    importsOf(text)
      .map((one) => breach({ path, text }, one))
      .filter((found) => found !== null),
  ).toEqual([]);
});

test('a cycle is found, also over three files', () => {
  const file = (name: string, imports: string): SourceFile => ({
    path: `src/domain/${name}.ts`,
    text: `import { x } from './${imports}.ts';\n`,
  });
  expect(cyclesIn([file('a', 'b'), file('b', 'c'), file('c', 'a'), file('d', 'a')])).toHaveLength(1);
});

test('the fence names every folder of src', () => {
  const folders = new Set(FILES.map((file) => file.path.split('/')).filter((parts) => parts.length > 2));
  expect(
    [...folders].map((parts) => parts[1]).filter((name) => name === undefined || !(name in ZONES)),
  ).toEqual([]);
});

/** Each cycle once, as the path that closes it. Type-only imports count too: they tie files just as well. */
function cyclesIn(files: readonly SourceFile[]): string[] {
  const edges = new Map(
    files.map((file) => [
      file.path,
      importsOf(file.text).flatMap(({ specifier }) => {
        const target = resolveImport(file.path, specifier);
        return target.kind === 'file' ? [target.path] : [];
      }),
    ]),
  );
  const done = new Set<string>();
  const cycles: string[] = [];
  const visit = (path: string, trail: readonly string[]): void => {
    const at = trail.indexOf(path);
    if (at >= 0) cycles.push([...trail.slice(at), path].join(' -> '));
    if (at >= 0 || done.has(path)) return;
    for (const next of edges.get(path) ?? []) visit(next, [...trail, path]);
    done.add(path);
  };
  for (const path of edges.keys()) visit(path, []);
  return cycles;
}
