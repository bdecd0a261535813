/** PostgreSQL's text form of arrays: `{1,NULL,"a,b"}`, nested, and with bounds of its own as `[0:1]={a,b}`. */

import { MAX_JSON_DEPTH } from '../../domain/canonical-json.ts';
import { InvalidValue } from '../../domain/source-row.ts';

/**
 * JSON array of an array's text; bounds are not part of JSON and are left out.
 * @param delimiter `,`, or `;` for arrays of `box`.
 * @param element gives the JSON of one element that is not NULL.
 * @throws InvalidValue `malformed`, or whatever `element` throws.
 */
export function arrayJson(text: string, delimiter: string, element: (raw: string) => string): string {
  const reader = new ArrayReader(text, delimiter, element);
  return reader.whole();
}

class ArrayReader {
  private at = 0;

  constructor(
    private readonly text: string,
    private readonly delimiter: string,
    private readonly element: (raw: string) => string,
  ) {}

  whole(): string {
    if (this.text.startsWith('[')) this.at = this.text.indexOf('=') + 1;
    const json = this.level(1);
    if (this.at !== this.text.length) throw new InvalidValue('malformed');
    return json;
  }

  private level(depth: number): string {
    if (this.text[this.at] !== '{' || depth > MAX_JSON_DEPTH) throw new InvalidValue('malformed');
    this.at += 1;
    if (this.takes('}')) return '[]';
    const items: string[] = [];
    for (;;) {
      items.push(this.item(depth));
      if (this.takes('}')) return `[${items.join(',')}]`;
      if (!this.takes(this.delimiter)) throw new InvalidValue('malformed');
    }
  }

  private item(depth: number): string {
    const first = this.text[this.at];
    if (first === '{') return this.level(depth + 1);
    if (first === '"') return this.element(this.quoted());
    const raw = this.bare();
    return raw === 'NULL' ? 'null' : this.element(raw);
  }

  private takes(mark: string): boolean {
    if (this.text[this.at] !== mark) return false;
    this.at += 1;
    return true;
  }

  /** Up to the next delimiter or brace. PostgreSQL quotes whatever holds one of them, and the text `NULL`. */
  private bare(): string {
    const start = this.at;
    while (this.at < this.text.length) {
      const mark = this.text[this.at];
      if (mark === this.delimiter || mark === '}') break;
      this.at += 1;
    }
    if (this.at === start) throw new InvalidValue('malformed');
    return this.text.slice(start, this.at);
  }

  private quoted(): string {
    const parts: string[] = [];
    let from = this.at + 1;
    for (let i = from; i < this.text.length; i++) {
      const mark = this.text[i];
      if (mark === '"') {
        parts.push(this.text.slice(from, i));
        this.at = i + 1;
        return parts.join('');
      }
      if (mark === '\\') {
        parts.push(this.text.slice(from, i));
        from = i + 1;
        i += 1; // the next character stands for itself, whatever it is
      }
    }
    throw new InvalidValue('malformed');
  }
}
