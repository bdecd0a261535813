/** `retl log`: what an operator does with the log, as a process of its own. */

import { afterAll, beforeAll, expect, test } from 'vitest';
import { createTestJournal, type TestJournal } from '../support/journal.ts';
import { rowsOf, ScriptedRun } from '../support/journal-run.ts';
import { createTestProject, type TestProject } from '../support/project.ts';
import { retl } from './support.ts';

let journal: TestJournal;
let project: TestProject;

beforeAll(async () => {
  journal = await createTestJournal();
  const reference = '$' + '{env:JOURNAL_URL}';
  const source = { kind: 'postgres', url: reference };
  project = await createTestProject({
    'retl.yaml': { journal: { url: reference }, connections: { crm: source } },
  });
  for (const payload of ['1', '2', '3'])
    await ScriptedRun.whole(journal.runtime, { mirror: 'vip' }, rowsOf({ a: payload, b: '1', c: payload }));
});
afterAll(async () => {
  await project.remove();
  await journal.close();
});

const log = (...args: readonly string[]) =>
  retl(['log', ...args], { cwd: project.folder, env: { JOURNAL_URL: journal.runtimeUrl } });

test('status, verify, compact and verify again, for people and for programs', async () => {
  const status = await log('status');
  expect(status).toMatchObject({
    code: 0,
    stdout: expect.stringMatching(/head {6}6, .*\n {2}earliest {2}1: all of it/),
  });
  const verified = await log('verify');
  expect(verified).toMatchObject({ code: 0, stdout: expect.stringContaining('up to position 6') });

  const unasked = await log('compact', '--before', '5');
  expect(unasked).toMatchObject({ code: 2, stderr: expect.stringContaining('--yes') });
  const young = await log('compact', '--before', '1h', '--yes');
  expect(young).toMatchObject({ code: 0, stdout: expect.stringContaining('Nothing to compact') });
  const compacted = await log('compact', '--before', '5', '--yes', '--json');
  expect(compacted.code).toBe(0);
  expect(JSON.parse(compacted.stdout)).toMatchObject({ kind: 'complete', boundary: '4', members: '3' });

  const after = await log('status', '--json');
  expect(JSON.parse(after.stdout)).toMatchObject({
    head: '6',
    earliest: '5',
    snapshots: [{ boundary: '4', state: 'complete', members: '3' }],
    holds: [],
  });
  expect(JSON.parse((await log('verify', '--json')).stdout)).toEqual({
    kind: 'intact',
    position: '6',
    effects: true,
  });
});

test('a log that was tampered with is named by its position, leaves with 1, and is not compacted', async () => {
  const triggers = (what: string) => `alter table retl.log_entry ${what} trigger append_only`;
  await journal.owner.query(triggers('disable'));
  await journal.owner.query('update retl.log_entry set effects = effects + 1 where position = 3');
  const verified = await log('verify', '--entries');
  expect(verified).toMatchObject({ code: 1, stdout: expect.stringContaining('broken at position 3') });
  const compacted = await log('compact', '--before', '6', '--yes', '--json');
  expect(compacted.code).toBe(1);
  expect(JSON.parse(compacted.stdout)).toMatchObject({ error: { code: 'log-broken' } });
  await journal.owner.query('update retl.log_entry set effects = effects - 1 where position = 3');
  await journal.owner.query(triggers('enable'));
});
