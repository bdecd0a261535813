/**
 * CSV as Bulk API 2.0 takes and gives it: comma, line feed, UTF-8. A value is quoted wherever that could matter, a quote
 * within is doubled, blanks count. Pure.
 */

/** What a cell says to an upsert. */
export type Cell =
  | { readonly kind: 'text'; readonly text: string }
  /** Clears the field: Salesforce keeps no empty text, so that '' and null are both written as this. */
  | { readonly kind: 'null' }
  /** Leaves the field as it is. */
  | { readonly kind: 'absent' };

/** What stands for null. As a text it cannot be written, and is refused beforehand. */
export const NULL_MARK = '#N/A';

export function writeCsv(header: readonly string[], rows: Iterable<readonly Cell[]>): string {
  const lines = [header.join(',')];
  for (const row of rows) lines.push(row.map(cellText).join(','));
  return `${lines.join('\n')}\n`;
}

function cellText(cell: Cell): string {
  switch (cell.kind) {
    case 'absent':
      return '';
    case 'null':
      return NULL_MARK;
    case 'text':
      return `"${cell.text.replaceAll('"', '""')}"`;
  }
}

export interface Table {
  readonly header: readonly string[];
  /** Each as long as the header. */
  readonly rows: readonly (readonly string[])[];
}

/** Reads a whole document; `null` where it is not CSV: a quote left open, something behind one, ragged rows. */
export function readCsv(text: string): Table | null {
  const records = readRecords(text.startsWith('\ufeff') ? text.slice(1) : text);
  if (records === null) return null;
  const [header, ...rows] = records;
  if (header === undefined) return { header: [], rows: [] };
  return rows.every((row) => row.length === header.length) ? { header, rows } : null;
}

/** A cell begins at `at`: after a comma, a line's end, or nothing. */
function readRecords(text: string): string[][] | null {
  const records: string[][] = [];
  let record: string[] = [];
  let at = 0;
  while (at < text.length) {
    const cell = text.charAt(at) === '"' ? quotedCell(text, at) : plainCell(text, at);
    if (cell === null) return null;
    record.push(cell.value);
    at = cell.end;
    if (text.charAt(at) === ',') {
      at += 1;
      // A comma at the very end: one more cell, empty, with no line end behind it.
      if (at === text.length) record.push('');
      else continue;
    }
    if (text.startsWith('\r\n', at)) at += 2;
    else if (text.charAt(at) === '\n') at += 1;
    else if (at < text.length) return null;
    records.push(record);
    record = [];
  }
  return records;
}

interface CellText {
  readonly value: string;
  /** Index behind it. */
  readonly end: number;
}

function plainCell(text: string, from: number): CellText | null {
  const rest = /[",\n]/g;
  rest.lastIndex = from;
  const end = rest.exec(text)?.index ?? text.length;
  if (text.charAt(end) === '"') return null;
  const crlf = text.charAt(end) === '\n' && text.charAt(end - 1) === '\r' && end > from;
  return { value: text.slice(from, crlf ? end - 1 : end), end: crlf ? end - 1 : end };
}

function quotedCell(text: string, from: number): CellText | null {
  let at = from + 1;
  let value = '';
  for (;;) {
    const quote = text.indexOf('"', at);
    if (quote < 0) return null;
    value += text.slice(at, quote);
    if (text.charAt(quote + 1) !== '"') {
      const next = text.slice(quote + 1, quote + 3);
      return /^(?:,|\n|\r\n|$)/.test(next) ? { value, end: quote + 1 } : null;
    }
    value += '"';
    at = quote + 2;
  }
}
