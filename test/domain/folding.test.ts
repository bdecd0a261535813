import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { canonicalJson } from '../../src/domain/canonical-json.ts';
import {
  type Folding,
  foldIdentity,
  foldingFrom,
  foldingText,
  identityHashInput,
} from '../../src/domain/folding.ts';
import type { SourceValue } from '../../src/domain/source-row.ts';

/** Folds one value as the identity `{"Email": value}`. */
function fold(value: string, ...folding: Folding[]): string {
  return JSON.parse(foldIdentity(canonicalJson({ Email: value }), folding)).Email;
}

const texts = fc
  .array(
    fc.oneof(
      fc.string({ unit: 'grapheme', maxLength: 2 }),
      fc.constantFrom(
        'ß',
        'ẞ',
        'Σ',
        'ς',
        'İ',
        'ı',
        'fi',
        'ſ',
        'e\u0301',
        '\u0345',
        '①',
        '"',
        '\\',
        '\n',
        ':',
      ),
    ),
  )
  .map((parts) => parts.join(''))
  .filter((text) => !/\0|\p{Surrogate}/u.test(text));

/** Letters whose marks change places, whose folding comes apart, or whose plain form is in upper case. */
const awkward = fc
  .array(
    fc.constantFrom(
      'α',
      'ᾳ',
      'Ϊ',
      'ΐ',
      '\u0345',
      '\u0301',
      '\u0308',
      '㎒',
      '℡',
      'ŉ',
      'ẖ',
      '\u0331',
      'İ',
      'ı',
      '\u0307',
      'Σ',
    ),
    {
      minLength: 1,
      maxLength: 5,
    },
  )
  .map((parts) => parts.join(''));

const foldings = fc.subarray<Folding>(['case', 'nfc', 'nfkc', 'text']);

