/**
 * Reads a project: `retl.yaml` and `mirrors/*.yaml`, into settings with their defaults, or into the list of everything
 * that is wrong. Nothing starts on a configuration with an error. Adapters' schemas come as an argument, because
 * configuration does not know the systems; secrets stay references.
 */

import { access } from 'node:fs/promises';
import { dirname, join, parse, resolve } from 'node:path';
import { RetlError } from '../domain/errors.ts';
import type { ScheduleTable } from '../domain/schedule.ts';
import type { MirrorSettings, ProjectSettings, TagTable } from '../domain/settings.ts';
import { checkConnections } from './check-connections.ts';
import { type BaseSettings, PROJECT_FILE, readBase } from './load-base.ts';
import { type MirrorRead, readMirror } from './load-mirror.ts';
import { type MirrorFiles, mirrorFiles } from './mirror-files.ts';
import { type Problem, problemText, sortProblems } from './problem.ts';
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
): Promise<Loaded<ProjectSettings>> {
  const files = await mirrorFiles(projectDir);
  return readProject(projectDir, files, types, secrets);
}

/**
 * Reads `retl.yaml` and one mirror, as a run needs it: a mistake in the file of another mirror must not stop this one.
 * The settings' `mirrors` are empty where no such mirror is configured.
 */
export async function loadMirror(
  projectDir: string,
  mirror: string,
  types: SystemTypes | null,
  secrets: SecretAccess | null = secretsOf(projectDir),
): Promise<Loaded<ProjectSettings>> {
  const { found } = await mirrorFiles(projectDir);
  const files = { found: found.filter((file) => file.mirror === mirror), problems: [] };
  return readProject(projectDir, files, types, secrets);
}

async function readProject(
  projectDir: string,
  files: MirrorFiles,
  types: SystemTypes | null,
  secrets: SecretAccess | null,
): Promise<Loaded<ProjectSettings>> {
  const base = await readBase(projectDir, secrets);
  const mirrors = await Promise.all(
    files.found.map((file) =>
      readMirror(file, { projectDir, connections: base.settings?.connections ?? null, types }),
    ),
  );
  const problems = [...base.problems, ...files.problems, ...mirrors.flatMap((mirror) => mirror.problems)];
  if (base.file !== null) {
    const uses = mirrors.flatMap((mirror) => mirror.uses);
    problems.push(...checkConnections({ file: base.file, types, uses, secrets }));
  }
  if (base.settings === null || problems.length > 0)
    return { kind: 'invalid', problems: sortProblems(problems) };
  const settings = mirrors.flatMap((mirror): MirrorSettings[] =>
    mirror.settings === null ? [] : [mirror.settings],
  );
  const beside = { schedules: schedulesOf(mirrors), tags: tagsOf(mirrors) };
  return { kind: 'ok', settings: { ...base.settings, mirrors: settings, ...beside } };
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

/** Reads `retl.yaml` alone; see {@link BaseSettings}. */
export async function loadBase(
  projectDir: string,
  secrets: SecretAccess | null = secretsOf(projectDir),
): Promise<Loaded<BaseSettings>> {
  const { settings, problems } = await readBase(projectDir, secrets);
  return settings === null || problems.length > 0
    ? { kind: 'invalid', problems: sortProblems(problems) }
    : { kind: 'ok', settings };
}

/** @throws RetlError `config.invalid` that lists every problem. */
export function expectValid<Settings>(loaded: Loaded<Settings>): Settings {
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
