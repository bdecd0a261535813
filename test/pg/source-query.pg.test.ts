/** Which queries the PostgreSQL source takes, and what it says of those it does not. */

import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { postgresSource } from '../../src/sources/postgres/source.ts';
import { errorOf, readAll } from '../contract/source.contract.ts';
import { type PostgresHarness, startPostgresHarness } from '../contract/source-postgres-harness.ts';

let harness: PostgresHarness;
beforeAll(async () => {
  harness = await startPostgresHarness();
  await harness.admin.query(`
    CREATE SEQUENCE counter;
    CREATE TABLE secrets (n int);
    CREATE ROLE source_reader LOGIN;
    CREATE FUNCTION fail(sqlstate text) RETURNS int LANGUAGE plpgsql AS
      $$ BEGIN RAISE EXCEPTION 'the value 4711' USING ERRCODE = sqlstate, DETAIL = 'of 4711'; END $$`);
});
afterAll(async () => {
  await harness.admin.query('DROP OWNED BY source_reader; DROP ROLE source_reader');
  await harness.close();
});

const never = (): AbortSignal => new AbortController().signal;
const read = async (query: string, config = harness.config) =>
  readAll(await postgresSource.open(config, query, never()));
const check = (query: string, config = harness.config) => postgresSource.describe(config, query, never());

describe('queries', () => {
  it.each([
    'SELECT 1 AS a;',
    'SELECT 1 AS a ; ',
    'SELECT 1 AS a -- the end',
    '-- first\nSELECT 1 AS a; -- the end',
    '/* one; /* two */ */ SELECT 1 AS a /* ; */ ;',
    "SELECT CASE ';' WHEN ';' THEN 1 END AS a",
    'SELECT CASE $q$;--$q$ WHEN $q$;--$q$ THEN 1 END AS a;',
    'WITH x AS (SELECT 1 AS a) SELECT a FROM x',
    'WITH RECURSIVE x(a) AS (VALUES (1)) TABLE x',
    'VALUES (1)',
    '(SELECT 1 AS a)',
    'SELECT 1 AS a UNION ALL SELECT 1 LIMIT 1',
  ])('%s is taken as it is', async (query) => {
    expect(await read(query)).toEqual([['1']]);
    expect(await check(query)).toHaveLength(1);
  });

  it.each([
    ['SELECT 1 AS a; SELECT 2 AS a', 'several-statements'],
    ['SELECT 1 AS a; DROP TABLE secrets', 'several-statements'],
    ['', 'not-a-select'],
    ['-- nothing', 'not-a-select'],
    ['SELECT', 'no-columns'],
    ['SELECT FROM items', 'no-columns'],
    ['SELECT n FROM items WHERE n = $1', 'parameters'],
    ['SELECT $1', 'parameters'],
    ['INSERT INTO secrets VALUES (1)', 'not-a-select'],
    ['INSERT INTO secrets VALUES (1) RETURNING n', 'not-a-select'],
    ['WITH x AS (DELETE FROM items RETURNING n) SELECT n FROM x', 'not-a-select'],
    ['CREATE TABLE more (n int)', 'not-a-select'],
    ['SELECT 1 AS a INTO more', 'not-a-select'],
    ['COMMIT', 'not-a-select'],
    ['SET TimeZone = 1', 'not-a-select'],
    ['SHOW TimeZone', 'not-a-select'],
    ['COPY items TO STDOUT', 'not-a-select'],
    ['SELECT n FROM items FOR UPDATE', 'writes'],
    ['SELECT 1 AS a\0; DROP TABLE secrets', 'nul-character'],
  ])('%j is refused: %s, also by a check that reads nothing', async (query, reason) => {
    for (const attempt of [read, check]) {
      const error = await errorOf(attempt(query));
      expect(error.code).toBe('source.query');
      expect(error.details).toMatchObject({ reason });
    }
  });

  it('a function that writes is stopped by the read-only transaction', async () => {
    const error = await errorOf(read("SELECT nextval('counter') AS n"));
    expect(error.details).toEqual({ sqlstate: '25006', reason: 'writes' });
  });

  it.each([
    ['SELECT n,\n  labell FROM items', '42703', 2, 3],
    ["SELECT '😀', x\tFROM\n items", '42703', 1, 13],
    ['SELEC 1', '42601', 1, 1],
  ])('%j: SQLSTATE %s at line %i, column %i', async (query, sqlstate, line, column) => {
    const error = await errorOf(check(query));
    expect(error.code).toBe('source.query');
    expect(error.details).toEqual({ sqlstate, line, column });
  });

  it('late-privilege: a missing right to read is found by a check', async () => {
    const error = await errorOf(check('SELECT n FROM secrets', { ...harness.config, user: 'source_reader' }));
    expect(error.code).toBe('source.query');
    expect(error.details).toEqual({ sqlstate: '42501' });
  });

  it('a check computes nothing', async () => {
    expect(await check(harness.queries.slow)).toHaveLength(1);
  });

  it.each([
    ['40001', 'source.lost'],
    ['40P01', 'source.lost'],
    ['53200', 'source.lost'],
    ['57P01', 'source.lost'],
    ['58030', 'source.lost'],
    ['XX000', 'source.lost'],
    ['57014', 'source.timeout'],
    ['55P03', 'source.timeout'],
    ['22012', 'source.query'],
    ['42501', 'source.query'],
    ['P0001', 'source.query'],
  ])('leaks: SQLSTATE %s is %s, without the words of the server', async (sqlstate, code) => {
    const error = await errorOf(read(`SELECT fail('${sqlstate}') AS n`));
    expect(error.code).toBe(code);
    expect(error.details).toEqual({ sqlstate });
    expect(`${error.message} ${error.stack} ${JSON.stringify(error)}`).not.toContain('4711');
  });
});
