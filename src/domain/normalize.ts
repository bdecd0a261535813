/**
 * Normalisation of one text, before it is hashed or sent. Every function is idempotent and depends on no locale.
 *
 * The rule on Unicode forms: `trim` and `lower` keep the form a text has; `email` gives NFC, so that the composed and
 * the decomposed spelling of one address are one address (and one hash). How a target compares what is *not*
 * normalised is another matter: see folding.ts.
 */

import { assertNever } from './assert-never.ts';
import type { Normalization } from './settings.ts';

/** The normalised text; `null` where the text is not of the form: that fails the row, it never excludes it. */
export function normalize(rule: Normalization, text: string): string | null {
  switch (rule) {
    case 'trim':
      return trim(text);
    case 'lower':
      return text.toLowerCase();
    case 'email':
      return email(text);
    case 'phone':
      return phone(text);
    default:
      return assertNever(rule);
  }
}

/** Without Unicode white space, and without byte order marks, at both ends. */
export function trim(text: string): string {
  let start = 0;
  let end = text.length;
  while (start < end && isSpace(text.charCodeAt(start))) start += 1;
  while (end > start && isSpace(text.charCodeAt(end - 1))) end -= 1;
  return start === 0 && end === text.length ? text : text.slice(start, end);
}

/** White_Space of the Unicode database (all of it in one UTF-16 unit each), and U+FEFF. */
function isSpace(unit: number): boolean {
  if (unit <= 0x20) return unit === 0x20 || (unit >= 0x09 && unit <= 0x0d);
  if (unit < 0x85) return false;
  if (unit >= 0x2000 && unit <= 0x200a) return true;
  return OTHER_SPACES.has(unit);
}

const OTHER_SPACES = new Set([0x85, 0xa0, 0x1680, 0x2028, 0x2029, 0x202f, 0x205f, 0x3000, 0xfeff]);

const PRINTABLE_ASCII = /^[\x21-\x7e]*$/;

/**
 * One address and nothing around it: no spaces, controls or invisible characters, no list separators, no name in
 * angle brackets, no quoted local part, no empty label in the domain. Whether it exists is for others to know.
 */
const ONE_ADDRESS =
  /^[^\s\p{C}\p{Z}@,;:<>()[\]"\\]+@[^\s\p{C}\p{Z}@,;:<>()[\]"\\.]+(?:\.[^\s\p{C}\p{Z}@,;:<>()[\]"\\.]+)*$/u;

/** Trimmed, in lower case, NFC. Dots and `+tags` of the local part stay: only the provider knows what they mean. */
function email(text: string): string | null {
  const trimmed = trim(text);
  // NFC on both sides of the change of case: the result depends on the text's canonical form alone.
  const address = PRINTABLE_ASCII.test(trimmed)
    ? trimmed.toLowerCase()
    : trimmed.normalize('NFC').toLowerCase().normalize('NFC');
  return ONE_ADDRESS.test(address) ? address : null;
}

/** What people write between the digits: white space, dots, dashes of any length, round and square brackets. */
const PHONE_PUNCTUATION = /[\s\p{Zs}.\p{Pd}()[\]]/gu;
const E164 = /^\+[1-9][0-9]{7,14}$/;
/** The national trunk prefix, which is not dialled from abroad: `+44 (0)20 …`. */
const TRUNK_ZERO = /[([]\s*0\s*[)\]]/;

/**
 * E.164: `+` and 8 to 15 digits; a leading `00` stands for the `+`. National numbers are refused, since their country
 * is unknown, and so is a trunk `(0)`: dropping or keeping it would both be guesses.
 */
function phone(text: string): string | null {
  if (TRUNK_ZERO.test(text)) return null;
  const bare = trim(text).replace(PHONE_PUNCTUATION, '');
  const number = bare.startsWith('00') ? `+${bare.slice(2)}` : bare;
  return E164.test(number) ? number : null;
}

const HEX_SHA256 = /^[0-9a-f]{64}$/i;

/**
 * The lower-case digest where a text, blanks aside, is 64 hex digits: no e-mail address or phone number looks like
 * this, so where one is to be hashed the source has hashed it already, and hashing it again would name another person.
 */
export function existingDigest(text: string): string | null {
  const trimmed = trim(text);
  return HEX_SHA256.test(trimmed) ? trimmed.toLowerCase() : null;
}
