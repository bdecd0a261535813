/** What a run makes of a snapshot: which members come, change, go and stay; and which snapshots are refused. */

import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { System } from '../support/system.ts';
import { HttpScene } from '../support/system-destinations.ts';
import { completedBy, ending, eventually } from '../support/system-scene.ts';

let system: System;
beforeAll(async () => {
  system = await System.start();
  await system.startWorker();
});
afterAll(() => system.stop());

const FINISH = { finish: { method: 'POST', path: '/finish', body: { json: { members: [] } } } };
const SEES_TEXT = { outcomes: 'per_request' };

describe.concurrent('wrong removals', () => {
  test('empty-ok: a query that returns nothing removes nobody: the run is parked, and a rejection ends it', async () => {
    const scene = await HttpScene.create(system, 'empty-ok', { rows: 40, mirror: { batch: { rows: 40 } } });
    await scene.completed();
    await scene.exec('delete from $table');
    const handle = await scene.start();
    const asked = await scene.untilParked(handle);
    expect(asked).toMatchObject({ code: 'empty-snapshot', removals: 40, held: 40 });
    await scene.answer(handle, 'reject', asked);
    expect(await ending(handle)).toMatchObject({
      kind: 'failed',
      type: 'guard-held',
      message: expect.stringContaining('run.guard-rejected (empty-snapshot)'),
    });
    expect(scene.writes).toHaveLength(1);
    expect(await scene.held()).toBe(40);
    expect((await scene.runs()).at(-1)).toMatchObject({ closing: 'guard-rejected' });
    // The rejected snapshot is not taken up: the source is read anew.
    await scene.exec(
      `insert into $table select 'm' || lpad(n::text, 3, '0'), 'vip' from generate_series(1, 40) n`,
    );
    expect((await scene.completed()).counts).toMatchObject({ unchanged: 40, removed: 0 });
  });

  test('empty-ok: more removals than the limit allows remove nobody, though additions are due', async () => {
    const scene = await HttpScene.create(system, 'too-many', { rows: 40, mirror: { batch: { rows: 40 } } });
    await scene.completed();
    await scene.exec(`delete from $table where id > 'm015'; insert into $table values ('new', 'x')`);
    const handle = await scene.start();
    const asked = await scene.untilParked(handle);
    expect(asked).toMatchObject({ code: 'max-removal-share', removals: 25, held: 40 });
    expect(scene.writes).toHaveLength(1);
    // Approved, both happen: the addition first.
    await scene.answer(handle, 'approve', asked);
    expect((await completedBy(handle)).counts).toMatchObject({ added: 1, removed: 25 });
    expect(scene.writes.map((w) => w.method)).toEqual(['POST', 'POST', 'DELETE']);
  });

  test('empty-skipped: an emptying that was approved happens, in bounded batches, and is the new baseline', async () => {
    const scene = await HttpScene.create(system, 'empty-approved', { rows: 12, destination: FINISH });
    await scene.completed();
    const before = scene.writes.length;
    await scene.exec('delete from $table');
    const handle = await scene.start();
    await scene.answer(handle, 'approve', await scene.untilParked(handle));
    expect((await completedBy(handle)).counts).toMatchObject({ removed: 12, members: 0 });
    expect(scene.writes.slice(before).map((w) => w.method)).toEqual(['DELETE', 'DELETE', 'DELETE', 'POST']);
    expect(scene.audience.held).toEqual([]);
    expect(await scene.held()).toBe(0);
    // With nobody left to remove, another empty snapshot asks nothing.
    expect((await scene.completed()).counts).toMatchObject({ removed: 0, members: 0 });
  });

  test('empty-skipped: where it is allowed everybody goes, in bounded batches, then one finish; unchanged: finish alone', async () => {
    const scene = await HttpScene.create(system, 'empty-skipped', {
      rows: 12,
      destination: FINISH,
      mirror: { safety: { max_removals: '100%', empty_snapshot: 'allow' } },
    });
    await scene.completed();
    const methods = () => scene.writes.map((w) => w.method);
    expect(methods()).toEqual(['POST', 'POST', 'POST', 'POST']);
    await scene.completed();
    expect(scene.writes).toHaveLength(5);
    await scene.exec('delete from $table');
    expect((await scene.completed()).counts).toMatchObject({ removed: 12, members: 0 });
    expect(methods().slice(5)).toEqual(['DELETE', 'DELETE', 'DELETE', 'POST']);
    expect(scene.audience.held).toEqual([]);
    expect(await scene.held()).toBe(0);
    await scene.completed();
    expect(scene.writes).toHaveLength(10);
  });

  test('delta-as-whole: 3 of 100 changed: 3 upserts, no removal', async () => {
    const scene = await HttpScene.create(system, 'delta', { rows: 100, mirror: { batch: { rows: 100 } } });
    await scene.completed();
    await scene.exec(`update $table set plan = 'gold' where id in ('m003', 'm050', 'm099')`);
    expect((await scene.completed()).counts).toMatchObject({
      added: 0,
      changed: 3,
      removed: 0,
      unchanged: 97,
    });
    expect(JSON.parse(scene.writes[1]?.body ?? '')).toHaveLength(3);
    expect(scene.writes).toHaveLength(2);
  });

  test('co-writer: members that another program wrote are left alone', async () => {
    const scene = await HttpScene.create(system, 'co-writer', { rows: 5 });
    await scene.completed();
    const foreign = ['f1', 'f2', 'f3', 'f4', 'f5'];
    for (const id of foreign) scene.audience.state.members.set(id, { id });
    await scene.exec(`delete from $table where id = 'm001'`);
    await scene.completed();
    expect(scene.writes.at(-1)).toMatchObject({ method: 'DELETE', body: '[{"id":"m001"}]' });
    expect(scene.audience.held).toEqual([...foreign, 'm002', 'm003', 'm004', 'm005']);
  });

  test('new-empty: a target that holds something already is refused, with nothing sent', async () => {
    const scene = await HttpScene.create(system, 'not-empty', { rows: 5 });
    scene.audience.state.members.set('somebody', {});
    expect(await scene.run()).toMatchObject({
      kind: 'failed',
      type: 'invalid',
      message: expect.stringContaining('destination.not-empty'),
    });
    expect(scene.writes).toEqual([]);
  });

  test('transformed-key: what is removed is what was upserted, byte for byte', async () => {
    const scene = await HttpScene.create(system, 'hashed', {
      rows: `create table $table (id text primary key, plan text);
        insert into $table values (' Bob@X.com ', 'a'), ('ann@x.com', 'b')`,
      mirror: { members: { identity: { id: { column: 'id', normalize: 'email', hash: 'sha256' } } } },
    });
    await scene.completed();
    await scene.exec(`delete from $table where plan = 'a'`);
    await scene.completed();
    const upserted = JSON.parse(scene.writes[0]?.body ?? '[]').map((row: unknown) => JSON.stringify(row));
    expect(upserted).toContain(scene.writes[1]?.body.slice(1, -1));
    expect(scene.audience.held).toHaveLength(1);
  });
});

