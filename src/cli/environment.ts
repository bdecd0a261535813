/**
 * Finds the project and the environment of a command. Behind the real environment's variables, which nothing here
 * overrides, stand `.env.<environment>`, then `.env` in the project's folder, then what a running `retl dev` has left.
 */

import { readFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { parseEnv } from 'node:util';
import { chosenEnvironment, ENVIRONMENT_VARIABLE } from '../config/environments.ts';
import { findProject, loadBase } from '../config/load.ts';
import type { BaseSettings } from '../config/load-base.ts';
import { ENVIRONMENT_NAME } from '../config/project-schema.ts';
import { inProjectFile, resolveText, type SecretAccess, secretsOf } from '../config/secrets.ts';
import { devEnvFile, isDevRunning } from './dev-env.ts';
import { EXIT } from './exit-codes.ts';
import { InvalidProject, Refusal } from './failures.ts';

export const ENV_FILE = '.env';

export interface Project {
  readonly dir: string;
  readonly secrets: SecretAccess;
  /** The environment of `retl.yaml` that was chosen; `null` where none was. */
  readonly environment: string | null;
  /** The files that variables were read from, by their names in the folder. */
  readonly envFiles: readonly string[];
  /** Names of the variables that came from those files, and not from the process's own environment. */
  readonly fromFiles: ReadonlySet<string>;
}

/**
 * @param named `--project`; otherwise the nearest folder upwards that holds `retl.yaml`, else this one.
 * @param chosen `--env`; otherwise `RETL_ENV`, also from `.env`. It is left in the variable, where processes that are
 *   started from here find it.
 * @param readsDev `false` for whoever starts the servers itself. @throws Refusal where a file cannot be read
 */
export async function openProject(
  named: string | undefined,
  chosen?: string,
  readsDev = true,
): Promise<Project> {
  const dir = named === undefined ? ((await findProject(process.cwd())) ?? process.cwd()) : resolve(named);
  const shared = await variablesOf(join(dir, ENV_FILE));
  const environment = chosenEnvironment({
    [ENVIRONMENT_VARIABLE]: chosen ?? process.env[ENVIRONMENT_VARIABLE] ?? shared[ENVIRONMENT_VARIABLE],
  });
  process.env[ENVIRONMENT_VARIABLE] = environment ?? '';
  const isName = environment !== null && ENVIRONMENT_NAME.test(environment);
  const envFiles = isName ? [`${ENV_FILE}.${environment}`, ENV_FILE] : [ENV_FILE];
  const hasDev = readsDev && (isName || environment === null) && (await isDevRunning(dir));
  const read = hasDev ? [...envFiles, devEnvFile(environment)] : envFiles;
  const found = await variablesIn(dir, read);
  const fromFiles = new Set(Object.keys(found).filter((name) => process.env[name] === undefined));
  for (const name of fromFiles) process.env[name] = found[name];
  return { dir, secrets: secretsOf(dir), environment, envFiles, fromFiles };
}

/** This process's environment as it would be if it started now: its files are read again. */
export async function currentEnvironment({ dir, envFiles, fromFiles }: Project): Promise<Variables> {
  const own = Object.entries(process.env).filter(([name]) => !fromFiles.has(name));
  return { ...(await variablesIn(dir, envFiles)), ...Object.fromEntries(own) };
}

/** What stands in an earlier file goes before. */
async function variablesIn(dir: string, files: readonly string[]): Promise<Variables> {
  const all = await Promise.all(files.map((file) => variablesOf(join(dir, file))));
  return Object.assign({}, ...all.reverse());
}

type Variables = { readonly [name: string]: string | undefined };

async function variablesOf(file: string): Promise<Variables> {
  try {
    return parseEnv(await readFile(file, 'utf8'));
  } catch (error) {
    if (!(error instanceof Error && 'code' in error)) throw error;
    if (error.code === 'ENOENT') return {};
    throw new Refusal(
      EXIT.usage,
      'env-file-unreadable',
      `${file} is there and cannot be read (${String(error.code)}).`,
      'Run this command as the user whom the file belongs to, or let this one read it; remove the file if nobody needs it.',
    );
  }
}

/**
 * `retl.yaml`, with its references unresolved.
 * @param secrets `null`: a command that needs one of them alone resolves it, and does without the others.
 * @throws InvalidProject
 */
export async function readSettings(
  project: Project,
  secrets: SecretAccess | null = null,
): Promise<BaseSettings> {
  const loaded = await loadBase(project.dir, secrets, project.environment);
  if (loaded.kind === 'invalid') throw new InvalidProject(loaded.problems);
  return loaded.settings;
}

/** @param path of the setting in `retl.yaml`. @throws RetlError `config.secret` */
export function resolved(project: Project, text: string, path: string): string {
  return resolveText(text, project.secrets.env, project.secrets.readFile, inProjectFile(path));
}
