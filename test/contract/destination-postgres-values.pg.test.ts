/** Destination `postgres`: every value arrives exactly, whatever its type, its text, or the name of its column. */

import { expect, test } from 'vitest';
import { postgresDestination } from '../../src/destinations/postgres/index.ts';
import type { SourceValue } from '../../src/domain/source-row.ts';
import { createTarget, remove, upsert } from './destination-postgres-kit.ts';

/** Type of the column, JSON as a source gives it, and the same value as an SQL expression. */
const VALUES: readonly (readonly [type: string, json: SourceValue, sql: string])[] = [
  ['int8', '9007199254740993', '9007199254740993'],
  ['int2', -32768, '-32768'],
  ['numeric', '123456789012345678901234567890123456789.10', '123456789012345678901234567890123456789.10'],
  ['numeric', '0.10', '0.10'],
  ['numeric(10,2)', '1.50', '1.50'],
  ['float8', 0.1, '0.1'],
  ['float8', 1e21, '1e21'],
  ['float4', 3.4028235e38, "'3.4028235e38'"],
  ['bool', true, 'true'],
  ['text', '', "''"],
  ['text', 'null', "'null'"],
  ['varchar(5)', 'añb😀c', "'añb😀c'"],
  ['char(4)', 'ab', "'ab'"],
  ['bytea', 'AP8K3q0=', String.raw`'\x00ff0adead'::bytea`],
  ['bytea', '', "''::bytea"],
  ['date', '0044-03-15 BC', "'0044-03-15 BC'"],
  ['timestamp', '2024-02-29T23:59:59.123456', "'2024-02-29 23:59:59.123456'"],
  ['timestamptz', '2024-02-29T23:59:59.000001Z', "'2024-02-29 23:59:59.000001+00'"],
  ['interval', '1 year 2 mons 3 days 04:05:06.789', "'1 year 2 mons 3 days 04:05:06.789'"],
  ['uuid', 'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11', "'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11'"],
  ['json', { b: [1, null], a: '\u00e9' }, `'{"a":"é","b":[1,null]}'`],
  ['jsonb', [{ deep: { er: '"' } }], `'[{"deep":{"er":"\\""}}]'`],
  ['jsonb', 'a text', `'"a text"'`],
  ['jsonb', 5, `'5'`],
  ['int8[]', ['9007199254740993', null, '-1'], "'{9007199254740993,NULL,-1}'"],
  [
    'text[]',
    ['', null, 'NULL', 'a,b', '"', '\\', '{}'],
    String.raw`ARRAY['', NULL, 'NULL', 'a,b', '"', '\', '{}']`,
  ],
  [
    'int4[]',
    [
      [1, 2],
      [3, null],
    ],
    "'{{1,2},{3,NULL}}'",
  ],
  ['text[]', [], "'{}'"],
  ['jsonb[]', [{ a: 1 }, null], `ARRAY['{"a":1}', NULL]::jsonb[]`],
  ['inet', '10.0.0.0/8', "'10.0.0.0/8'"],
  ['int4range', '[1,5)', "'[1,5)'"],
  ['mood', 'très content', "'très content'"],
  ['positive', 7, '7'],
  ['point2', { x: 1, y: '2.50' }, 'ROW(1, 2.50)::point2'],
];

