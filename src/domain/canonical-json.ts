/**
 * Canonical JSON (RFC 8785): one value, one text. Object names stand in the order of their UTF-16 code units, numbers
 * in ECMAScript's shortest form, -0 as 0, strings with the fewest escapes. Two rules are this project's own: U+0000 is
 * refused everywhere, because PostgreSQL and many providers cannot hold it; and nesting is bounded, so that no value
 * can exhaust the stack of whoever reads it.
 *
 * JSON that arrives as text (columns of type json and jsonb, numbers written as text) is never rounded: a number whose
 * decimal value a double does not print back is refused, not sent as its neighbour.
 */

import { InvalidValue, type SourceValue } from './source-row.ts';

/** Deepest nesting of arrays and objects. */
export const MAX_JSON_DEPTH = 256;

/**
 * Canonical text of a value.
 * @throws InvalidValue also for what is no JSON value at all (undefined, a bigint, a Date, …): `malformed`.
 */
export function canonicalJson(value: SourceValue): string {
  return encode(value, 0);
}

function encode(value: unknown, depth: number): string {
  switch (typeof value) {
    case 'string':
      return canonicalString(value);
    case 'number':
      return canonicalNumber(value);
    case 'boolean':
      return value ? 'true' : 'false';
    case 'object':
      if (value === null) return 'null';
      if (depth >= MAX_JSON_DEPTH) throw new InvalidValue('too-deep');
      return Array.isArray(value) ? encodeArray(value, depth + 1) : encodeObject(value, depth + 1);
    default:
      throw new InvalidValue('malformed');
  }
}

function encodeArray(values: readonly unknown[], depth: number): string {
  const parts: string[] = [];
  for (let i = 0; i < values.length; i++) parts.push(encode(values[i], depth)); // a hole is undefined: refused
  return `[${parts.join(',')}]`;
}

function encodeObject(object: object, depth: number): string {
  if (!isPlain(object)) throw new InvalidValue('malformed');
  let members = '';
  // The default order of sort() is that of UTF-16 code units, as RFC 8785 wants it.
  for (const name of Object.keys(object).sort()) {
    members += `${members === '' ? '' : ','}${canonicalString(name)}:${encode(Reflect.get(object, name), depth)}`;
  }
  return `{${members}}`;
}

/** A Date, a Map or an instance of a class would lose what it is: only plain objects are JSON. */
function isPlain(object: object): boolean {
  const prototype: unknown = Object.getPrototypeOf(object);
  return prototype === null || Object.getPrototypeOf(prototype) === null;
}

/** The order of names in canonical JSON: by UTF-16 code units, which is how ECMAScript compares strings. */
export function compareNames(a: string, b: string): number {
  if (a === b) return 0;
  return a < b ? -1 : 1;
}

/** @throws InvalidValue `not-finite` for NaN and the infinities. */
export function canonicalNumber(value: number): string {
  if (!Number.isFinite(value)) throw new InvalidValue('not-finite');
  return String(value); // -0 prints as 0
}

