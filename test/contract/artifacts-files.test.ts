/** Artifacts as files of a folder. */

import { spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { chmod, mkdir, mkdtemp, readdir, readFile, rm, stat, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { createInterface } from 'node:readline';
import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, onTestFinished, test } from 'vitest';
import { type ArtifactReference, hexOf, sha256 } from '../../src/domain/ids.ts';
import { FileArtifacts } from '../../src/indexing/artifacts/files.ts';
import { openArtifacts } from '../../src/indexing/artifacts/open.ts';
import { artifactOptions } from '../../src/indexing/artifacts/options.ts';
import { referenceOf, verifyArtifacts } from '../../src/journal/artifact-store.ts';
import { describeArtifactStore, packed } from './artifacts.contract.ts';

const WRITER = join(import.meta.dirname, 'artifacts-files-writer.ts');

const pathOf = (folder: string, reference: ArtifactReference): string =>
  join(folder, 'sha256', hexOf(reference).slice(0, 2), hexOf(reference));

describeArtifactStore('files', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'retl-artifacts-'));
  return {
    store: new FileArtifacts(folder),
    other: new FileArtifacts(folder),
    replace: async (reference, by) => {
      await chmod(pathOf(folder, reference), 0o644);
      await writeFile(pathOf(folder, reference), packed(by));
    },
    remove: (reference) => rm(pathOf(folder, reference)),
    close: () => rm(folder, { recursive: true }),
  };
});

test('a relative folder is looked for in the project’s', async () => {
  const project = await mkdtemp(join(tmpdir(), 'retl-artifacts-'));
  onTestFinished(() => rm(project, { recursive: true }));
  await mkdir(join(project, 'kept'));
  const journal = { query: () => Promise.reject(new Error('not asked')) };
  const { store } = await openArtifacts(
    artifactOptions.parse({ type: 'files', folder: 'kept' }),
    journal,
    project,
  );
  const put = await store.put({ type: 'test.bytes', bytes: Buffer.from('x') });
  expect(await readdir(join(project, 'kept'))).toEqual(['sha256']);
  expect(put.kind).toBe('stored');
});

const KEYS = { access_key_id: 'id', secret_access_key: 'key' };
const S3 = { type: 's3', bucket: 'kept' };

test.each<[object, readonly string[]]>([
  [{ type: 'journal' }, []],
  [{ type: 'files', folder: '/var/kept' }, []],
  [S3, []],
  [{ ...S3, ...KEYS, prefix: 'a/b c/ü/', endpoint: 'http://127.0.0.1:9000' }, []],
  [{ ...S3, endpoint: 'http://store.example', allow_plain_http: true }, []],
  [{}, ['type']],
  [{ type: 'tape' }, ['type']],
  [{ type: 'journal', folder: 'x' }, ['']],
  [{ type: 'files' }, ['folder']],
  [{ type: 's3' }, ['bucket']],
  [{ ...S3, prefix: 'a' }, ['prefix']],
  [{ ...S3, prefix: '/' }, ['prefix']],
  [{ ...S3, prefix: 'a//' }, ['prefix']],
  [{ ...S3, prefix: '../' }, ['prefix']],
  [{ ...S3, prefix: 'a\n/' }, ['prefix']],
  [{ ...S3, prefix: `${'ü'.repeat(350)}/` }, ['prefix']],
  [{ ...S3, endpoint: 'http://store.example' }, ['endpoint']],
  [{ ...S3, endpoint: 'https://user:word@store.example' }, ['endpoint']],
  [{ ...S3, endpoint: 'store.example' }, ['endpoint']],
  [{ ...S3, access_key_id: 'id' }, ['secret_access_key']],
  [{ ...S3, secret_access_key: 'key' }, ['access_key_id']],
  [{ ...S3, session_token: 'token' }, ['session_token']],
  [{ ...S3, ca: 'no certificate' }, ['ca']],
])('where artifacts are kept: %j', (input, faults) => {
  const { error } = artifactOptions.safeParse(input);
  expect((error?.issues ?? []).map(({ path }) => path.join('.'))).toEqual(faults);
});