test('bigint/numeric, nan/infinity: values of every type are stored exactly, and unchanged the second time', async () => {
  const columns = VALUES.map(([type], index) => `c${index} ${type}`);
  const target = await createTarget(`
    CREATE TYPE mood AS ENUM ('très content'); CREATE DOMAIN positive AS int CHECK (VALUE > 0);
    CREATE TYPE point2 AS (x int, y numeric);
    CREATE TABLE v (id int PRIMARY KEY, ${columns.join(', ')},
      session text DEFAULT current_setting('synchronous_commit') || ', ' || current_setting('transaction_isolation'));
    GRANT SELECT, INSERT, UPDATE, DELETE ON v TO :role;`);
  // What the role or the database is set to must not matter.
  await target.admin.query(`ALTER ROLE ${target.role} SET datestyle = 'SQL, DMY'; ALTER ROLE ${target.role} SET timezone = 'Asia/Kolkata';
    ALTER ROLE ${target.role} SET search_path = 'nowhere'; ALTER ROLE ${target.role} SET extra_float_digits = -5;
    ALTER ROLE ${target.role} SET synchronous_commit = off; ALTER ROLE ${target.role} SET default_transaction_isolation = 'serializable'`);
  const writer = await target.open({ table: 'v' });
  const full = { id: 1, ...Object.fromEntries(VALUES.map(([, json], index) => [`c${index}`, json])) };
  const empty = { id: 2, ...Object.fromEntries(VALUES.map((_, index) => [`c${index}`, null])) };
  const same = VALUES.map(
    ([type, , sql], index) => `c${index}::text IS NOT DISTINCT FROM (${sql})::${type}::text AS c${index}`,
  );
  const nulls = VALUES.map((_, index) => `c${index} IS NULL AS c${index}`);
  for (const _ of [1, 2]) {
    expect(await writer.upsert(upsert([full, empty]))).toMatchObject({ kind: 'accepted' });
    const expected = Object.fromEntries(VALUES.map((_, index) => [`c${index}`, true]));
    await target.admin.query("SET timezone = 'UTC'");
    expect(await target.rows(`SELECT ${same.join(', ')} FROM v WHERE id = 1`)).toEqual([expected]);
    expect(await target.rows(`SELECT ${nulls.join(', ')} FROM v WHERE id = 2`)).toEqual([expected]);
    expect(await target.rows('SELECT DISTINCT session FROM v')).toEqual([{ session: 'on, read committed' }]);
  }
});

const MESSY = [
  '😀 👩‍👩‍👧 \ud83d\ude00',
  `quotes ' " ''`,
  'back\\slash \\u0000 \\n',
  'new\nline\r\n\ttab',
  '\u0001\u001f\u007f\u0085\u2028\ufeff',
  "Robert'); DROP TABLE people;--",
  '$1 %s {a,b}',
  'NULL',
  '',
  ' ',
  'ju\u0308rgen',
  'jürgen',
  'İıſß',
];

test('nul+surrogates, nfc-nfd: messy texts are kept as they are, as values and as identities', async () => {
  const target = await createTarget(`CREATE TABLE m (id text PRIMARY KEY, v text);
    GRANT SELECT, INSERT, UPDATE, DELETE ON m TO :role;`);
  const writer = await target.open({ table: 'm' });
  const members = MESSY.map((text) => ({ id: text, v: text }));
  expect((await writer.upsert(upsert(members))).kind).toBe('accepted');
  const stored = await target.rows('SELECT id, v FROM m');
  expect(new Set(stored.map((row) => row.id))).toEqual(new Set(MESSY));
  for (const row of stored) expect(row.v).toBe(row.id);
  expect((await writer.remove(remove(members))).kind).toBe('accepted');
  expect(await target.rows('SELECT id FROM m')).toEqual([]);
});

test('nul+surrogates: a text that the server cannot hold is rejected alone', async () => {
  const target = await createTarget(`CREATE TABLE m (id text PRIMARY KEY, v text);
    GRANT SELECT, INSERT, UPDATE, DELETE ON m TO :role;`);
  const writer = await target.open({ table: 'm' });
  const sound = upsert([
    { id: 'a', v: 'x' },
    { id: 'b', v: 'nul' },
    { id: 'c', v: 'half' },
  ]);
  const bodies = [/nul/, /half/].reduce(
    (text, word, index) => text.replace(word, ['\\u0000', '\\ud83d'][index] ?? ''),
    sound.body,
  );
  const operations = sound.operations.map((operation) => ({
    ...operation,
    payload: operation.payload.replace('nul', '\\u0000').replace('half', '\\ud83d'),
  }));
  expect(await writer.upsert({ ...sound, operations, body: bodies })).toMatchObject({
    kind: 'settled',
    outcomes: [{ kind: 'accepted' }, { kind: 'rejected' }, { kind: 'rejected' }],
  });
  expect(await target.rows('SELECT id FROM m')).toEqual([{ id: 'a' }]);
});

