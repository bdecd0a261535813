/**
 * Finds the project and the environment of a command. `.env` in the project's folder, and what a running `retl dev`
 * has left in `.retl/dev.env`, stand behind the real environment: they never override it.
 */

import { readFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { parseEnv } from 'node:util';
import { findProject, loadBase } from '../config/load.ts';
import type { BaseSettings } from '../config/load-base.ts';
import { resolveText, type SecretAccess, secretsOf } from '../config/secrets.ts';
import { InvalidProject } from './failures.ts';

export const ENV_FILE = '.env';
/** Written by `retl dev` while it runs. */
export const DEV_ENV_FILE = join('.retl', 'dev.env');

export interface Project {
  readonly dir: string;
  readonly secrets: SecretAccess;
}

/** @param named `--project`; otherwise the nearest folder upwards that holds `retl.yaml`, else this one. */
export async function openProject(named: string | undefined): Promise<Project> {
  const dir = named === undefined ? ((await findProject(process.cwd())) ?? process.cwd()) : resolve(named);
  for (const file of [ENV_FILE, DEV_ENV_FILE]) await addEnvironment(join(dir, file));
  return { dir, secrets: secretsOf(dir) };
}

async function addEnvironment(file: string): Promise<void> {
  const text = await readFile(file, 'utf8').catch(() => '');
  for (const [name, value] of Object.entries(parseEnv(text))) process.env[name] ??= value;
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
  const loaded = await loadBase(project.dir, secrets);
  if (loaded.kind === 'invalid') throw new InvalidProject(loaded.problems);
  return loaded.settings;
}

/** @throws RetlError `config.secret` */
export function resolved(project: Project, text: string): string {
  return resolveText(text, project.secrets.env, project.secrets.readFile);
}
