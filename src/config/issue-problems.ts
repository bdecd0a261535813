/**
 * Turns what zod finds into problems with place, cause and remedy. All words are made here from the issue's code and
 * the schema's descriptions, so that no value is shown unless the caller says that values may be shown.
 */

import type { z } from 'zod';
import { nearest } from './nearest.ts';
import type { Path, Problem } from './problem.ts';
import { knownKeys, validKeyWords, validWords } from './schema-walk.ts';
import type { YamlFile } from './yaml-file.ts';

export interface IssuePlace {
  readonly file: YamlFile;
  /** Where in the file the checked value stands. */
  readonly base: Path;
  readonly schema: z.core.$ZodType;
  /** The value that was checked. */
  readonly value: unknown;
  /** False for connections: nothing that stands in them is shown. */
  readonly showValues: boolean;
}

export function issueProblems(place: IssuePlace, issues: readonly z.core.$ZodIssue[]): readonly Problem[] {
  return issues.flatMap((issue) => problemsOf(place, issue, plainPath(issue.path)));
}

/** The leaf paths that an issue is about, those of the branches of a union included. */
export function pathsOf(issue: z.core.$ZodIssue, prefix: Path = []): readonly Path[] {
  const path = [...prefix, ...plainPath(issue.path)];
  const nested = issue.code === 'invalid_union' ? issue.errors.flat() : [];
  return [path, ...nested.flatMap((inner) => pathsOf(inner, path))];
}

function plainPath(path: readonly PropertyKey[]): Path {
  return path.map((part) => (typeof part === 'number' ? part : String(part)));
}

function problemsOf(place: IssuePlace, issue: z.core.$ZodIssue, path: Path): readonly Problem[] {
  switch (issue.code) {
    case 'unrecognized_keys':
      return issue.keys.map((key) => unknownKey(place, path, key));
    case 'invalid_union':
      return unionProblems(place, issue, path);
    case 'invalid_key':
      return [
        place.file.problemAt(
          [...place.base, ...path],
          'This name is not valid here.',
          keyRemedy(place, path),
          'key',
        ),
      ];
    default: {
      const missing = isMissing(place.value, path);
      const words = missing ? missingWords(path) : issueWords(issue, found(place, path));
      const at = place.file.problemAt([...place.base, ...path], words, remedy(place, path, issue));
      return [at];
    }
  }
}

function unknownKey(place: IssuePlace, path: Path, key: string): Problem {
  const known = knownKeys(place.schema, path);
  const meant = nearest(key, known);
  const list = known.length === 0 ? 'No keys are known here.' : `Known keys: ${known.join(', ')}.`;
  const remedyText = meant === null ? list : `Did you mean \`${meant}\`? ${list}`;
  return place.file.problemAt(
    [...place.base, ...path, key],
    `The key \`${shortened(key)}\` is unknown.`,
    remedyText,
    'key',
  );
}

/** Reports the branch that the writer most likely meant; where none stands out, what all branches agree on. */
function unionProblems(
  place: IssuePlace,
  issue: z.core.$ZodIssueInvalidUnion,
  path: Path,
): readonly Problem[] {
  if (issue.errors.length === 0) {
    const options = 'options' in issue && Array.isArray(issue.options) ? issue.options.map(String) : [];
    const words = isMissing(place.value, path) ? missingWords(path) : notOneOf(found(place, path));
    return [
      place.file.problemAt([...place.base, ...path], words, choice(options, valueAt(place.value, path))),
    ];
  }
  const open = issue.errors.filter(
    (branch) => !branch.some((inner) => isWrongKind(inner, valueAt(place.value, path))),
  );
  const fewest = Math.min(...open.map(weight));
  const meant = open.filter((branch) => weight(branch) === fewest);
  const [only] = meant;
  if (only !== undefined && (meant.length === 1 || only.every((inner) => inner.code === 'unrecognized_keys')))
    return only.flatMap((inner) => problemsOf(place, inner, [...path, ...plainPath(inner.path)]));
  const unknown =
    only?.filter((inner) => inner.code === 'unrecognized_keys' && inner.path.length === 0) ?? [];
  if (unknown.length > 0) return unknown.flatMap((inner) => problemsOf(place, inner, path));
  const words = isMissing(place.value, path)
    ? missingWords(path)
    : (ownWords(issue) ?? `${kindOf(valueAt(place.value, path))} of this form is not valid here.`);
  return [place.file.problemAt([...place.base, ...path], words, remedy(place, path, issue))];
}

/** The branch is for another kind of value altogether. */
function isWrongKind(issue: z.core.$ZodIssue, value: unknown): boolean {
  if (issue.path.length > 0) return false;
  if (issue.code === 'invalid_type') return !(issue.expected === 'int' && typeof value === 'number');
  return issue.code === 'invalid_value' && issue.values.every((valid) => typeof valid !== typeof value);
}