test('identities of every allowed type go in by one text and out by the same', async () => {
  const identities: readonly (readonly [string, SourceValue])[] = [
    ['int2', 5],
    ['int8', '9007199254740993'],
    ['numeric', '0.5'],
    ['numeric(8,2)', '0.50'],
    ['uuid', 'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11'],
    ['bool', false],
    ['date', '2024-02-29'],
    ['timestamp', '2024-02-29T23:59:59.12'],
    ['timestamptz', '2024-02-29T23:59:59Z'],
    ['bytea', Buffer.alloc(90, 0xfe).toString('base64')],
    ['char(4)', 'ab'],
    ['varchar(4)', 'abcd'],
    ['colour', 'RED'],
  ];
  const columns = identities.map(([type], index) => `c${index} ${type}`);
  const names = identities.map((_, index) => `c${index}`);
  const target = await createTarget(`CREATE TYPE colour AS ENUM ('RED');
    CREATE TABLE k (${columns.join(', ')}, PRIMARY KEY (${names.join(', ')}));
    GRANT SELECT, INSERT, UPDATE, DELETE ON k TO :role;`);
  const fields = [{ identity: names, payload: [] }];
  const writer = await target.open({ table: 'k' }, { fields });
  expect(await writer.preflight()).toEqual([]);
  const member = Object.fromEntries(identities.map(([, json], index) => [`c${index}`, json]));
  expect((await writer.upsert(upsert([member], names))).kind).toBe('accepted');
  expect(await target.rows('SELECT 1 FROM k')).toHaveLength(1);
  expect((await writer.remove(remove([member], names))).kind).toBe('accepted');
  expect(await target.rows('SELECT 1 FROM k')).toEqual([]);
});

test('hostile names of schema, table and columns are quoted, and mapped from fields by `columns`', async () => {
  const target = await createTarget(`CREATE SCHEMA "Sch.ema ""x";
    CREATE TABLE "Sch.ema ""x"."Ta'ble; --" ("I D" text PRIMARY KEY, "exact" text, "a""b\\c" text, "select" int);
    GRANT USAGE, CREATE ON SCHEMA "Sch.ema ""x" TO :role;
    GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA "Sch.ema ""x" TO :role;`);
  const columns = { id: 'I D', 'fie"ld': 'a"b\\c' };
  for (const table of [`"Sch.ema ""x"."Ta'ble; --"`, { schema: 'Sch.ema "x', name: "Ta'ble; --" }]) {
    const fields = [{ identity: ['id'], payload: ['fie"ld', 'exact', 'select'] }];
    const writer = await target.open({ table, columns }, { fields });
    expect(await writer.preflight()).toEqual([]);
    const member = { id: 'a', 'fie"ld': 'v', exact: 'e', select: 1 };
    expect((await writer.upsert(upsert([member]))).kind).toBe('accepted');
    const stored = await target.rows(`SELECT * FROM "Sch.ema ""x"."Ta'ble; --"`);
    expect(stored).toEqual([{ 'I D': 'a', exact: 'e', 'a"b\\c': 'v', select: 1 }]);
    expect((await writer.remove(remove([member]))).kind).toBe('accepted');
  }
});

test('a partitioned table takes rows in all its partitions, and gives them back', async () => {
  const target = await createTarget(`CREATE TABLE p (id int PRIMARY KEY, v text) PARTITION BY RANGE (id);
    CREATE TABLE p1 PARTITION OF p FOR VALUES FROM (0) TO (10); CREATE TABLE p2 PARTITION OF p FOR VALUES FROM (10) TO (20);
    GRANT SELECT, INSERT, UPDATE, DELETE ON p TO :role;`);
  const writer = await target.open({ table: 'p' }, { fields: [{ identity: ['id'], payload: ['v'] }] });
  expect(await writer.preflight()).toEqual([]);
  const outcome = await writer.upsert(
    upsert([
      { id: 1, v: 'a' },
      { id: 11, v: 'b' },
      { id: 99, v: 'none' },
    ]),
  );
  expect(outcome).toMatchObject({
    outcomes: [{ kind: 'accepted' }, { kind: 'accepted' }, { code: 'sqlstate-23514' }],
  });
  expect((await writer.remove(remove([{ id: 1 }, { id: 11 }]))).kind).toBe('accepted');
  expect(await target.rows('SELECT id FROM p')).toEqual([]);
});

test('the frame is a JSON array of the payloads as they are stored', () => {
  const options = postgresDestination.optionsSchema.parse({ table: 't' });
  for (const action of ['upsert', 'remove'] as const) {
    expect(postgresDestination.frame(action, options)).toMatchObject({
      open: '[',
      separator: ',',
      close: ']',
      operationId: null,
    });
  }
});
