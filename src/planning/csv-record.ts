/**
 * Records of comma-separated text as RFC 4180 and PostgreSQL's COPY write it: a field between quotes is a text, the empty one
 * too; one without, where it is empty, is NULL.
 */

/** `null` is NULL. */
export type CsvField = string | null;

const UNQUOTED = /[^",\r\n]*/y;
const QUOTED = /"([^"]*(?:""[^"]*)*)"/y;

export type CsvRecord =
  | { readonly kind: 'record'; readonly fields: readonly CsvField[] }
  | { readonly kind: 'malformed' };

/** Quotes come in pairs wherever a record ends: with an odd number of them it goes on in the next line. */
export function togglesQuote(line: string): boolean {
  return line.split('"').length % 2 === 0;
}

/** The fields of one record, whose line end may be there or not. */
export function csvRecord(text: string): CsvRecord {
  const line = text.endsWith('\r') ? text.slice(0, -1) : text;
  const fields: CsvField[] = [];
  let at = 0;
  for (;;) {
    const form = line[at] === '"' ? QUOTED : UNQUOTED;
    form.lastIndex = at;
    const found = form.exec(line);
    if (found === null) return { kind: 'malformed' };
    fields.push(found[1]?.replaceAll('""', '"') ?? (found[0] === '' ? null : found[0]));
    at += found[0].length;
    if (at === line.length) return { kind: 'record', fields };
    if (line[at] !== ',') return { kind: 'malformed' };
    at += 1;
  }
}
