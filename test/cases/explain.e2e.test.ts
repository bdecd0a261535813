/** `retl explain` and `retl rejections` on real runs, as people with and without the right to values. */

import { createHash, randomBytes } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { parse } from 'yaml';
import { retl } from '../cli/support.ts';
import { System } from '../support/system.ts';
import { HttpScene } from '../support/system-destinations.ts';
import { ending } from '../support/system-scene.ts';

let system: System;
const people = new Map<string, string>();

/** A login that is a member of one group, or of none. */
async function person(name: string, group: string | null): Promise<void> {
  const role = `${name}_${randomBytes(6).toString('hex')}`;
  await system.journal.query(`create role ${role} login ${group === null ? '' : `in role ${group}`}`);
  system.defer(() => system.journal.query(`drop role ${role}`));
  const url = new URL(system.env.RETL_JOURNAL_URL ?? '');
  url.username = role;
  url.password = '';
  people.set(name, url.href);
}

const as = (who: string, ...args: readonly string[]) =>
  retl(args, { cwd: system.project.folder, env: { ...system.env, PERSON_URL: people.get(who) ?? '' } });

async function json(who: string, ...args: readonly string[]) {
  const { code, stdout } = await as(who, ...args, '--json');
  expect(code).toBe(0);
  return JSON.parse(stdout);
}

const VALUES = /canary|@example\.com/;
const sha = (text: string) => createHash('sha256').update(text).digest('hex');
const hashOf = (email: string) => `sha256:${sha(`{"id":"${sha(email)}"}`)}`;

beforeAll(async () => {
  system = await System.start();
  for (const [name, group] of [
    ['inspector', 'retl_inspector'],
    ['reader', 'retl_reader'],
    ['stranger', null],
  ] as const)
    await person(name, group);
  const scene = await HttpScene.create(system, 'vip', {
    rows: `create table $table (id int primary key, email text, plan text);
      insert into $table values (1, 'Ann@example.com', 'canary-1'), (2, 'bob@example.com', 'canary-2'), (3, 'eve@example.com', null)`,
    query: 'select id, email, plan from $table order by id',
    mirror: {
      members: {
        identity: { id: { column: 'email', normalize: 'email', hash: 'sha256' } },
        payload: { plan: 'plan' },
        when: { column: 'plan', is: 'not_null' },
      },
    },
  });
  // The worker's environment has no PERSON_URL: it must do without.
  const settings = parse(await readFile(join(system.project.folder, 'retl.yaml'), 'utf8'));
  settings.journal.reader_url = `\${env:PERSON_URL}`;
  await system.write('retl.yaml', settings);
  await system.startWorker();
  await scene.completed();
  await scene.exec(`update $table set plan = 'canary-changed' where id = 2`);
  scene.audience.fault({ kind: 'rows', reject: [0] });
  expect(await ending(await scene.start())).toMatchObject({ kind: 'failed', type: 'rejected' });
});
afterAll(() => system.stop());

