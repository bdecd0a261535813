/** What counts as a match of a text and an identity (retl find). */

import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { canonicalJson, canonicalString } from '../../src/domain/canonical-json.ts';
import { foldText } from '../../src/domain/folding.ts';
import {
  coarseSign,
  identityHas,
  identityWords,
  searchedText,
  type TextMatch,
} from '../../src/domain/identity-text.ts';

function has(identity: string, typed: string, match: TextMatch = 'value'): boolean {
  const text = searchedText(typed, match);
  return text !== null && identityHas(identity, text);
}

describe('the words of an identity', () => {
  test('are its values, however deep, each once; names of fields are none', () => {
    const identity =
      '{"email":"Ann@Example.org","n":9007199254740993,"of":[{"email":"x"},true,null,-1.5],"x":"X"}';
    expect(identityWords(identity)).toEqual(['ann@example.org', '9007199254740993', 'x', 'true', '-1.5']);
  });

  test('are read through the escapes of JSON, and quotes do not end them', () => {
    expect(identityWords('{"a":"say \\"no\\": \\\\ \\u001f","b":"\\n"}')).toEqual([
      'say "no": \\ \u001f',
      '\n',
    ]);
  });
});

test('an identity of one value gives it as it is folded, whatever characters it is of', () => {
  fc.assert(
    fc.property(
      fc.string({
        unit: fc.constantFrom('A', 'z', ' ', '"', '\\', ':', '~', 'É', 'ﬃ', '😀', '\u007f', 'q'),
      }),
      (value) => {
        const identity = `{"key":${canonicalString(value)}}`;
        expect(identityWords(identity)).toEqual([foldText(value, ['case', 'nfkc'])]);
      },
    ),
  );
});

describe('a text', () => {
  test('is found as a whole value, and as a part of one where a part will do', () => {
    const identity = '{"email":"ann@example.org","region":"eu"}';
    expect(has(identity, 'ann@example.org')).toBe(true);
    expect(has(identity, 'eu')).toBe(true);
    expect(has(identity, 'example')).toBe(false);
    expect(has(identity, 'example', 'part')).toBe(true);
    expect(has(identity, 'email', 'part')).toBe(false);
    expect(has(identity, 'org","region', 'part')).toBe(false);
  });

  test('case-only, nfc-nfd: case and Unicode form do not matter', () => {
    expect(has('{"email":"ANN@X.ORG"}', 'ann@x.org')).toBe(true);
    expect(has('{"name":"J\u00fcrgen"}', 'JU\u0308RGEN')).toBe(true);
    expect(has('{"street":"Hauptstraße"}', 'HAUPTSTRASSE')).toBe(true);
  });

  test('nul+surrogates: one that no identity can have is none', () => {
    for (const typed of ['', 'a\0b', 'half \ud83d']) expect(searchedText(typed, 'part')).toBeNull();
    expect(has('{"name":"smile 😀"}', '😀', 'part')).toBe(true);
  });
});

test('the coarse sign of a text stands in the lower case of each identity of printable ASCII that has the text', () => {
  const ascii = fc.string({
    unit: fc.constantFrom('a', 'B', 'k', 'K', '"', '\\', '\n', '\u001f', '1', '@', '\u00df'),
    maxLength: 6,
  });
  const identities = fc.dictionary(fc.constantFrom('a', 'b'), ascii, { minKeys: 1 });
  const any = fc.oneof(ascii, fc.string({ unit: fc.constantFrom('\u212a', 'ﬁ', 'a', 'B'), maxLength: 3 }));
  fc.assert(
    fc.property(identities, any, (value, typed) => {
      const identity = canonicalJson(value);
      const text = searchedText(typed, 'part');
      if (text === null || /[^ -~]/.test(identity) || !identityHas(identity, text)) return;
      expect(identity.toLowerCase()).toContain(coarseSign(text));
    }),
    { numRuns: 2_000 },
  );
});
