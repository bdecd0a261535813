/**
 * What the runtime role may touch: a worker's login may read, and call the functions of the border; it may write nothing
 * directly, and nothing of its own making runs with the owner's rights.
 */

import pg from 'pg';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { sha256FromHex } from '../../src/domain/ids.ts';
import { markSending, prepareStep, settleStep } from '../../src/journal/batches.ts';
import { loadCandidate } from '../../src/journal/candidate.ts';
import { openJournal } from '../../src/journal/pool.ts';
import {
  admit,
  beginAttempt,
  closeRun,
  fold,
  guard,
  plan,
  recordBaseline,
  seal,
} from '../../src/journal/runs.ts';
import { createTestJournal, stateOf, type TestJournal } from '../support/journal.ts';
import { addRow, admission, rowsOf, ScriptedRun, shaHex } from '../support/journal-run.ts';

const DENIED = '42501';

let journal: TestJournal;
let run: ScriptedRun;
/** Every table of the schema, those that belong to one run, generation or target among them. */
let tables: readonly string[];

beforeAll(async () => {
  journal = await createTestJournal();
  run = await ScriptedRun.open(journal.runtime, { mirror: 'rights' });
  await run.upToAdditions(rowsOf({ a: '1', b: '1' }));
  const { rows } = await journal.admin.query<{ name: string }>(
    "select format('%I.%I', schemaname, tablename) as name from pg_tables where schemaname = 'retl' order by 1",
  );
  tables = rows.map((row) => row.name);
});
afterAll(() => journal.close());

const attempt = (sql: string) => stateOf(journal.runtime.query(sql));

describe('tables', () => {
  test('the runtime writes to no table of the journal directly, whatever the statement', async () => {
    expect(tables.length).toBeGreaterThan(15);
    for (const table of tables) {
      for (const sql of [
        `insert into ${table} default values`,
        `update ${table} set ctid = ctid`,
        `delete from ${table}`,
        `truncate ${table}`,
        `copy ${table} from program 'true'`,
        `copy ${table} from stdin`,
        `merge into ${table} using (select 1) s on true when matched then delete`,
        `select * from ${table} for update`,
        `do $$begin lock table ${table} in share mode; end$$`,
        `alter table ${table} disable trigger all`,
        `alter table ${table} add column mine text`,
        `drop table ${table}`,
        `create index on ${table} ((1))`,
        `create trigger mine before insert on ${table} execute function retl.refuse_change()`,
        `create rule mine as on select to ${table} do instead nothing`,
        `create policy mine on ${table}`,
        `comment on table ${table} is 'mine'`,
        `alter table ${table} owner to ${journal.runtimeRole}`,
      ]) {
        expect(['42501', '42809', '0A000'], `${sql}`).toContain(await attempt(sql));
      }
    }
  });

  test('the runtime makes nothing in the schema, nor changes what stands there', async () => {
    for (const sql of [
      'create table retl.mine (x int)',
      "create function retl.mine() returns int language sql as 'select 1'",
      'create or replace function retl.lock_run(bigint, bigint) returns retl.run language sql as $$select null::retl.run$$',
      'alter function retl.guard security invoker',
      'alter function retl.guard reset search_path',
      'drop function retl.guard',
      'create type retl.mine as enum ()',
      'alter domain retl.sha256 drop constraint sha256_check',
      'drop schema retl cascade',
      'alter schema retl rename to other',
      "select nextval('retl.epoch')",
      "select setval('retl.generation_number', 1)",
      'alter sequence retl.epoch restart',
    ]) {
      expect(await attempt(sql), sql).toBe(DENIED);
    }
  });

  test('what one reads of the journal includes what the worker needs', async () => {
    for (const table of tables) expect(await attempt(`select * from ${table} limit 1`), table).toBeNull();
  });
});

describe('functions', () => {
  const ALL = `
    select p.proname as name, p.oid::regprocedure::text as signature, p.prosecdef as definer,
      pg_get_userbyid(p.proowner) as owner, coalesce(p.proconfig, '{}') as config,
      has_function_privilege('retl_runtime', p.oid, 'execute') as callable,
      exists (select from aclexplode(coalesce(p.proacl, acldefault('f', p.proowner))) a where a.grantee = 0) as public,
      p.prorettype = 'trigger'::regtype as trigger
    from pg_proc p where p.pronamespace = 'retl'::regnamespace`;

  test('every function belongs to the owner, pins its search_path with pg_temp last, and is nothing of PUBLIC', async () => {
    const { rows } = await journal.admin.query(ALL);
    expect(rows.length).toBeGreaterThan(35);
    for (const f of rows) {
      expect(f, f.signature).toMatchObject({ owner: journal.ownerRole, public: false });
      expect(f.config, f.signature).toEqual(['search_path=pg_catalog, pg_temp']);
      // What runs as the owner is the border, and the border is what runs as the owner.
      expect(f.definer, f.signature).toBe(f.callable);
    }
  });

  test('helper functions cannot be called, not even with nulls', async () => {
    const { rows } = await journal.admin.query(
      `${ALL} and not has_function_privilege('retl_runtime', p.oid, 'execute')`,
    );
    expect(rows.length).toBeGreaterThan(10);
    for (const f of rows) {
      const types = f.signature.slice(f.signature.indexOf('(') + 1, -1);
      const nulls =
        types === ''
          ? ''
          : types
              .split(',')
              .map((t: string) => `null::${t}`)
              .join(',');
      expect(await attempt(`select retl.${f.name}(${nulls})`), f.signature).toBe(DENIED);
    }
  });

  test('a stranger with a login alone reads and calls nothing', async () => {
    const stranger = `${journal.runtimeRole}_not`;
    await journal.admin.query(`create role ${stranger} login`);
    const url = new URL(journal.runtimeUrl);
    url.username = stranger;
    const client = new pg.Client({ connectionString: url.href });
    await client.connect();
    expect(await stateOf(client.query('select * from retl.run'))).toBe(DENIED);
    expect(await stateOf(client.query("select retl.resolve_batch('', 'accepted', 'x')"))).toBe(DENIED);
    await client.end();
    await journal.admin.query(`drop role ${stranger}`);
  });
});