describe('retl explain', () => {
  test('transformed-key: a plain value is normalised and hashed as the mapping says', async () => {
    const { code, stdout, stderr } = await as('inspector', 'explain', 'vip', ' ANN@example.com');
    expect(stderr).toBe('');
    expect(code).toBe(0);
    expect(stdout).toContain(`member   ${hashOf('ann@example.com')}\n  stands   held\n  held     since 2`);
    expect(stdout).toMatch(/run \d+: added {2}\(completed, /);
    expect(stdout).toMatch(/batch sha256:\w{64} settled, 2 of 2 members accepted, log position \d+/);
    expect(stdout).not.toMatch(VALUES);
    const typed = [
      `{"id":"ann@example.com"}`,
      `{"id":"${sha('ann@example.com')}"}`,
      hashOf('ann@example.com'),
    ];
    for (const identity of typed)
      expect(await json('inspector', 'explain', 'vip', identity)).toMatchObject({
        members: [{ verdict: 'held' }],
      });
  });

  test('a refused change: still held as before, with code and batch, and a list that leads to it', async () => {
    const list = await json('inspector', 'rejections', 'vip');
    expect(list).toMatchObject({
      rejections: [
        {
          kind: 'operation',
          mirror: 'vip',
          action: 'upsert',
          identityHash: hashOf('bob@example.com'),
          values: null,
        },
      ],
      next: null,
    });
    const found = await json('inspector', 'explain', 'vip', list.rejections[0].identityHash);
    expect(found).toMatchObject({
      members: [
        {
          verdict: 'change-refused',
          held: { payloadHash: expect.stringMatching(/^sha256:/) },
          runs: [
            { did: 'rejected', operation: { rejection: { code: list.rejections[0].code } } },
            { did: 'added' },
          ],
        },
      ],
    });
    expect(JSON.stringify([list, found])).not.toMatch(VALUES);
  });

  test('rule 7: a row left out on purpose is found by its key, and a stranger by nothing', async () => {
    const left = await as('inspector', 'explain', 'vip', '--key', '3');
    expect(left.stdout).toContain('left out on purpose');
    const given = await json('inspector', 'explain', 'vip', '--key', '1');
    expect(given).toMatchObject({ members: [{ verdict: 'held', identityHash: hashOf('ann@example.com') }] });
    const nobody = await json('inspector', 'explain', 'vip', 'eve@example.com');
    expect(nobody).toMatchObject({ members: [{ verdict: 'left-out', held: null }] });
  });

  test.each([
    [['explain', 'vip', 'canary'], 'no identity of this mirror'],
    [['explain', 'vip', '{"mail":"canary@example.com"}'], 'whose fields are: id'],
    [['explain', 'vip'], 'Neither an identity nor a --key'],
    [['explain', 'vipp', 'a@example.com'], 'config.unknown-mirror'],
    [['explain', 'vip', 'a@example.com', '--after', '3'], '`next` of an earlier answer'],
  ])('leaks: wrong usage %j exits with 2 and repeats nothing of it', async (args, words) => {
    const { code, stdout, stderr } = await as('inspector', ...args);
    expect(code).toBe(2);
    expect(stderr).toContain(words);
    expect(stdout + stderr).not.toMatch(VALUES);
  });
});

describe('the right to values', () => {
  test('who has it sees identity, payload, receipt and the provider’s words', async () => {
    const { stdout } = await as('reader', 'explain', 'vip', 'bob@example.com', '--values');
    expect(stdout).toContain(`identity {"id":"${sha('bob@example.com')}"}`);
    expect(stdout).toContain('"plan":"canary-2"');
    expect(stdout).toContain('"plan":"canary-changed"');
    expect(stdout).toMatch(/its words: \S/);
    expect(stdout).toMatch(/receipt: \{/);
    const list = await json('reader', 'rejections', '--values');
    expect(list.rejections[0].values).toEqual({
      identity: `{"id":"${sha('bob@example.com')}"}`,
      words: expect.stringMatching(/\S/),
    });
    const without = await as('reader', 'explain', 'vip', 'bob@example.com');
    expect(without.stdout).not.toMatch(VALUES);
  });

  test.each(['explain', 'rejections'])('retl %s --values without it is a clear refusal', async (command) => {
    const { code, stdout, stderr } = await as(
      'inspector',
      command,
      'vip',
      ...(command === 'explain' ? ['bob@example.com'] : []),
      '--values',
    );
    expect(code).toBe(2);
    expect(stderr).toContain('GRANT retl_reader TO');
    expect(stderr).not.toContain('    at ');
    expect(stdout + stderr).not.toMatch(VALUES);
  });

  test('status and runs need no more than an inspector has; a stranger is told what is missing', async () => {
    for (const args of [['status'], ['status', 'vip'], ['runs', 'vip']]) {
      expect(await as('inspector', ...args)).toMatchObject({ code: 0, stderr: '' });
    }
    const { code, stderr } = await as('stranger', 'explain', 'vip', 'bob@example.com');
    expect(code).toBe(1);
    expect(stderr).toContain('journal.missing');
    expect(stderr).not.toContain('    at ');
  });
});
