/**
 * Checks one connection of `retl.yaml` against its adapters' schemas: no literal secrets, every reference well-formed
 * and there, every key known. Nothing that stands in a connection, and nothing a reference gives, is shown.
 */

import type { z } from 'zod';
import type { Options } from '../domain/settings.ts';
import type { SourceValue } from '../domain/source-row.ts';
import { issueProblems, ownWords, pathsOf, valueAt } from './issue-problems.ts';
import type { Path, Problem } from './problem.ts';
import { isMarkedSecret } from './schema-walk.ts';
import {
  malformedReference,
  REFERENCE_FORMS,
  type Reference,
  referencedValue,
  referencesIn,
  resolveReferences,
  type SecretAccess,
} from './secrets.ts';
import type { YamlFile } from './yaml-file.ts';

const SECRET_KEY =
  /(^|[_-])(password|passwd|passphrase|pwd|secret|token|bearer|api[_-]?key|access[_-]?key|private[_-]?key|authorization|cookie|credentials?)$/i;
/** A URL's `user:password@`, or a `password=` in a query string or a key-value connection string. */
const INLINE_PASSWORD = [
  /^[a-z][a-z0-9+.-]*:\/\/[^/\s@:]*:([^/\s]+)@/i,
  /(?:^|[?&\s;])(?:ssl)?password\s*=\s*([^&\s;]+)/i,
];
const OR_REFERENCE = `Write ${REFERENCE_FORMS} and keep the secret in the environment or a file.`;

interface Leaf {
  readonly path: Path;
  readonly text: string;
}

/** Literal secrets and malformed references among the texts of `options`. */
export function secretProblems(
  file: YamlFile,
  base: Path,
  options: Options,
  schemas: readonly z.ZodType[],
): readonly Problem[] {
  return leavesOf(options).flatMap(({ path, text }) => {
    const malformed = malformedReference(text);
    if (malformed !== null)
      return [file.problemAt([...base, ...path], malformed, `Write ${REFERENCE_FORMS}.`)];
    if (isLiteralSecret(path, text, schemas))
      return [file.problemAt([...base, ...path], 'A secret stands here in plain text.', OR_REFERENCE)];
    return [];
  });
}

function isLiteralSecret(path: Path, text: string, schemas: readonly z.ZodType[]): boolean {
  if (INLINE_PASSWORD.some((pattern) => hasLiteral(pattern.exec(text)?.[1]))) return true;
  if (!hasLiteral(text) || referencesIn(text).length > 0) return false;
  const key = path.findLast((part) => typeof part === 'string') ?? '';
  return SECRET_KEY.test(String(key)) || schemas.some((schema) => isMarkedSecret(schema, path));
}

function hasLiteral(text: string | undefined): boolean {
  return text !== undefined && text !== '' && referencesIn(text).length === 0;
}

/** References that lead nowhere on this machine. */
export function missingReferences(
  file: YamlFile,
  base: Path,
  options: Options,
  secrets: SecretAccess,
): readonly Problem[] {
  // A malformed reference is told by itself; looking it up would only confuse.
  const leaves = leavesOf(options).filter(({ text }) => malformedReference(text) === null);
  return leaves.flatMap(({ path, text }) =>
    referencesIn(text)
      .filter((reference) => referencedValue(reference, secrets.env, secrets.readFile) === null)
      .map((reference) => file.problemAt([...base, ...path], ...missingWords(reference))),
  );
}

function missingWords({ kind, name, text }: Reference): [string, string] {
  return kind === 'env'
    ? [`${text}: the environment variable is not set, or empty.`, `Set ${name} where retl runs.`]
    : [
        `${text}: the file is missing, unreadable or empty.`,
        'Create it where retl runs; the path is relative to the project.',
      ];
}

/**
 * Checks `options` against one schema: with references resolved where they all can be, otherwise with those places
 * left out of the judgement.
 */
export function schemaProblems(
  file: YamlFile,
  base: Path,
  options: Options,
  schema: z.ZodType,
  secrets: SecretAccess | null,
): readonly Problem[] {
  const wellFormed = leavesOf(options).every(({ text }) => malformedReference(text) === null);
  const referring = leavesOf(options).filter((leaf) => leaf.text.includes('${'));
  const resolvable =
    wellFormed && secrets !== null && missingReferences(file, base, options, secrets).length === 0;
  const value = resolvable ? resolveReferences(options, secrets.env, secrets.readFile) : options;
  const result = schema.safeParse(value);
  if (result.success) return [];
  const place = { file, base, schema, value, showValues: false };
  return result.error.issues.flatMap((issue) => {
    const behind = referring.filter((leaf) => pathsOf(issue).some((path) => isSamePath(path, leaf.path)));
    const [first] = behind;
    if (first === undefined) return issueProblems(place, [issue]);
    if (!resolvable) return [];
    const [problem] = issueProblems(place, [issue]);
    const names = behind
      .flatMap((leaf) => referencesIn(leaf.text).map((reference) => reference.text))
      .join(' and ');
    const own = behind.every((leaf) => saysNothingOf(valueAt(value, leaf.path), issue.message))
      ? ownWords(issue)
      : null;
    const message = own ?? 'What it gives is not valid here.';
    return [
      file.problemAt(
        [...base, ...first.path],
        `${names}: ${message}`,
        problem?.remedy || 'Correct it where it is set.',
      ),
    ];
  });
}

/** Words that stand in every connection string, and in every message about one. */
const COMMON = new Set([
  'http',
  'https',
  'postgres',
  'postgresql',
  'user',
  'password',
  'host',
  'localhost',
  'database',
]);

/** An adapter's message is shown only where it shares no word with what the reference gave. */
function saysNothingOf(resolved: unknown, message: string): boolean {
  const words = String(resolved).split(/[^\p{L}\p{N}]+/u);
  const telling = words.filter((word) => word.length >= 3 && !COMMON.has(word.toLowerCase()));
  return !telling.some((word) => message.toLowerCase().includes(word.toLowerCase()));
}

function isSamePath(a: Path, b: Path): boolean {
  return a.length === b.length && a.every((part, index) => String(part) === String(b[index]));
}

function leavesOf(value: SourceValue | undefined, path: Path = []): readonly Leaf[] {
  if (typeof value === 'string') return [{ path, text: value }];
  if (typeof value !== 'object' || value === null) return [];
  return Object.entries(value).flatMap(([key, inner]: [string, SourceValue]) =>
    leavesOf(inner, [...path, Array.isArray(value) ? Number(key) : key]),
  );
}