describe('roles and search paths', () => {
  test('SET ROLE and SET SESSION AUTHORIZATION lead nowhere', async () => {
    expect(await attempt(`set role ${journal.ownerRole}`)).toBe(DENIED);
    expect(await attempt(`set session authorization ${journal.ownerRole}`)).toBe(DENIED);
    expect(await attempt('set session_replication_role = replica')).toBe(DENIED);
    const client = await journal.runtime.connect();
    try {
      await client.query('set role retl_runtime');
      expect(await stateOf(client.query('delete from retl.batch'))).toBe(DENIED);
      expect(await stateOf(client.query(`grant retl_runtime to ${journal.ownerRole}`))).toBe(DENIED);
      expect(await stateOf(client.query('create table retl.mine (x int)'))).toBe(DENIED);
    } finally {
      client.release(true);
    }
  });

  test('functions, operators and tables of the caller’s own are never found by the owner’s functions', async () => {
    const mine = `mine_${journal.runtimeRole.slice(-12)}`;
    await journal.admin.query(`create schema ${mine} authorization ${journal.runtimeRole}`);
    // One connection, so that what the session sets up is there for every statement.
    const session = openJournal({ url: journal.runtimeUrl, max: 1 });
    try {
      const trap = (signature: string, returns: string) =>
        `create function ${signature} returns ${returns} language plpgsql as
          $$begin raise exception 'run by %', current_user using errcode = 'TRAP1'; end$$`;
      await session.query(`
        create table ${mine}.run (run_id bigint);
        ${trap(`${mine}.clock_timestamp()`, 'timestamptz')};
        ${trap(`${mine}.count(bigint)`, 'bigint')};
        ${trap(`${mine}.sha256(bytea)`, 'bytea')};
        ${trap(`${mine}.nextval(text)`, 'bigint')};
        ${trap(`${mine}.int8_is(bigint, bigint)`, 'boolean')};
        create operator ${mine}.= (leftarg = bigint, rightarg = bigint, function = ${mine}.int8_is);
        create operator ${mine}.<> (leftarg = bigint, rightarg = bigint, function = ${mine}.int8_is);
        create temporary table run (run_id bigint);
        create temporary table batch (batch_id bytea);
        create function pg_temp.format(text, bigint) returns text language sql as $$select 'select 1/0'$$;
        set search_path = ${mine}, pg_catalog, retl`);
      // The traps are armed for what the session itself writes. (A statement that fails would end the session.)
      await session.query(`do $do$ begin
          begin perform sha256(''::bytea); raise 'not trapped'; exception when sqlstate 'TRAP1' then null; end;
          begin perform 1::bigint = 1::bigint; raise 'not trapped'; exception when sqlstate 'TRAP1' then null; end;
        end $do$`);
      const request = admission({ mirror: 'trap' });
      const answer = await admit(session, request);
      if (answer.kind !== 'admitted') throw new Error(answer.kind);
      const { epoch } = await beginAttempt(session, answer.run, request.holder, 'test');
      const attempt = { run: answer.run, epoch };
      await recordBaseline(session, attempt, 'new-empty', 'verified', null);
      const id = sha256FromHex(shaHex('the init'));
      await prepareStep(session, attempt, 'init', id, id, 1);
      await markSending(session, attempt, id, 1_000);
      await settleStep(session, attempt, id, '{}', new Map([['key', 'value']]));
      await loadCandidate(session, attempt, '[]', async (sink) => {
        for (const row of rowsOf({ a: '1', b: '1' })) addRow(sink, row);
      });
      expect(await seal(session, attempt, 1_000, 1_000)).toEqual({ kind: 'sealed' });
      expect(await fold(session, attempt, 1)).toBe(0);
      await plan(session, attempt);
      expect(await guard(session, attempt)).toEqual({ kind: 'passed' });
      await closeRun(session, attempt, 'aborted', null);
    } finally {
      await session.end();
      await journal.admin.query(`drop schema ${mine} cascade`);
    }
  });
});
