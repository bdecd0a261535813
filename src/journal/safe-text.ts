/** What makes foreign words storable: an outcome must never fail to be written because of them. */

const MAX_WORDS = 16_384;
const CODE = /^[a-zA-Z0-9][a-zA-Z0-9._:-]{0,79}$/;

/** A code of an adapter that is none is replaced: an outcome must never fail to be written because of its label. */
export function safeCode(code: string): string {
  return CODE.test(code) ? code : 'adapter-code-invalid';
}

/** What an adapter may save at once: of one request between its steps, or under one key. In UTF-16 units. */
const MAX_SAVED = 1_048_576;
/** PostgreSQL's index takes no longer ones, in whatever letters they are. In UTF-16 units. */
const MAX_KEY = 512;

/**
 * Text that is stored as it is or not at all: half of it would mislead whoever reads it again.
 * @throws Error where it is too long, or PostgreSQL cannot store it: a bug of the adapter
 */
export function exactText(value: string): string {
  if (value.length > MAX_SAVED) throw new Error('what an adapter saves is longer than 1 MiB');
  if (!value.isWellFormed() || value.includes('\0')) throw new Error('what an adapter saves is no text');
  return value;
}

/** @throws Error as {@link exactText}, and where it is too long for a key */
export function storeKey(key: string): string {
  if (key.length > MAX_KEY) throw new Error(`a key of the store is longer than ${MAX_KEY}`);
  return exactText(key);
}

/** Text that PostgreSQL can always store: NUL and lone surrogates become U+FFFD, and the length is bounded. */
export function safeText(words: string): string {
  return words.slice(0, MAX_WORDS).toWellFormed().replaceAll('\0', '\ufffd');
}
