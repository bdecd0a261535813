/** What `retl check` finds out about indexes and stores of checkpoints (design.md section 7), and that it changes nothing. */

import { mkdir, readdir, writeFile } from 'node:fs/promises';
import { createServer, type Server } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { expectValid, loadBase } from '../../src/config/load.ts';
import type { CheckLine } from '../../src/domain/check.ts';
import { checkIndexes } from '../../src/worker-check-indexes.ts';
import { IndexScene, rows } from '../support/index-scene.ts';
import { LOCALHOST_CERTIFICATE, LOCALHOST_KEY } from '../support/localhost-certificate.ts';
import { createTestProject, type TestProject } from '../support/project.ts';

let scene: IndexScene;
let other: IndexScene;
let project: TestProject;
const servers: Server[] = [];

beforeAll(async () => {
  scene = await IndexScene.open();
  other = await IndexScene.open();
  for (const each of [scene, other]) {
    await each.run('a', rows(0, 5, '1'));
    await each.follow(each.indexer('people'));
  }
  process.env.LOOKED_AT_JOURNAL = scene.journal.runtimeUrl;
  process.env.LOOKED_AT_OTHER = other.journal.runtimeUrl;
  project = await createTestProject();
  await mkdir(join(project.folder, 'kept'));
});
afterAll(async () => {
  for (const server of servers) server.close();
  await scene.close();
  await other.close();
  await project.remove();
});

async function listening(server: Server): Promise<number> {
  servers.push(server);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return (server.address() as AddressInfo).port;
}

async function looked(sections: object): Promise<readonly CheckLine[]> {
  const journal = { url: `\${env:LOOKED_AT_JOURNAL}` };
  await project.write('retl.yaml', { journal, connections: {}, ...sections });
  const base = expectValid(await loadBase(project.folder));
  const lines: CheckLine[] = [];
  for await (const line of checkIndexes(project.folder, base, scene.journal.runtime)) lines.push(line);
  return lines;
}

/** Everything that stands in a database: its relations with their sizes and owners. */
async function contents({ journal }: IndexScene): Promise<unknown> {
  const { rows: found } = await journal.admin.query(
    `select n.nspname, c.relname, c.relkind, pg_get_userbyid(c.relowner) as owner, c.relacl::text, pg_relation_size(c.oid)
     from pg_class c join pg_namespace n on n.oid = c.relnamespace where n.nspname !~ '^pg_' order by 1, 2`,
  );
  return found;
}

const kind = 'membership-search';
const SECOND = `\${env:LOOKED_AT_OTHER}`;

test('an index that stands, one that is not built yet and a store that answers are told, and nothing is changed', async () => {
  const before = await contents(scene);
  const lines = await looked({
    indexes: { people: { kind }, changes: { kind: 'membership-history' } },
    artifacts: { type: 'files', folder: 'kept' },
  });
  // What the journal kept before is found there still.
  expect(lines).toMatchObject([
    {
      kind: 'passed',
      subject: 'artifacts',
      facts: expect.stringMatching(/^artifacts: files, it can be read and written: a file was made/),
    },
    {
      kind: 'passed',
      subject: 'index',
      facts: 'changes: postgres, reachable, with the rights to build it, not built yet',
    },
    { kind: 'passed', subject: 'index', facts: expect.stringMatching(/^people: .* live at position [1-9]/) },
  ]);
  expect(await contents(scene)).toEqual(before);
  expect(await readdir(join(project.folder, 'kept'))).toEqual([]);
});

test('readers who are not led to the live build are told of, as what the next call mends', async () => {
  await scene.journal.admin.query('drop view retl_index.people');
  const lines = await looked({ indexes: { people: { kind } } });
  expect(lines.filter(({ subject }) => subject === 'index')).toMatchObject([
    { kind: 'passed' },
    { kind: 'hint', message: expect.stringContaining('(view-gone)') },
  ]);
  await scene.follow(scene.indexer('people'));
  expect((await looked({ indexes: { people: { kind } } })).filter((line) => line.kind === 'hint')).toEqual(
    [],
  );
});

