/**
 * A removal that would take a wanted member away: the diff goes by identity hashes, and what the destination takes for one member
 * may have two. Such a run is refused before anything is sent, whatever the guard's limits say, and a plan says so too.
 */

import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { retl } from '../cli/support.ts';
import { System } from '../support/system.ts';
import { HttpScene, PER_ROW } from '../support/system-destinations.ts';

let system: System;
beforeAll(async () => {
  system = await System.start();
  await system.startWorker();
});
afterAll(() => system.stop());

const TEN = `create table $table (id text primary key, email text, plan text);
  insert into $table select n::text, case when n <= 2 then 'Ann' else 'ann' end || n || '@example.org', 'vip' from generate_series(1, 10) n`;

const members = (email: object | string) => ({
  members: { identity: { email }, payload: { plan: 'plan' } },
});
/** Its answers name members by their addresses. */
const BY_EMAIL = { outcomes: { per_row: { ...PER_ROW.per_row, match: 'email' } } };
const FOLDED = { destination: { ...BY_EMAIL, identity_folding: ['case'] } };

async function scene(name: string, options: object = {}): Promise<HttpScene> {
  return HttpScene.create(system, name, {
    rows: TEN,
    query: 'select * from $table',
    audience: { idFields: ['email'] },
    mirror: members('email'),
    destination: BY_EMAIL,
    ...options,
  });
}

/** The plan and the run are refused alike, with so many of them, and the destination has heard nothing. */
async function refused(mirror: HttpScene, code: string, count: number): Promise<void> {
  const writes = mirror.writes.length;
  const plan = await retl(['plan', mirror.mirror], { cwd: system.project.folder, env: system.env });
  expect(plan).toMatchObject({ code: 2, stderr: expect.stringContaining(code) });
  expect(plan.stderr).toContain(`count: ${count}`);
  const ended = await mirror.run();
  expect(ended).toMatchObject({ kind: 'failed', type: 'invalid', message: expect.stringContaining(code) });
  expect(JSON.stringify(ended)).toContain(`count=${count};`);
  expect(JSON.stringify(ended)).not.toContain('example.org');
  expect(mirror.writes.length).toBe(writes);
}

describe('identities that are folded otherwise than when they were accepted', () => {
  const normalized = members({ column: 'email', normalize: 'email' });
  test.each([
    ['folded from now on', {}, { ...FOLDED, mirror: members('email') }],
    ['folded and normalised from now on', {}, { ...FOLDED, mirror: normalized }],
    ['folded no more', FOLDED, { mirror: members('email') }],
  ])('%s', async (name, first, then) => {
    const mirror = await scene(`wanted-${name.replaceAll(' ', '-')}`, first);
    await mirror.completed();
    const before = mirror.audience.held;
    const common = { query: 'select * from $table', destination: BY_EMAIL };
    await mirror.configure({ ...common, ...then });
    await refused(mirror, 'data.removal-of-wanted', 2);
    expect(mirror.audience.held).toEqual(before);
    // The way on: they are removed as they were accepted, and come back as they are now.
    await mirror.configure({
      query: `select * from $table where email !~ '^A'`,
      mirror: members('email'),
      destination: BY_EMAIL,
      ...first,
    });
    expect(await mirror.completed()).toMatchObject({ counts: { removed: 2 } });
    await mirror.configure({ ...common, ...then });
    expect(await mirror.completed()).toMatchObject({ counts: { added: 2, removed: 0 } });
    expect(mirror.audience.held).toHaveLength(10);
  });

  test('folded no more, and spelled otherwise as well: one who may be a wanted one is not removed', async () => {
    const mirror = await scene('wanted-doubtful', FOLDED);
    await mirror.completed();
    await mirror.configure({
      query: `select id, case when email ~ '^A' then upper(email) else email end as email, plan from $table`,
      destination: BY_EMAIL,
      mirror: members('email'),
    });
    const ended = await mirror.run();
    expect(ended).toMatchObject({ message: expect.stringContaining('data.removal-of-wanted') });
    expect(JSON.stringify(ended)).toContain('count=2;');
    expect(mirror.audience.held).toHaveLength(10);
  });
});

describe('removal payloads that members share', () => {
  const mapping = `import { z } from ${JSON.stringify(import.meta.resolve('zod'))};
    export default { rowType: z.object({ id: z.string(), email: z.string(), plan: z.string() }),
      project: ({ id, email, plan }) => [{ identity: { id, email }, upsert: { id, email, plan }, remove: { email } }] };`;
  const own = { mirror: { members: undefined, mapping: { module: './by-email.js' } } };

  test('one who goes has that of one who is wanted', async () => {
    await system.project.write('mirrors/by-email.js', mapping);
    const mirror = await scene('wanted-by-email', own);
    await mirror.completed();
    await mirror.exec(`update $table set id = 'new' || id where id in ('3', '4')`);
    await refused(mirror, 'data.removal-of-wanted', 2);
    expect(mirror.audience.held).toHaveLength(10);
  });

  test('two who are wanted have one', async () => {
    await system.project.write('mirrors/by-email.js', mapping);
    const mirror = await scene('wanted-shared', own);
    await mirror.exec(`insert into $table select 'x' || id, email, plan from $table where id in ('3', '4')`);
    await refused(mirror, 'data.shared-removal', 4);
    expect(mirror.audience.held).toEqual([]);
  });
});
