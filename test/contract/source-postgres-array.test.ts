import { describe, expect, it } from 'vitest';
import { InvalidValue } from '../../src/domain/source-row.ts';
import { arrayJson } from '../../src/sources/postgres/array-text.ts';

const json = (text: string, delimiter = ','): string =>
  arrayJson(text, delimiter, (raw) => JSON.stringify(raw));

describe("PostgreSQL's text of arrays", () => {
  it.each([
    ['{}', '[]'],
    ['{a}', '["a"]'],
    ['{a,b}', '["a","b"]'],
    ['{a,NULL,"NULL",""}', '["a",null,"NULL",""]'],
    ['{null,Null}', '["null","Null"]'],
    ['{{1,2},{3,4}}', '[["1","2"],["3","4"]]'],
    ['[0:1]={a,b}', '["a","b"]'],
    ['[-2:-1][5:5]={{a},{b}}', '[["a"],["b"]]'],
    ['{"a,b","{c}","d\\"e","f\\\\g"," h "}', '["a,b","{c}","d\\"e","f\\\\g"," h "]'],
    ['{"\\\\N"}', '["\\\\N"]'],
    ['{"[0:1]={x}"}', '["[0:1]={x}"]'],
  ])('%s', (text, expected) => {
    expect(json(text)).toBe(expected);
  });

  it('separates boxes by semicolons', () => {
    expect(json('{(1,1),(0,0);(2,2),(1,1)}', ';')).toBe('["(1,1),(0,0)","(2,2),(1,1)"]');
  });

  it.each([
    '',
    '{',
    '}',
    '{a',
    '{a,}',
    '{,a}',
    '{"a}',
    '{"a"b}',
    '{a}b',
    '[0:1]',
    '[0:1]{a}',
    'a',
    '{{a}',
    `${'{'.repeat(1000)}`,
  ])('refuses %s as malformed', (text) => {
    expect(() => json(text)).toThrow(new InvalidValue('malformed'));
  });
});
