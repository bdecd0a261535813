/** `retl index forget` as people call it: an index that was taken out of retl.yaml holds the log back no longer. */

import { afterAll, beforeAll, expect, test } from 'vitest';
import { logPosition } from '../../src/domain/ids.ts';
import { membershipHistory } from '../../src/indexing/postgres/history.ts';
import { postgresIndexer } from '../../src/indexing/postgres/indexer.ts';
import { beginCompaction } from '../../src/journal/compaction.ts';
import { IndexScene, rows, SCHEMA } from '../support/index-scene.ts';
import { createTestProject, type TestProject } from '../support/project.ts';
import { retl } from './support.ts';

let scene: IndexScene;
let project: TestProject;
const configuration = (indexes: object) => ({
  journal: { url: `\${env:JOURNAL_URL}` },
  temporal: { address: '127.0.0.1:1' },
  connections: {},
  indexes,
});

beforeAll(async () => {
  scene = await IndexScene.open();
  await scene.run('a', rows(0, 12, '1'));
  project = await createTestProject({
    'retl.yaml': configuration({ changes: { kind: 'membership-history' } }),
  });
});
afterAll(async () => {
  await scene.close();
  await project.remove();
});

const retlHere = (...args: readonly string[]) =>
  retl(args, {
    cwd: project.folder,
    env: { JOURNAL_URL: scene.journal.runtimeUrl, REPORTS_URL: scene.journal.adminUrl },
  });
const forget = (...args: readonly string[]) => retlHere('index', 'forget', 'changes', ...args);

test('one that is configured is kept; one that is not goes, once somebody has agreed, and its hold with it', async () => {
  for (const name of ['changes', 'others'])
    await scene.follow(scene.indexer(name, membershipHistory, { holdsLog: name === 'changes' }));
  const compaction = () => beginCompaction(scene.journal.runtime, logPosition(2));
  expect(await compaction()).toMatchObject({ kind: 'held', by: 'changes' });
  expect(await forget('--yes')).toMatchObject({
    code: 2,
    stderr: expect.stringContaining('one of retl.yaml'),
  });
  await project.write('retl.yaml', configuration({}));
  expect((await forget()).stderr).toContain('Nobody can be asked here');
  expect(await compaction()).toMatchObject({ kind: 'held', by: 'changes' });

  expect(await forget('--yes')).toMatchObject({
    code: 0,
    stdout: 'changes: forgotten; 1 build dropped, the log was held back from 0 on\n',
  });
  expect(await compaction()).toMatchObject({ kind: 'begun' });
  const { rows: left } = await scene.journal.admin.query<{ name: string }>(
    `select relname as name from pg_class where relnamespace = '${SCHEMA}'::regnamespace and relkind in ('r', 'v')
       and relname <> 'index_build' order by 1`,
  );
  expect(left.map(({ name }) => name)).toEqual(['others', 'rows_2']);
  const again = await forget('--yes');
  expect(again).toMatchObject({ code: 3, stdout: '' });
  expect(again.stderr).toContain('There is nothing of the name changes');
  expect(again.stderr).toContain('is found with `retired: true` in retl.yaml');
}, 240_000);

test('one that is retired goes from the database that retl.yaml says it lives in, and nobody follows it any more', async () => {
  const url = scene.journal.adminUrl;
  const changes = { kind: 'membership-history', url: `\${env:REPORTS_URL}`, schema: 'reports' };
  const place = { name: 'changes', kind: membershipHistory, url, schema: 'reports', holdsLog: true };
  const indexer = postgresIndexer(place);
  await scene.follow(indexer);
  await project.write('retl.yaml', configuration({ changes: { ...changes, retired: true } }));
  const status = await retlHere('index', 'status', 'changes');
  expect(status).toMatchObject({
    stderr: expect.stringContaining('No index of this name is configured, or it is'),
  });
  expect(await forget('--yes', '--schema', 'retl_index')).toMatchObject({
    code: 2,
    stderr: expect.stringContaining('leave out `--schema`'),
  });
  expect(await forget('--yes')).toMatchObject({
    code: 0,
    stdout: 'changes: forgotten; 1 build dropped, the log was held back from 0 on\n',
    stderr: expect.stringContaining('It can be taken out of retl.yaml now.'),
  });
  expect(await indexer.builds()).toEqual([]);
  await indexer.close();
}, 240_000);
