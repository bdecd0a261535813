import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { existingDigest, normalize, trim } from '../../src/domain/normalize.ts';
import type { Normalization } from '../../src/domain/settings.ts';
import { sha256Hex } from './support.ts';

const email = (text: string) => normalize('email', text);
const phone = (text: string) => normalize('phone', text);

const messy = fc.oneof(
  fc.string({ unit: 'binary' }),
  fc
    .array(
      fc.constantFrom(
        'İ',
        'ı',
        'ß',
        'Σ',
        'ς',
        'e',
        '\u0301',
        '\u0345',
        '\u0307',
        'Å',
        'K',
        '@',
        '.',
        ' ',
        '\u00a0',
        '1',
      ),
    )
    .map((parts) => parts.join('')),
);

describe('normalisation', () => {
  it('is idempotent', () => {
    fc.assert(
      fc.property(messy, fc.constantFrom<Normalization>('trim', 'lower', 'email', 'phone'), (text, rule) => {
        const once = normalize(rule, text);
        if (once !== null) expect(normalize(rule, once)).toBe(once);
      }),
      { numRuns: 2000 },
    );
  });

  it('nfc-nfd: one e-mail address in two Unicode forms is one address, composed', () => {
    expect(email('ju\u0308rgen@x.com')).toBe('j\u00fcrgen@x.com');
    const local = messy.map((text) => `a${text.replace(/@/g, '')}@x.com`);
    fc.assert(
      fc.property(local, (text) => {
        const expected = email(text.normalize('NFC'));
        expect(email(text.normalize('NFD'))).toBe(expected);
        expect(expected?.normalize('NFC')).toBe(expected ?? undefined);
      }),
    );
  });

  it('nfc-nfd: trim and lower keep the form a text has', () => {
    for (const text of ['u\u0308', '\u00fc']) {
      expect(normalize('trim', ` ${text} `)).toBe(text);
      expect(normalize('lower', text.toUpperCase())).toBe(text);
    }
  });
});

describe('trim', () => {
  it('takes every Unicode white space and the byte order mark from both ends, and nothing else', () => {
    for (let unit = 0; unit < 0x10000; unit++) {
      const char = String.fromCharCode(unit);
      const blank = /[\p{White_Space}\ufeff]/u.test(char);
      expect(trim(`${char}a${char}`) === 'a', `U+${unit.toString(16)}`).toBe(blank);
    }
    expect(trim('a \u3000 b')).toBe('a \u3000 b');
    expect(trim(' \t\r\n\u00a0')).toBe('');
  });
});

describe('lower', () => {
  it('case-only: depends on no locale', () => {
    expect(normalize('lower', 'TITLE I')).toBe('title i');
    expect(normalize('lower', 'ÀÉ ΣΑΣ İ')).toBe('àé σας i\u0307');
  });
});

describe('email', () => {
  it('double-hash, case-only: trims and lowers, so that one address is one text', () => {
    for (const text of [' Bob@X.com ', 'bob@x.com', '\u00a0BOB@X.COM\ufeff', 'bob@x.com\n'])
      expect(email(text)).toBe('bob@x.com');
  });

  it('keeps what only the provider can judge', () => {
    for (const text of [
      "o'brien+tag@sub.x.co.uk",
      'a.b@x',
      'jürgen@müller.de',
      'x_y-z@1.2',
      'a/b=c@x.com',
      '用户@例え.jp',
    ]) {
      expect(email(text)).toBe(text);
    }
  });

  it('refuses what is not one address', () => {
    const none = [
      '',
      ' ',
      'bob',
      '@x.com',
      'bob@',
      'a@b@c',
      'a@x.com,b@x.com',
      'a@x.com; b@x.com',
      'a b@x.com',
    ];
    const dressed = [
      'Bob <bob@x.com>',
      'mailto:bob@x.com',
      'bob@x..com',
      'bob@.com',
      'bob@x.com.',
      '(bob@x.com)',
    ];
    const invisible = [
      'bo\u200bb@x.com',
      'bob@x\u0000.com',
      'bob@\u202ex.com',
      'bob@x.com\u00ad',
      'bob@x\ud83d.com',
    ];
    for (const text of [...none, ...dressed, ...invisible, sha256Hex('bob@x.com')])
      expect(email(text)).toBeNull();
  });
});

describe('phone', () => {
  it('gives E.164 for the usual ways of writing an international number', () => {
    for (const text of [
      '+49 30 123456',
      '0049-30-123456',
      '+49 (30) 123.456',
      ' +4930123456 ',
      '+49\u00a030\u2011123\u2013456',
      '[+49] 30 123456',
    ]) {
      expect(phone(text)).toBe('+4930123456');
    }
    expect(phone('+12345678')).toBe('+12345678');
    expect(phone('+123456789012345')).toBe('+123456789012345');
  });

  it('refuses what is no international number, or would have to be guessed', () => {
    const wrong = [
      '',
      '030 123456',
      '+1234567',
      '+1234567890123456',
      '+0301234567',
      '0004930123456',
      '49 30 123456',
    ];
    const dressed = [
      '+49 30 123456 ext 7',
      '+49 30 12345a',
      'tel:+4930123456',
      '+44 (0)20 7946 0000',
      '+44 [ 0 ] 20 7946 0000',
    ];
    const digits = ['+٤٩٣٠١٢٣٤٥٦', '\uff0b4930123456', '+\uff14930123456', '++4930123456', '+49+30123456'];
    for (const text of [...wrong, ...dressed, ...digits]) expect(phone(text)).toBeNull();
  });
});

describe('an existing digest', () => {
  it('double-hash: is 64 hex digits, blanks aside, in lower case', () => {
    const digest = sha256Hex('bob@x.com');
    expect(existingDigest(` ${digest.toUpperCase()}\n`)).toBe(digest);
    for (const text of ['', digest.slice(1), `${digest}0`, `0x${digest.slice(2)}`, `${digest.slice(1)}g`]) {
      expect(existingDigest(text)).toBeNull();
    }
  });
});
