import { chmod, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { cacheFolder } from '../../src/dev/cache-folder.ts';
import { freePortFrom } from '../../src/dev/ports.ts';
import { isRecent, isUsable } from '../../src/dev/temporal-cli.ts';

let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'retl-cli-'));
});
afterAll(() => rm(folder, { recursive: true, force: true }));

async function program(name: string, script: string): Promise<string> {
  const path = join(folder, name);
  await writeFile(path, `#!/bin/sh\n${script}\n`);
  await chmod(path, 0o755);
  return path;
}

test.each([
  ['temporal version 1.9.1 (Server 1.32.0, UI 2.54.1)', true],
  ['temporal version 1.4.0 (Server 1.28.0, UI 2.39.0)', true],
  ['temporal version 1.10.0', true],
  ['temporal version 2.0.0', true],
  ['temporal version 1.3.9 (Server 1.27.1)', false],
  ['temporal version 0.13.2', false],
  ['pyenv: temporal: command not found', false],
  ['Temporal 1.9.1, a calendar of the seasons', false],
  ['', false],
])('`temporal --version` saying %j is usable: %s', (line, usable) => {
  expect(isRecent(line)).toBe(usable);
});

test('a program called temporal is used only when it is the right one', async () => {
  const right = await program('right', 'echo "temporal version 1.9.1 (Server 1.32.0)"');
  const shim = await program('shim', 'echo "pyenv: temporal: command not found" >&2; exit 127');
  expect(await isUsable(right)).toBe(true);
  expect(await isUsable(shim)).toBe(false);
  expect(await isUsable(join(folder, 'absent'))).toBe(false);
});

test('the cache folder follows XDG_CACHE_HOME, then HOME, then the project', async () => {
  const blocked = join(folder, 'a-file');
  await writeFile(blocked, '');
  const project = join(folder, 'project');
  expect(cacheFolder(project, { XDG_CACHE_HOME: join(folder, 'xdg') })).toBe(
    join(folder, 'xdg', 'retl-mirror'),
  );
  expect(cacheFolder(project, { HOME: folder })).toBe(join(folder, '.cache', 'retl-mirror'));
  expect(cacheFolder(project, { HOME: blocked })).toBe(join(project, '.retl', 'cache'));
});

test('a port in use is passed over', async () => {
  const holder = createServer();
  const taken = await new Promise<number>((resolve, reject) => {
    holder.listen(0, '127.0.0.1', () => {
      const address = holder.address();
      if (address !== null && typeof address === 'object') resolve(address.port);
      else reject(new Error('no port'));
    });
  });
  const given = await freePortFrom(taken);
  holder.close();
  expect(given).not.toBe(taken);
});
