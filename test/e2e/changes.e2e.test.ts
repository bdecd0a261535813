/**
 * What a mirror's owner changes between two runs, or during one (design.md section 4, "Configuration"): an open run keeps
 * its own revision to the end, and the next run follows the files.
 */

import { createHash } from 'node:crypto';
import { rename, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { ERROR_CODES } from '../../src/domain/errors.ts';
import { retl } from '../cli/support.ts';
import { FakeAudience } from '../support/fake-audience.ts';
import { System } from '../support/system.ts';
import { HttpScene } from '../support/system-destinations.ts';
import { completedBy, ending } from '../support/system-scene.ts';

let system: System;
beforeAll(async () => {
  system = await System.start();
  await system.startWorker();
});
afterAll(() => system.stop());

/** The payload gets a field: every member is another one to send. */
const WITH_TIER = {
  mirror: { members: { identity: { id: 'id' }, payload: { plan: 'plan', tier: { value: 'gold' } } } },
};
const HASHED = {
  mirror: { members: { identity: { id: { column: 'id', hash: 'sha256' } }, payload: { plan: 'plan' } } },
};

function hashed(id: string): string {
  return createHash('sha256').update(id).digest('hex');
}

describe.concurrent('what is written to the audience', () => {
  test('a changed payload mapping: the open run keeps its own to the end, and the next one sends the changes', async () => {
    const scene = await HttpScene.create(system, 'changed-payload', { rows: 10 });
    scene.audience.always({ kind: 'delay', ms: 700 });
    const open = await scene.start();
    await scene.untilSeen(1);
    await scene.configure(WITH_TIER);
    scene.audience.always(null);
    await completedBy(open);
    expect(scene.audience.state.members).toEqual(await scene.wanted());
    expect((await scene.completed()).counts).toMatchObject({ added: 0, changed: 10, removed: 0 });
    expect([...scene.audience.state.members.values()]).toEqual(
      [...(await scene.wanted()).values()].map((member) => ({ ...Object(member), tier: 'gold' })),
    );
  });

  test('a sealed run that is taken up after a change ends as it began; then the same execution goes on with the new revision', async () => {
    const scene = await HttpScene.create(system, 'changed-sealed', { rows: 30 });
    scene.audience.always({ kind: 'delay', ms: 700 });
    const first = await scene.start();
    await scene.untilSeen(1);
    await scene.signal('cancel');
    expect(await ending(first)).toMatchObject({ kind: 'result', result: { outcome: 'cancelled' } });
    scene.audience.always(null);
    await scene.configure(WITH_TIER);
    const before = scene.writes.length;
    await scene.completed();
    const forms = scene.writes.slice(before).map(({ body }) => body.includes('"tier"'));
    // What was left of the old one, by its own mapping; then everybody by the new.
    expect(forms).toEqual([...forms.slice(0, -6).fill(false), ...Array(6).fill(true)]);
    expect(forms[0]).toBe(false);
    expect((await scene.runs()).map(({ closing }) => closing)).toEqual(['completed', 'completed']);
    const revisions = await system.rows(
      `select distinct revision_id from retl.run join retl.mirror using (mirror_id) where name = $1`,
      [scene.mirror],
    );
    expect(revisions).toHaveLength(2);
  });

  test('a changed identity mapping is guarded like any mass removal: approved, the old go by the bytes that were accepted', async () => {
    const scene = await HttpScene.create(system, 'changed-identity', { rows: 10 });
    await scene.completed();
    await scene.configure(HASHED);
    const before = scene.writes.length;
    const handle = await scene.start();
    const asked = await scene.untilParked(handle);
    expect(asked).toMatchObject({ code: 'max-removal-share', removals: 10, held: 10 });
    expect(scene.writes).toHaveLength(before);
    await scene.answer(handle, 'approve', asked);
    expect((await completedBy(handle)).counts).toMatchObject({ added: 10, removed: 10 });
    const old = [...(await scene.wanted()).keys()];
    expect(scene.audience.held).toEqual(old.map(hashed).sort());
    const removed = scene.writes.filter(({ method }) => method === 'DELETE').map(({ body }) => body);
    for (const id of old) expect(removed.join('\n')).toContain(`"${id}"`);
  });

  test('a changed write form sends every member again, once', async () => {
    const scene = await HttpScene.create(system, 'changed-form', { rows: 10 });
    await scene.completed();
    await scene.configure({ destination: { upsert: { method: 'PUT', path: '/members' } } });
    expect((await scene.completed()).counts).toMatchObject({ added: 0, changed: 10, removed: 0 });
    expect((await scene.completed()).counts).toMatchObject({ added: 0, changed: 0, unchanged: 10 });
  });
});

describe.concurrent('where it is written to', () => {
  test('a changed target begins with its own baseline, and the old one is left as it is; back again, it is known', async () => {
    const scene = await HttpScene.create(system, 'changed-target', { rows: 10 });
    await scene.completed();
    const other = await FakeAudience.start({ idFields: ['id'] });
    system.defer(() => other.stop());
    await system.connect('changed-target-api', { type: 'http', base_url: other.url });
    await scene.exec(`delete from $table where id > 'm008'`);
    const before = scene.writes.length;
    const { folder } = system.project;
    const ran = await retl(['run', 'changed-target'], { cwd: folder, env: system.env });
    expect(ran.stdout).toContain('8 added, 0 changed, 0 removed');
    expect(ran.stderr).toContain('left as it is, and holds 10 members still');
    const { stdout } = await retl(['status', 'changed-target'], { cwd: folder, env: system.env });
    expect(stdout).toContain('an earlier target holds 10 members still');
    expect(other.held).toHaveLength(8);
    expect(scene.audience.held).toHaveLength(10);
    expect(scene.writes).toHaveLength(before);
    await system.connect('changed-target-api', { type: 'http', base_url: scene.audience.url });
    expect((await scene.completed()).counts).toMatchObject({ added: 0, unchanged: 8, removed: 2 });
    expect(other.held).toHaveLength(8);
  });

  test('a run is never taken up at another target: what its references give has changed, and nothing is sent', async () => {
    const scene = await HttpScene.create(system, 'moved-target', { rows: 30 });
    const url = join(system.project.folder, 'moved-target.url');
    await writeFile(url, scene.audience.url);
    await system.connect('moved-target-api', { type: 'http', base_url: `\${file:moved-target.url}` });
    scene.audience.always({ kind: 'delay', ms: 700 });
    const first = await scene.start();
    await scene.untilSeen(1);
    await scene.signal('cancel');
    await ending(first);
    scene.audience.always(null);
    const other = await FakeAudience.start({ idFields: ['id'] });
    system.defer(() => other.stop());
    await writeFile(url, other.url);
    expect(await scene.run()).toMatchObject({
      kind: 'failed',
      type: 'invalid',
      message: expect.stringContaining('run.target-moved'),
    });
    expect(other.requests).toEqual([]);
    await writeFile(url, scene.audience.url);
    await scene.completed();
    expect(scene.audience.state.members).toEqual(await scene.wanted());
  });

  test('another name of the connection changes nothing: a target is where it is', async () => {
    const scene = await HttpScene.create(system, 'changed-name', { rows: 5 });
    await scene.completed();
    const before = scene.writes.length;
    await system.connect('another-name', { type: 'http', base_url: `${scene.audience.url}/` });
    await scene.configure({ destination: { connection: 'another-name' } });
    expect((await scene.completed()).counts).toMatchObject({
      added: 0,
      changed: 0,
      unchanged: 5,
      removed: 0,
    });
    expect(scene.writes).toHaveLength(before);
  });

  test('a mirror of another name is another mirror: its target is the first one’s, and the error says what to do', async () => {
    const scene = await HttpScene.create(system, 'old-name', { rows: 3 });
    await scene.completed();
    const before = scene.writes.length;
    const folder = join(system.project.folder, 'mirrors');
    await rename(join(folder, 'old-name.yaml'), join(folder, 'new-name.yaml'));
    const renamed = new HttpScene(system, 'new-name', scene.table, scene.audience);
    const end = await renamed.run();
    expect(end).toMatchObject({
      kind: 'failed',
      type: 'refused',
      message: expect.stringContaining('run.target-owned'),
    });
    expect(ERROR_CODES['run.target-owned'].remedy).toContain('give the file its old name back');
    await rename(join(folder, 'new-name.yaml'), join(folder, 'old-name.yaml'));
    expect((await scene.completed()).counts).toMatchObject({ unchanged: 3 });
    expect(scene.writes).toHaveLength(before);
  });
});

describe.concurrent('what is refused', () => {
  test('a changed strategy: nothing is read, and nothing sent', async () => {
    const scene = await HttpScene.create(system, 'changed-strategy', { rows: 3 });
    await scene.completed();
    const before = scene.writes.length;
    await scene.configure({ mirror: { strategy: 'native-replace' } });
    expect(await scene.run()).toMatchObject({ kind: 'failed', type: 'invalid' });
    expect(await scene.runs()).toHaveLength(1);
    await scene.configure({});
    expect((await scene.completed()).counts).toMatchObject({ unchanged: 3 });
    expect(scene.writes).toHaveLength(before);
  });

  test.each([
    [
      'another type of the key column',
      'changed-key-type',
      { query: 'select id::varchar as id, plan from $table' },
    ],
    ['another column for a key', 'changed-key-columns', { key: ['id', 'plan'] }],
  ])('key-type: %s ends the run with nothing sent', async (_what, name, change) => {
    const scene = await HttpScene.create(system, name, { rows: 3 });
    await scene.completed();
    const before = scene.writes.length;
    await scene.configure(change);
    expect(await scene.run()).toMatchObject({
      kind: 'failed',
      type: 'invalid',
      message: expect.stringContaining('data.key-type-changed'),
    });
    expect(scene.writes).toHaveLength(before);
    await scene.configure({});
    expect((await scene.completed()).counts).toMatchObject({ unchanged: 3 });
  });
});