describe('a folder of artifacts', () => {
  const given = { type: 'test.bytes', bytes: Buffer.from('content') };
  const reference = referenceOf(given);

  async function newFolder(): Promise<string> {
    const folder = await mkdtemp(join(tmpdir(), 'retl-artifacts-'));
    onTestFinished(() => rm(folder, { recursive: true, force: true }));
    return folder;
  }

  test('a file is called by the SHA-256 of all of its bytes, may only be read, and stands alone', async () => {
    const folder = await newFolder();
    await new FileArtifacts(folder).put(given);
    const path = pathOf(folder, reference);
    expect(
      createHash('sha256')
        .update(await readFile(path))
        .digest('hex'),
    ).toBe(hexOf(reference));
    expect((await stat(path)).mode & 0o222).toBe(0);
    expect((await stat(path)).nlink).toBe(1);
    expect(await readdir(dirname(path))).toEqual([hexOf(reference)]);
  });

  test('what a writer left behind when it died is no artifact, and in nobody’s way', async () => {
    const folder = await newFolder();
    const store = new FileArtifacts(folder);
    const shard = dirname(pathOf(folder, reference));
    await mkdir(shard, { recursive: true });
    await writeFile(join(shard, '.draft-1'), packed(given).subarray(0, 9));
    expect(await store.get(reference)).toEqual({ kind: 'missing' });
    expect(await store.list(null, 10)).toEqual([]);
    expect(await store.put(given)).toEqual({ kind: 'stored', reference });
    expect(await store.list(null, 10)).toEqual([reference]);
  });

  test('files of other names are not taken for artifacts; a folder of an artifact’s name is a damaged one', async () => {
    const folder = await newFolder();
    const store = new FileArtifacts(folder);
    await store.put(given);
    const shard = dirname(pathOf(folder, reference));
    await writeFile(join(folder, 'sha256', 'README'), 'x');
    await writeFile(join(shard, `${hexOf(reference)}.bak`), 'x');
    await writeFile(join(shard, 'f'.repeat(64)), 'in the shard of another name');
    expect(await store.list(null, 10)).toEqual([reference]);
    await rm(pathOf(folder, reference));
    await mkdir(pathOf(folder, reference));
    expect(await store.get(reference)).toEqual({ kind: 'corrupt' });
    expect(await store.put(given)).toEqual({ kind: 'corrupt', reference });
  });

  test('a file that is longer than any artifact is damaged, and is not read', async () => {
    const folder = await newFolder();
    const store = new FileArtifacts(folder);
    await store.put(given);
    await rm(pathOf(folder, reference));
    await symlink('/dev/zero', pathOf(folder, reference));
    expect(await store.get(reference)).toEqual({ kind: 'corrupt' });
  });

  test('a folder that is not there is said to be so, not to be empty', async () => {
    const folder = join(await newFolder(), 'not-mounted');
    const store = new FileArtifacts(folder);
    const misconfigured = { code: 'artifact.misconfigured', details: { code: 'ENOENT' } };
    await expect(store.get(reference)).rejects.toMatchObject(misconfigured);
    await expect(store.list(null, 1)).rejects.toMatchObject(misconfigured);
    await expect(store.put(given)).rejects.toMatchObject(misconfigured);
    await expect(stat(folder)).rejects.toMatchObject({ code: 'ENOENT' });
    const file = join(await newFolder(), 'file');
    await writeFile(file, 'x');
    await expect(new FileArtifacts(file).put(given)).rejects.toMatchObject({
      code: 'artifact.misconfigured',
    });
  });

  test('a writer that is killed at any instant leaves whole artifacts only, and all that it has told of', async () => {
    const folder = await newFolder();
    const told: string[] = [];
    for (let i = 0; i < 3; i++) {
      const writer = spawn(process.execPath, ['--import', 'tsx', WRITER, folder], {
        stdio: ['ignore', 'pipe', 'inherit'],
      });
      const lines = createInterface({ input: writer.stdout });
      lines.on('line', (line) => told.push(line));
      await once(lines, 'line');
      await sleep(30 * i);
      writer.kill('SIGKILL');
      await Promise.all([once(writer, 'exit'), once(lines, 'close')]);
    }
    const store = new FileArtifacts(folder);
    const whole = told.filter((line) => line.length === 'sha256:'.length + 64).map(sha256);
    const { checked, faults } = await verifyArtifacts(store, whole);
    expect(faults).toEqual([]);
    expect(checked).toBeGreaterThanOrEqual(whole.length);
    expect(whole.length).toBeGreaterThanOrEqual(3);
  });
});
