/** Columns and values of every kind, with names that hurt, from one table into another: compared in SQL, column by column. */

import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { System } from '../support/system.ts';
import { TableScene } from '../support/system-destinations.ts';

let system: System;
beforeAll(async () => {
  system = await System.start();
  await system.startWorker();
});
afterAll(() => system.stop());

/** One column of one type, `$v` values: what arrives must print as what was sent. */
async function roundTrip(name: string, type: string, values: readonly string[], prelude = ''): Promise<void> {
  const rows = values.map((value, n) => `(${n}, ${value})`).join(', ');
  const scene = await TableScene.create(system, name, {
    rows: `${prelude} create table $table (id int primary key, v ${type}); insert into $table values ${rows}`,
    query: 'select id, v from $table order by id',
    target: `${prelude} create table audience (id int primary key, v ${type})`,
    mirror: { members: { identity: { id: 'id' }, payload: { v: 'v' } }, batch: { rows: 100 } },
  });
  const exact = (from: string) => `select id, v::text as v from ${from} order by id`;
  await scene.completed();
  expect(await scene.targetRows(exact('audience'))).toEqual(await scene.sourceRows(exact('$table')));
  expect((await scene.completed()).counts).toMatchObject({ unchanged: values.length, changed: 0 });
}

describe.concurrent('types', () => {
  const cases: readonly (readonly [string, string, readonly string[], string?])[] = [
    ['json', 'json', [`'{"a":1,"b":[1.5,"é",null]}'`, 'null', `'""'`, `'"null"'`, `'0.1'`, `'[[],{},""]'`]],
    [
      'jsonb',
      'jsonb',
      [
        `'{"a":{"__proto__":1,"constructor":null}}'`,
        'null',
        `'""'`,
        `'"null"'`,
        `'-0.0000001'`,
        `'{"":[null]}'`,
      ],
    ],
    ['arrays', 'int[]', [`'{}'`, `'{{1,2},{3,null}}'`, `'{null}'`]],
    [
      'text-arrays',
      'text[]',
      [
        `array['', null, 'NULL', 'null', '"', E'\\\\', '{}', ',', ' ', E'\\n']`,
        `array[['a','b'],['c',null]]`,
      ],
    ],
    ['numeric-arrays', 'numeric[]', ['array[0.10, 1e30, -0.00, 12345678901234567890123456789012345678.9]']],
    ['money', 'money', ["'-1234.50'", "'92233720368547758.07'"]],
    ['times', 'timetz', ["'24:00:00+00'", "'23:59:59.999999-15:59'"]],
    [
      'stamps',
      'timestamptz',
      ["'0044-03-15 12:00 BC'", "'12345-01-01 00:00:00.000001+00'", "'1883-11-18 12:03:58-07:52:58'"],
    ],
    ['plain-stamps', 'timestamp', ["'4713-11-24 00:00:00 BC'", "'294276-12-31 23:59:59.999999'"]],
    ['dates', 'date', ["'4713-11-24 BC'", "'5874897-12-31'"]],
    [
      'intervals',
      'interval',
      ["'-178000000 years'", "'1 mon -1 day 00:00:00.000001'", "'-1 mon +1 day -00:00:00.5'", "'0'"],
    ],
    ['ranges', 'tstzrange', ["'[2024-01-01,)'", "'empty'", "'(,)'", 'null']],
    ['multiranges', 'nummultirange', ["'{[1.10,2),(3,]}'", "'{}'"]],
    [
      'composite',
      'mixed',
      [`row(1.50, E'a"b\\\\c,(d)')`, `row(null, '')`, 'null'],
      'create type mixed as (n numeric, t text);',
    ],
    [
      'composite-array',
      'pair[]',
      [`array[row(1,'x'), null, row(null,null)]::pair[]`],
      'create type pair as (n numeric, t text);',
    ],
    ['domains', 'shout', ["'A'", 'null'], 'create domain shout as text check (value = upper(value));'],
    ['domain-json', 'dj', [`'{}'`, `'[1]'`, 'null'], 'create domain dj as jsonb;'],
    ['domain-array', 'da', [`'{1,2}'`, 'null'], 'create domain da as int[];'],
    [
      'enum-array',
      'mood[]',
      [`array['so so','null','a"b']::mood[]`],
      `create type mood as enum ('so so','null','a"b');`,
    ],
    ['bits', 'varbit', ["B'1010'", "B''"]],
    ['char', 'char(7)', ["'ab'", "''", "E'a\\n'"]],
    ['one-char', '"char"', ["'a'", "''", "E'\\\\303'"]],
    ['geometry', 'polygon', ["'((0,0),(1.5,1e10),(1,0))'"]],
    ['boxes', 'box[]', [`array[box '((1,2),(3,4))', null]`]],
    ['search', 'tsvector', [`$$'a b':1A 'c''d':2$$`]],
    ['oid', 'oid', ['4294967295']],
    ['floats', 'float8', ['0.1', '5e-324', '1.7976931348623157e308', '-0.1', '1e22', '123456789.123456789']],
    ['reals', 'real', ['0.1', '1e-45', '3.4028235e38', '16777217']],
    ['hstore', 'hstore', [`'a=>1,"b c"=>NULL,"d\\"e"=>""'`], 'create extension if not exists hstore;'],
    ['citext', 'citext', ["'ÄbC'", "''"], 'create extension if not exists citext;'],
    ['xml', 'xml', ["'<a>&amp;</a>'"]],
    ['macs', 'macaddr8', ["'08:00:2b:01:02:03:04:05'"]],
    ['inets', 'inet', ["'10.1.2.3/8'", "'::ffff:1.2.3.4'", "'0.0.0.0/0'"]],
    ['paths', 'jsonpath', [`'$.a ? (@ > 1)'`]],
    ['uuids', 'uuid[]', [`array['a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11', null]::uuid[]`]],
    ['bytes', 'bytea', [`'\\x'`, `'\\x00ff0a0d5c'`, 'null']],
  ];
  test.for(cases)('%s (%s) keeps its exact value', ([name, type, values, prelude]) =>
    roundTrip(`type-${name}`, type, values, prelude),
  );

  test.each(['json', 'jsonb'])(
    'an array of %s is refused before anything is sent: {"[1]"} and {{1}} are one JSON text',
    async (type) => {
      const rows = `create table $table (id int primary key, v ${type}[]);
      insert into $table values (1, array['[1,2]','null']::${type}[])`;
      const options = {
        rows,
        query: 'select id, v from $table',
        mirror: { members: { identity: { id: 'id' }, payload: { v: 'v' } } },
      };
      const refused = await TableScene.create(system, `array-of-${type}`, {
        ...options,
        target: `create table audience (id int primary key, v ${type}[])`,
      });
      expect(await refused.run()).toMatchObject({
        kind: 'failed',
        message: expect.stringContaining('column-type'),
      });
      const whole = await TableScene.create(system, `whole-${type}`, {
        ...options,
        target: `create table audience (id int primary key, v ${type})`,
      });
      await whole.completed();
      expect(await whole.targetRows(`select v::jsonb = '[[1,2],null]' as same from audience`)).toEqual([
        { same: true },
      ]);
    },
  );
});
