/** Every type keeps its exact value, whatever the server's own settings are. */

import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { InvalidValue } from '../../src/domain/source-row.ts';
import { postgresSource } from '../../src/sources/postgres/source.ts';
import { readAll } from '../contract/source.contract.ts';
import { type PostgresHarness, startPostgresHarness } from '../contract/source-postgres-harness.ts';

let harness: PostgresHarness;
beforeAll(async () => {
  harness = await startPostgresHarness();
  await harness.admin.query(`
    CREATE TYPE mood AS ENUM ('sad', 'it''s ok');
    CREATE TYPE pair AS (a int, b text);
    CREATE DOMAIN amount AS numeric(12, 2);
    CREATE DOMAIN amounts AS amount[];
    CREATE SCHEMA other;
    CREATE DOMAIN other.float8 AS text;
    ALTER DATABASE ${new URL(harness.url).pathname.slice(1)} SET DateStyle = 'German';
    ALTER DATABASE ${new URL(harness.url).pathname.slice(1)} SET TimeZone = 'Asia/Kathmandu';
    ALTER DATABASE ${new URL(harness.url).pathname.slice(1)} SET IntervalStyle = 'postgres_verbose';
    ALTER DATABASE ${new URL(harness.url).pathname.slice(1)} SET lc_monetary = 'POSIX';
    ALTER DATABASE ${new URL(harness.url).pathname.slice(1)} SET extra_float_digits = -15;
    ALTER DATABASE ${new URL(harness.url).pathname.slice(1)} SET bytea_output = 'escape'`);
});
afterAll(() => harness.close());

interface Value {
  readonly typeName: string;
  readonly raw: string;
  readonly json: () => string;
  readonly text: () => string;
}

async function value(expression: string): Promise<Value> {
  const snapshot = await postgresSource.open(
    harness.config,
    `SELECT ${expression} AS v`,
    new AbortController().signal,
  );
  const raw = (await readAll(snapshot))[0]?.[0];
  const column = snapshot.columns[0];
  if (column === undefined || typeof raw !== 'string') throw new Error('the query gave no value');
  return { typeName: column.typeName, raw, json: () => column.json(raw), text: () => column.text(raw) };
}

