/** What makes foreign words storable: an outcome must never fail to be written because of them. */

const MAX_WORDS = 16_384;
const CODE = /^[a-zA-Z0-9][a-zA-Z0-9._:-]{0,79}$/;

/** A code of an adapter that is none is replaced: an outcome must never fail to be written because of its label. */
export function safeCode(code: string): string {
  return CODE.test(code) ? code : 'adapter-code-invalid';
}

/** Text that PostgreSQL can always store: NUL and lone surrogates become U+FFFD, and the length is bounded. */
export function safeText(words: string): string {
  return words.slice(0, MAX_WORDS).toWellFormed().replaceAll('\0', '\ufffd');
}
