/** Destination `postgres`: its connection, its options, and what they name. Needs no server. */

import fc from 'fast-check';
import { expect, test } from 'vitest';
import { z } from 'zod';
import { poolConfig } from '../../src/destinations/postgres/connection.ts';
import { MAX_NAME_BYTES, parseName, quoteName } from '../../src/destinations/postgres/identifier.ts';
import { postgresDestination } from '../../src/destinations/postgres/index.ts';
import { payloadCheck } from '../../src/planning/payload-check.ts';

const { connectionSchema, optionsSchema, targetKey, checkFields } = postgresDestination;
const connection = (input: unknown) => connectionSchema.parse(input);
const FIELDS = { host: 'db.example', database: 'crm', user: 'mirror' };

/** Messages with their paths; none where the input is sound. */
function faults(schema: z.ZodType, input: unknown): readonly string[] {
  const result = schema.safeParse(input);
  return result.success
    ? []
    : result.error.issues.map((issue) => `${issue.path.join('.')}: ${issue.message}`);
}

test('a URL and the same place in fields are one target, whatever user, case or default port', () => {
  const options = optionsSchema.parse({ table: 'people' });
  const key = targetKey(connection(FIELDS), options);
  expect(key).toBe('["postgres","db.example",5432,"crm","public","people"]');
  for (const url of [
    'postgres://mirror@db.example/crm',
    'postgresql://other:secret@DB.Example.:5432/crm?sslmode=require',
  ]) {
    expect(targetKey(connection({ url }), options)).toBe(key);
  }
  expect(targetKey(connection({ url: 'postgres://crm@db.example' }), options)).toBe(key);
  expect(targetKey(connection({ url: 'postgres://a@[::1]:6000/b%20c' }), options)).toContain(
    '"::1",6000,"b c"',
  );
});

test('TLS is verified off this machine, off on it, and as told otherwise', () => {
  const ssl = (input: object) => poolConfig(connection({ ...FIELDS, ...input }), 1).ssl;
  expect(ssl({})).toEqual({ rejectUnauthorized: true });
  for (const host of ['localhost', '127.0.0.1', '::1', '/var/run/postgresql'])
    expect(ssl({ host })).toBe(false);
  expect(ssl({ host: 'localhost.example' })).toEqual({ rejectUnauthorized: true });
  expect(ssl({ tls: { mode: 'require' } })).toEqual({ rejectUnauthorized: false });
  expect(ssl({ tls: { mode: 'disable' } })).toBe(false);
  expect(ssl({ host: 'localhost', tls: { ca: 'PEM' } })).toEqual({ rejectUnauthorized: true, ca: 'PEM' });
  const byUrl = (mode: string) =>
    poolConfig(connection({ url: `postgres://u@db.example/d?sslmode=${mode}` }), 1).ssl;
  expect(byUrl('verify-full')).toEqual({ rejectUnauthorized: true });
  expect(byUrl('disable')).toBe(false);
});

test('one request may take as long as its time-outs allow, and a day where there is none', () => {
  const options = optionsSchema.parse({ table: 't' });
  const longest = (more: object) =>
    postgresDestination.capabilities(connection({ ...FIELDS, ...more }), options).longestRequestMs;
  expect(longest({ connect_timeout_ms: 1_000, statement_timeout_ms: 5_000 })).toBe(3 * 21_000 + 20_000);
  expect(longest({ statement_timeout_ms: 0 })).toBe(86_400_000);
  expect(longest({ statement_timeout_ms: 2_147_483_647 })).toBe(86_400_000);
});

test('the environment is no part of the configuration: the password is the one given, or none', () => {
  const password = (input: unknown): unknown => {
    const given = poolConfig(connection(input), 1).password;
    return typeof given === 'function' ? given() : given;
  };
  expect(password(FIELDS)).toBe('');
  expect(password({ url: 'postgres://u:p%40%2F%25@h/d' })).toBe('p@/%');
});

