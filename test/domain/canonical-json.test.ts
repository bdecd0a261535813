import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  canonicalJson,
  canonicalNumber,
  canonicalString,
  exactNumber,
  MAX_JSON_DEPTH,
  parseExactJson,
} from '../../src/domain/canonical-json.ts';
import { InvalidValue, type SourceValue } from '../../src/domain/source-row.ts';

function ruleOf(run: () => unknown): string {
  try {
    run();
  } catch (error) {
    if (error instanceof InvalidValue) return error.rule;
    throw error;
  }
  return 'nothing was thrown';
}

/** RFC 8785 from its prose, character by character, sharing no line with the code under test. */
function oracle(value: SourceValue): string {
  if (value === null || typeof value === 'boolean') return `${value}`;
  if (typeof value === 'number') return Object.is(value, -0) ? '0' : JSON.stringify(value);
  if (typeof value === 'string') return oracleString(value);
  if (Array.isArray(value)) return `[${value.map(oracle).join()}]`;
  const pairs = Object.entries(value).map(([name, part]) => ({ units: units(name), name, part }));
  pairs.sort((a, b) => {
    const at = a.units.findIndex((unit, i) => unit !== b.units[i]);
    return at < 0 ? a.units.length - b.units.length : (a.units[at] ?? -1) - (b.units[at] ?? -1);
  });
  return `{${pairs.map(({ name, part }) => `${oracleString(name)}:${oracle(part)}`).join()}}`;
}

function units(text: string): number[] {
  return Array.from({ length: text.length }, (_, i) => text.charCodeAt(i));
}

function oracleString(text: string): string {
  const short: Record<number, string> = {
    8: '\\b',
    9: '\\t',
    10: '\\n',
    12: '\\f',
    13: '\\r',
    34: '\\"',
    92: '\\\\',
  };
  const written = units(text).map((unit) => {
    if (short[unit] !== undefined) return short[unit];
    return unit < 32 ? `\\u00${unit.toString(16).padStart(2, '0')}` : String.fromCharCode(unit);
  });
  return `"${written.join('')}"`;
}

const string = fc.oneof(fc.string({ unit: 'grapheme' }), fc.string({ unit: 'binary' })).filter(isAllowed);

function isAllowed(text: string): boolean {
  return !/\0|\p{Surrogate}/u.test(text);
}

const { value: json } = fc.letrec<{ value: SourceValue }>((tie) => ({
  value: fc.oneof(
    { maxDepth: 4 },
    fc.constant(null),
    fc.boolean(),
    fc.double({ noNaN: true, noDefaultInfinity: true }),
    fc.integer(),
    string,
    fc.array(tie('value'), { maxLength: 4 }),
    fc.dictionary(
      fc.oneof(string, fc.constantFrom('__proto__', 'constructor', '1', '10', '2')),
      tie('value'),
      {
        maxKeys: 5,
      },
    ),
  ),
}));

