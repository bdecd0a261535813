/** What the demo shows: lines, one line that is rewritten while something goes on, and a table at the end. */

const LABEL_WIDTH = 26;

export class Screen {
  readonly #out: NodeJS.WritableStream & { readonly isTTY?: boolean };
  #rewriting = false;
  #lastPlain = '';
  #isClosed = false;

  constructor(out: NodeJS.WritableStream & { readonly isTTY?: boolean }) {
    this.#out = out;
  }

  /** The last line: what is still under way says nothing more. */
  close(text: string): void {
    this.line(text);
    this.#isClosed = true;
  }

  line(text = ''): void {
    if (this.#isClosed) return;
    if (this.#rewriting) this.#out.write('\r\u001b[K');
    this.#rewriting = false;
    this.#out.write(`${text}\n`);
  }

  /** A fact with its name, aligned with the others. */
  fact(label: string, value: string): void {
    this.line(`  ${label.padEnd(LABEL_WIDTH)} ${value}`);
  }

  /** On a terminal the line is rewritten; elsewhere each new phase gets a line of its own. */
  progress(phase: string, text: string): void {
    if (this.#isClosed) return;
    if (this.#out.isTTY === true) {
      this.#out.write(`\r\u001b[K  ${phase.padEnd(LABEL_WIDTH)} ${text}`);
      this.#rewriting = true;
    } else if (phase !== this.#lastPlain) {
      this.fact(phase, text);
    }
    this.#lastPlain = phase;
  }

  /** Numbers to the right, the first column to the left. */
  table(header: readonly string[], rows: readonly (readonly (string | number)[])[]): void {
    const all = [header, ...rows.map((row) => row.map(String))];
    const widths = header.map((_, column) => Math.max(...all.map((row) => (row[column] ?? '').length)));
    for (const row of all) {
      const cells = row.map((cell, column) =>
        column === 0 ? cell.padEnd(widths[column] ?? 0) : cell.padStart(widths[column] ?? 0),
      );
      this.line(`  ${cells.join('   ')}`);
    }
  }
}
