/** Checks every connection of `retl.yaml` against the adapters of its type, for the uses that mirrors make of it. */

import { missingReferences, schemaProblems, secretProblems } from './connections.ts';
import { valueAt } from './issue-problems.ts';
import { plainOptions } from './json-value.ts';
import { nearest } from './nearest.ts';
import type { Path, Problem } from './problem.ts';
import type { SecretAccess } from './secrets.ts';
import { type SourceType, type SystemTypes, typeNames } from './system-types.ts';
import type { YamlFile } from './yaml-file.ts';

/** One mention of a connection in a mirror. */
export interface ConnectionUse {
  readonly connection: string;
  readonly role: 'source' | 'destination';
}

interface Context {
  readonly file: YamlFile;
  readonly types: SystemTypes | null;
  readonly uses: readonly ConnectionUse[];
  readonly secrets: SecretAccess | null;
}

export function checkConnections(context: Context): readonly Problem[] {
  const connections = valueAt(context.file.value, ['connections']);
  if (!isMapping(connections)) return [];
  return Object.entries(connections).flatMap(([name, connection]) =>
    isMapping(connection) ? checkConnection(context, name, connection) : [],
  );
}

function checkConnection(
  context: Context,
  name: string,
  written: { readonly [key: string]: unknown },
): readonly Problem[] {
  const { type, ...rest } = written;
  const base: Path = ['connections', name];
  const options = plainOptions(rest);
  const { schemas, problems } = schemasFor(context, name, type);
  const uses = context.uses.filter((use) => use.connection === name);
  const found = [...problems, ...secretProblems(context.file, base, options, schemas)];
  // A connection that no mirror uses may well have its secrets on other machines only.
  const secrets = uses.length > 0 ? context.secrets : null;
  if (secrets !== null) found.push(...missingReferences(context.file, base, options, secrets));
  const judged = schemas.map((schema) => schemaProblems(context.file, base, options, schema, secrets));
  // Unused: it need only fit one of the roles that its type has.
  const fitting = uses.length === 0 ? judged.find((list) => list.length === 0) : undefined;
  return onePerPlace([found, ...(fitting === undefined ? judged : [])]);
}

interface Schemas {
  readonly schemas: readonly SourceType['connectionSchema'][];
  readonly problems: readonly Problem[];
}

function schemasFor({ file, types, uses }: Context, name: string, type: unknown): Schemas {
  if (types === null || typeof type !== 'string') return { schemas: [], problems: [] };
  const path: Path = ['connections', name, 'type'];
  const roles = new Set(uses.filter((use) => use.connection === name).map((use) => use.role));
  const byRole = { source: types.sources, destination: types.destinations };
  const all = [...types.sources, ...types.destinations];
  if (!all.some((candidate) => candidate.type === type))
    return {
      schemas: [],
      problems: [file.problemAt(path, 'No system of this type is known.', typeRemedy(type, all))],
    };
  const schemas: SourceType['connectionSchema'][] = [];
  const problems: Problem[] = [];
  for (const role of ['source', 'destination'] as const) {
    const adapter = byRole[role].find((candidate) => candidate.type === type);
    if (adapter !== undefined && (roles.size === 0 || roles.has(role)))
      schemas.push(adapter.connectionSchema);
    if (adapter === undefined && roles.has(role)) {
      const message = `A mirror uses this connection as its ${role}, which this type cannot be.`;
      problems.push(file.problemAt(path, message, typeRemedy('', byRole[role])));
    }
  }
  return { schemas, problems };
}

function typeRemedy(type: string, known: readonly { readonly type: string }[]): string {
  const names = typeNames(known);
  const meant = nearest(type, names);
  const list = `Expected one of: ${names.join(', ')}.`;
  return meant === null ? list : `Did you mean \`${meant}\`? ${list}`;
}

/** Both roles of a type often find the same in their own words: the first to speak of a place is enough. */
function onePerPlace(lists: readonly (readonly Problem[])[]): readonly Problem[] {
  const kept: Problem[] = [];
  for (const list of lists) {
    const told = new Set(kept.map((problem) => problem.path));
    kept.push(...list.filter((problem) => !told.has(problem.path)));
  }
  return kept;
}

export function isMapping(value: unknown): value is { readonly [key: string]: unknown } {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
