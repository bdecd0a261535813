/**
 * Reads one YAML file strictly: UTF-8 only, one document, no duplicate keys, no tags, few aliases, and plain values
 * only. Keeps where everything stands, so that later checks can name line and column. The parser's own words are never
 * shown: they quote the text, which may hold a password.
 */

import {
  type Document,
  isAlias,
  isMap,
  isNode,
  isScalar,
  isSeq,
  LineCounter,
  type Node,
  parseDocument,
  visit,
} from 'yaml';
import { type Path, type Problem, pathsAt } from './problem.ts';
import { ENV_FORM } from './secrets.ts';

export const MAX_FILE_BYTES = 1_000_000;
const MAX_ALIASES = 100;
/** What neither PostgreSQL nor JSON can hold. */
const UNSTORABLE = /\0|\p{Surrogate}/u;

export interface YamlFile {
  /** Relative to the project's folder. */
  readonly file: string;
  /** Plain objects, arrays and scalars. */
  readonly value: unknown;
  /** Builds a problem at `path`, or at the nearest place above it that is written down. */
  problemAt(path: Path, message: string, remedy: string, target?: 'key' | 'value'): Problem;
}

export type YamlResult =
  | { readonly kind: 'ok'; readonly file: YamlFile }
  | { readonly kind: 'invalid'; readonly problems: readonly Problem[] };

export function parseYamlFile(file: string, bytes: Uint8Array): YamlResult {
  const text = decode(file, bytes);
  if (typeof text !== 'string') return { kind: 'invalid', problems: [text] };
  try {
    return parseText(file, text);
  } catch (error) {
    // The composer recurses; nothing that a person writes comes near the stack's end.
    if (!(error instanceof RangeError)) throw error;
    return invalid(
      file,
      'The document is nested too deeply.',
      'Use the few levels that docs/configuration.md shows.',
    );
  }
}

function decode(file: string, bytes: Uint8Array): string | Problem {
  const whole = (message: string, remedy: string): Problem => ({
    file,
    line: null,
    column: null,
    path: '',
    message,
    remedy,
  });
  if (bytes.byteLength > MAX_FILE_BYTES)
    return whole(
      'The file is larger than 1 MB.',
      'A configuration file holds settings only; split it or remove data.',
    );
  try {
    const text = new TextDecoder('utf-8', { fatal: true }).decode(bytes);
    if (text.includes('\0')) return whole('The file holds NUL characters.', 'Save it as UTF-8 text.');
    return text;
  } catch {
    return whole('The file is not valid UTF-8.', 'Save it as UTF-8 (without any other encoding).');
  }
}

function parseText(file: string, text: string): YamlResult {
  const lines = new LineCounter();
  const document = parseDocument(text, {
    lineCounter: lines,
    prettyErrors: false,
    logLevel: 'error',
    stringKeys: true,
  });
  const at = (offset: number, message: string, remedy: string, paths = pathsAt([])): Problem => {
    const { line, col } = lines.linePos(offset);
    return { file, line, column: col, ...paths, message, remedy };
  };
  const errors = [...document.errors, ...document.warnings];
  // One slip often makes the parser stumble over all that follows: only the first of a line helps.
  const byLine = new Map(errors.reverse().map((error) => [lines.linePos(error.pos[0]).line, error]));
  const problems = [...byLine.values()].map((error) =>
    at(error.pos[0], ...syntaxWords(error.code, text, error.pos[0])),
  );
  if (problems.length > 0) return { kind: 'invalid', problems };
  if (document.contents === null || (isScalar(document.contents) && document.contents.value === null))
    return invalid(
      file,
      'The file is empty.',
      'Write the settings, or delete the file; `retl init` shows a working example.',
    );
  problems.push(...refusedNodes(document, at));
  if (problems.length > 0) return { kind: 'invalid', problems };
  const value: unknown = document.toJS({ maxAliasCount: MAX_ALIASES });
  const problemAt: YamlFile['problemAt'] = (path, message, remedy, target = 'value') =>
    at(offsetOf(document, path, target), message, remedy, pathsAt(path, target));
  return { kind: 'ok', file: { file, value, problemAt } };
}

function invalid(file: string, message: string, remedy: string): YamlResult {
  return { kind: 'invalid', problems: [{ file, line: null, column: null, path: '', message, remedy }] };
}

type At = (offset: number, message: string, remedy: string) => Problem;

