/** Everything the CLI writes: results to stdout, remarks and progress to stderr; with `--json`, JSON alone on stdout. */

import { styleText } from 'node:util';

export type Style = 'bold' | 'dim' | 'red' | 'green' | 'yellow' | 'cyan';

export interface OutputOptions {
  readonly json: boolean;
  readonly color: boolean;
  /** More about errors, for a bug report. */
  readonly debug: boolean;
}

export class Output {
  /** Lines that the next redrawing takes the place of. */
  #drawn = 0;
  /** What is written while a person is asked something; `null`: nobody is. */
  #held: (() => void)[] | null = null;

  constructor(
    readonly options: OutputOptions,
    private readonly stdout: NodeJS.WriteStream = process.stdout,
    private readonly stderr: NodeJS.WriteStream = process.stderr,
  ) {}

  get json(): boolean {
    return this.options.json;
  }

  /** Whether a person is watching the progress. */
  get isInteractive(): boolean {
    return !this.json && this.stderr.isTTY === true && process.stdin.isTTY === true;
  }

  get columns(): number {
    return this.stderr.columns || 80;
  }

  get rows(): number {
    return this.stderr.rows || 24;
  }

  /** Part of the result, for people. */
  line(text = ''): void {
    if (!this.json) this.#write(this.stdout, `${text}\n`);
  }

  /** A remark beside the result, for people. */
  note(text: string): void {
    if (!this.json) this.#write(this.stderr, `${text}\n`);
  }

  /** The result, for programs: one JSON document. */
  document(value: unknown): void {
    if (this.json) this.#write(this.stdout, `${JSON.stringify(value, plain, 2)}\n`);
  }

  /** One step of a result that comes bit by bit, for programs: one JSON text per line. */
  event(value: unknown): void {
    if (this.json) this.#write(this.stdout, `${JSON.stringify(value, plain)}\n`);
  }

  /** Draws lines in the place of those drawn before, with the cursor in the last; none clears them. */
  redraw(lines: readonly string[]): void {
    if (!this.isInteractive || this.#held !== null) return;
    const up = this.#drawn > 1 ? `\x1b[${this.#drawn - 1}A` : '';
    this.stderr.write(`${up}\r\x1b[J${lines.join('\n')}`);
    this.#drawn = lines.length;
  }

  /** From now on nothing is written, so that a question stays to be read. */
  hold(): void {
    this.redraw([]);
    this.#held ??= [];
  }

  /** Writes what was held, in its order. */
  release(): void {
    const held = this.#held ?? [];
    this.#held = null;
    for (const write of held) write();
  }

  #write(stream: NodeJS.WriteStream, text: string): void {
    if (this.#held === null) stream.write(text);
    else this.#held.push(() => stream.write(text));
  }

  style(style: Style, text: string): string {
    return this.options.color ? styleText(style, text, { validateStream: false }) : text;
  }

  /** Columns as wide as their widest cell; the first row is the head. */
  table(rows: readonly (readonly string[])[]): void {
    for (const [index, text] of tableLines(rows).entries())
      this.line(index === 0 ? this.style('dim', text) : text);
  }
}

export function tableLines(rows: readonly (readonly string[])[]): readonly string[] {
  const widths = (rows[0] ?? []).map((_, column) =>
    Math.max(...rows.map((row) => (row[column] ?? '').length)),
  );
  return rows.map((row) =>
    row
      .map((text, column) => text.padEnd(widths[column] ?? 0))
      .join('  ')
      .trimEnd(),
  );
}

/** u64 as text: a JSON number does not hold it. */
function plain(_key: string, value: unknown): unknown {
  return typeof value === 'bigint' ? value.toString() : value;
}