function weight(branch: readonly z.core.$ZodIssue[]): number {
  return branch.reduce((sum, issue) => sum + (issue.code === 'unrecognized_keys' ? issue.keys.length : 1), 0);
}

function remedy(place: IssuePlace, path: Path, issue: z.core.$ZodIssue): string {
  if (issue.code === 'custom') {
    const own: unknown = issue.params?.remedy;
    if (typeof own === 'string') return own;
  }
  if (issue.code === 'invalid_value') return choice(issue.values.map(String), valueAt(place.value, path));
  const words = validWords(place.schema, path);
  return words === null ? '' : `Expected: ${words}.`;
}

function keyRemedy(place: IssuePlace, path: Path): string {
  const words = validKeyWords(place.schema, path.slice(0, -1));
  return words === null ? 'Expected: another name.' : `Expected: ${words}.`;
}

function choice(options: readonly string[], value: unknown): string {
  const meant = typeof value === 'string' ? nearest(value, options) : null;
  const list = options.length === 1 ? `Expected: ${options[0]}.` : `Expected one of: ${options.join(', ')}.`;
  return meant === null ? list : `Did you mean \`${meant}\`? ${list}`;
}

/** Adapters say what a place must be, or what is wrong with it, in a message whose subject is the place. */
const ABOUT_THE_PLACE = /^(must|may|is|has|needs|stands|cannot|does) /;

/** The schema's own words, where it gives any; zod's defaults are not among them. */
export function ownWords(issue: z.core.$ZodIssue): string | null {
  if (ABOUT_THE_PLACE.test(issue.message)) return sentence(`This ${issue.message}`);
  return issue.code === 'custom' ? sentence(issue.message) : null;
}

/** An adapter's words as a sentence of their own. */
export function sentence(text: string): string {
  // A first word that is a key or a path keeps its own spelling.
  const first = /^[a-z]+[ ,]/.test(text) ? `${text.slice(0, 1).toUpperCase()}${text.slice(1)}` : text;
  return /[.!?]$/.test(first) ? first : `${first}.`;
}

function issueWords(issue: z.core.$ZodIssue, value: string | null): string {
  const own = ownWords(issue);
  if (own !== null) return own;
  switch (issue.code) {
    case 'invalid_type':
      return `This must be ${expectedWords(issue.expected)}.`;
    case 'invalid_value':
      return notOneOf(value);
    case 'too_small':
      return sizeWords(issue.origin, 'at least', issue.minimum);
    case 'too_big':
      return sizeWords(issue.origin, 'at most', issue.maximum);
    case 'invalid_format':
      return value === null ? 'This is not of the right form.' : `${value} is not of the right form.`;
    default:
      return 'This value is not valid here.';
  }
}

function notOneOf(value: string | null): string {
  return value === null ? 'This is none of the valid values.' : `${value} is none of the valid values.`;
}

function sizeWords(origin: string, bound: string, limit: number | bigint): string {
  if (origin === 'string')
    return limit === 1 ? 'This must not be empty.' : `This must have ${bound} ${limit} characters.`;
  if (origin === 'array' || origin === 'set')
    return `This list must have ${bound} ${limit} ${limit === 1 ? 'entry' : 'entries'}.`;
  return `This must be ${bound} ${limit}.`;
}

const EXPECTED: Readonly<Record<string, string>> = {
  string: 'text',
  number: 'a number',
  int: 'a whole number',
  boolean: 'true or false',
  null: 'null',
  array: 'a list',
  object: 'a mapping (`key: value`)',
  record: 'a mapping (`key: value`)',
};

function expectedWords(expected: string): string {
  return EXPECTED[expected] ?? `of type ${expected}`;
}

function kindOf(value: unknown): string {
  if (value === null) return 'An empty value';
  if (Array.isArray(value)) return 'A list';
  if (typeof value === 'string') return 'A text';
  if (typeof value === 'number') return 'A number';
  if (typeof value === 'boolean') return 'A true or false';
  return 'A mapping';
}

function missingWords(path: Path): string {
  return `\`${shortened(String(path.at(-1) ?? ''))}\` is missing.`;
}

function isMissing(root: unknown, path: Path): boolean {
  return path.length > 0 && valueAt(root, path) === undefined;
}

function found(place: IssuePlace, path: Path): string | null {
  const value = valueAt(place.value, path);
  if (!place.showValues || (typeof value !== 'string' && typeof value !== 'number')) return null;
  return `\`${shortened(String(value))}\``;
}

function shortened(text: string): string {
  const printable = text.replaceAll(/[\p{Cc}\p{Cf}]/gu, '?');
  return printable.length > 60 ? `${printable.slice(0, 57)}…` : printable;
}

/** The value at `path`, `undefined` where there is none. */
export function valueAt(root: unknown, path: Path): unknown {
  let value: unknown = root;
  for (const part of path) {
    if (typeof value !== 'object' || value === null || !Object.hasOwn(value, part)) return undefined;
    value = Reflect.get(value, part);
  }
  return value;
}
