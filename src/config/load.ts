/**
 * Reads a project: `retl.yaml` and the files of `mirrors/`, into settings with their defaults, or into the list of everything
 * that is wrong. Nothing starts on a configuration with an error. Adapters' schemas come as an argument, because
 * configuration does not know the systems; secrets stay references.
 */

import { access } from 'node:fs/promises';
import { dirname, join, parse, resolve } from 'node:path';
import { RetlError } from '../domain/errors.ts';
import type { ScheduleTable } from '../domain/schedule.ts';
import type { ProjectSettings, TagTable } from '../domain/settings.ts';
import { checkConnections } from './check-connections.ts';
import { defaultKeys } from './defaults.ts';
import { chosenEnvironment } from './environments.ts';
import { type BaseReading, type BaseSettings, PROJECT_FILE, readBase } from './load-base.ts';
import {
  connectionNamesOf,
  type MirrorRead,
  type OpenedMirror,
  openMirror,
  readMirror,
} from './load-mirror.ts';
import { type MirrorFiles, mirrorFiles, mirrorOfFile } from './mirror-files.ts';
import { type Problem, problemPlace, problemText, sortProblems } from './problem.ts';
import { type SecretAccess, secretsOf } from './secrets.ts';
import type { SystemTypes } from './system-types.ts';

export type Loaded<Settings> =
  | { readonly kind: 'ok'; readonly settings: Settings }
  /** Sorted by file and place; never empty. */
  | { readonly kind: 'invalid'; readonly problems: readonly Problem[] };

/**
 * @param types `null`: connections and destinations' own options are not judged.
 * @param secrets `null`: whether references lead anywhere is not looked at.
 */
export async function loadProject(
  projectDir: string,
  types: SystemTypes | null,
  secrets: SecretAccess | null = secretsOf(projectDir),
  environment: string | null = chosenEnvironment(),
): Promise<Loaded<ProjectSettings>> {
  const files = await mirrorFiles(projectDir);
  const opened = await openMirrors(files, projectDir);
  const reading = { secrets, environment, connections: 'all' } as const;
  return readProject(projectDir, { opened, types, reading });
}

/**
 * Reads one mirror and what it needs of `retl.yaml`, as a run does: a mistake in the file of another mirror, or in a
 * connection that it does not use, must not stop this one. The settings' `mirrors` are empty where no such mirror is
 * configured.
 */
export async function loadMirror(
  projectDir: string,
  mirror: string,
  types: SystemTypes | null,
  secrets: SecretAccess | null = secretsOf(projectDir),
  environment: string | null = chosenEnvironment(),
): Promise<Loaded<ProjectSettings>> {
  const files = await mirrorFiles(projectDir);
  const found = files.found.filter((file) => file.mirror === mirror);
  const problems = files.problems.filter((problem) => mirrorOfFile(problem.file) === mirror);
  const opened = await openMirrors({ found, problems }, projectDir);
  const connections = opened.mirrors.flatMap(connectionNamesOf);
  return readProject(projectDir, { opened, types, reading: { secrets, environment, connections } });
}

interface Opened {
  readonly mirrors: readonly OpenedMirror[];
  readonly problems: readonly Problem[];
}

async function openMirrors({ found, problems }: MirrorFiles, projectDir: string): Promise<Opened> {
  return { mirrors: await Promise.all(found.map((file) => openMirror(file, projectDir))), problems };
}

interface Task {
  readonly opened: Opened;
  readonly types: SystemTypes | null;
  readonly reading: BaseReading;
}

async function readProject(
  projectDir: string,
  { opened, types, reading }: Task,
): Promise<Loaded<ProjectSettings>> {
  const base = await readBase(projectDir, reading);
  const context = { projectDir, base, types };
  const mirrors = await Promise.all(opened.mirrors.map((mirror) => readMirror(mirror, context)));
  const problems = [...base.problems, ...opened.problems, ...mirrors.flatMap((mirror) => mirror.problems)];
  if (base.file !== null) {
    const uses = mirrors.flatMap((mirror) => mirror.uses);
    problems.push(...checkConnections({ file: base.file, types, uses, secrets: reading.secrets }));
  }
  if (base.settings === null || problems.length > 0)
    return { kind: 'invalid', problems: sortProblems(problems) };
  const { connections, settings, defaults } = base;
  const table = {
    schedules: schedulesOf(mirrors),
    tags: tagsOf(mirrors),
    defaultKeys: defaultKeys(defaults),
  };
  const found = mirrors.flatMap((mirror) => (mirror.settings === null ? [] : [mirror.settings]));
  return { kind: 'ok', settings: { ...settings, connections, mirrors: found, ...table } };
}

function schedulesOf(mirrors: readonly MirrorRead[]): ScheduleTable {
  return Object.fromEntries(
    mirrors.flatMap(({ settings, schedule }) =>
      settings === null || schedule === null ? [] : [[settings.mirror, schedule]],
    ),
  );
}

function tagsOf(mirrors: readonly MirrorRead[]): TagTable {
  return Object.fromEntries(
    mirrors.flatMap(({ settings, tags }) => (settings === null ? [] : [[settings.mirror, tags]])),
  );
}

/** Reads `retl.yaml` alone, without its connections; see {@link BaseSettings}. */
export async function loadBase(
  projectDir: string,
  secrets: SecretAccess | null = secretsOf(projectDir),
  environment: string | null = chosenEnvironment(),
): Promise<Loaded<BaseSettings>> {
  const { settings, problems } = await readBase(projectDir, { secrets, environment, connections: [] });
  return settings === null || problems.length > 0
    ? { kind: 'invalid', problems: sortProblems(problems) }
    : { kind: 'ok', settings };
}

/**
 * For a worker, whose errors go to Temporal and into its log: they say where, and nothing of what stands there.
 * @throws RetlError `config.invalid` that lists the place of every problem.
 */
export function expectValid<Settings>(loaded: Loaded<Settings>): Settings {
  if (loaded.kind === 'ok') return loaded.settings;
  const { length: count } = loaded.problems;
  throw new RetlError('config.invalid', { count, places: loaded.problems.map(problemPlace) });
}

/** For a process whose answer goes to the terminal of who asks. @throws RetlError `config.invalid`: every problem in words. */
export function expectValidHere<Settings>(loaded: Loaded<Settings>): Settings {
  if (loaded.kind === 'ok') return loaded.settings;
  throw new RetlError('config.invalid', { problems: loaded.problems.map(problemText) });
}

/** The nearest folder, from `start` upwards, that holds `retl.yaml`; `null` where there is none. */
export async function findProject(start: string): Promise<string | null> {
  for (let dir = resolve(start); ; dir = dirname(dir)) {
    if (await exists(join(dir, PROJECT_FILE))) return dir;
    if (dir === parse(dir).root) return null;
  }
}

function exists(path: string): Promise<boolean> {
  return access(path).then(
    () => true,
    () => false,
  );
}
