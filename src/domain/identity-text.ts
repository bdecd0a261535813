/**
 * Finding members by text (`retl find`): what counts as a match is decided here, for every index and for the journal alike. A
 * text is held against the values of an identity, each by itself; names of fields are no values. Case and Unicode form do not
 * matter: both sides are folded (folding.ts).
 */

import { canonicalString } from './canonical-json.ts';
import { type Folding, foldText } from './folding.ts';
import { InvalidValue } from './source-row.ts';

const FOLDING: readonly Folding[] = ['case', 'nfkc'];

/** A string, with the colon where it is a member's name; or a number, a boolean. Canonical JSON has no space outside of strings. */
const TOKENS = /"(?:[^"\\]|\\.)*"(:?)|-?\d[\d.eE+-]*|true|false/g;

/** `value`: a whole value of the identity; `part`: any part of one. */
export type TextMatch = 'value' | 'part';

export interface SearchedText {
  readonly folded: string;
  readonly match: TextMatch;
}

/** `null`: no identity has such a text in it: nothing at all, U+0000, half of a surrogate pair. */
export function searchedText(typed: string, match: TextMatch): SearchedText | null {
  if (typed === '') return null;
  try {
    canonicalString(typed);
  } catch (error) {
    if (error instanceof InvalidValue) return null;
    throw error;
  }
  return { folded: foldText(typed, FOLDING), match };
}

/** An identity of one value, of printable ASCII: nearly all of them are, and folding it is no more than to lower it. */
const ONE_PLAIN = /^\{"[^"\\]*":"([ !#-[\]-~]*)"\}$/;

/** The values of a canonical identity, folded, in their order, each once: strings, and numbers and booleans as they are written. */
export function identityWords(identity: string): readonly string[] {
  const plain = ONE_PLAIN.exec(identity)?.[1];
  if (plain !== undefined) return [plain.toLowerCase()];
  const words = new Set<string>();
  for (const [token, colon] of identity.matchAll(TOKENS)) {
    if (colon === ':') continue;
    words.add(token.startsWith('"') ? foldText(String(JSON.parse(token)), FOLDING) : token.toLowerCase());
  }
  return [...words];
}

/** Whether a canonical identity has the text in it. */
export function identityHas(identity: string, { folded, match }: SearchedText): boolean {
  return identityWords(identity).some((word) =>
    match === 'value' ? word === folded : word.includes(folded),
  );
}

/**
 * A coarse sign for databases: a canonical identity of printable ASCII alone can only have the text in it where its lower case
 * has this. Of any other identity it says nothing.
 */
export function coarseSign({ folded }: SearchedText): string {
  return canonicalString(folded).slice(1, -1);
}
