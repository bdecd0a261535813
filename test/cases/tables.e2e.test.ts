/** From one PostgreSQL to another, end to end: messy text, every common type, and tables that do not take everything. */

import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { System } from '../support/system.ts';
import { TableScene } from '../support/system-destinations.ts';
import { completedBy } from '../support/system-scene.ts';
import type { WorkerProcess } from '../support/worker-process.ts';

let system: System;
let worker: WorkerProcess;
beforeAll(async () => {
  system = await System.start();
  worker = await system.startWorker();
});
afterAll(() => system.stop());

const SCRAPS = [
  ...[
    '',
    ' ',
    '\t',
    '\r\n',
    '\\N',
    '\\',
    '\\\\',
    '\\u0000',
    'NULL',
    'null',
    "'",
    '"',
    '`',
    '$$',
    '$1',
    '%s',
    '{}',
  ],
  ...[
    '[1]',
    '{"a":1}',
    `\${env:HOME}`,
    '</script>',
    ';--',
    '\x01',
    '\x1b[0m',
    '\x7f',
    '\u0085',
    '\u00a0',
    '\u2028',
  ],
  ...[
    '\ufeff',
    '\uffff',
    '\u200b',
    '\u202e',
    'é',
    'e\u0301',
    'ﬁ',
    'Å',
    'ẞ',
    'ı',
    'İ',
    '中文',
    'العربية',
    '😀',
    '👩‍👩‍👧',
    '🏳️‍🌈',
  ],
  ...['x'.repeat(5_000), 'é'.repeat(900)],
];

/** The same texts at every run: a small generator of its own. */
function messyTexts(count: number): readonly string[] {
  let seed = 42;
  const next = (below: number): number => {
    seed = (seed * 1_103_515_245 + 12_345) % 2_147_483_648;
    return Math.floor((seed / 2_147_483_648) * below);
  };
  return Array.from({ length: count }, () =>
    Array.from({ length: 1 + next(5) }, () => SCRAPS[next(SCRAPS.length)] ?? '').join(''),
  );
}

async function insertMessy(scene: TableScene, from: number, texts: readonly string[]): Promise<void> {
  await system.source.query(
    `insert into ${scene.table} select left(t, 200) || '#' || ($1::int + n), case when n % 7 = 0 then null else t end
     from unnest($2::text[]) with ordinality x(t, n)`,
    [from, texts],
  );
}

