/** Reads the titles of tests from their sources, so that a page can name a test without running it. */

/**
 * The titles of every `test(…)`, `it(…)`, `test.each(…)(…)` and `test.for(…)(…)` whose title is a literal, in the
 * order of the file. A template of `each` is given as it is written: `%s`, `$name`.
 */
export function titlesOf(source: string): readonly string[] {
  const code = new Code(source);
  const titles: string[] = [];
  for (const { index } of code.calls()) {
    const title = code.literalAt(code.afterTable(index));
    if (title !== null) titles.push(title);
  }
  return titles;
}

const TOKEN =
  /'(?:\\.|[^'\\\n])*'|"(?:\\.|[^"\\\n])*"|`(?:\\.|[^`\\])*`|\/\*[\s\S]*?\*\/|\/\/[^\n]*|(?<=[(,=:[!&|?{};\n]\s*)\/(?:\\.|\[(?:\\.|[^\]\\\n])*\]|[^/\\[\n])+\/[a-z]*/g;

/** One source, and beside it the same length of text with all strings, comments and patterns blanked. */
class Code {
  readonly #source: string;
  readonly #bare: string;

  constructor(source: string) {
    this.#source = source;
    this.#bare = source.replace(TOKEN, (token) => ' '.repeat(token.length));
  }

  /** Where the arguments of each call begin: the opening parenthesis. */
  *calls(): Generator<{ readonly index: number }> {
    for (const match of this.#bare.matchAll(/(?<![\w$.])(?:test|it)(?:\.(?:each|for))?(?=\()/g))
      yield { index: match.index + match[0].length };
  }

  /** Past the table of `each`, where there is one: its call gives another that takes the title. */
  afterTable(open: number): number {
    const tabled = /\.(?:each|for)$/.test(this.#bare.slice(0, open));
    return tabled ? this.#closing(open) + 1 : open;
  }

  /** The first argument of the call that opens here, where it is a literal. */
  literalAt(open: number): string | null {
    const match = /^\(\s*(?:'((?:\\.|[^'\\\n])*)'|"((?:\\.|[^"\\\n])*)"|`((?:\\.|[^`\\])*)`)/.exec(
      this.#source.slice(open),
    );
    if (match === null) return null;
    return (match[1] ?? match[2] ?? match[3] ?? '').replace(/\\(.)/g, '$1');
  }

  #closing(open: number): number {
    let depth = 0;
    for (let at = open; at < this.#bare.length; at += 1) {
      if (this.#bare[at] === '(') depth += 1;
      else if (this.#bare[at] === ')') depth -= 1;
      if (depth === 0) return at;
    }
    return this.#bare.length;
  }
}