describe('values', () => {
  it.each([
    ['(-32768)::int2', 'int2', '-32768'],
    ['2147483647::int4', 'int4', '2147483647'],
    ['4294967295::oid', 'oid', '4294967295'],
    ['9007199254740993::int8', 'int8', '"9007199254740993"'],
    ['(-9223372036854775808)::int8', 'int8', '"-9223372036854775808"'],
    ['0.10::numeric', 'numeric', '"0.10"'],
    ['0.1::numeric', 'numeric', '"0.1"'],
    [
      '123456789012345678901234567890123456789::numeric',
      'numeric',
      '"123456789012345678901234567890123456789"',
    ],
    ['0.1::float8', 'float8', '0.1'],
    ['(0.1::float8 + 0.2)', 'float8', '0.30000000000000004'],
    ['0.1::float4', 'float4', '0.1'],
    ['1e300::float8', 'float8', '1e+300'],
    ['5e-324::float8', 'float8', '5e-324'],
    ["'-0'::float8", 'float8', '0'],
    ['true', 'bool', 'true'],
    ['false', 'bool', 'false'],
    ["'a'::char(3)", 'bpchar', '"a  "'],
    ["'ab'::varchar(3)", 'varchar', '"ab"'],
    ["'ab'::name", 'name', '"ab"'],
    ["'it''s ok'::mood", 'mood', '"it\'s ok"'],
    ["'00000000-0000-0000-0000-00000000000A'::uuid", 'uuid', '"00000000-0000-0000-0000-00000000000a"'],
    ["'10.0.0.1/8'::inet", 'inet', '"10.0.0.1/8"'],
    [`'{"b": 1.0, "a": [1e2, "\\u00e9"]}'::json`, 'json', '{"a":[100,"é"],"b":1}'],
    [`'{"b": 1, "a": null}'::jsonb`, 'jsonb', '{"a":null,"b":1}'],
    ["'null'::jsonb", 'jsonb', 'null'],
    ["'2024-01-02 03:04:05.678901'::timestamp", 'timestamp', '"2024-01-02T03:04:05.678901"'],
    ["'2024-01-02 03:04:05.5'::timestamp", 'timestamp', '"2024-01-02T03:04:05.5"'],
    ["'2024-01-02 03:04:05'::timestamp", 'timestamp', '"2024-01-02T03:04:05"'],
    ["'2024-01-02 03:04:05.000001+02'::timestamptz", 'timestamptz', '"2024-01-02T01:04:05.000001Z"'],
    ["'2024-01-02'::date", 'date', '"2024-01-02"'],
    ["'10000-01-02'::date", 'date', '"10000-01-02"'],
    ["'0044-03-15 BC'::date", 'date', '"0044-03-15 BC"'],
    ["'0044-03-15 01:02:03 BC'::timestamp", 'timestamp', '"0044-03-15 01:02:03 BC"'],
    ["'03:04:05.000001'::time", 'time', '"03:04:05.000001"'],
    ["'1 year 2 mons -3 days 4:05:06.7'::interval", 'interval', '"P1Y2M-3DT4H5M6.7S"'],
    ["'\\x00ff10'::bytea", 'bytea', '"AP8Q"'],
    ["''::bytea", 'bytea', '""'],
    ["'[1,5)'::int4range", 'int4range', '"[1,5)"'],
    [`ROW(1, 'a "b"')::pair`, 'pair', String.raw`"(1,\"a \"\"b\"\"\")"`],
    ["'(1,2)'::point", 'point', '"(1,2)"'],
    ['12.30::amount', 'numeric', '"12.30"'],
    ["'{9007199254740993,NULL}'::int8[]", 'int8[]', '["9007199254740993",null]'],
    ["'[0:1]={1,2}'::int4[]", 'int4[]', '[1,2]'],
    ["'{{1,2},{3,4}}'::int4[]", 'int4[]', '[[1,2],[3,4]]'],
    ["ARRAY['', NULL, 'NULL', 'a\"b\\c', 'x,y', '{}']", 'text[]', '["",null,"NULL","a\\"b\\\\c","x,y","{}"]'],
    ['ARRAY[true, NULL, false]', 'bool[]', '[true,null,false]'],
    ['ARRAY[\'{"a": 1.50}\'::jsonb]', 'jsonb[]', '[{"a":1.5}]'],
    ["ARRAY['2024-01-02 03:04:05+00'::timestamptz]", 'timestamptz[]', '["2024-01-02T03:04:05Z"]'],
    ["ARRAY['\\xff'::bytea]", 'bytea[]', '["/w=="]'],
    ["ARRAY['(1,1),(0,0)'::box, '(2,2),(1,1)']", 'box[]', '["(1,1),(0,0)","(2,2),(1,1)"]'],
    ["ARRAY['sad', NULL]::mood[]", 'mood[]', '["sad",null]'],
    ["'{1.50,2.00}'::amounts", 'numeric[]', '["1.50","2.00"]'],
    ["'NaN'::other.float8", 'text', '"NaN"'],
    ["'1 2'::int2vector", 'int2vector', '"1 2"'],
    ["'-1234.5'::money", 'money', '"-$1,234.50"'],
    ["current_setting('lc_monetary')", 'text', '"C"'],
  ])('bigint/numeric: %s is a %s with the JSON %s', async (expression, typeName, json) => {
    const found = await value(expression);
    expect(found.typeName).toBe(typeName);
    expect(found.json()).toBe(json);
  });

  it.each([
    ["'2024-01-02 03:04:05.678901+00'::timestamptz", '2024-01-02 03:04:05.678901+00'],
    ['0.10::numeric', '0.10'],
    ['true', 'true'],
    ["'\\x00ff10'::bytea", 'AP8Q'],
    ["'-0'::float8", '0'],
    [`'{"b":  1}'::json`, '{"b":  1}'],
    ["'{a,b}'::text[]", '{a,b}'],
  ])('the exact text of %s is %s', async (expression, text) => {
    expect((await value(expression)).text()).toBe(text);
  });

  it.each([
    "'NaN'::float8",
    "'Infinity'::float4",
    "'-Infinity'::float8",
    "'NaN'::numeric",
    "'Infinity'::numeric",
    "'infinity'::date",
    "'-infinity'::timestamp",
    "'infinity'::timestamptz",
    "'infinity'::interval",
  ])('nan/infinity: %s is refused, as text too', async (expression) => {
    const { json, text } = await value(expression);
    expect(json).toThrow(new InvalidValue('not-finite'));
    expect(text).toThrow(new InvalidValue('not-finite'));
  });

  it.each(["ARRAY['NaN'::float8]", "ARRAY[1, 'NaN'::numeric]", "ARRAY['infinity'::date]"])(
    'nan/infinity: %s is refused',
    async (expression) => {
      expect((await value(expression)).json).toThrow(new InvalidValue('not-finite'));
    },
  );

  it.each([
    [String.raw`'"\u0000"'::json`, 'nul-character'],
    [String.raw`'"\ud83d"'::json`, 'lone-surrogate'],
    ["'[12345678901234567890123]'::jsonb", 'inexact-number'],
  ] as const)('nul+surrogates: %s is refused as %s', async (expression, rule) => {
    expect((await value(expression)).json).toThrow(new InvalidValue(rule));
  });

  it('nul+surrogates: 😀 and the literal text \\u0000 arrive as they are', async () => {
    const found = await value(String.raw`'😀 \u0000'::text`);
    expect(found.raw).toBe(String.raw`😀 \u0000`);
    expect(found.json()).toBe(JSON.stringify(String.raw`😀 \u0000`));
  });

  it('no key is made of what is printed in parts: arrays, ranges, composites, and domains of them', async () => {
    const query = `SELECT '{NaN}'::float8[] AS a, '{1.5}'::amounts AS b, '[1,5)'::int4range AS c, '{}'::nummultirange AS d,
      ROW(1, 'a')::pair AS e, ROW(1, 2) AS f, 1::int8 AS g, 'x'::text AS h, 'sad'::mood AS i, 1::amount AS j,
      gen_random_uuid() AS k, '1 2'::int2vector AS l`;
    const columns = await postgresSource.describe(harness.config, query, new AbortController().signal);
    const unfit = columns.filter((column) => column.noKey === true).map((column) => column.name);
    expect(unfit).toEqual(['a', 'b', 'c', 'd', 'e', 'f']);
  });

  it('any text arrives as it was written: tabs, line ends, backslashes, \\N, quotes, any script', async () => {
    const written = fc
      .sample(fc.option(fc.string({ unit: 'binary', maxLength: 30 }), { nil: null }), {
        numRuns: 3000,
        seed: 7,
      })
      .map((text) => text?.replaceAll('\0', '') ?? null)
      .concat(['\\N', '\t', 'a\nb\r\n', '\\', '\\.', '', 'NULL', '"', '\u2028']);
    await harness.admin.query('CREATE TABLE texts (i int, t text, a text[])');
    await harness.admin.query(
      'INSERT INTO texts SELECT i, t, ARRAY[t, NULL, t] FROM unnest($1::text[]) WITH ORDINALITY AS u(t, i)',
      [written],
    );
    const snapshot = await postgresSource.open(
      harness.config,
      'SELECT t, a FROM texts ORDER BY i',
      new AbortController().signal,
    );
    const rows = await readAll(snapshot);
    expect(rows.map((row) => row[0])).toEqual(written);
    const arrays = snapshot.columns[1];
    expect(rows.map((row) => arrays?.json(row[1] ?? ''))).toEqual(
      written.map((text) => JSON.stringify([text, null, text])),
    );
  });
});
