/**
 * Which identities a target takes for one (design.md section 2, "identity hash"). Folding decides what is hashed, never
 * what is sent: a member whose spelling changes within one folded identity is a changed payload, not a removal and an
 * addition that could overtake each other.
 *
 * `case` is Unicode's full case folding (ß as ss, every sigma alike, dotless ı by itself). It folds no less than the
 * targets that know less of Unicode: two spellings held apart needlessly would end in a wrong removal, two taken for
 * one needlessly fail the seal as a conflict.
 *
 * `text` is of targets that read every value as a text, such as a column of a table: 1 and "1" are one, true and "true", and
 * a list is its JSON. It follows from how an adapter writes, so that no user is asked for it. Null is no text.
 */

import { canonicalJson, canonicalString } from './canonical-json.ts';
import type { SourceValue } from './source-row.ts';

export type Folding = 'case' | 'nfc' | 'nfkc' | 'text';

const FOLDINGS: readonly Folding[] = ['case', 'nfc', 'nfkc', 'text'];

/** A folding as the journal keeps it: `case,nfc` and the like; empty: none. */
export function foldingText(folding: readonly Folding[]): string {
  return FOLDINGS.filter((one) => folding.includes(one)).join(',');
}

/** Back from {@link foldingText}. @throws RangeError where it names what this release does not know */
export function foldingFrom(text: string): readonly Folding[] {
  const names = text === '' ? [] : text.split(',');
  const known = FOLDINGS.filter((one) => names.includes(one));
  if (known.length !== names.length) throw new RangeError('a folding that this release does not know');
  return known;
}

/** Nothing to fold, whatever the folding. */
const FOLDED_ASCII = /^[\x20-\x40\x5b-\x7e]*$/;
const ASCII = /^[\x20-\x7e]*$/;
/** A JSON string, and the colon after it where it is a member's name. */
const STRINGS = /"(?:[^"\\]|\\.)*"(:?)/g;

/** {@link foldIdentity} for one target: what turns each of its canonical identities into the text to hash. */
export function identityHashInput(folding: readonly Folding[]): (canonicalIdentity: string) => string {
  if (folding.length === 0) return (canonicalIdentity) => canonicalIdentity;
  return (canonicalIdentity) => foldIdentity(canonicalIdentity, folding);
}

/**
 * The text to hash for a canonical identity: its string values folded; its names, numbers and structure as they are, unless
 * the target reads them as texts. Equal for two identities exactly when the target takes them for one.
 */
export function foldIdentity(canonicalIdentity: string, folding: readonly Folding[]): string {
  const read = folding.includes('text') ? asTexts(canonicalIdentity) : canonicalIdentity;
  if (FOLDED_ASCII.test(read)) return read;
  return read.replace(STRINGS, (token: string, colon: string) => {
    if (colon !== '' || FOLDED_ASCII.test(token)) return token;
    return canonicalString(foldText(String(JSON.parse(token)), folding));
  });
}

/** An identity whose values are texts already. */
const TEXTS_ONLY = /^\{(?:"[^"\\]*(?:\\.[^"\\]*)*":"[^"\\]*(?:\\.[^"\\]*)*",?)*\}$/;

/** The identity with its fields' values as texts; numbers are written as canonical JSON writes them, and so as they are sent. */
function asTexts(canonicalIdentity: string): string {
  if (!canonicalIdentity.startsWith('{') || TEXTS_ONLY.test(canonicalIdentity)) return canonicalIdentity;
  const fields: readonly [string, SourceValue][] = Object.entries(JSON.parse(canonicalIdentity));
  return canonicalJson(Object.fromEntries(fields.map(([name, value]) => [name, textOf(value)])));
}

function textOf(value: SourceValue): string | null {
  return typeof value === 'string' || value === null ? value : canonicalJson(value);
}

/** One text, as a target with this folding takes it. */
export function foldText(text: string, folding: readonly Folding[]): string {
  const foldsCase = folding.includes('case');
  if (ASCII.test(text)) return foldsCase ? text.toLowerCase() : text;
  if (folding.includes('nfkc')) {
    if (!foldsCase) return text.normalize('NFKC');
    // Unicode's compatibility caseless match: folding can undo the form, and the form can bring new letters.
    return foldCase(foldCase(text.normalize('NFD')).normalize('NFKC')).normalize('NFKC');
  }
  if (folding.includes('nfc')) {
    return foldsCase ? foldCase(text.normalize('NFD')).normalize('NFC') : text.normalize('NFC');
  }
  return foldsCase ? foldCase(text) : text;
}

/**
 * Full case folding out of ECMAScript's locale-independent mappings: lower, so that ẞ becomes ß; upper, so that ß
 * becomes SS and all sigmas one; lower again, where equal texts stay equal. Dotless ı is left out, for its upper case is a plain I.
 */
function foldCase(text: string): string {
  if (text.includes('ı')) return text.split('ı').map(foldCase).join('ı');
  return text.toLowerCase().toUpperCase().toLowerCase();
}
