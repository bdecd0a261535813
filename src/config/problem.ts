/**
 * One thing that is wrong in the configuration, at its place. Every problem is reported at once; none shows a value
 * that stands in a connection, and none a secret. They are for the terminal of whoever checks or runs: what goes to Temporal
 * or into a worker's log is {@link problemPlace} alone, without a word that somebody has typed.
 */

export type Path = readonly (string | number)[];

export interface Problem {
  /** Relative to the project's folder, with `/`. */
  readonly file: string;
  /** From 1; `null` where the problem is the file as a whole. */
  readonly line: number | null;
  readonly column: number | null;
  /** e.g. `members[0].identity.email_sha256.hash`; empty for the whole document. */
  readonly path: string;
  /** Where the key itself is what is wrong: the path of the mapping that it stands in. */
  readonly holder?: string;
  /** What is wrong. */
  readonly message: string;
  /** What would be valid, or what to do. */
  readonly remedy: string;
}

const PLAIN_KEY = /^[A-Za-z_$][\w$-]*$/;

/** Writes a path the way people read it; keys that need it are quoted. */
export function pathText(path: Path): string {
  let text = '';
  for (const part of path) {
    if (typeof part === 'number') text += `[${part}]`;
    else if (!PLAIN_KEY.test(part)) text += `[${JSON.stringify(part)}]`;
    else text += text === '' ? part : `.${part}`;
  }
  return text;
}

/** By file, then by place. */
export function sortProblems(problems: readonly Problem[]): readonly Problem[] {
  return [...problems].sort(
    (a, b) =>
      compareText(a.file, b.file) ||
      (a.line ?? 0) - (b.line ?? 0) ||
      (a.column ?? 0) - (b.column ?? 0) ||
      compareText(a.path, b.path) ||
      compareText(a.message, b.message),
  );
}

function compareText(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}

/** `path` and, of a problem that is the key itself, `holder`. */
export function pathsAt(path: Path, target: 'key' | 'value' = 'value'): Pick<Problem, 'path' | 'holder'> {
  return { path: pathText(path), ...(target === 'key' ? { holder: pathText(path.slice(0, -1)) } : {}) };
}

/** Where it is, and nothing of what stands there: `mirrors/vip.yaml:5:7 members[0]`. */
export function problemPlace(problem: Problem): string {
  const { file, line, column, path, holder } = problem;
  const place = [file, line, column].filter((part) => part !== null).join(':');
  return `${place} ${holder ?? path}`.trimEnd();
}

/** One line: `mirrors/vip.yaml:5:7 members[0].when: … Valid: …`. */
export function problemText(problem: Problem): string {
  const place = [problem.file, problem.line, problem.column].filter((part) => part !== null).join(':');
  const path = problem.path === '' ? '' : ` ${problem.path}`;
  return `${place}${path}: ${problem.message} ${problem.remedy}`.trimEnd();
}
