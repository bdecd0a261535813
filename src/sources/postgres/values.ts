/**
 * What the text of a PostgreSQL value means: one pair of functions per type, made once per column.
 *
 * `text` is the value as PostgreSQL prints it in the session's settings (session.ts), with four exceptions, each so that
 * one value has one text: bool is `true` or `false`, bytea is base64, a float's -0 is `0`, and NaN and the infinities
 * are refused. The rule for the last holds in `text` and in `json`; inside arrays it holds in `json`. The text of an array, a
 * range or a composite is as printed, whatever its parts are, which is why none of them can be a key (types.ts).
 */

import { canonicalNumber, canonicalString, parseExactJson } from '../../domain/canonical-json.ts';
import { InvalidValue } from '../../domain/source-row.ts';
import { arrayJson } from './array-text.ts';

/** How values of one type are written. Both functions throw {@link InvalidValue} only. */
export interface Codec {
  /** Canonical JSON of a value that is not NULL. */
  json(raw: string): string;
  text(raw: string): string;
}

const asPrinted = (raw: string): string => raw;

/** Whatever has no rule of its own: text, enums, uuid, network addresses, ranges, composites, … */
export const TEXT: Codec = { json: canonicalString, text: asPrinted };

const INTEGER = /^-?\d{1,10}$/;

/** Every int2, int4 and oid is exact as a double. */
const SMALL_INTEGER: Codec = {
  json(raw) {
    if (!INTEGER.test(raw)) throw new InvalidValue('malformed');
    return raw;
  },
  text: asPrinted,
};

function finite(raw: string): string {
  if (raw === 'NaN' || raw === 'Infinity' || raw === '-Infinity') throw new InvalidValue('not-finite');
  return raw;
}

/** int8 and numeric: the exact digits, as a JSON string. `0.1` and `0.10` stay two texts. */
const EXACT_DIGITS: Codec = { json: (raw) => `"${finite(raw)}"`, text: finite };

/** PostgreSQL prints the shortest digits that give the same float again; for float4 they are those of a float4. */
const FLOAT: Codec = {
  json: (raw) => canonicalNumber(Number(finite(raw))),
  text: (raw) => (raw === '-0' ? '0' : finite(raw)),
};

function truth(raw: string): string {
  if (raw === 't') return 'true';
  if (raw === 'f') return 'false';
  throw new InvalidValue('malformed');
}

const BOOL: Codec = { json: truth, text: truth };

const JSON_TEXT: Codec = { json: parseExactJson, text: asPrinted };

function base64(raw: string): string {
  if (!raw.startsWith('\\x')) throw new InvalidValue('malformed');
  return Buffer.from(raw.slice(2), 'hex').toString('base64');
}

const BYTES: Codec = { json: (raw) => `"${base64(raw)}"`, text: base64 };

function dated(raw: string): string {
  if (raw === 'infinity' || raw === '-infinity') throw new InvalidValue('not-finite');
  return raw;
}

/** date and interval: as printed, ISO 8601. */
const DATE: Codec = { json: (raw) => canonicalString(dated(raw)), text: dated };

/** `2024-01-02 03:04:05.678901` with a T for the blank; years before Christ as printed, ISO 8601 has no text for them. */
function isoTimestamp(raw: string): string {
  return dated(raw).endsWith(' BC') ? raw : raw.replace(' ', 'T');
}

const TIMESTAMP: Codec = { json: (raw) => canonicalString(isoTimestamp(raw)), text: dated };

/** The session is in UTC, so that the offset is always `+00`. */
const TIMESTAMPTZ: Codec = {
  json: (raw) => canonicalString(isoTimestamp(raw).replace(/\+00$/, 'Z')),
  text: dated,
};

const CODECS: ReadonlyMap<string, Codec> = new Map([
  ['int2', SMALL_INTEGER],
  ['int4', SMALL_INTEGER],
  ['oid', SMALL_INTEGER],
  ['int8', EXACT_DIGITS],
  ['numeric', EXACT_DIGITS],
  ['float4', FLOAT],
  ['float8', FLOAT],
  ['bool', BOOL],
  ['json', JSON_TEXT],
  ['jsonb', JSON_TEXT],
  ['bytea', BYTES],
  ['date', DATE],
  ['interval', DATE],
  ['timestamp', TIMESTAMP],
  ['timestamptz', TIMESTAMPTZ],
]);

/** The codec of a type of the schema `pg_catalog`. */
export function builtinCodec(typeName: string): Codec {
  return CODECS.get(typeName) ?? TEXT;
}

/** The codec of arrays of one element type. */
export function arrayCodec(element: Codec, delimiter: string): Codec {
  return { json: (raw) => arrayJson(raw, delimiter, element.json), text: asPrinted };
}