describe('canonical JSON', () => {
  it('equals RFC 8785 written out character by character', () => {
    fc.assert(
      fc.property(json, (value) => {
        expect(canonicalJson(value)).toBe(oracle(value));
      }),
    );
  });

  it('is unique per value: the text parses to the value, and parsed and encoded again is the same text', () => {
    fc.assert(
      fc.property(json, (value) => {
        const text = canonicalJson(value);
        expect(canonicalJson(JSON.parse(text))).toBe(text);
        expect(parseExactJson(text)).toBe(text);
        expect(parseExactJson(JSON.stringify(value, null, 3))).toBe(text);
      }),
    );
  });

  it('does not depend on the order in which names were added', () => {
    fc.assert(
      fc.property(fc.dictionary(string, fc.integer()), fc.infiniteStream(fc.nat()), (object, order) => {
        const ranked = Object.entries(object).map((entry) => ({ entry, rank: order.next().value }));
        ranked.sort((a, b) => a.rank - b.rank);
        const shuffled = Object.fromEntries(ranked.map(({ entry }) => entry));
        expect(canonicalJson(shuffled)).toBe(canonicalJson(object));
      }),
    );
  });

  it('sorts names by UTF-16 code units, not by code points or locale', () => {
    const names = ['\u20ac', '\r', '\ufb33', '1', '\ud83d\ude00', '\u0080', '\u00f6'];
    const sorted = ['\r', '1', '\u0080', '\u00f6', '\u20ac', '\ud83d\ude00', '\ufb33'];
    const text = canonicalJson(Object.fromEntries(names.map((name) => [name, 0])));
    expect(text).toBe(`{${sorted.map((name) => `${JSON.stringify(name)}:0`).join()}}`);
  });

  it('writes numbers in the shortest ECMAScript form', () => {
    const forms: [number, string][] = [
      [-0, '0'],
      [5e-324, '5e-324'],
      [1.7976931348623157e308, '1.7976931348623157e+308'],
      [9007199254740992, '9007199254740992'],
      [2 ** 68, '295147905179352830000'],
      [1e21, '1e+21'],
      [1e-7, '1e-7'],
      [0.000001, '0.000001'],
      [333333333.33333325, '333333333.33333325'],
    ];
    for (const [value, form] of forms) expect(canonicalNumber(value)).toBe(form);
  });

  it('nan/infinity: refuses them wherever they stand', () => {
    for (const value of [Number.NaN, Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY]) {
      expect(ruleOf(() => canonicalJson({ a: [value] }))).toBe('not-finite');
    }
  });

  it('nul+surrogates: refuses NUL and lone halves in values and names, and leaves emoji and the words \\u0000 alone', () => {
    for (const [text, rule] of [
      ['a\0b', 'nul-character'],
      ['\ud83d', 'lone-surrogate'],
      ['\ude00\ud83d', 'lone-surrogate'],
      ['x\ude00', 'lone-surrogate'],
    ] as const) {
      expect(ruleOf(() => canonicalJson([text]))).toBe(rule);
      expect(ruleOf(() => canonicalJson({ [text]: 1 }))).toBe(rule);
      expect(ruleOf(() => parseExactJson(JSON.stringify({ a: text })))).toBe(rule);
    }
    expect(canonicalString('😀')).toBe('"😀"');
    expect(canonicalString('\\u0000')).toBe('"\\\\u0000"');
    expect(parseExactJson('"\\ud83d\\ude00 \\\\u0000"')).toBe('"😀 \\\\u0000"');
  });

  it('refuses what is no JSON value instead of dropping or guessing it', () => {
    const foreign = (value: unknown) => ruleOf(() => canonicalJson(value as SourceValue));
    class Point {
      x = 1;
    }
    for (const value of [undefined, 1n, Symbol('s'), () => 1, new Date(0), new Map(), new Point()]) {
      expect(foreign(value)).toBe('malformed');
      expect(foreign({ a: value })).toBe('malformed');
      expect(foreign([value])).toBe('malformed');
    }
    expect(foreign(new Array(1))).toBe('malformed');
    expect(canonicalJson(Object.assign(Object.create(null), { a: 1 }))).toBe('{"a":1}');
  });

  it('bounds nesting, so that no value exhausts the stack', () => {
    const nested = (depth: number) => '['.repeat(depth) + ']'.repeat(depth);
    expect(parseExactJson(nested(MAX_JSON_DEPTH))).toBe(nested(MAX_JSON_DEPTH));
    expect(canonicalJson(JSON.parse(nested(MAX_JSON_DEPTH)))).toBe(nested(MAX_JSON_DEPTH));
    expect(ruleOf(() => canonicalJson(JSON.parse(nested(MAX_JSON_DEPTH + 1))))).toBe('too-deep');
    expect(ruleOf(() => parseExactJson(nested(MAX_JSON_DEPTH + 1)))).toBe('too-deep');
    expect(ruleOf(() => parseExactJson('{"a":'.repeat(200_000)))).toBe('too-deep');
  });
});