describe.concurrent('keys and identities', () => {
  const PAIRS = `create table $table (a text, b text, plan text, primary key (a, b));
    insert into $table values ('a', 'bc', '1'), ('ab', 'c', '2'), ('1', '23', '3'), ('12', '3', '4'),
      ('x|y', 'z', '5'), ('x', 'y|z', '6'), (E'p\\x1f', 'q', '7'), ('p', E'\\x1fq', '8'), ('NULL', 'n', '9')`;
  const byPair = { identity: { a: 'a', b: 'b' }, payload: {} };

  test('key-concat: composite keys whose parts run together are distinct, and one that goes takes no other along', async () => {
    const scene = await HttpScene.create(system, 'key-concat', {
      rows: PAIRS,
      query: 'select a, b from $table',
      key: ['a', 'b'],
      destination: SEES_TEXT,
      mirror: { members: byPair, batch: { rows: 100 } },
    });
    expect((await scene.completed()).counts).toMatchObject({ added: 9 });
    await scene.exec(`delete from $table where a in ('ab', 'x|y', 'p')`);
    expect((await scene.completed()).counts).toMatchObject({ removed: 3, added: 0, changed: 0 });
    expect(scene.audience.state.members.size).toBe(6);
    expect([...scene.audience.state.members.values()]).toContainEqual({ a: 'a', b: 'bc' });
  });

  const refused: readonly (readonly [string, string, string])[] = [
    ['null-key: NULL in the last row', `(null, 'x')`, 'data.null-key'],
    ['null-key: an empty text in the last row', `('', 'x')`, 'data.null-key'],
    ['duplicate-key: the first row again at the end', `('m1', 'x')`, 'data.duplicate-key'],
  ];
  test.each(refused)('%s: refused by name, no call made', async (title, row, code) => {
    const scene = await HttpScene.create(
      system,
      `refused-${title.replaceAll(/[^a-z]+/gi, '-').toLowerCase()}`,
      {
        rows: `create table $table (id text, plan text);
        insert into $table select 'm' || n, 'vip' from generate_series(1, 9999) n; insert into $table values ${row}`,
        query: 'select id, plan from $table',
      },
    );
    expect(await scene.run()).toMatchObject({
      kind: 'failed',
      type: 'invalid',
      message: expect.stringMatching(new RegExp(`${code}.*sha256:[0-9a-f]{64}`)),
    });
    expect(scene.writes).toEqual([]);
    expect(await scene.runs()).toMatchObject([{ closing: 'invalid' }]);
    expect(
      await system.rows(
        `select 1 from pg_class where relname like 'generation_%' and relkind = 'r'
      and relname = 'generation_' || (select generation_id from retl.generation where run_id = $1 limit 1)`,
        [(await scene.runs())[0]?.run],
      ),
    ).toEqual([]);
  });

  test('null-key: a composite key that is half NULL is refused', async () => {
    const scene = await HttpScene.create(system, 'half-null', {
      rows: `create table $table (a text, b text); insert into $table values ('x', 'y'), ('x', null)`,
      query: 'select a, b from $table',
      key: ['a', 'b'],
      destination: SEES_TEXT,
      mirror: { members: byPair },
    });
    expect(await scene.run()).toMatchObject({ message: expect.stringContaining('data.null-key') });
    expect(scene.writes).toEqual([]);
  });

  test('two rows that give one identity: alike they collapse, different they are refused', async () => {
    const scene = await HttpScene.create(system, 'collapse', {
      rows: `create table $table (n int primary key, id text, plan text);
        insert into $table values (1, 'a', 'x'), (2, 'a', 'x'), (3, 'b', 'y')`,
      query: 'select n, id, plan from $table',
      key: ['n'],
    });
    expect((await scene.completed()).counts).toMatchObject({ sourceRows: 3, added: 2 });
    await scene.exec(`update $table set plan = 'z' where n = 2`);
    expect(await scene.run()).toMatchObject({
      message: expect.stringMatching(
        /data\.conflicting-payloads.*count=1; identity hashes: sha256:[0-9a-f]{64}\)/,
      ),
    });
    expect(scene.audience.state.members.get('a')).toEqual({ id: 'a', plan: 'x' });
  });

  test('case-only: where the target folds case, a key that changes case is a change, and nobody is removed', async () => {
    const scene = await HttpScene.create(system, 'case-only', {
      rows: `create table $table (id text primary key, plan text); insert into $table values ('A@x', 'p'), ('b@x', 'p')`,
      destination: { identity_folding: ['case'] },
    });
    await scene.completed();
    await scene.exec(`update $table set id = 'a@x' where id = 'A@x'`);
    expect((await scene.completed()).counts).toMatchObject({ added: 0, changed: 1, removed: 0 });
    expect(scene.writes.map((write) => write.method)).toEqual(['POST', 'POST']);
    expect(scene.writes[1]?.body).toBe('[{"id":"a@x","plan":"p"}]');
  });
});