describe('messy text', () => {
  test('hundreds of rows arrive exactly, and so do their changes, arrivals and departures', async () => {
    const scene = await TableScene.create(system, 'messy', {
      rows: 'create table $table (id text primary key, plan text)',
      mirror: { batch: { rows: 100, in_flight: 4 } },
    });
    await insertMessy(scene, 0, messyTexts(800));
    expect((await scene.completed()).counts).toMatchObject({ added: 800 });
    expect(await scene.targetRows()).toEqual(await scene.sourceRows());
    expect((await scene.completed()).counts).toMatchObject({
      unchanged: 800,
      added: 0,
      changed: 0,
      removed: 0,
    });

    await scene.exec(`delete from $table where hashtext(id) % 5 = 0;
      update $table set plan = reverse(coalesce(plan, 'was null')) where hashtext(id) % 5 = 1`);
    await insertMessy(scene, 10_000, messyTexts(200));
    await scene.completed();
    expect(await scene.targetRows()).toEqual(await scene.sourceRows());
    expect(await scene.held()).toBe((await scene.sourceRows()).length);
  });

  test('every common type keeps its exact value', async () => {
    const columns = `id bigint primary key, n numeric, f float8, r real, b boolean, d date, t timestamp, z timestamptz,
      i interval, u uuid, j json, jb jsonb, y bytea, a text[], m money, e inet, c char(5)`;
    const query = 'select * from $table order by id';
    const scene = await TableScene.create(system, 'types', {
      rows: `create table $table (${columns});
        insert into $table values (9223372036854775807, 1e-30, 0.1, 3.4e38, true, '0044-03-15 BC', '2024-02-29 23:59:59.999999',
          '1999-12-31 23:59:59.123456+05:30', '1 year 2 mons -3 days 04:05:06.789', gen_random_uuid(), '{"a": 1, "b": [1.5, "é"]}',
          '{"b":[0.5, -7]}', '\\x00ff10', array['', null, '"', E'\\\\'], '-1234.50', '2001:db8::1/64', 'ab'),
        (-1, -0.00, 1e-300, 1e-40, false, 'infinity', null, null, null, null, null, null, '', '{}', null, null, null)`,
      query,
      target: `create table audience (${columns})`,
      mirror: {
        members: {
          identity: { id: 'id' },
          payload: Object.fromEntries(
            ['n', 'f', 'r', 'b', 't', 'z', 'i', 'u', 'j', 'jb', 'y', 'a', 'm', 'e', 'c'].map((x) => [x, x]),
          ),
        },
      },
    });
    await scene.completed();
    // A json column's blanks are no part of its value; its numbers and texts are.
    const exact = `select id::text, n::text, f::text, r::text, b::text, t::text, z::text, i::text, u::text, j::jsonb::text as j, jb::text,
      y::text, a::text, m::text, e::text, c::text from`;
    expect(await scene.targetRows(`${exact} audience order by id`)).toEqual(
      await scene.sourceRows(`${exact} $table order by id`),
    );
    expect((await scene.completed()).counts).toMatchObject({ changed: 0, unchanged: 2 });
  });

  test('a field that is written to another column is sent again for every member, unchanged ones too', async () => {
    const target = 'create table audience (id text primary key, plan text, tier text)';
    const options = { rows: 3, target };
    const scene = await TableScene.create(system, 'remapped', options);
    await scene.completed();
    await scene.configure({ ...options, destination: { columns: { plan: 'tier' } } });
    expect((await scene.completed()).counts).toMatchObject({ added: 0, changed: 3, unchanged: 0 });
    expect(await scene.targetRows('select distinct tier from audience')).toEqual([{ tier: 'vip' }]);
    expect((await scene.completed()).counts).toMatchObject({ changed: 0, unchanged: 3 });
  });

  test('null-clears: NULL clears the column, the empty text fills it', async () => {
    const scene = await TableScene.create(system, 'table-nulls', { rows: 3 });
    await scene.completed();
    await scene.exec(
      `update $table set plan = null where id = 'm001'; update $table set plan = '' where id = 'm002'`,
    );
    expect((await scene.completed()).counts).toMatchObject({ changed: 2 });
    expect(await scene.targetRows()).toEqual(await scene.sourceRows());
  });
});