describe('exact JSON text', () => {
  it('bigint/numeric: refuses a number that a double would round', () => {
    for (const token of [
      '9007199254740993',
      '-9007199254740993',
      '0.1000000000000000055511151231257827',
      '123456789012345678901234567890123456789',
      '1e400',
      '1e-400',
      '4.9e-324',
      '1.00000000000000000001',
      '1e99999999999999999999',
    ]) {
      expect(ruleOf(() => parseExactJson(`{"n":[${token}]}`))).toBe('inexact-number');
      expect(ruleOf(() => exactNumber(token))).toBe('inexact-number');
    }
  });

  it('bigint/numeric: gives one text to the spellings of one number', () => {
    for (const [token, form] of [
      ['1.0', '1'],
      ['1e2', '100'],
      ['0.10', '0.1'],
      ['-0', '0'],
      ['-0.0e5', '0'],
      ['0e999999999999', '0'],
      ['1E+2', '100'],
      ['1200e-2', '12'],
      ['9007199254740992', '9007199254740992'],
      ['1e23', '1e+23'],
      ['0.000000100', '1e-7'],
      ['100000000000000000000000', '1e+23'],
    ] as const) {
      expect(parseExactJson(token)).toBe(form);
      expect(exactNumber(token)).toBe(form);
    }
  });

  it('accepts a decimal exactly when its digits are those that its double prints', () => {
    const decimals = fc.tuple(
      fc.bigInt({ min: -(10n ** 20n), max: 10n ** 20n }),
      fc.integer({ min: -8, max: 8 }),
    );
    fc.assert(
      fc.property(decimals, ([mantissa, exponent]) => {
        const token = `${mantissa}e${exponent}`;
        expect(ruleOf(() => exactNumber(token)) === 'nothing was thrown').toBe(
          printsBack(mantissa, exponent),
        );
      }),
    );
  });

  it('refuses two members of one name, also where an escape hides it', () => {
    expect(ruleOf(() => parseExactJson('{"a":1,"a":1}'))).toBe('malformed');
    expect(ruleOf(() => parseExactJson('{"a":1,"\\u0061":2}'))).toBe('malformed');
    expect(parseExactJson('{"__proto__":1,"a":{"__proto__":2}}')).toBe('{"__proto__":1,"a":{"__proto__":2}}');
  });

  it('refuses exactly the texts that JSON.parse refuses', () => {
    const soup = fc
      .array(
        fc.constantFrom(
          '{',
          '}',
          '[',
          ']',
          ',',
          ':',
          '"',
          'a',
          '\\',
          '1',
          '0',
          '-',
          '.',
          'e',
          'true',
          'null',
          ' ',
        ),
        {
          maxLength: 9,
        },
      )
      .map((parts) => parts.join(''));
    fc.assert(
      fc.property(soup, (text) => {
        const verdict = ruleOf(() => parseExactJson(text));
        const parses = ruleOf(() => parsed(text)) === 'nothing was thrown';
        if (!parses) expect(verdict).toBe('malformed');
        else if (verdict === 'nothing was thrown')
          expect(parseExactJson(text)).toBe(oracle(JSON.parse(text)));
        else expect(['malformed', 'inexact-number']).toContain(verdict); // two of one name, or a huge exponent
      }),
      { numRuns: 5000 },
    );
    for (let control = 0; control < 0x20; control++) {
      expect(ruleOf(() => parseExactJson(`"${String.fromCharCode(control)}"`))).toBe('malformed');
    }
    for (const text of [
      '',
      ' ',
      '01',
      '1.',
      '.5',
      '+1',
      '1e',
      '[1,]',
      '{"a":1,}',
      '"\t"',
      '"\\x"',
      'nul',
      '1 2',
      "'a'",
      'NaN',
    ]) {
      expect(ruleOf(() => parseExactJson(text))).toBe('malformed');
    }
  });

  it('nan/infinity: tells them from text that is no number', () => {
    for (const text of ['NaN', 'Infinity', '-Infinity', 'inf'])
      expect(ruleOf(() => exactNumber(text))).toBe('not-finite');
    for (const text of ['', ' 1', '1 ', '0x10', '1_000', '1,5', 'true']) {
      expect(ruleOf(() => exactNumber(text))).toBe('malformed');
    }
  });
});

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw new InvalidValue('malformed');
  }
}

/** Compares by bigint arithmetic: the printed digits scaled to the same power of ten. */
function printsBack(mantissa: bigint, exponent: number): boolean {
  const [digits = '', power = '0'] = Number(`${mantissa}e${exponent}`).toString().split('e');
  const [whole = '', fraction = ''] = digits.split('.');
  const scale = 60n;
  const printed = BigInt(whole + fraction) * 10n ** (scale + BigInt(power) - BigInt(fraction.length));
  return printed === mantissa * 10n ** (scale + BigInt(exponent));
}
