/** Files that list what a target holds: which are taken, which are refused, and by which lines. */

import { afterEach, describe, expect, test } from 'vitest';
import type { MirrorSettings } from '../../src/domain/settings.ts';
import type { Column } from '../../src/domain/source-row.ts';
import { csvRecord } from '../../src/planning/csv-record.ts';
import { rawOf } from '../../src/planning/file-value.ts';
import { bool, digits, jsonb, sha256Hex, text } from '../domain/support.ts';
import { BaselineImport } from '../support/baseline-import.ts';

const made: BaselineImport[] = [];
afterEach(async () => {
  for (const one of made.splice(0)) await one.close();
});

const COLUMNS = [text('id'), text('v')];

async function look(
  name: string,
  content: string | Uint8Array,
  {
    mapped = false,
    columns = COLUMNS as readonly Column[],
    mapping,
  }: {
    readonly mapped?: boolean;
    readonly columns?: readonly Column[];
    readonly mapping?: MirrorSettings['mapping'];
  } = {},
) {
  const one = await BaselineImport.of('file', columns, mapping === undefined ? {} : { mapping });
  made.push(one);
  return one.inspect({ ...(await one.write(name, content)), isMapped: mapped });
}

describe('is taken', () => {
  test('CSV and NDJSON, with columns that the mapping does not name, and repeated rows', async () => {
    const counts = { rows: 3, members: 2, collapsed: 1, unknown: [] };
    expect(
      await look('a.csv', '\ufeffv,id,note\r\n1,a,"x, ""y""\nz"\r\n2,b,\r\n1,a,other\r\n'),
    ).toMatchObject(counts);
    const rows = [
      { id: 'a', v: '1' },
      { v: '2', id: 'b' },
      { id: 'a', v: '1' },
    ];
    expect(await look('a.ndjson', rows.map((row) => JSON.stringify(row)).join('\n'))).toMatchObject(counts);
  });

  test('without the columns of the payload, which is not known then', async () => {
    expect(await look('a.csv', 'id\na\nb\n')).toMatchObject({ members: 2, unknown: ['v'] });
  });

  test('members that are mapped already', async () => {
    const lines = '{"identity":{"id":"a"}}\n{"identity":{"id":"b"}}\n';
    expect(await look('a.jsonl', lines, { mapped: true })).toMatchObject({ members: 2, unknown: ['upsert'] });
    const whole = '{"identity":{"id":"a"},"upsert":{"id":"a","v":"1"}}\n';
    expect(await look('a.ndjson', whole, { mapped: true })).toMatchObject({ members: 1, unknown: [] });
  });

  test('double-hash: spellings of an address and its digest are one member, as they are for rows of the query', async () => {
    const identity = { email: { column: 'id', normalize: ['email'], hash: 'sha256' } } as const;
    const mapping = { kind: 'rules', members: [{ identity, payload: {}, when: [] }] } as const;
    const digest = sha256Hex('bob@x.com');
    expect(await look('a.csv', `id\n Bob@X.com \nbob@x.com\n${digest}\n`, { mapping })).toMatchObject({
      members: 1,
      collapsed: 2,
    });
  });

  test('a condition whose column the file lacks is taken to hold', async () => {
    const rule = {
      identity: { id: { column: 'id' } },
      payload: {},
      when: [{ column: 'v', equals: 'yes' }],
    } as const;
    const mapping = { kind: 'rules', members: [rule] } as const;
    expect(await look('a.csv', 'id\na\n', { mapping })).toMatchObject({ members: 1 });
    await expect(look('a.csv', 'id,v\na,yes\nb,no\n', { mapping })).rejects.toMatchObject({
      details: { rule: 'row-without-member', count: 1, lines: ['3'] },
    });
  });
});

