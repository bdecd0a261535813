/** `retl find` as people call it: processes, a real journal, an index of it, and roles. */

import { createHash, randomBytes } from 'node:crypto';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { IndexScene, rows } from '../support/index-scene.ts';
import { createTestProject, type TestProject } from '../support/project.ts';
import { retl } from './support.ts';

/** Each command is two processes, which compile themselves first. */
const PATIENT_MS = 240_000;

let scene: IndexScene;
let project: TestProject;
const urls = new Map<string, string>();

async function person(name: string, group: string): Promise<void> {
  const role = `${name}_${randomBytes(6).toString('hex')}`;
  await scene.journal.admin.query(`create role ${role} login in role ${group}`);
  const url = new URL(scene.journal.runtimeUrl);
  url.username = role;
  urls.set(name, url.href);
}

const hashed = createHash('sha256').update('ann@example.org').digest('hex');
const ann = { key: 'ann', members: [{ id: '{"email":"Ann@Example.org"}', payload: '1' }] };
const hashedAnn = { key: 'ann', members: [{ id: JSON.stringify({ em: hashed }), payload: '1' }] };

beforeAll(async () => {
  scene = await IndexScene.open();
  await person('reader', 'retl_reader');
  await person('inspector', 'retl_inspector');
  await scene.run('plain', [ann, ...rows(0, 30, '1')]);
  await scene.run('hashed', [hashedAnn]);
  project = await createTestProject({
    'retl.yaml': {
      journal: { url: `\${env:JOURNAL_URL}`, reader_url: `\${env:READER_URL}` },
      temporal: { address: '127.0.0.1:1' },
      connections: {
        shop: { type: 'postgres', url: `\${env:SHOP_URL}` },
        crm: { type: 'http', base_url: 'https://api.example.com' },
      },
      indexes: {
        // Its database is away.
        away: { kind: 'membership-search', url: 'postgres://127.0.0.1:1/nothing' },
        changes: { kind: 'membership-history' },
        people: { kind: 'membership-search' },
      },
    },
    'mirrors/hashed.yaml': {
      source: { connection: 'shop', query: 'select id, email from customers', key: 'id' },
      members: [{ identity: { em: { column: 'email', normalize: 'email', hash: 'sha256' } } }],
      destination: { connection: 'crm' },
      baseline: 'new-empty',
    },
    'mirrors/mistaken.yaml': { source: {} },
  });
});
afterAll(async () => {
  await project.remove();
  for (const url of urls.values()) {
    const { username } = new URL(url);
    await scene.journal.admin.query(`drop owned by ${username}; drop role ${username}`);
  }
  await scene.close();
});

const as = (who: string, ...args: readonly string[]) =>
  retl(args, {
    cwd: project.folder,
    env: { JOURNAL_URL: scene.journal.runtimeUrl, READER_URL: urls.get(who) ?? scene.journal.runtimeUrl },
  });
const find = (...args: readonly string[]) => as('reader', 'find', ...args);
async function told(...args: readonly string[]) {
  const { stdout, code, stderr } = await find(...args, '--json');
  expect(code, stderr).toBe(0);
  return JSON.parse(stdout) as { readonly members: readonly { readonly mirror: string }[] };
}

test(
  'the journal answers until an index will do, which then says the same; either says who it is, and why',
  async () => {
    const before = await find('ann@example.org');
    expect(before).toMatchObject({
      code: 0,
      stdout: expect.stringMatching(/plain +\{"email":"Ann@Example.org"\}/),
      stderr: expect.stringMatching(
        /As of log position \d+, from the journal\.\naway was passed over, index\.unavailable: .*\npeople was passed over, index\.not-built: /,
      ),
    });
    expect(before.stderr).toContain('The file of mistaken has errors');
    // By the rules of the mirror that hashes, too.
    expect(before.stdout).toContain(`{"em":"${hashed}"}`);
    const fromJournal = await told('ann@example.org');
    expect(fromJournal).toMatchObject({ index: null, more: false });
    expect(fromJournal.members.map(({ mirror }) => mirror).sort()).toEqual(['hashed', 'plain']);

    expect((await as('worker', 'index', 'run', 'people', '--once')).code).toBe(0);
    const fromIndex = await told('ann@example.org');
    expect(fromIndex).toMatchObject({
      index: 'people',
      lag: { positions: '0', ms: 0 },
      passedOver: [{ index: 'away', code: 'index.unavailable' }],
      members: fromJournal.members,
    });
    expect(await told('k1', '--part', '--limit', '3')).toMatchObject({ index: 'people', more: true });
    expect(await told('k1', '--mirror', 'h*')).toMatchObject({ members: [] });

    await scene.run('plain', [ann, ...rows(0, 31, '1')]);
    expect(await told('k30')).toMatchObject({
      index: 'people',
      members: [],
      lag: { positions: expect.not.stringMatching('^0$') },
    });
    expect(await told('k30', '--max-lag', '0')).toMatchObject({
      index: null,
      members: [{ mirror: 'plain', identity: '{"id":"k30"}' }],
      passedOver: [{ index: 'away' }, { index: 'people', code: 'index.behind' }],
    });
  },
  PATIENT_MS,
);

test(
  'explain tells what happened to a member from an index, and from the journal to who may not read values: the same',
  async () => {
    expect((await as('worker', 'index', 'run', 'changes', '--once')).code).toBe(0);
    const explained = async (who: string) => {
      const { stdout, code, stderr } = await as(who, 'explain', 'plain', '{"id":"k1"}', '--json');
      expect(code, stderr).toBe(0);
      return (JSON.parse(stdout) as { readonly members: readonly { readonly past: object }[] }).members[0]
        ?.past;
    };
    const past = await explained('reader');
    expect(past).toMatchObject({
      changesFrom: { index: 'changes' },
      sinceFrom: { index: 'people' },
      changes: [{ action: 'add', runId: '1', payloadHash: expect.stringMatching(/^sha256:/) }],
    });
    const journal = { index: null };
    expect(await explained('inspector')).toEqual({
      ...past,
      changesFrom: expect.objectContaining(journal),
      sinceFrom: expect.objectContaining(journal),
    });
  },
  PATIENT_MS,
);

test(
  'an identity that the journal has lost is told as lost, also to programs',
  async () => {
    await scene.tamper(`delete from retl.generation_1 where identity = '{"id":"k7"}'`);
    const lost = ['{"id":"k7"}', '--mirror', 'plain', '--max-lag', '0'];
    const { stdout, stderr, code } = await find(...lost);
    expect(code, stderr).toBe(0);
    expect(stdout).toMatch(/\nplain +\(lost\) +20/);
    expect(stderr).toContain('The journal has lost the identity of 1 member. `retl log verify` says where');
    expect(await told(...lost)).toMatchObject({ members: [{ mirror: 'plain', identity: null }] });
  },
  PATIENT_MS,
);

test(
  'leaks: who may not read values finds nobody, and what was typed is in no refusal',
  async () => {
    for (const who of ['inspector', 'worker']) {
      const { code, stdout, stderr } = await as(who, 'find', 'ann@example.org');
      expect({ code, stdout }, who).toEqual({ code: 2, stdout: '' });
      expect(stderr).toContain('This role may not read values.');
      expect(stderr).not.toContain('ann');
    }
    const broken = await find('{"email": "ann@');
    expect(broken.code).toBe(2);
    expect(broken.stderr).not.toContain('ann');
  },
  PATIENT_MS,
);
