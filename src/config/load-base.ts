/**
 * Reads `retl.yaml` as one environment sees it: journal, Temporal, connections and defaults. What a connection's options
 * may be is judged elsewhere (check-connections.ts), by the adapter of its type.
 */

import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import type {
  ConnectionSettings,
  JournalSettings,
  ProjectSettings,
  TemporalSettings,
} from '../domain/settings.ts';
import { artifactSettings } from './artifacts-schema.ts';
import { isMapping } from './check-connections.ts';
import { missingReferences, secretProblems } from './connections.ts';
import {
  defaultTaskQueue,
  environmentNames,
  inEnvironment,
  mixedEnvironments,
  unknownEnvironment,
} from './environments.ts';
import { indexSettings } from './index-schema.ts';
import { issueProblems, valueAt } from './issue-problems.ts';
import { plainOptions } from './json-value.ts';
import { maintenanceSettings } from './maintenance-schema.ts';
import { metricsSettings } from './metrics-schema.ts';
import type { Path, Problem } from './problem.ts';
import { type DefaultsInput, type ProjectInputFile, projectInput } from './project-schema.ts';
import type { SecretAccess } from './secrets.ts';
import { strayReferences } from './stray-references.ts';
import { parseYamlFile, type YamlFile } from './yaml-file.ts';

export const PROJECT_FILE = 'retl.yaml';

/** `retl.yaml` alone: enough to reach the journal and Temporal while a mirror or a connection is broken. */
export type BaseSettings = Pick<
  ProjectSettings,
  | 'journal'
  | 'temporal'
  | 'metrics'
  | 'indexes'
  | 'retiredIndexes'
  | 'artifacts'
  | 'maintenance'
  | 'environment'
>;

export interface Base {
  /** As the environment sees it, and as far as it was asked for. */
  readonly file: YamlFile | null;
  readonly settings: BaseSettings | null;
  readonly connections: { readonly [name: string]: ConnectionSettings };
  /** The names of all connections, also of those that were not asked for. */
  readonly connectionNames: readonly string[];
  readonly defaults: DefaultsInput;
  readonly problems: readonly Problem[];
}

export interface BaseReading {
  readonly secrets: SecretAccess | null;
  readonly environment: string | null;
  /** The connections that matter: what is wrong with another must not stop what does without it; `all` for a check. */
  readonly connections: 'all' | readonly string[];
}

const NOTHING: Omit<Base, 'problems'> = {
  file: null,
  settings: null,
  connections: {},
  connectionNames: [],
  defaults: {},
};

/** The names of the environments that `retl.yaml` has, whatever else is wrong with it. */
export async function environmentsIn(projectDir: string): Promise<readonly string[]> {
  const bytes = await readFile(join(projectDir, PROJECT_FILE)).catch(() => null);
  const parsed = bytes === null ? null : parseYamlFile(PROJECT_FILE, bytes);
  return parsed?.kind === 'ok' ? environmentNames(parsed.file) : [];
}

export async function readBase(projectDir: string, reading: BaseReading): Promise<Base> {
  const { environment, secrets } = reading;
  const bytes = await readFile(join(projectDir, PROJECT_FILE)).catch(() => null);
  if (bytes === null) {
    const place = { file: PROJECT_FILE, line: null, column: null, path: '' };
    const message = 'The file is missing or cannot be read.';
    const remedy =
      'Go to the project’s folder, name it with --project, or write a first one with `retl init`.';
    return { ...NOTHING, problems: [{ ...place, message, remedy }] };
  }
  const parsed = parseYamlFile(PROJECT_FILE, bytes);
  if (parsed.kind === 'invalid') return { ...NOTHING, problems: parsed.problems };
  const whole = inEnvironment(parsed.file, environment);
  const file = narrowed(whole, reading);
  const connectionNames = namesAt(whole, ['connections']);
  const result = projectInput.safeParse(file.value);
  const problems = [
    ...unknownEnvironment(parsed.file, environment),
    ...baseSecretProblems(file, secrets),
    ...workerSecretProblems(file, reading),
    ...environmentProblems(file, parsed.file, reading),
  ];
  if (result.success) {
    const settings = baseSettings(result.data, environment);
    const read = { connections: connectionsOf(result.data), connectionNames };
    return { file, settings, ...read, defaults: result.data.defaults ?? {}, problems: distinct(problems) };
  }
  const place = { file, base: [], schema: projectInput, value: file.value, showValues: false };
  const issues = issueProblems(place, result.error.issues);
  problems.push(...issues.map((problem) => withEnvironments(problem, parsed.file, environment)));
  return { ...NOTHING, file, connectionNames, problems: distinct(problems) };
}

/** Without what was not asked for, which then is not judged either. */
function narrowed(file: YamlFile, { connections, environment }: BaseReading): YamlFile {
  if (connections === 'all' || !isMapping(file.value)) return file;
  const { environments: _, connections: written, ...value } = file.value;
  const chosen = environment === null ? undefined : valueAt(file.value, ['environments', environment]);
  return {
    ...file,
    value: {
      ...value,
      // A chosen environment's connections have become the file's own, and are judged as such.
      ...(isMapping(chosen)
        ? { environments: { [String(environment)]: without(chosen, 'connections') } }
        : {}),
      ...(written === undefined
        ? {}
        : { connections: isMapping(written) ? only(written, connections) : written }),
    },
  };
}

