/**
 * What identifies a row of a table, while a mirror's files change (design.md section 4, "Configuration"): nothing that the query
 * wants is ever removed.
 */

import { afterAll, beforeAll, expect, test } from 'vitest';
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