test('leaks: every fault of a connection is named, and none repeats a password', () => {
  const wrong = [
    { url: 'postgres://u:s3cret@h/d', host: 'h' },
    { url: 'mysql://u:s3cret@h/d' },
    { url: 'postgres://u:s3cret%zz@h/d' },
    { url: 'postgres://:s3cret@h/d' },
    { url: 'postgres://u:s3cret@h,h2/d' },
    { url: 'postgres://u:s3cret@h/d?sslmode=prefer' },
    { url: 'postgres://u:s3cret@h/d?options=-csearch_path' },
    { url: 'postgres://u:s3cret@h/d?sslmode=disable', tls: { mode: 'verify-full' } },
    { ...FIELDS, password: 's3cret', tls: { cert: 'PEM' } },
    { ...FIELDS, password: 's3cret', tls: { mode: 'disable', ca: 'PEM' } },
    { password: 's3cret' },
    { ...FIELDS, pasword: 's3cret' },
    { ...FIELDS, port: '99999' },
    { ...FIELDS, statement_timeout_ms: -1 },
  ];
  for (const input of wrong) {
    const found = faults(connectionSchema, input);
    expect(found, JSON.stringify(input)).not.toEqual([]);
    expect(found.join()).not.toContain('s3cret');
  }
  expect(faults(connectionSchema, {})).toHaveLength(3); // host, database, user, all at once
  expect(faults(connectionSchema, { ...FIELDS, port: '6432', type: 'postgres' })).toEqual([]);
});

test('a table name is read as SQL reads it, and refused where SQL would fold it', () => {
  const name = (table: unknown): unknown =>
    JSON.parse(targetKey(connection(FIELDS), optionsSchema.parse({ table }))).slice(4);
  expect(name('people')).toEqual(['public', 'people']);
  expect(name('sales.people')).toEqual(['sales', 'people']);
  expect(name('"Sa.les"."Peo""ple"')).toEqual(['Sa.les', 'Peo"ple']);
  expect(name({ name: 'People' })).toEqual(['public', 'People']);
  expect(name({ schema: 'a.b', name: '"x"' })).toEqual(['a.b', '"x"']);
  for (const table of ['People', 'a.b.c', '', '.', 'a.', '"a', 'a b', 'a;b', 'ü'.repeat(32), { name: '' }]) {
    expect(faults(optionsSchema, { table }), JSON.stringify(table)).not.toEqual([]);
  }
});

test('the columns that fields are written to are the write form; a name given twice is not', () => {
  const form = (columns: object) =>
    postgresDestination.writeForm?.(optionsSchema.parse({ table: 't', columns }));
  expect(form({})).toBe('');
  expect(form({ plan: 'plan' })).toBe('');
  expect(form({ plan: 'tier' })).not.toBe(form({ plan: 'level' }));
  expect(form({ a: 'x', b: 'y' })).toBe(form({ b: 'y', a: 'x', c: 'c' }));
});

test('the columns of identity fields are the identity form, and no part of the target: a table has one owner', () => {
  const parse = (options: object) => optionsSchema.parse({ table: 't', ...options });
  const form = (options: object, identity: readonly string[] | null) =>
    postgresDestination.identityForm?.(parse(options), identity);
  const plain = form({}, ['b', 'a']);
  expect(form({ columns: { a: 'a', v: 'w' } }, ['a', 'b'])).toBe(plain);
  expect(form({ identity: ['a', 'b'] }, null)).toBe(plain);
  const others = [
    form({ columns: { a: 'alt' } }, ['a', 'b']),
    form({ columns: { a: 'b', b: 'a' } }, ['a', 'b']),
    form({ columns: { c: 'a' } }, ['c', 'b']),
    form({}, ['a']),
  ];
  expect(new Set([plain, ...others]).size).toBe(5);
  expect([form({}, null), form({ swap: 'replace' }, ['a'])]).toEqual(['', '']);
  const key = (options: object) => postgresDestination.targetKey(connection(FIELDS), parse(options));
  expect(key({ columns: { a: 'alt' } })).toBe(key({}));
});

