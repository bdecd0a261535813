/** Values from other systems on a terminal: nothing in them may move the cursor, change colours or hide. */

// biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what it looks for
const DANGEROUS = /[\u0000-\u001f\u007f-\u009f\u200e\u200f\u2028-\u202e\u2066-\u2069]/g;

/** The text with control characters and marks of direction written as escapes. */
export function harmless(text: string): string {
  return text.replace(DANGEROUS, (mark) => `\\u${mark.charCodeAt(0).toString(16).padStart(4, '0')}`);
}

/** A value that the journal should have; `null`: it has lost it. */
export function valueWords(value: string | null): string {
  return value === null ? '(lost)' : harmless(value);
}
