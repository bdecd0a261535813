/** The columns by which a member is found by a value of its identity: folded, and short enough for an index of PostgreSQL. */

import { identityWords } from '../../domain/identity-text.ts';
import { copyText } from './database.ts';

/** The first value, for nearly all identities have but one, and the others, where there are any. */
export const WORD_COLUMNS = 'word text collate "C" not null, more text[] collate "C"';
export const WORD_NAMES = ['word', 'more'];

/** An index has no room for more than some 2,700 bytes. What a longer value goes on with is compared when it is found. */
const KEPT = 200;

/** A value as it stands in these columns. */
export function keptWord(folded: string): string {
  if (folded.length <= KEPT) return folded;
  const kept = folded.slice(0, KEPT);
  return kept.isWellFormed() ? kept : kept.slice(0, -1);
}

export const wordKeys = (table: string): readonly string[] => [
  `create index on ${table} (word)`,
  `create index on ${table} using gin (more) where more is not null`,
];

/** The values of a canonical identity, as they stand in these columns. */
export function keptWords(identity: string): readonly string[] {
  return identityWords(identity).map(keptWord);
}

/** Both as fields of COPY's text form. */
export function copyWords(identity: string): string {
  const [word = '', ...more] = keptWords(identity);
  return `${copyText(word)}\t${more.length === 0 ? '\\N' : copyText(arrayOf(more))}`;
}

function arrayOf(words: readonly string[]): string {
  return `{${words.map((word) => `"${word.replace(/["\\]/g, '\\$&')}"`).join(',')}}`;
}
