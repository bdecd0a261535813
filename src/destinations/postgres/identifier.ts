/** Names of schemas, tables and columns: read as PostgreSQL reads them, and written so that any name is safe. */

/** PostgreSQL cuts longer names silently, so that two names could become one. In bytes of UTF-8. */
export const MAX_NAME_BYTES = 63;

export interface QualifiedName {
  readonly schema: string;
  readonly name: string;
}

/** The name between double quotes: exact, whatever it holds. */
export function quoteName(name: string): string {
  return `"${name.replaceAll('"', '""')}"`;
}

export function quoteQualified(name: QualifiedName): string {
  return `${quoteName(name.schema)}.${quoteName(name.name)}`;
}

/** What is wrong with a name that is meant exactly as written, in words; `null`: nothing. */
export function nameFault(name: string): string | null {
  if (name === '') return 'a name cannot be empty';
  if (name.includes('\0')) return 'a name cannot hold U+0000';
  if (Buffer.byteLength(name) > MAX_NAME_BYTES) return `a name has at most ${MAX_NAME_BYTES} bytes`;
  return null;
}

/** One part, with the dot or the end that follows it: quoted, or plain lower case. */
const PART = /(?:"((?:[^"]|"")*)"|([a-z_\u0080-\uffff][a-z0-9_$\u0080-\uffff]*))(\.|$)/y;

/**
 * Reads `table` or `schema.table`, each part plain lower case or between double quotes.
 * Returns the parts, or `null` for anything else: `Customers` is refused, for SQL would read `customers`.
 */
export function parseName(text: string): readonly string[] | null {
  const parts: string[] = [];
  PART.lastIndex = 0;
  for (;;) {
    const match = PART.exec(text);
    if (match === null) return null;
    const part = match[1]?.replaceAll('""', '"') ?? match[2] ?? '';
    if (nameFault(part) !== null) return null;
    parts.push(part);
    if (match[3] === '') return parts.length <= 2 ? parts : null;
  }
}
