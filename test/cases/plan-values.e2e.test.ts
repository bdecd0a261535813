/** `retl plan --identities` for those who may see values, and a saved plan that is run exactly or not at all. */

import { randomBytes } from 'node:crypto';
import { mkdtemp, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { parse } from 'yaml';
import { retl } from '../cli/support.ts';
import { System } from '../support/system.ts';
import { HttpScene } from '../support/system-destinations.ts';

let system: System;
let folder: string;
const people = new Map<string, string>();

async function person(name: string, group: string): Promise<void> {
  const role = `${name}_${randomBytes(6).toString('hex')}`;
  await system.journal.query(`create role ${role} login in role ${group}`);
  system.defer(() => system.journal.query(`drop role ${role}`));
  const url = new URL(system.env.RETL_JOURNAL_URL ?? '');
  url.username = role;
  url.password = '';
  people.set(name, url.href);
}

beforeAll(async () => {
  system = await System.start();
  folder = await mkdtemp(join(tmpdir(), 'retl-plan-'));
  system.defer(() => rm(folder, { recursive: true, force: true }));
  await person('inspector', 'retl_inspector');
  await person('reader', 'retl_reader');
  await system.startWorker();
});
afterAll(() => system.stop());

/** As a person who reads the journal; `null`: as a worker does. */
const as = (who: string | null, ...args: readonly string[]) =>
  retl(args, {
    cwd: system.project.folder,
    env: { ...system.env, ...(who === null ? {} : { PERSON_URL: people.get(who) ?? '' }) },
  });

/** A new scene writes retl.yaml anew. */
async function readAsPersons(): Promise<void> {
  const settings = parse(await readFile(join(system.project.folder, 'retl.yaml'), 'utf8'));
  settings.journal.reader_url = `\${env:PERSON_URL}`;
  await system.write('retl.yaml', settings);
}

const VALUES = /canary/;

describe('which members', () => {
  beforeAll(async () => {
    const scene = await HttpScene.create(system, 'who', {
      rows: `create table $table (id text primary key, plan text, note text);
        insert into $table values ('ann', 'canary-old', 'n'), ('bob', 'canary-2', null), ('eve', 'canary-3', null), ('zoe', 'x', '')`,
      query: 'select id, plan, note from $table',
      mirror: { members: { identity: { id: 'id' }, payload: { plan: 'plan', note: 'note' } } },
    });
    await scene.completed();
    await scene.exec(`update $table set plan = 'canary-new', note = null where id = 'ann';
      delete from $table where id = 'eve'; insert into $table values ('new', 'canary-4', 'm')`);
    await readAsPersons();
  });

  test('who may read values sees who comes, who changes from what to what, and who goes', async () => {
    const { code, stdout, stderr } = await as('reader', 'plan', 'who', '--identities');
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    expect(stdout.slice(stdout.indexOf('to be added'))).toBe(
      [
        'to be added',
        '  + {"id":"new"}  {"id":"new","note":"m","plan":"canary-4"}',
        'to be changed',
        '  ~ {"id":"ann"}',
        '      note: "n" -> null',
        '      plan: "canary-old" -> "canary-new"',
        'to be removed',
        '  - {"id":"eve"}',
        '',
      ].join('\n'),
    );
  });

  test('leaks: without --identities no value is shown, also in JSON', async () => {
    const words = await as('reader', 'plan', 'who');
    const json = await as(null, 'plan', 'who', '--json');
    expect([words.code, json.code]).toEqual([0, 0]);
    expect(JSON.parse(json.stdout)).toMatchObject({
      plans: [{ identities: null, snapshot: { counts: { added: 1, removed: 1 } } }],
    });
    expect(words.stdout + words.stderr + json.stdout).not.toMatch(VALUES);
  });

  test.each([
    [null, ['--identities'], 'GRANT retl_reader TO'],
    ['inspector', [], 'retl_reader'],
    ['inspector', ['--identities', '5'], 'retl_reader'],
  ] as const)('%s with %j is told what is missing', async (who, options, words) => {
    const { code, stdout, stderr } = await as(who, 'plan', 'who', ...options);
    expect(code).toBe(2);
    expect(stderr).toContain(words);
    expect(stdout + stderr).not.toMatch(VALUES);
  });

  test('approve-guard: whom a parked run would remove is shown to those who may see it, and to nobody else', async () => {
    const scene = await HttpScene.create(system, 'asks', { rows: 6 });
    await readAsPersons();
    await scene.completed();
    await scene.exec(
      `delete from $table where id > 'm002'; update $table set plan = 'canary' where id = 'm001'`,
    );
    expect(await as(null, 'run', 'asks')).toMatchObject({ code: 4 });
    const words = await as('reader', 'plan', 'asks', '--identities', '3');
    expect(words).toMatchObject({ code: 0, stderr: '' });
    expect(words.stdout).toContain('to be removed, the first 3 of 4\n  - {"id":"m00');
    expect(words.stdout).toContain('plan: "vip" -> "canary"');
    const json = await as('reader', 'plan', 'asks', '--identities', '--json');
    expect(JSON.parse(json.stdout)).toMatchObject({
      plans: [{ next: 'open-run', snapshot: null, identities: { limit: 20, removed: { length: 4 } } }],
    });
    for (const who of [null, 'inspector']) {
      const refused = await as(who, 'plan', 'asks', '--identities');
      expect(refused.code).toBe(2);
      expect(refused.stdout + refused.stderr).not.toMatch(/canary|m00\d/);
    }
  });

  test.each(['0', 'many', '1e9'])('--identities %s is refused', async (number) => {
    expect(await as('reader', 'plan', 'who', '--identities', number)).toMatchObject({ code: 2, stdout: '' });
  });
});

describe('a saved plan', () => {
  let scene: HttpScene;
  let file: string;
  beforeAll(async () => {
    scene = await HttpScene.create(system, 'saved', { rows: 20 });
    await scene.completed();
    await scene.exec(`delete from $table where id <= 'm012'`);
    file = join(folder, 'saved.plan');
  });

  test('holds counts and hashes, and is for its owner alone', async () => {
    expect(await as(null, 'plan', 'saved', '--out', file)).toMatchObject({
      code: 0,
      stderr: `saved: retl run saved --plan ${file} sends this, or nothing\n`,
    });
    expect((await stat(file)).mode & 0o777).toBe(0o600);
    const text = await readFile(file, 'utf8');
    expect(JSON.parse(text)).toMatchObject({ kind: 'retl-plan', format: 1, mirror: 'saved', removals: 12 });
    expect(text).not.toMatch(/m0\d\d|vip/);
  });

  test('the source has moved on: refused with nothing sent; back where it was: sent, though the guard would hold it', async () => {
    const writes = scene.writes.length;
    await scene.exec(`insert into $table values ('late', 'vip')`);
    const stale = await as(null, 'run', 'saved', '--plan', file);
    expect(stale.code).toBe(3);
    expect(stale.stdout + stale.stderr).toContain('run.plan-stale');
    expect(scene.writes).toHaveLength(writes);
    await scene.exec(`delete from $table where id = 'late'`);
    const run = await as(null, 'run', 'saved', '--plan', file);
    expect(run).toMatchObject({ code: 0 });
    expect(await scene.held()).toBe(8);
  });

  test('another mirror, an edited file, another format, no plan at all, changed settings: refused before anything is started', async () => {
    await HttpScene.create(system, 'other', { rows: 2 });
    const text = await readFile(file, 'utf8');
    const copy = join(folder, 'copy.plan');
    const refusal = async (changed: string, mirror = 'saved') => {
      await writeFile(copy, changed);
      const { code, stdout, stderr } = await as(null, 'run', mirror, '--plan', copy, '--json');
      expect({ code, stderr }).toEqual({ code: 2, stderr: '' });
      return JSON.parse(stdout).error.code;
    };
    expect(await refusal(text, 'other')).toBe('plan-mirror');
    expect(await refusal(text.replace('"removals": 12', '"removals": 13'))).toBe('plan-edited');
    expect(await refusal(text.replace('"removals": 12', '"removals": 12, "more": 1'))).toBe('plan-edited');
    expect(await refusal(text.replace('"format": 1', '"format": 2'))).toBe('plan-format');
    expect(await refusal('{"plan"')).toBe('plan-unreadable');
    const runs = await scene.runs();
    await scene.configure({ mirror: { safety: { max_removals: '100%' } } });
    expect(await refusal(text)).toBe('plan-settings');
    expect(await as(null, 'run', 'saved', 'other', '--plan', file)).toMatchObject({ code: 2 });
    expect(await as(null, 'run', 'saved', '--plan', join(folder, 'none'))).toMatchObject({ code: 2 });
    expect(await scene.runs()).toEqual(runs);
  });
});