type Mapping = { readonly [key: string]: unknown };

function only(mapping: Mapping, keys: readonly string[]): Mapping {
  return Object.fromEntries(Object.entries(mapping).filter(([key]) => keys.includes(key)));
}

function without(mapping: Mapping, key: string): Mapping {
  return Object.fromEntries(Object.entries(mapping).filter(([other]) => other !== key));
}

function namesAt(file: YamlFile, path: Path): readonly string[] {
  const written = valueAt(file.value, path);
  return isMapping(written) ? Object.keys(written) : [];
}

/** What `environments` and `defaults` bring with them; the other environments are judged in a check alone. */
function environmentProblems(
  file: YamlFile,
  written: YamlFile,
  { connections }: BaseReading,
): readonly Problem[] {
  const stray = strayReferences(file, ['defaults'], valueAt(file.value, ['defaults']), '`defaults`');
  if (connections !== 'all') return stray;
  const inOthers = environmentNames(written).flatMap((name) => {
    const base = ['environments', name];
    const texts = ['journal', 'temporal', 'metrics', 'indexes', 'artifacts', 'connections'].flatMap(
      (section) => {
        const path = [...base, section];
        const options = valueAt(written.value, path);
        return isMapping(options) ? secretProblems(written, path, plainOptions(options), []) : [];
      },
    );
    const defaults = valueAt(written.value, [...base, 'defaults']);
    return [...texts, ...strayReferences(written, [...base, 'defaults'], defaults, '`defaults`')];
  });
  return [...stray, ...inOthers, ...mixedEnvironments(written)];
}

/** A file whose journals all stand in environments runs in one of these only. */
function withEnvironments(problem: Problem, file: YamlFile, environment: string | null): Problem {
  const names = environmentNames(file);
  if (problem.path !== 'journal' || environment !== null || names.length === 0) return problem;
  return { ...problem, remedy: `Choose an environment with --env or RETL_ENV: ${names.join(', ')}.` };
}

/** What an environment says is judged where it stands, and once more together with what it completes. */
function distinct(problems: readonly Problem[]): readonly Problem[] {
  const key = ({ line, column, path, message }: Problem) => JSON.stringify([line, column, path, message]);
  return [...new Map(problems.map((problem) => [key(problem), problem])).values()];
}

/**
 * `owner_url` is looked up by `retl migrate` alone, so that only the machine that migrates needs it; `reader_url` by the
 * commands that look, so that workers need no way to it.
 */
function baseSecretProblems(file: YamlFile, secrets: SecretAccess | null): readonly Problem[] {
  const texts = (section: string, keys: readonly string[]) =>
    Object.fromEntries(
      keys.flatMap((key) => {
        const value = valueAt(file.value, [section, key]);
        return typeof value === 'string' ? [[key, value]] : [];
      }),
    );
  const journal = texts('journal', ['url', 'owner_url', 'reader_url', 'runtime_role']);
  const temporal = texts('temporal', ['profile', 'address', 'namespace', 'task_queue']);
  const problems = [
    ...secretProblems(file, ['journal'], journal, []),
    ...secretProblems(file, ['temporal'], temporal, []),
  ];
  if (secrets === null) return problems;
  const { owner_url: _, reader_url: __, ...runtime } = journal;
  return [
    ...problems,
    ...missingReferences(file, ['journal'], runtime, secrets),
    ...missingReferences(file, ['temporal'], temporal, secrets),
  ];
}

/** Looked up by workers, and in a check, so that other commands need no way to where metrics go and indexes live. */
function workerSecretProblems(file: YamlFile, { secrets, connections }: BaseReading): readonly Problem[] {
  return ['metrics', 'indexes', 'artifacts'].flatMap((section) => {
    const written = valueAt(file.value, [section]);
    if (!isMapping(written)) return [];
    const options = plainOptions(written);
    return [
      ...secretProblems(file, [section], options, []),
      ...(secrets === null || connections !== 'all'
        ? []
        : missingReferences(file, [section], options, secrets)),
    ];
  });
}

function baseSettings(input: ProjectInputFile, environment: string | null): BaseSettings {
  const journal: JournalSettings = {
    url: input.journal.url,
    readerUrl: input.journal.reader_url ?? null,
    ownerUrl: input.journal.owner_url ?? null,
    runtimeRole: input.journal.runtime_role ?? null,
  };
  const temporal: TemporalSettings = {
    profile: input.temporal?.profile ?? null,
    address: input.temporal?.address ?? null,
    namespace: input.temporal?.namespace ?? null,
    taskQueue: input.temporal?.task_queue ?? defaultTaskQueue(environment),
  };
  return {
    journal,
    temporal,
    metrics: metricsSettings(input.metrics),
    ...indexSettings(input.indexes),
    artifacts: artifactSettings(input.artifacts),
    maintenance: maintenanceSettings(input.maintenance),
    environment,
  };
}

function connectionsOf(input: ProjectInputFile): Base['connections'] {
  return Object.fromEntries(
    Object.entries(input.connections).map(([name, { type, ...options }]): [string, ConnectionSettings] => [
      name,
      { type, options: plainOptions(options) },
    ]),
  );
}