test('transformed-key: a module’s member that could not be removed again is refused before the seal', () => {
  const check = (identity: readonly string[], upsert: string, remove: string | null = null) => {
    const schemas = postgresDestination.payloadSchemas?.(optionsSchema.parse({ table: 't', identity }));
    const member = { identity: '{"a":1,"b":"x"}', upsert, remove };
    return () => payloadCheck(schemas)?.(member, '["1"]');
  };
  const both = ['a', 'b'];
  const whole = '{"__proto__":[],"a":1,"b":"x","v":null}';
  expect(check(both, whole)).not.toThrow();
  expect(check(both, whole, '{"b":"x","a":1}')).not.toThrow();
  expect(check(both, '{"a":1}')).toThrow(/upsert/);
  expect(check(both, '{"a":1,"b":null}')).toThrow(/upsert/);
  expect(check(both, whole, '{"a":1,"b":"x","why":"left"}')).toThrow(/why/);
  expect(check(both, whole, '{"a":1}')).toThrow(/remove/);
  expect(check(['a'], whole)).toThrow(/remove/);
  expect(postgresDestination.payloadSchemas?.(optionsSchema.parse({ table: 't' }))).toBeUndefined();
});

test('any name survives quoting: what is quoted is read back as it was', () => {
  const names = fc
    .string({ minLength: 1, maxLength: 20, unit: 'grapheme' })
    .filter((name) => !name.includes('\0') && Buffer.byteLength(name) <= MAX_NAME_BYTES);
  fc.assert(
    fc.property(names, names, (schema, table) => {
      expect(parseName(`${quoteName(schema)}.${quoteName(table)}`)).toEqual([schema, table]);
    }),
  );
});

test('fields and columns are checked against each other', () => {
  const check = (options: object, identity: readonly string[], payload: readonly string[]) =>
    checkFields(optionsSchema.parse({ table: 't', ...options }), identity, payload);
  expect(check({ columns: { mail: 'email' }, identity: ['id'] }, ['id'], ['mail'])).toEqual([]);
  expect(check({}, [], ['a'])).toHaveLength(1);
  expect(check({ columns: { a: 'x', b: 'x' } }, ['a'], ['b'])).toHaveLength(1);
  expect(check({ columns: { a: 'b' } }, ['a'], ['b'])).toHaveLength(1);
  expect(check({ columns: { gone: 'x' } }, ['a'], [])).toHaveLength(1);
  expect(check({ identity: ['b'] }, ['a'], ['b'])).toHaveLength(1);
  expect(check({}, ['f'.repeat(64)], ['constructor', '__proto__'])).toHaveLength(1);
  expect(check({ columns: { ['f'.repeat(64)]: 'short' } }, ['a'], ['f'.repeat(64)])).toHaveLength(1);
});

test('both schemas can be written as JSON Schema, and unknown options are refused', () => {
  for (const schema of [connectionSchema, optionsSchema]) {
    expect(z.toJSONSchema(schema, { io: 'input' })).toMatchObject({ type: 'object' });
  }
  expect(faults(optionsSchema, { table: 't', colums: {} })).not.toEqual([]);
});

test('what the adapter promises', () => {
  const options = optionsSchema.parse({ table: 't', identity_folding: ['case'] });
  expect(postgresDestination.capabilities(connection(FIELDS), options)).toEqual({
    strategies: ['snapshot-diff'],
    explicitRemoval: true,
    batchDelivery: 'accepted',
    recovery: 'idempotent',
    lastCopyDecides: true,
    lists: true,
    visible: 'on_accept',
    maxRows: 10_000,
    maxBytes: 16_000_000,
    maxInFlight: 8,
    longestRequestMs: 3 * (10_000 + 135_000) + 135_000,
    identityFolding: ['case', 'text'],
  });
});
