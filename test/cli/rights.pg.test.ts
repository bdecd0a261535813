/** What the command line says to roles that lack a right: which one, and who grants it; never that something is broken. */

import { randomBytes } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { GuardScene } from '../support/guard-scene.ts';
import { createTestProject, type TestProject } from '../support/project.ts';
import { retl } from './support.ts';

const scene = new GuardScene();
let project: TestProject;
const urls = new Map<string, string>();

async function person(name: string, groups: readonly string[], mayConnect = true): Promise<void> {
  const role = `${name}_${randomBytes(6).toString('hex')}`;
  const { admin, runtimeUrl } = scene.journal;
  await admin.query(`create role ${role} login`);
  for (const group of groups) await admin.query(`grant ${group} to ${role}`);
  const url = new URL(runtimeUrl);
  const database = url.pathname.slice(1);
  if (mayConnect) await admin.query(`grant connect on database ${database} to ${role}`);
  url.username = role;
  urls.set(name, url.href);
}

beforeAll(async () => {
  await scene.open();
  const { admin, runtimeUrl, runtimeRole } = scene.journal;
  const database = new URL(runtimeUrl).pathname.slice(1);
  await admin.query(`revoke connect on database ${database} from public`);
  await admin.query(`grant connect on database ${database} to ${runtimeRole}`);
  await person('nobody', []);
  await person('stranger', [], false);
  await person('inspector', ['retl_inspector']);
  await person('reader', ['retl_reader']);
  await person('approver', ['retl_approver']);
  project = await createTestProject({
    'retl.yaml': {
      journal: { url: `\${env:JOURNAL_URL}` },
      temporal: { address: '127.0.0.1:1' },
      connections: { crm: { type: 'http', base_url: 'https://api.example.com' } },
    },
    // Those that are parked below have no file here.
    'mirrors/other.yaml': '{}',
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
  retl(args, { cwd: project.folder, env: { JOURNAL_URL: urls.get(who) ?? '' } });

describe.each(['nobody', 'stranger'])('%s', (who) => {
  test.each(['status', 'runs', 'rejections'])(
    '%s says that the role has no rights, and how it gets them',
    async (command) => {
      const { stdout, stderr } = await as(who, command);
      expect(stdout).toBe('');
      expect(stderr).toContain('journal.missing');
      expect(stderr).toContain('CONNECT on the database');
      expect(stderr).not.toContain('unexpected');
    },
  );
});

test('rejections of a run that is not there are refused, and not an empty list', async () => {
  const { code, stdout } = await as('inspector', 'rejections', '--run', '999999', '--json');
  expect(code).toBe(2);
  expect(JSON.parse(stdout)).toMatchObject({ error: { code: 'no-such-run' } });
});

describe('the answer to what the guard asks', () => {
  test.each(['inspector', 'reader', 'nobody'])('is none of a %s: the right is named', async (who) => {
    const { run } = await scene.parked('abcdef');
    const { code, stderr } = await as(who, 'approve', run.request.mirror, '--yes');
    expect(code).toBe(2);
    expect(stderr).toContain('GRANT retl_approver TO <role>');
  });

  test('is an approver’s, who sees the question and no value', async () => {
    const { run, asked } = await scene.parked('abcdef');
    const { mirror } = run.request;
    const status = await as('approver', 'status', '--json');
    expect(JSON.parse(status.stdout)).toMatchObject({
      mirrors: expect.arrayContaining([
        expect.objectContaining({ mirror, asks: expect.objectContaining({ shown: asked.shown }) }),
      ]),
    });
    const done = await as('approver', 'approve', mirror, '--yes', '--because', 'it is meant', '--json');
    expect(done.code).toBe(0);
    expect(JSON.parse(done.stdout)).toMatchObject({
      via: 'journal',
      mirrors: [{ kind: 'recorded', mirror }],
    });
    const values = await as('approver', 'explain', mirror, '--key', '["a"]', '--values');
    expect(values.stderr).toContain('may not read values');
    expect(values.code).toBe(2);
  });

  test('is taken for a mirror whose file is gone, and not for one that nobody knows', async () => {
    const { run } = await scene.parked('abcdef');
    const gone = await as('approver', 'reject', run.request.mirror, '--yes', '--json');
    expect(JSON.parse(gone.stdout)).toMatchObject({ verdict: 'rejected', mirrors: [{ kind: 'recorded' }] });
    const unheard = await as('approver', 'reject', 'unheard', '--yes');
    expect(unheard.code).toBe(2);
    expect(unheard.stderr).toMatch(/config\.unknown-mirror.*on this machine[\s\S]*looked in: .*retl-project/);
  });

  test('release is the worker’s, and says so', async () => {
    const { run } = await scene.parked('abcdef');
    const { code, stderr } = await as(
      'approver',
      'release',
      run.request.mirror,
      '--because',
      'its cluster is gone',
      '--yes',
    );
    expect(code).toBe(2);
    expect(stderr).toContain('GRANT retl_runtime');
  });
});
