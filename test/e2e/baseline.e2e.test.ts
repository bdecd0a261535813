/** `baseline: tracked`: targets that other means have filled are taken over from a list of what they hold. */

import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { verifyLog } from '../../src/journal/verify-log.ts';
import { retl } from '../cli/support.ts';
import { ReplayedIndex } from '../support/log-replay.ts';
import { System } from '../support/system.ts';
import { HttpScene, TableScene } from '../support/system-destinations.ts';

let system: System;
beforeAll(async () => {
  system = await System.start();
  await system.startWorker();
});
afterAll(() => system.stop());

const TRACKED = { mirror: { baseline: 'tracked' } };

async function file(name: string, text: string): Promise<string> {
  const path = join(system.project.folder, name);
  await writeFile(path, text);
  return path;
}

const baseline = (mirror: string, path: string, ...more: readonly string[]) =>
  retl(
    [
      'baseline',
      'import',
      mirror,
      '--from',
      path,
      '--because',
      'export of Monday',
      '--yes',
      '--json',
      ...more,
    ],
    {
      cwd: system.project.folder,
      env: system.env,
    },
  );

interface Listed {
  readonly id: string;
  readonly plan: string | null;
}

const csvOf = (rows: readonly Listed[]) =>
  `id,plan\n${rows.map((row) => `${row.id},${row.plan ?? ''}\n`).join('')}`;

/** What a command has told with `--json`. */
function told(output: string): unknown {
  return JSON.parse(output);
}

describe('a table that holds members already', () => {
  test('is refused until its members are imported; then only differences are sent, and leftovers are removed', async () => {
    const scene = await TableScene.create(system, 'takeover', TRACKED);
    await scene.target.query(
      `insert into audience select 'm' || lpad(n::text, 3, '0'), case when n = 2 then 'old' else 'vip' end
         from generate_series(1, 8) n;
       insert into audience values ('left1', 'vip'), ('left2', null)`,
    );
    expect(await scene.run()).toMatchObject({
      kind: 'failed',
      message: expect.stringContaining('run.baseline-missing'),
    });
    const refused = await retl(['plan', 'takeover', '--json'], {
      cwd: system.project.folder,
      env: system.env,
    });
    expect(told(refused.stdout)).toMatchObject({ error: { code: 'run.baseline-missing' } });
    expect(await scene.batches()).toEqual([]);

    const { rows } = await scene.target.query<Listed>('select id, plan from audience');
    const csv = await file('takeover.csv', `${csvOf(rows)}m001,vip\n`);
    const done = await baseline('takeover', csv);
    expect([done.code, told(done.stdout)]).toEqual([
      0,
      { mirror: 'takeover', imported: 10, rows: 11, collapsed: 1, payloadsLack: [] },
    ]);
    expect((await scene.completed()).counts).toMatchObject({
      added: 2,
      changed: 1,
      removed: 2,
      unchanged: 7,
    });
    expect(await scene.targetRows()).toEqual(await scene.sourceRows());
    expect(await scene.runs()).toMatchObject([{ closing: 'imported' }, { closing: 'completed' }]);
    const again = await baseline('takeover', csv);
    expect([again.code, told(again.stdout)]).toMatchObject([3, { error: { code: 'run.baseline-known' } }]);

    expect(await verifyLog(system.journal, { effects: true })).toMatchObject({ kind: 'intact' });
    await ReplayedIndex.replay(system.journal);
    const runs = await retl(['explain', 'takeover', 'm003', '--json'], {
      cwd: system.project.folder,
      env: system.env,
    });
    expect(runs.code).toBe(0);
    expect(runs.stdout).toContain('imported');
  });
});

