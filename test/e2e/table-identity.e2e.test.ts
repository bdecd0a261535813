/**
 * What identifies a row of a table, while a mirror's files change (design.md section 4, "Configuration"): nothing that the query
 * wants is ever removed.
 */

import { afterAll, beforeAll, expect, test } from 'vitest';
import { retl } from '../cli/support.ts';
import { System } from '../support/system.ts';
import { TableScene } from '../support/system-destinations.ts';

let system: System;
beforeAll(async () => {
  system = await System.start();
  await system.startWorker();
});
afterAll(() => system.stop());

const NUMBERED = {
  rows: `create table $table (id text primary key, plan text, odd boolean); insert into $table
    select n, 'vip', n % 2 = 1 from generate_series(1, 20) n`,
  query: 'select id, plan, odd from $table',
};
const MEMBERS = { identity: { id: 'id' }, payload: { plan: 'plan' } };
const AS_NUMBERS = { identity: { id: { column: 'id', as: 'number' } }, payload: { plan: 'plan' } };

test('key-concat: a number and its text are one row, and one member: a changed `as` is a change, and nobody is removed', async () => {
  const scene = await TableScene.create(system, 'as-number', NUMBERED);
  await scene.completed();
  await scene.configure({ ...NUMBERED, mirror: { members: AS_NUMBERS } });
  expect((await scene.completed()).counts).toMatchObject({ added: 0, changed: 20, removed: 0 });
  await scene.configure({ ...NUMBERED, mirror: { members: MEMBERS } });
  await scene.exec(`delete from $table where id = '7'`);
  expect((await scene.completed()).counts).toMatchObject({ added: 0, changed: 19, removed: 1 });
  expect(await scene.targetRows()).toEqual(await scene.sourceRows());
  expect(await scene.held()).toBe(19);
});

test('duplicate-key: two rules that give one row as a number and as a text are refused by the seal, with nothing sent', async () => {
  const members = [MEMBERS, { ...AS_NUMBERS, when: { column: 'odd', is: true } }];
  const scene = await TableScene.create(system, 'both-types', { ...NUMBERED, mirror: { members } });
  expect(await scene.run()).toMatchObject({
    kind: 'failed',
    message: expect.stringContaining('data.conflicting-payloads'),
  });
  expect(await scene.targetRows()).toEqual([]);
  expect(await scene.batches('upsert')).toEqual([]);
});

const TWO_KEYS = {
  rows: 8,
  target: 'create table audience (id text unique, alt text unique, plan text)',
  mirror: { safety: { max_removals: '100%', empty_snapshot: 'allow' } },
};
const MOVED = { kind: 'failed', type: 'refused', message: expect.stringContaining('run.identity-moved') };

test.each([
  ['by-alt', 'another column for an identity field', { columns: { id: 'alt' } }, MEMBERS],
  [
    'by-name',
    'another name of an identity field, for the same column',
    { columns: { key: 'id' } },
    { identity: { key: 'id' }, payload: { plan: 'plan' } },
  ],
])(
  'transformed-key: %s, %s: refused with nothing sent while members are held; allowed once there are none',
  async (name, _what, destination, members) => {
    const scene = await TableScene.create(system, name, TWO_KEYS);
    await scene.completed();
    const before = await scene.targetRows('select * from audience order by id');
    const changed = { ...TWO_KEYS, destination, mirror: { ...TWO_KEYS.mirror, members } };
    await scene.configure(changed);
    await scene.exec(`delete from $table where id = 'm003'`);
    const { folder } = system.project;
    for (const command of ['plan', 'check']) {
      const told = await retl([command, name], { cwd: folder, env: system.env });
      expect([command, told.stdout + told.stderr]).toEqual([
        command,
        expect.stringContaining('run.identity-moved'),
      ]);
    }
    expect(await scene.run()).toMatchObject(MOVED);
    expect(await scene.targetRows('select * from audience order by id')).toEqual(before);
    expect(await scene.runs()).toHaveLength(1);

    await scene.configure(TWO_KEYS);
    expect((await scene.completed()).counts).toMatchObject({ added: 0, unchanged: 7, removed: 1 });
    await scene.exec('create table kept_$table as table $table; delete from $table');
    expect((await scene.completed()).counts).toMatchObject({ removed: 7 });
    await scene.exec('insert into $table table kept_$table');
    await scene.configure(changed);
    expect((await scene.completed()).counts).toMatchObject({ added: 7, removed: 0 });
    await scene.exec(`delete from $table where id = 'm001'`);
    expect((await scene.completed()).counts).toMatchObject({ added: 0, removed: 1 });
    expect(await scene.targetRows('select plan from audience')).toHaveLength(6);
  },
);

test('two-writers: a second mirror is refused a table that another one owns, also by another identity column', async () => {
  const scene = await TableScene.create(system, 'first-owner', TWO_KEYS);
  await scene.completed();
  const second = new TableScene(system, 'second-owner', scene.table, scene.target);
  const destination = { connection: 'first-owner-db', columns: { id: 'alt' }, fence_table: 'other_fence' };
  await second.configure({ ...TWO_KEYS, destination });
  expect(await second.run()).toMatchObject({ message: expect.stringContaining('run.target-owned') });
});
