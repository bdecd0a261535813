/**
 * The provider's own words, made safe to keep: no secret of this connection, no NUL and no lone surrogate (the journal
 * is PostgreSQL text and JSON), bounded. They go into `reason` and receipts only, never into a log or an error.
 */

const MASK = '[secret]';

/** Takes known secrets out of text that a provider may have echoed. */
export class Redactor {
  readonly #spellings = new Set<string>();

  /** Adds a secret in each spelling an echo may have: raw, JSON-escaped, percent-encoded. */
  add(secret: string): void {
    if (secret === '') return;
    this.#spellings.add(secret);
    this.#spellings.add(JSON.stringify(secret).slice(1, -1));
    try {
      this.#spellings.add(encodeURIComponent(secret));
    } catch {
      // A lone surrogate has no percent-encoding, so no echo can hold one.
    }
  }

  /** At most `limit` UTF-16 units of `text`. Secrets go first: a cut in the middle of one would keep half of it. */
  clean(text: string, limit: number): string {
    let clean = text;
    // Longest first: a secret that is part of another must not leave the rest of that one behind.
    for (const secret of [...this.#spellings].sort((a, b) => b.length - a.length))
      clean = clean.replaceAll(secret, MASK);
    return wellFormed(cut(clean, limit));
  }
}

function cut(text: string, limit: number): string {
  if (text.length <= limit) return text;
  const end = /[\ud800-\udbff]/.test(text.charAt(limit - 1)) ? limit - 1 : limit;
  return `${text.slice(0, end)}…`;
}

/** NUL and lone surrogates become U+FFFD; pairs (an emoji) stay. */
function wellFormed(text: string): string {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: NUL is what is looked for
  return text.replaceAll(/[\u0000\p{Surrogate}]/gu, '\ufffd');
}