/** What YAML allows and a configuration does not need. */
function refusedNodes(document: Document.Parsed, at: At): Problem[] {
  const problems: Problem[] = [];
  let aliases = 0;
  visit(document, {
    Alias(_key, alias) {
      aliases += 1;
      const target = alias.resolve(document);
      const offset = alias.range?.[0] ?? 0;
      if (target === undefined)
        problems.push(
          at(
            offset,
            'This alias names no anchor above it.',
            'Define the anchor first, or write the value out.',
          ),
        );
      else if (!isScalar(target) && containsAlias(target))
        problems.push(
          at(offset, 'This alias refers to something that holds aliases itself.', 'Write the value out.'),
        );
      else if (aliases === MAX_ALIASES + 1)
        problems.push(at(offset, `There are more than ${MAX_ALIASES} aliases.`, 'Write the values out.'));
    },
    Pair(_key, pair) {
      if (!isScalar(pair.key)) return;
      const offset = pair.key.range?.[0] ?? 0;
      if (pair.key.value === '<<')
        problems.push(at(offset, 'Merge keys (`<<`) are not supported.', 'Write the settings out.'));
      if (pair.key.value === '__proto__')
        problems.push(at(offset, 'The key `__proto__` is reserved.', 'Rename it.'));
    },
    Scalar(_key, scalar) {
      const offset = scalar.range?.[0] ?? 0;
      if (typeof scalar.value === 'string' && UNSTORABLE.test(scalar.value))
        problems.push(
          at(offset, 'A text holds NUL or half of a surrogate pair.', 'Remove that escape sequence.'),
        );
      const problem = inexactNumber(scalar.value, scalar.source);
      if (problem) problems.push(at(offset, problem, 'Write a number that is exact, or text in quotes.'));
    },
  });
  return problems;
}

function containsAlias(node: Node): boolean {
  let found = false;
  visit(node, {
    Alias() {
      found = true;
      return visit.BREAK;
    },
  });
  return found;
}

function inexactNumber(value: unknown, source: string | undefined): string | null {
  if (typeof value !== 'number') return null;
  if (!Number.isFinite(value)) return 'NaN and infinities are not valid values.';
  const digits = source?.replaceAll(/[+_-]/g, '') ?? '';
  const exact = !/^\d{16,}$/.test(digits) || BigInt(digits) === BigInt(Math.abs(value));
  return exact && Number.isFinite(value) ? null : 'This number is too large to be kept exactly.';
}

/** Offset of the key or value at `path`, or of the nearest node above it. */
function offsetOf(document: Document.Parsed, path: Path, target: 'key' | 'value'): number {
  let node: unknown = document.contents;
  let offset = startOf(node) ?? 0;
  for (const [index, part] of path.entries()) {
    const holder: unknown = isAlias(node) ? node.resolve(document) : node;
    const isLast = index === path.length - 1;
    if (isMap(holder)) {
      const pair = holder.items.find((item) => isScalar(item.key) && String(item.key.value) === String(part));
      if (pair === undefined) return offset;
      node = pair.value;
      const keyOffset = startOf(pair.key) ?? offset;
      offset = isLast && target === 'key' ? keyOffset : (startOf(node) ?? keyOffset);
    } else if (isSeq(holder)) {
      node = holder.items[Number(part)];
      offset = startOf(node) ?? offset;
    } else return offset;
  }
  return offset;
}

function startOf(node: unknown): number | null {
  return isNode(node) ? (node.range?.[0] ?? null) : null;
}

/** Our own words for the parser's error codes: message and remedy. */
function syntaxWords(code: string, text: string, offset: number): [string, string] {
  const lineStart = text.lastIndexOf('\n', offset - 1) + 1;
  const lineEnd = text.indexOf('\n', offset);
  const line = text.slice(lineStart, lineEnd === -1 ? undefined : lineEnd);
  if (/[{[].*\$\{(env|file):/.test(line) && code !== 'DUPLICATE_KEY')
    return [
      'A secret reference inside {…} or […] is not in quotes.',
      `Write it as "${ENV_FORM}", in quotes.`,
    ];
  switch (code) {
    case 'DUPLICATE_KEY':
      return ['This key stands twice in the same mapping.', 'Keep one of the two.'];
    case 'TAB_AS_INDENT':
      return ['The line is indented with a tab.', 'Indent with spaces.'];
    case 'MULTIPLE_DOCS':
      return ['The file holds several documents (a line `---`).', 'Keep one document per file.'];
    case 'BAD_INDENT':
    case 'BLOCK_IN_FLOW':
      return [
        'The indentation does not fit the lines above.',
        'Indent every key of a mapping by the same number of spaces.',
      ];
    case 'BLOCK_AS_IMPLICIT_KEY':
      return [
        'A value holds `: `, which YAML reads as another key.',
        'Put the value in quotes, or the nested keys on lines of their own.',
      ];
    case 'TAG_RESOLVE_FAILED':
      return ['YAML tags (`!…`) are not supported.', 'Write a plain value; in quotes if it begins with `!`.'];
    case 'BAD_SCALAR_START':
      return ['A plain value cannot begin with this character.', 'Put the value in quotes.'];
    case 'NON_STRING_KEY':
      return ['A key must be plain text.', 'Put the key in quotes.'];
    case 'MISSING_CHAR':
      return [
        'A closing quote, bracket or colon is missing here or just before.',
        'Close the quote or bracket; write `key: value` with a space.',
      ];
    default:
      return [
        'This is not valid YAML.',
        'Check quotes, brackets, colons and indentation here and on the line before.',
      ];
  }
}
