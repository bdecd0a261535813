/**
 * Secret references: `${env:NAME}` and `${file:path}`, alone or inside a text. Settings hold them unresolved; only the
 * worker resolves them, just before it connects. Neither a value nor a part of it is ever in an error.
 */

import { readFileSync } from 'node:fs';
import { isAbsolute, resolve } from 'node:path';
import { RetlError } from '../domain/errors.ts';
import type { Options, TemporalSettings } from '../domain/settings.ts';
import type { SourceValue } from '../domain/source-row.ts';

/** How a reference is written, for messages. */
export const ENV_FORM = `\${env:NAME}`;
export const REFERENCE_FORMS = `${ENV_FORM} or \${file:path}`;

export type Env = { readonly [name: string]: string | undefined };
/** Reads a secret file, whose path is as written in the reference. @throws any error where it cannot be read. */
export type ReadSecretFile = (path: string) => string;

/** Where references are looked up. */
export interface SecretAccess {
  readonly env: Env;
  readonly readFile: ReadSecretFile;
}

export interface Reference {
  readonly kind: 'env' | 'file';
  readonly name: string;
  /** As written, e.g. `${env:SHOP_URL}`; safe to show. */
  readonly text: string;
}

/** Where a text stands, for the error of its references. */
export interface SettingPlace {
  readonly file?: string;
  /** Of its keys, e.g. `journal.url`. */
  readonly path: string;
}

/** A setting of the project's own file. */
export function inProjectFile(path: string): SettingPlace {
  return { file: 'retl.yaml', path };
}

const REFERENCE = /\$\{(env|file):([^{}]*)\}/g;
/** Anything that looks like a reference, also the mistyped. */
const LOOKS_LIKE = /\$\{[^{}]*\}?/g;
const ENV_NAME = /^[A-Za-z_][A-Za-z0-9_]*$/;

/** The references of one text, in order. */
export function referencesIn(text: string): readonly Reference[] {
  return [...text.matchAll(REFERENCE)].map((match) => ({
    kind: match[1] === 'env' ? 'env' : 'file',
    name: match[2] ?? '',
    text: match[0],
  }));
}

/** Why a text's references are malformed, or `null`. */
export function malformedReference(text: string): string | null {
  for (const [found] of text.matchAll(LOOKS_LIKE)) {
    const [reference] = referencesIn(found);
    if (reference === undefined) return `A \`\${…}\` is not of the form ${REFERENCE_FORMS}.`;
    if (reference.kind === 'env' && !ENV_NAME.test(reference.name))
      return 'A secret reference does not name a valid environment variable.';
    if (reference.kind === 'file' && reference.name.trim() === '') return 'A secret reference names no file.';
  }
  return null;
}

/** Reads secret files, relative paths from the project's folder. */
function secretFilesIn(projectDir: string): ReadSecretFile {
  return (path) => readFileSync(isAbsolute(path) ? path : resolve(projectDir, path), 'utf8');
}

/** The process's own environment, and files as seen from the project's folder. */
export function secretsOf(projectDir: string, env: Env = process.env): SecretAccess {
  return { env, readFile: secretFilesIn(projectDir) };
}

/** Resolves one text. @throws RetlError `config.secret` naming the reference and where it stands. */
export function resolveText(text: string, env: Env, readFile: ReadSecretFile, place: SettingPlace): string {
  return text.replaceAll(REFERENCE, (written) => {
    const [reference] = referencesIn(written);
    if (reference === undefined) return written;
    const value = referencedValue(reference, env, readFile);
    if (value === null) throw new RetlError('config.secret', { ...place, reference: reference.text });
    return value;
  });
}

/** `null` where the variable is unset or empty, or the file missing, unreadable or empty. */
export function referencedValue(reference: Reference, env: Env, readFile: ReadSecretFile): string | null {
  if (reference.kind === 'env') return env[reference.name] || null;
  try {
    // Editors and `echo` end a file with a newline that is not part of the secret.
    return readFile(reference.name).replace(/\r?\n$/, '') || null;
  } catch {
    return null;
  }
}

/**
 * Resolves every reference in `options`, at any depth.
 * @param at where the options themselves stand; they may be of a file that is not known here.
 * @throws RetlError `config.secret` naming the reference and its key, never its content.
 */
export function resolveReferences(
  options: Options,
  env: Env,
  readFile: ReadSecretFile,
  at: SettingPlace = { path: '' },
): Options {
  const below = (key: string) => ({ ...at, path: at.path === '' ? key : `${at.path}.${key}` });
  return Object.fromEntries(
    Object.entries(options).map(([key, value]) => [key, resolveValue(value, env, readFile, below(key))]),
  );
}

/** Resolves whatever `temporal` in retl.yaml refers to. @throws RetlError `config.secret` */
export function resolveTemporal(
  settings: TemporalSettings,
  { env, readFile }: SecretAccess,
): TemporalSettings {
  const resolve = (text: string, key: string) =>
    resolveText(text, env, readFile, inProjectFile(`temporal.${key}`));
  const orNull = (text: string | null, key: string) => (text === null ? null : resolve(text, key));
  return {
    profile: orNull(settings.profile, 'profile'),
    address: orNull(settings.address, 'address'),
    namespace: orNull(settings.namespace, 'namespace'),
    taskQueue: resolve(settings.taskQueue, 'task_queue'),
  };
}

function resolveValue(value: SourceValue, env: Env, readFile: ReadSecretFile, at: SettingPlace): SourceValue {
  if (typeof value === 'string') return resolveText(value, env, readFile, at);
  if (Array.isArray(value)) return value.map((item: SourceValue) => resolveValue(item, env, readFile, at));
  if (isObject(value)) return resolveReferences(value, env, readFile, at);
  return value;
}

function isObject(value: SourceValue): value is Options {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
