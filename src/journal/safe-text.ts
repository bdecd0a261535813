/** What makes foreign words storable: an outcome must never fail to be written because of them. */

const MAX_WORDS = 16_384;
const CODE = /^[a-zA-Z0-9][a-zA-Z0-9._:-]{0,79}$/;

/** A code of an adapter that is none is replaced: an outcome must never fail to be written because of its label. */
export function safeCode(code: string): string {
  return CODE.test(code) ? code : 'adapter-code-invalid';
}

/** What an adapter may save of one request between its steps, in UTF-16 units. */
const MAX_PROGRESS = 1_048_576;

/**
 * Text that is stored as it is or not at all: half of it would mislead whoever reads it again.
 * @throws Error where it is too long, or PostgreSQL cannot store it: a bug of the adapter
 */
export function exactText(value: string): string {
  if (value.length > MAX_PROGRESS) throw new Error('what is saved between steps is longer than 1 MiB');
  if (!value.isWellFormed() || value.includes('\0'))
    throw new Error('what is saved between steps is no text');
  return value;
}

/** Text that PostgreSQL can always store: NUL and lone surrogates become U+FFFD, and the length is bounded. */
export function safeText(words: string): string {
  return words.slice(0, MAX_WORDS).toWellFormed().replaceAll('\0', '\ufffd');
}