// A quote, a backslash, a control character, or any half of a pair: all that may need more than two quotes around it.
// biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what it looks for
const NEEDS_CARE = /["\\\u0000-\u001f\ud800-\udfff]/;
/** With the `u` flag a proper pair is one code point, so this finds lone halves only. */
const LONE_SURROGATE = /\p{Surrogate}/u;

/** Canonical JSON string. @throws InvalidValue `nul-character` or `lone-surrogate`. */
export function canonicalString(text: string): string {
  if (!NEEDS_CARE.test(text)) return `"${text}"`;
  if (text.includes('\0')) throw new InvalidValue('nul-character');
  if (LONE_SURROGATE.test(text)) throw new InvalidValue('lone-surrogate');
  return JSON.stringify(text); // ECMAScript's escapes are those of RFC 8785
}

/**
 * Canonical text of any JSON text (RFC 8259). 1.0, 1e2 and 0.10 become 1, 100 and 0.1.
 * @throws InvalidValue `inexact-number`; `malformed`, also for two members of one name; and the rules of strings.
 */
export function parseExactJson(text: string): string {
  const reader = new Reader(text);
  const value = reader.value(0);
  reader.end();
  return value;
}

const NUMBER = /-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?/y;
const NUMBER_ONLY = /^-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?$/;
const NOT_FINITE = /^[+-]?(?:nan|inf|infinity)$/i;

/**
 * Canonical JSON number of a decimal text.
 * @throws InvalidValue `inexact-number`, `not-finite` for the usual spellings of NaN and infinity, or `malformed`.
 */
export function exactNumber(text: string): string {
  if (NUMBER_ONLY.test(text)) return shortest(text);
  throw new InvalidValue(NOT_FINITE.test(text) ? 'not-finite' : 'malformed');
}

function shortest(token: string): string {
  const value = Number(token);
  const printed = String(value);
  if (printed === token) return printed;
  if (!Number.isFinite(value) || decimal(printed) !== decimal(token))
    throw new InvalidValue('inexact-number');
  return printed;
}

/** One text per decimal value: sign, digits without zeros at either end, and the power of ten they stand at. */
function decimal(token: string): string {
  const negative = token.startsWith('-');
  const [mantissa = '', exponent = '0'] = token.slice(negative ? 1 : 0).split(/[eE]/);
  const [whole = '', fraction = ''] = mantissa.split('.');
  const digits = (whole + fraction).replace(/^0+/, '');
  const significant = withoutTrailingZeros(digits);
  if (significant === '') return '0';
  const power =
    BigInt(exponent.replace('+', '')) - BigInt(fraction.length - (digits.length - significant.length));
  return `${negative ? '-' : ''}${significant}e${power}`;
}

function withoutTrailingZeros(digits: string): string {
  let end = digits.length;
  while (end > 0 && digits.charCodeAt(end - 1) === 0x30) end -= 1;
  return digits.slice(0, end);
}

/** Reads JSON from left to right and gives each value's canonical text; no object is ever built from it. */
class Reader {
  private at = 0;

  constructor(private readonly text: string) {}

  value(depth: number): string {
    this.space();
    switch (this.text.charCodeAt(this.at)) {
      case 0x7b: // {
        return this.object(depth + 1);
      case 0x5b: // [
        return this.array(depth + 1);
      case 0x22: // "
        return canonicalString(this.string());
      case 0x74: // t
        return this.word('true');
      case 0x66: // f
        return this.word('false');
      case 0x6e: // n
        return this.word('null');
      default:
        return this.number();
    }
  }

  end(): void {
    this.space();
    if (this.at !== this.text.length) throw new InvalidValue('malformed');
  }

  private object(depth: number): string {
    this.enter(depth);
    const members = new Map<string, string>();
    while (this.more('}', members.size)) {
      this.space();
      const name = this.string();
      if (members.has(name)) throw new InvalidValue('malformed');
      this.expect(':');
      members.set(name, this.value(depth));
    }
    const sorted = [...members].sort((a, b) => compareNames(a[0], b[0]));
    return `{${sorted.map(([name, value]) => `${canonicalString(name)}:${value}`).join(',')}}`;
  }

  private array(depth: number): string {
    this.enter(depth);
    const items: string[] = [];
    while (this.more(']', items.length)) items.push(this.value(depth));
    return `[${items.join(',')}]`;
  }

  private enter(depth: number): void {
    if (depth > MAX_JSON_DEPTH) throw new InvalidValue('too-deep');
    this.at += 1;
  }

  /** Takes the comma before a further item, or the closing bracket. */
  private more(close: string, count: number): boolean {
    this.space();
    if (this.text[this.at] === close) {
      this.at += 1;
      return false;
    }
    if (count > 0) this.expect(',');
    return true;
  }

  private expect(mark: string): void {
    this.space();
    if (this.text[this.at] !== mark) throw new InvalidValue('malformed');
    this.at += 1;
  }

  private word(word: string): string {
    if (!this.text.startsWith(word, this.at)) throw new InvalidValue('malformed');
    this.at += word.length;
    return word;
  }

  private number(): string {
    NUMBER.lastIndex = this.at;
    const token = NUMBER.exec(this.text)?.[0];
    if (token === undefined) throw new InvalidValue('malformed');
    this.at += token.length;
    return shortest(token);
  }

  /** The string that begins here, its escapes resolved. */
  private string(): string {
    const start = this.at;
    if (this.text.charCodeAt(start) !== 0x22) throw new InvalidValue('malformed');
    let plain = true;
    for (let i = start + 1; i < this.text.length; i++) {
      const unit = this.text.charCodeAt(i);
      if (unit === 0x22) {
        this.at = i + 1;
        return plain ? this.text.slice(start + 1, i) : unescaped(this.text.slice(start, this.at));
      }
      if (unit === 0x5c) {
        plain = false;
        i += 1; // whatever is escaped does not end the string
      } else if (unit < 0x20) {
        break;
      }
    }
    throw new InvalidValue('malformed');
  }

  private space(): void {
    for (; this.at < this.text.length; this.at++) {
      const unit = this.text.charCodeAt(this.at);
      if (unit !== 0x20 && unit !== 0x0a && unit !== 0x0d && unit !== 0x09) return;
    }
  }
}

function unescaped(literal: string): string {
  try {
    return String(JSON.parse(literal));
  } catch {
    throw new InvalidValue('malformed');
  }
}