test('each target of a tracked mirror begins from its own baseline, and one that it comes back to still has its members', async () => {
  const scene = await TableScene.create(system, 'moves', TRACKED);
  const moveTo = (table: string) => scene.configure({ ...TRACKED, destination: { table } });
  const rowsOf = async (table: string) =>
    (await scene.target.query<Listed>(`select id, plan from ${table} order by id collate "C"`)).rows;
  await scene.target.query(
    `insert into audience select 'm' || lpad(n::text, 3, '0'), 'vip' from generate_series(1, 8) n;
     insert into audience values ('left', 'vip');
     create table second (like audience including all);
     insert into second values ('m001', 'vip'), ('m002', 'old'), ('other1', 'vip'), ('other2', null);
     grant select, insert, update, delete on second to public`,
  );
  const first = await file('moves.csv', csvOf(await rowsOf('audience')));
  expect(await baseline('moves', first)).toMatchObject({ code: 0 });
  expect((await scene.completed()).counts).toMatchObject({ added: 2, changed: 0, unchanged: 8, removed: 1 });

  await moveTo('second');
  await scene.exec(`delete from $table where id = 'm010'`);
  const before = { first: await rowsOf('audience'), second: await rowsOf('second') };
  // What the first target held, and who vouched for that, says nothing here.
  expect(await scene.run()).toMatchObject({
    kind: 'failed',
    message: expect.stringContaining('run.baseline-missing'),
  });
  expect({ first: await rowsOf('audience'), second: await rowsOf('second') }).toEqual(before);
  const adopted = await retl(
    ['baseline', 'verify', 'moves', '--adopt', '--because', 'ours alone', '--yes', '--json'],
    { cwd: system.project.folder, env: system.env },
  );
  expect([adopted.code, told(adopted.stdout)]).toEqual([0, { mirror: 'moves', adopted: 4 }]);
  // Payloads that are listed are not taken over: both members that stay are sent.
  const { counts } = await scene.completed();
  expect(counts).toMatchObject({ added: 7, changed: 2, removed: 2 });
  expect(await rowsOf('second')).toEqual(await scene.sourceRows());
  expect(await rowsOf('audience')).toEqual(before.first);

  await moveTo('audience');
  const again = await baseline('moves', first);
  expect([again.code, told(again.stdout)]).toMatchObject([3, { error: { code: 'run.baseline-known' } }]);
  expect((await scene.completed()).counts).toMatchObject({ added: 0, changed: 0, unchanged: 9, removed: 1 });
  expect(await rowsOf('audience')).toEqual(await scene.sourceRows());
  await moveTo('second');
  expect((await scene.completed()).counts).toMatchObject({ added: 0, changed: 0, unchanged: 9, removed: 0 });
  await ReplayedIndex.replay(system.journal);
});

describe('an API that holds members already', () => {
  test('resync-forgets: leftovers of which nothing but the identity is known are removed under the guard', async () => {
    const scene = await HttpScene.create(system, 'takeover-api', { rows: 4, ...TRACKED });
    const members = ['m001', 'm002', ...Array.from({ length: 8 }, (_, i) => `gone${i}`)];
    const before = await fetch(`${scene.audience.url}/members`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(members.map((id) => ({ id, plan: 'vip' }))),
    });
    expect(before.ok).toBe(true);
    const ndjson = await file('api.ndjson', `${members.map((id) => JSON.stringify({ id })).join('\n')}\n`);
    const done = await baseline('takeover-api', ndjson);
    expect([done.code, told(done.stdout)]).toMatchObject([0, { imported: 10, payloadsLack: ['plan'] }]);
    expect(scene.writes).toHaveLength(1);

    const handle = await scene.start();
    const parked = await scene.untilParked(handle);
    expect(parked).toMatchObject({ code: 'max-removal-share', removals: 8, held: 10 });
    expect(scene.audience.held).toEqual([...members].sort());
    await scene.answer(handle, 'approve', parked);
    await handle.result();
    expect(scene.audience.state.members).toEqual(await scene.wanted());
    expect((await scene.completed()).counts).toMatchObject({
      unchanged: 4,
      added: 0,
      changed: 0,
      removed: 0,
    });
  });
});