describe('a table that does not take everything', () => {
  test('late-privilege: without DELETE nothing is sent at all, and the grant that is missing is named', async () => {
    const scene = await TableScene.create(system, 'no-delete', { rows: 5, rights: 'select, insert, update' });
    expect(await scene.run()).toMatchObject({
      kind: 'failed',
      type: 'invalid',
      message: expect.stringMatching(/privilege-delete.*GRANT DELETE ON/),
    });
    expect(await scene.targetRows()).toEqual([]);
  });

  test('late-privilege: a right that was taken away between two runs stops the second before its additions', async () => {
    const scene = await TableScene.create(system, 'taken-away', { rows: 5 });
    await scene.completed();
    await scene.target.query('revoke delete on audience from system_writer');
    await scene.exec(`delete from $table where id = 'm001'; insert into $table values ('new', 'x')`);
    expect(await scene.run()).toMatchObject({ message: expect.stringContaining('privilege-delete') });
    expect(await scene.targetRows()).toHaveLength(5);
    await scene.target.query('grant delete on audience to system_writer');
    await scene.completed();
    expect(await scene.targetRows()).toEqual(await scene.sourceRows());
  });

  test('partial-as-all: one row that the table refuses is rejected by itself; the others stand, nobody is removed', async () => {
    const scene = await TableScene.create(system, 'check', {
      rows: 5,
      target: `create table audience (id text primary key, plan text check (plan <> 'bad'))`,
    });
    await scene.completed();
    await scene.exec(`update $table set plan = 'bad' where id = 'm002'; update $table set plan = 'good' where id = 'm003';
      delete from $table where id = 'm005'`);
    expect(await scene.run()).toMatchObject({ kind: 'failed', type: 'rejected' });
    expect(await scene.targetRows()).toEqual([
      { id: 'm001', plan: 'vip' },
      { id: 'm002', plan: 'vip' },
      { id: 'm003', plan: 'good' },
      { id: 'm004', plan: 'vip' },
      { id: 'm005', plan: 'vip' },
    ]);
    await scene.exec(`update $table set plan = 'mended' where id = 'm002'`);
    expect((await scene.completed()).counts).toMatchObject({ changed: 1, removed: 1 });
    expect(await scene.targetRows()).toEqual(await scene.sourceRows());
  });

  test('rule 3: a worker that dies before it has written down a refused row blocks nobody: the second copy tells of each row', async () => {
    const scene = await TableScene.create(system, 'check-lost', {
      rows: 5,
      target: `create table audience (id text primary key, plan text check (plan <> 'bad'))`,
      mirror: { on_rejection: { tolerate: { max: 1 } } },
    });
    await scene.exec(`update $table set plan = 'bad' where id = 'm002'`);
    const held = system.proxy.hold({ statement: 'retl.settle_batch(', how: 'unseen' });
    const handle = await scene.start();
    await held.reached;
    await worker.kill();
    worker = await system.startWorker();
    expect((await completedBy(handle)).counts).toMatchObject({ added: 4, rejected: 1 });
    expect(await scene.batches('upsert')).toMatchObject([{ state: 'settled', resends: 1 }]);
    expect(await scene.targetRows('select id from audience order by id')).toHaveLength(4);
    await scene.exec(`update $table set plan = 'mended' where id = 'm002'`);
    await scene.completed();
    expect(await scene.targetRows()).toEqual(await scene.sourceRows());
  });

  test('silent-noop: rows that a trigger drops are not accepted', async () => {
    const scene = await TableScene.create(system, 'trigger', {
      rows: 4,
      target: `create table audience (id text primary key, plan text);
        create function drop_it() returns trigger language plpgsql as $$ begin return null; end $$;
        create trigger t before insert on audience for each row when (new.id = 'm002') execute function drop_it()`,
    });
    expect(await scene.run()).toMatchObject({ kind: 'failed', type: 'rejected' });
    expect(await scene.targetRows('select id from audience order by id')).toHaveLength(3);
  });

  test('co-writer: rows and columns of others stay as they are', async () => {
    const scene = await TableScene.create(system, 'shared', {
      rows: 3,
      target: `create table audience (id text primary key, plan text, note text default 'mine')`,
    });
    await scene.completed();
    await scene.target.query(
      `insert into audience values ('theirs', 'x', 'y'); update audience set note = 'kept' where id = 'm002'`,
    );
    await scene.exec(`delete from $table where id = 'm001'; update $table set plan = 'gold'`);
    await scene.completed();
    expect(await scene.targetRows('select id, plan, note from audience order by id')).toEqual([
      { id: 'm002', plan: 'gold', note: 'kept' },
      { id: 'm003', plan: 'gold', note: 'mine' },
      { id: 'theirs', plan: 'x', note: 'y' },
    ]);
  });

  test('case-only: a citext column: a key that changes case stays one row', async () => {
    const scene = await TableScene.create(system, 'folded-table', {
      rows: `create table $table (id text primary key, plan text); insert into $table values ('A@x', 'p')`,
      target: 'create extension citext; create table audience (id citext primary key, plan text)',
      destination: { identity_folding: ['case'] },
    });
    await scene.completed();
    await scene.exec(`update $table set id = 'a@X'`);
    expect((await scene.completed()).counts).toMatchObject({ added: 0, changed: 1, removed: 0 });
    expect(await scene.targetRows('select id::text from audience')).toEqual([{ id: 'a@X' }]);
  });
});
