/**
 * What `retl check` finds out before any run: configuration, secrets, the source's query, the mapping against its
 * columns, and whatever the destination can be asked without writing. Reads no row and changes nothing.
 */

import { createHash } from 'node:crypto';
import { loadProject } from '../config/load.ts';
import type { Problem } from '../config/problem.ts';
import { loadProjection } from '../config/projection-module.ts';
import { resolveReferences, secretsOf } from '../config/secrets.ts';
import type { SystemTypes } from '../config/system-types.ts';
import type { CheckLine, CheckProblem, CheckSubject } from '../domain/check.ts';
import { ERROR_CODES, RetlError } from '../domain/errors.ts';
import { compileMapping } from '../domain/mapping.ts';
import type { MirrorSettings, ProjectSettings } from '../domain/settings.ts';
import type { Column } from '../domain/source-row.ts';
import type { SourceAdapter } from '../sources/port.ts';

/** What a destination found without writing: no values, no secrets. */
export interface Finding {
  readonly code: string;
  readonly message: string;
  readonly remedy: string;
}

export interface CheckTools {
  readonly types: SystemTypes;
  readonly sources: readonly SourceAdapter[];
  /** The destination's own preflight, by whoever may load its writer; empty means ready. */
  preflight(mirror: MirrorSettings, signal: AbortSignal): Promise<readonly Finding[]>;
  /** Journal and Temporal, as the worker reaches them. */
  infrastructure(settings: ProjectSettings): AsyncIterable<CheckLine>;
}

/**
 * @param mirror `null`: every mirror of the project.
 * Yields each finding as it is made; never throws for something that a user can mend.
 */
export async function* checkProject(
  projectDir: string,
  mirror: string | null,
  tools: CheckTools,
  signal: AbortSignal,
): AsyncGenerator<CheckLine, void> {
  const loaded = await loadProject(projectDir, tools.types);
  if (loaded.kind === 'invalid') {
    for (const problem of loaded.problems) yield configProblem(problem);
    return;
  }
  const { mirrors, connections } = loaded.settings;
  const chosen = mirrors.filter((settings) => mirror === null || settings.mirror === mirror);
  if (mirror !== null && chosen.length === 0) {
    yield errorProblem(mirror, 'configuration', new RetlError('config.unknown-mirror', { mirror }));
    return;
  }
  const facts = `${counted(mirrors.length, 'mirror')}, ${counted(Object.keys(connections).length, 'connection')}`;
  yield { kind: 'passed', mirror: null, subject: 'configuration', facts };
  yield* tools.infrastructure(loaded.settings);
  for (const settings of chosen) yield* checkMirror(projectDir, settings, tools, signal);
}

async function* checkMirror(
  projectDir: string,
  settings: MirrorSettings,
  tools: CheckTools,
  signal: AbortSignal,
): AsyncGenerator<CheckLine, void> {
  const { mirror } = settings;
  let columns: readonly Column[] | null = null;
  yield await attempt(mirror, 'source', async () => {
    columns = await describe(projectDir, settings, tools, signal);
    return `the query returns ${columns.map(({ name, typeName }) => `${name} (${typeName})`).join(', ')}`;
  });
  const found = columns;
  if (found !== null) yield await attempt(mirror, 'mapping', () => checkMapping(projectDir, settings, found));
  try {
    const findings = await tools.preflight(settings, signal);
    for (const finding of findings) yield adapterProblem(mirror, finding);
    if (findings.length === 0)
      yield { kind: 'passed', mirror, subject: 'destination', facts: 'ready, nothing written' };
  } catch (error) {
    yield errorProblem(mirror, 'destination', error);
  }
}

async function describe(
  projectDir: string,
  { source }: MirrorSettings,
  tools: CheckTools,
  signal: AbortSignal,
): Promise<readonly Column[]> {
  const adapter = tools.sources.find(({ type }) => type === source.type);
  if (adapter === undefined) throw new Error('a source of an unknown type passed the configuration');
  const { env, readFile } = secretsOf(projectDir);
  const config = adapter.connectionSchema.parse(resolveReferences(source.connectionOptions, env, readFile));
  return adapter.describe(config, source.query, signal);
}

async function checkMapping(
  projectDir: string,
  { mapping, source }: MirrorSettings,
  columns: readonly Column[],
): Promise<string> {
  const sha256Hex = (text: string) => createHash('sha256').update(text, 'utf8').digest('hex');
  if (mapping.kind === 'rules') {
    compileMapping(mapping.members, source.key, columns, sha256Hex);
    return `every column of the key and of ${counted(mapping.members.length, 'member rule')} is there`;
  }
  // A key over the columns is checked by the same rules; the function itself sees rows only in a run.
  compileMapping([], source.key, columns, sha256Hex);
  await loadProjection(mapping, projectDir);
  return `the key is there, and ${mapping.path} exports a projection`;
}

async function attempt(
  mirror: string,
  subject: CheckSubject,
  work: () => Promise<string>,
): Promise<CheckLine> {
  try {
    return { kind: 'passed', mirror, subject, facts: await work() };
  } catch (error) {
    return errorProblem(mirror, subject, error);
  }
}

function configProblem({ file, line, column, path, message, remedy }: Problem): CheckProblem {
  const place = [file, line, column].filter((part) => part !== null).join(':');
  return {
    kind: 'problem',
    mirror: null,
    subject: 'configuration',
    code: 'config.invalid',
    place,
    path,
    message,
    remedy,
  };
}

function adapterProblem(mirror: string, { code, message, remedy }: Finding): CheckProblem {
  return { kind: 'problem', mirror, subject: 'destination', code, place: null, path: null, message, remedy };
}

/** @throws the error itself where it is a bug: nothing in it is known to be safe to show. */
export function errorProblem(mirror: string | null, subject: CheckSubject, error: unknown): CheckProblem {
  if (!(error instanceof RetlError)) throw error;
  const details = Object.entries(error.details).map(([name, value]) => `${name}: ${String(value)}`);
  const { meaning, remedy } = ERROR_CODES[error.code];
  const message = details.length === 0 ? meaning : `${meaning} (${details.join('; ')})`;
  return { kind: 'problem', mirror, subject, code: error.code, place: null, path: null, message, remedy };
}

function counted(count: number, noun: string): string {
  return `${count} ${noun}${count === 1 ? '' : 's'}`;
}