describe('is refused, by rule and line and without a value', () => {
  test.each([
    ['no rows', 'a.csv', 'id,v\n', { rule: 'no-rows' }],
    ['an empty file', 'a.ndjson', '', { rule: 'no-rows' }],
    ['another kind of file', 'a.xlsx', 'id\n', { rule: 'unknown-format' }],
    ['a header with a name twice', 'a.csv', 'id,id\na,b\n', { rule: 'header' }],
    ['no column of the identity', 'a.csv', 'v\n1\n', { rule: 'missing-columns', columns: ['id'] }],
    ['ragged-rows: a field too few', 'a.csv', 'id,v\na,1\nb\n', { rule: 'other-columns', line: 3 }],
    [
      'ragged-rows: another name',
      'a.ndjson',
      '{"id":"a","v":"1"}\n{"id":"b","w":"1"}',
      { rule: 'other-columns', line: 2 },
    ],
    ['a quote that is never closed', 'a.csv', 'id,v\na,"1\nb,2\n', { rule: 'not-csv', line: 2 }],
    ['a line that is not JSON', 'a.ndjson', '{"id":"a","v":"1"}\nsecret', { rule: 'not-json', line: 2 }],
    [
      'bigint/numeric: a number that would be rounded',
      'a.ndjson',
      '{"id":9007199254740993,"v":1}',
      { rule: 'inexact-number' },
    ],
  ])('%s', async (_, name, content, details) => {
    const refused = look(name, content);
    await expect(refused).rejects.toMatchObject({ code: 'data.baseline-file', details });
    await expect(refused).rejects.not.toThrow(/secret/);
  });

  test('bytes that are no UTF-8, and a file that is not there', async () => {
    const bytes = Buffer.concat([Buffer.from('id,v\n'), Buffer.from([0xff, 0xfe]), Buffer.from(',1\n')]);
    await expect(look('a.csv', bytes)).rejects.toMatchObject({ details: { rule: 'not-utf8' } });
    const one = await BaselineImport.of('file', COLUMNS);
    made.push(one);
    await expect(one.inspect({ path: '/nowhere/a.csv', isMapped: false })).rejects.toMatchObject({
      details: { rule: 'unreadable', reason: 'ENOENT' },
    });
  });

  test('null-key: rows without an identity, with how many they are and where', async () => {
    await expect(look('a.csv', 'id,v\na,1\n,1\n"",1\n')).rejects.toMatchObject({
      code: 'data.null-key',
      details: { count: 2, lines: ['3', '4'] },
    });
  });

  test('two payloads for one identity', async () => {
    await expect(look('a.csv', 'id,v\na,1\na,2\nb,1\nb,3\n')).rejects.toMatchObject({
      code: 'data.conflicting-payloads',
      details: { count: 2 },
    });
  });

  test('mapped members with anything else beside, or without an identity', async () => {
    const mapped = { mapped: true };
    await expect(look('a.ndjson', '{"identity":{"id":"a"},"email":"a"}', mapped)).rejects.toMatchObject({
      details: { rule: 'unknown-columns', columns: ['email'] },
    });
    await expect(look('a.ndjson', '{"identity":{"id":null}}', mapped)).rejects.toMatchObject({
      code: 'data.null-key',
      details: { count: 1, lines: ['1'] },
    });
  });
});

describe('a value', () => {
  const integer: Column = { ...text('n'), typeName: 'int4' };

  test.each([
    [integer, 12, '12'],
    [integer, '-7', '-7'],
    [bool('b'), true, 't'],
    [bool('b'), 'false', 'f'],
    [digits('d'), '0.10', '0.10'],
    [jsonb('j'), { a: [1] }, '{"a":[1]}'],
    [text('t'), 5, '5'],
    [text('t'), null, null],
  ])('of %o: %j is what the source prints as %j', (column, value, raw) => {
    expect(rawOf(column, value)).toBe(raw);
  });

  test.each([
    [integer, '01'],
    [integer, '+1'],
    [integer, 1.5],
    [digits('d'), '1e3'],
    [bool('b'), 'yes'],
    [text('t'), ['x']],
  ])('of %o: %j is not what the source prints', (column, value) => {
    expect(() => rawOf(column, value)).toThrow('data.invalid-row');
  });

  test('null-clears: an empty field is NULL, one between quotes is a text', () => {
    expect(csvRecord('a,,""')).toEqual({ kind: 'record', fields: ['a', null, ''] });
    expect(csvRecord('a"b"')).toEqual({ kind: 'malformed' });
    expect(csvRecord('"a"b')).toEqual({ kind: 'malformed' });
  });
});