test('whatever keeps an index in a database from being built or followed is a problem of its own, at its place', async () => {
  const before = await contents(other);
  await scene.journal.admin.query('create table retl_index.taken (id int)');
  const lines = await looked({
    indexes: {
      away: { kind, url: 'postgres://127.0.0.1:1/nowhere' },
      fresh: { kind, url: SECOND, schema: 'fresh' },
      locked: { kind, url: SECOND, schema: 'retl' },
      people: { kind, url: SECOND },
      taken: { kind },
    },
  });
  expect(lines.filter((line) => line.kind === 'problem')).toMatchObject([
    { subject: 'index', path: 'indexes.away', code: 'index.unavailable' },
    { path: 'indexes.fresh', message: expect.stringContaining('rule=may-not-create-schema') },
    { path: 'indexes.locked', message: expect.stringContaining('rule=may-not-create-in-schema') },
    { path: 'indexes.people', code: 'index.other-log' },
    { path: 'indexes.taken', message: expect.stringContaining('rule=name-taken') },
  ]);
  expect(await contents(other)).toEqual(before);
});

test('a search engine that is away, another product or not to be trusted is told so', async () => {
  const web = await listening(createServer((_, response) => response.writeHead(403).end('{}')));
  const certificate = { cert: LOCALHOST_CERTIFICATE, key: LOCALHOST_KEY };
  const tls = await listening(createTlsServer(certificate, (_, response) => response.end('{}')));
  const engine = { kind, engine: 'opensearch' };
  const lines = await looked({
    indexes: {
      away: { ...engine, url: 'http://127.0.0.1:1' },
      refused: { ...engine, url: `http://127.0.0.1:${web}` },
      untrusted: { ...engine, url: `https://127.0.0.1:${tls}` },
    },
  });
  expect(lines.slice(1)).toMatchObject([
    { kind: 'problem', path: 'indexes.away', code: 'index.unavailable' },
    { kind: 'problem', path: 'indexes.refused', message: expect.stringContaining('code=http-403') },
    { kind: 'problem', path: 'indexes.untrusted', message: expect.stringContaining('code=tls') },
  ]);
}, 60_000);

test('a folder, a bucket and a store that are not there are told, former ones as well, without a value', async () => {
  const missing = '<Error><Code>NoSuchBucket</Code><Message>canary-bucket</Message></Error>';
  const store = await listening(createServer((_, response) => response.writeHead(404).end(missing)));
  const s3 = { type: 's3', bucket: 'canary-bucket', path_style: true, timeout_ms: 2_000 };
  const keys = { access_key_id: `\${env:LOOKED_AT_OTHER}`, secret_access_key: `\${env:LOOKED_AT_OTHER}` };
  const lines = await looked({
    artifacts: {
      type: 'files',
      folder: 'canary-folder',
      former: [
        { ...s3, ...keys, endpoint: `http://127.0.0.1:${store}` },
        { ...s3, ...keys, endpoint: 'http://127.0.0.1:1' },
      ],
    },
  });
  expect(lines).toMatchObject([
    { path: 'artifacts', code: 'artifact.misconfigured', message: expect.stringContaining('ENOENT') },
    { path: 'artifacts.former[0]', message: expect.stringContaining('NoSuchBucket') },
    { path: 'artifacts.former[1]', code: 'artifact.unavailable' },
  ]);
  expect(JSON.stringify(lines)).not.toContain('canary');
});

test('a store that can be read and not written is told, and so is the one that is no longer written', async () => {
  await mkdir(join(project.folder, 'blocked'));
  await writeFile(join(project.folder, 'blocked', 'sha256'), '');
  const files = (folder: string) => ({ type: 'files', folder });
  expect(await looked({ artifacts: { ...files('blocked'), former: [files('kept')] } })).toMatchObject([
    { path: 'artifacts', code: 'artifact.misconfigured', message: expect.stringContaining('code=ENOTDIR') },
    { facts: 'artifacts.former[0]: files, it can be read; nothing is written there any more' },
  ]);
  expect(await readdir(join(project.folder, 'blocked'))).toEqual(['sha256']);
  // Nobody makes a file there, root included.
  const [unwritable] = await looked({ artifacts: files('/proc') });
  expect(unwritable).toMatchObject({ path: 'artifacts', code: 'artifact.misconfigured' });
});

test('the journal takes a checkpoint where its role may store one, and keeps nothing of the trial', async () => {
  const kept = async () => (await scene.journal.admin.query('select from retl.artifact')).rowCount;
  const before = await kept();
  const artifacts = { type: 'journal' };
  expect(await looked({ artifacts })).toMatchObject([
    { facts: 'artifacts: journal, it can be read and written' },
  ]);
  expect(await kept()).toBe(before);
  await scene.journal.admin.query('revoke execute on function retl.put_artifact from retl_runtime');
  const lines = await looked({ artifacts });
  await scene.journal.admin.query('grant execute on function retl.put_artifact to retl_runtime');
  expect(lines).toMatchObject([
    { code: 'artifact.misconfigured', message: expect.stringContaining('42501') },
  ]);
});
