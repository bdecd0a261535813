/** A filter in SQL that lets each identity through that has a text in it, and is to be followed by domain/identity-text.ts. */

/**
 * @param column canonical JSON
 * @param sign the argument that the text's `coarseSign` is
 */
export function hasText(column: string, sign: string): string {
  return `strpos(lower(${column} collate "C"), ${sign}) > 0 or ${column} ~ '[^ -~]'`;
}