describe.concurrent('values', () => {
  test('bigint/numeric: neighbours past 2^53, 39 digits, arrays and scale stay exact and distinct', async () => {
    const scene = await HttpScene.create(system, 'exact', {
      rows: `create table $table (id bigint primary key, plan numeric, many bigint[]);
        insert into $table values (9007199254740992, 123456789012345678901234567890123456789, '{9007199254740993}'),
          (9007199254740993, 0.1, '{}')`,
      query: 'select id, plan, many from $table',
      mirror: { members: { identity: { id: 'id' }, payload: { plan: 'plan', many: 'many' } } },
    });
    expect((await scene.completed()).counts).toMatchObject({ added: 2 });
    expect(JSON.parse(scene.writes[0]?.body ?? '')).toEqual(
      expect.arrayContaining([
        {
          id: '9007199254740992',
          plan: '123456789012345678901234567890123456789',
          many: ['9007199254740993'],
        },
        { id: '9007199254740993', plan: '0.1', many: [] },
      ]),
    );
    expect((await scene.completed()).counts).toMatchObject({ changed: 0, unchanged: 2 });
    await scene.exec('update $table set plan = 0.10 where plan = 0.1');
    expect((await scene.completed()).counts).toMatchObject({ changed: 1 });
    expect(scene.writes.at(-1)?.body).toContain('"plan":"0.10"');
  });

  test('null-clears: a value, NULL and the empty text are three things', async () => {
    const scene = await HttpScene.create(system, 'null-clears', { rows: 1 });
    await scene.completed();
    const sent: unknown[] = [];
    for (const value of [`null`, `''`]) {
      await scene.exec(`update $table set plan = ${value}`);
      expect((await scene.completed()).counts).toMatchObject({ changed: 1 });
      sent.push(JSON.parse(scene.writes.at(-1)?.body ?? '')[0].plan);
    }
    expect(sent).toEqual([null, '']);
  });

  test('nul+surrogates: emoji, the text \\u0000 and odd controls arrive as they are', async () => {
    const scene = await HttpScene.create(system, 'odd-text', {
      rows: `create table $table (id text primary key, plan text);
        insert into $table values ('😀', '\\u0000'), (E'tab\\t', E'\\x01\\x1f\\u2028'), ('q"\\', 'ﬃ Å Å')`,
    });
    await scene.completed();
    expect(scene.audience.state.members).toEqual(await scene.wanted());
    expect((await scene.completed()).counts).toMatchObject({ unchanged: 3, changed: 0 });
  });

  test('nan/infinity: refused by column and key, in any row', async () => {
    const scene = await HttpScene.create(system, 'nan', {
      rows: `create table $table (id text primary key, plan float8); insert into $table values ('a', 1), ('b', 'NaN')`,
    });
    expect(await scene.run()).toMatchObject({
      message: expect.stringMatching(/data\.invalid-value.*plan.*sha256:/),
    });
    expect(scene.writes).toEqual([]);
  });
});

describe('resources', () => {
  test('cursor-leak: runs that fail at row 10 leave no transaction open and no table behind', async () => {
    const scene = await HttpScene.create(system, 'cursor-leak', {
      rows: `create table $table (id text primary key, plan float8);
        insert into $table select 'm' || n, case when n = 10 then 'NaN'::float8 else n end from generate_series(1, 50000) n`,
      query: 'select id, plan from $table',
    });
    for (let run = 0; run < 12; run += 1) expect(await scene.run()).toMatchObject({ type: 'invalid' });
    await eventually(async () => (await openTransactions()) === 0, 5_000);
    expect(
      await system.rows(`select relname from pg_class c join pg_namespace n on n.oid = relnamespace
        where nspname = 'retl' and relname ~ '^generation_[0-9]+$' and not exists (select from retl.generation
          where relname = 'generation_' || generation_id)`),
    ).toEqual([]);
  });
});

async function openTransactions(): Promise<number> {
  const { rows } = await system.source.query(
    `select from pg_stat_activity where datname = current_database() and usename = 'system_reader'`,
  );
  const journal = await system.rows(
    `select from pg_stat_activity where datname = current_database() and state like 'idle in transaction%'`,
  );
  return rows.length + journal.length;
}