describe('identity folding', () => {
  it('case-only: takes spellings that differ in case for one identity, where the target does', () => {
    expect(fold('A@x', 'case')).toBe(fold('a@X', 'case'));
    expect(fold('A@x')).not.toBe(fold('a@x'));
    fc.assert(
      fc.property(texts, (text) => {
        const spelled = text.replaceAll('ı', 'i'); // the one letter that loses what it is in upper case
        expect(fold(spelled.toUpperCase(), 'case')).toBe(fold(spelled, 'case'));
      }),
    );
  });

  it('case-only: folds as Unicode does in full, letter by letter', () => {
    const pairs = [
      ['STRASSE', 'straße'],
      ['ẞ', 'ss'],
      ['ΣΑΣ', 'σας'],
      ['ς', 'σ'],
      ['\u212a', 'k'],
      ['ſ', 's'],
      ['fi', 'FI'],
      ['µ', 'μ'],
    ] as const;
    for (const [a, b] of pairs) expect(fold(a, 'case')).toBe(fold(b, 'case'));
    for (const [a, b] of [
      ['ı', 'i'],
      ['İ', 'i'],
      ['é', 'e'],
      ['ö', 'oe'],
    ] as const) {
      expect(fold(a, 'case')).not.toBe(fold(b, 'case'));
    }
  });

  it('case-only: agrees with the case-insensitive matching of regular expressions on every letter', () => {
    for (let point = 1; point < 0x20000; point++) {
      if (point >= 0xd800 && point <= 0xdfff) continue;
      const letter = String.fromCodePoint(point);
      for (const other of [letter.toLowerCase(), letter.toUpperCase()]) {
        if (other === letter || !new RegExp(`^\\u{${point.toString(16)}}$`, 'iu').test(other)) continue;
        expect(fold(letter, 'case'), `U+${point.toString(16)}`).toBe(fold(other, 'case'));
      }
    }
  });

  it('nfc-nfd: takes the Unicode forms of one text for one identity, where the target does', () => {
    expect(fold('ju\u0308rgen', 'nfc')).toBe(fold('j\u00fcrgen', 'nfc'));
    expect(fold('ju\u0308rgen')).not.toBe(fold('j\u00fcrgen'));
    expect(fold('①', 'nfkc')).toBe('1');
    fc.assert(
      fc.property(fc.oneof(texts, awkward), foldings, (text, chosen) => {
        const folding: Folding[] = [...chosen, 'nfc'];
        expect(fold(text.normalize('NFD'), ...folding)).toBe(fold(text.normalize('NFC'), ...folding));
      }),
    );
  });

  it('nfc-nfd, case-only: takes case and form together, in whatever order a text went through them', () => {
    fc.assert(
      fc.property(awkward, fc.constantFrom<Folding>('nfc', 'nfkc'), (text, form) => {
        const plain = text.replaceAll('ı', 'i');
        const folded = fold(plain, 'case', form);
        const upper = plain.normalize('NFD').toUpperCase(); // the iota subscript keeps its place only in this form
        for (const other of [upper, upper.normalize('NFC')]) expect(fold(other, 'case', form)).toBe(folded);
        expect(folded.normalize(form === 'nfc' ? 'NFC' : 'NFKC')).toBe(folded);
      }),
      { numRuns: 1000 },
    );
    expect(fold('㎒', 'case', 'nfkc')).toBe('mhz');
  });

  it('is idempotent, and gives canonical JSON', () => {
    fc.assert(
      fc.property(fc.oneof(texts, awkward), foldings, (text, folding) => {
        const once = foldIdentity(canonicalJson({ a: text, b: [1, null, { c: text }] }), folding);
        expect(foldIdentity(once, folding)).toBe(once);
        expect(canonicalJson(JSON.parse(once))).toBe(once);
      }),
    );
  });

  it('touches string values only: names, numbers and structure stay', () => {
    const identity = canonicalJson({ EMAIL: 'A":"B', 'Ä"': ['É', 1e21, true, null, { Ö: 'Ü:' }] });
    const folded = canonicalJson({ EMAIL: 'a":"b', 'Ä"': ['é', 1e21, true, null, { Ö: 'ü:' }] });
    expect(foldIdentity(identity, ['case'])).toBe(folded);
  });

  it('bigint/numeric: a target that reads texts takes a value and its text for one, and nothing else', () => {
    const read = (id: SourceValue, ...more: Folding[]) =>
      foldIdentity(canonicalJson({ id, 10: 'b', 9: 'a' }), ['text', ...more]);
    for (const [value, text] of [
      [1, '1'],
      [-0, '0'],
      [1e3, '1000'],
      [1e21, '1e+21'],
      [0.1, '0.1'],
      [true, 'true'],
      [false, 'false'],
      [[1, 'a', null], '[1,"a",null]'],
      [{ b: 1, a: '"' }, '{"a":"\\"","b":1}'],
    ] satisfies [SourceValue, string][])
      expect(read(value), text).toBe(read(text));
    const apart: readonly SourceValue[] = [
      '1',
      '1.0',
      '1e3',
      '1000',
      '"1"',
      null,
      'null',
      '',
      [1],
      ['1'],
      true,
    ];
    expect(new Set(apart.map((value) => read(value))).size).toBe(apart.length);
    expect(read(['A'], 'case')).toBe(read('["a"]', 'case'));
    expect(foldIdentity('"A"', ['text'])).toBe('"A"');
    expect(foldingFrom(foldingText(['text', 'case']))).toEqual(['case', 'text']);
  });

  it('changes nothing for a target that compares bytes', () => {
    fc.assert(
      fc.property(texts, (text) => {
        const identity = canonicalJson({ Email: text });
        expect(identityHashInput([])(identity)).toBe(identity);
        expect(foldIdentity(identity, [])).toBe(identity);
        expect(identityHashInput(['case'])(identity)).toBe(foldIdentity(identity, ['case']));
      }),
    );
  });
});
