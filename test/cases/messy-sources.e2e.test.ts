/** Sources that misbehave: odd shapes, late failures, and rows of every size. */

import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { System } from '../support/system.ts';
import { HttpScene, TableScene } from '../support/system-destinations.ts';
import { completedBy, ending } from '../support/system-scene.ts';

let system: System;
beforeAll(async () => {
  system = await System.start();
  await system.startWorker();
});
afterAll(() => system.stop());

const columns = (count: number) => Array.from({ length: count }, (_, n) => `c${n + 1}`);

describe.concurrent('the shape of a query', () => {
  test('no columns at all', async () => {
    const scene = await HttpScene.create(system, 'no-columns', { query: 'select from $table' });
    expect(await scene.run()).toMatchObject({ kind: 'failed', type: 'invalid' });
    expect(scene.writes).toEqual([]);
  });

  test('one row', async () => {
    const scene = await HttpScene.create(system, 'one-row', { rows: 1 });
    expect((await scene.completed()).counts).toMatchObject({ added: 1 });
  });

  test.for([100, 1_600])('%d columns of which two are mapped', async (count) => {
    const names = columns(count - 1);
    const scene = await HttpScene.create(system, `columns-${count}`, {
      rows: `create table $table (id text primary key, ${names.map((c) => `${c} int2`).join(', ')});
        insert into $table (id, c1, ${names.at(-1)}) select 'm' || n, n, n + 1 from generate_series(1, 2000) n`,
      query: 'select * from $table',
      mirror: {
        members: { identity: { id: 'id' }, payload: { plan: String(names.at(-1)) } },
        batch: { rows: 500 },
      },
    });
    expect((await scene.completed()).counts).toMatchObject({ added: 2_000 });
    expect(scene.audience.state.members.get('m2000')).toEqual({ id: 'm2000', plan: 2_001 });
  });

  test('1,600 columns, every one mapped, from table to table', async () => {
    const names = columns(1_599);
    const wide = (table: string) =>
      `create table ${table} (id text primary key, ${names.map((c) => `${c} int2`).join(', ')})`;
    const scene = await TableScene.create(system, 'all-columns', {
      rows: `${wide('$table')}; insert into $table values ${[1, 2].map((r) => `('m${r}', ${names.map((_, n) => n + r).join()})`).join()}`,
      query: 'select * from $table',
      target: wide('audience'),
      mirror: { members: { identity: { id: 'id' }, payload: Object.fromEntries(names.map((c) => [c, c])) } },
    });
    await scene.completed();
    expect(await scene.targetRows('select * from audience order by id')).toEqual(
      await scene.sourceRows('select * from $table order by id'),
    );
  });
});

describe.concurrent('a query that fails late, or takes its time', () => {
  test('an error at row 50,000: nothing is sent, and the run says so', async () => {
    const scene = await HttpScene.create(system, 'late-error', {
      rows: `create table $table (id text, plan text); create function at_$table(n int) returns text language plpgsql as
        $f$ begin if n = 50000 then raise exception 'secret %', n; end if; return 'vip'; end $f$;
        create view v_$table as select 'm' || n as id, at_$table(n) as plan from generate_series(1, 60000) n;
        grant select on v_$table to system_reader`,
      query: 'select id, plan from v_$table',
      mirror: { batch: { rows: 5_000 } },
    });
    const end = await scene.run();
    expect(end).toMatchObject({ kind: 'failed', message: expect.stringMatching(/source\.query.*P0001/) });
    expect(JSON.stringify(end)).not.toContain('secret');
    expect(scene.writes).toEqual([]);
    await scene.exec(
      `create or replace function at_$table(n int) returns text language sql as $f$ select 'vip' $f$`,
    );
    await scene.completed();
    expect(scene.audience.held).toHaveLength(60_000);
  }, 120_000);

  test('a long time before the first row', async () => {
    const scene = await HttpScene.create(system, 'late-first-row', {
      query: 'select id, plan from $table, (select pg_sleep(14)) as waits',
    });
    expect((await scene.completed()).counts).toMatchObject({ added: 10 });
  });

  test('a table that changes while it is read is one snapshot', async () => {
    const scene = await HttpScene.create(system, 'changing', {
      rows: 2_000,
      query:
        'select id, plan from $table, lateral (select pg_sleep(case when right(id, 3) = $$000$$ then 1 else 0 end)) w',
      mirror: { batch: { rows: 500 } },
    });
    const handle = await scene.start();
    await sleep(700);
    await scene.exec(
      `update $table set plan = 'later', id = id || 'x'; delete from $table where id like '%7x'`,
    );
    await completedBy(handle);
    const plans = new Set(
      [...scene.audience.state.members.values()].map((m) => JSON.stringify(m).includes('later')),
    );
    expect(plans.size).toBe(1);
    expect(scene.audience.held).toHaveLength(plans.has(true) ? 1_800 : 2_000);
  });

  test('a statement timeout of the source’s role fails the run without a request', async () => {
    const scene = await HttpScene.create(system, 'timed-out', {
      source: 'slow-shop',
      query: 'select id, plan from $table, (select pg_sleep(30)) as waits',
    });
    await system.connect('slow-shop', { type: 'postgres', url: system.sourceUrl, statement_timeout_ms: 500 });
    const handle = await scene.start();
    const end = await Promise.race([ending(handle), sleep(12_000, null)]);
    if (end === null) {
      await scene.signal('cancel');
      expect(await ending(handle)).toMatchObject({ kind: 'result', result: { outcome: 'cancelled' } });
    } else expect(end).toMatchObject({ kind: 'failed' });
    expect(scene.writes).toEqual([]);
  });
});

describe.concurrent('rows of every size', () => {
  const huge = (megabytes: number) => `create table $table (id text primary key, plan text);
    insert into $table values ('small', 'x'), ('huge', repeat('0123456789', ${megabytes * 100_000})), ('other', 'y')`;

  test('one row of 50 MB is refused by its key where a request may not be as large', async () => {
    const scene = await HttpScene.create(system, 'huge-refused', {
      rows: huge(50),
      mirror: { batch: { bytes: '64MB' } },
    });
    const small = await HttpScene.create(system, 'huge-small-limit', { rows: huge(50) });
    expect(await small.run()).toMatchObject({ message: expect.stringContaining('data.operation-too-large') });
    expect((await scene.completed()).counts).toMatchObject({ added: 3 });
    expect(scene.audience.held).toEqual(['huge', 'other', 'small']);
  });

  test('texts of 200 KB by the hundred', async () => {
    const scene = await TableScene.create(system, 'long-texts', {
      rows: `create table $table (id text primary key, plan text);
        insert into $table select 'm' || n, repeat(md5(n::text) || '😀', 6000) from generate_series(1, 200) n`,
    });
    await scene.completed();
    const sums = (table: string) => `select id, length(plan), md5(plan) from ${table} order by id`;
    expect(await scene.targetRows(sums('audience'))).toEqual(await scene.sourceRows(sums('$table')));
  });
});
