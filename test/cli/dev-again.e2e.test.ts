/** `retl dev` after a bad day: killed, its port taken, its servers gone. */

import { readFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { z } from 'zod';
import { endProcess } from '../../src/dev/processes.ts';
import { createTestProject, type TestProject } from '../support/project.ts';
import { type Running, retl, startRetl } from './support.ts';

let project: TestProject;
let dev: Running;

beforeAll(async () => {
  project = await createTestProject();
  await retl(['init'], { cwd: project.folder });
  await start();
});
afterAll(async () => {
  dev?.signal('SIGTERM');
  await dev?.ended;
  await project?.remove();
});

async function start(): Promise<void> {
  dev = startRetl(['dev', '--json'], { cwd: project.folder });
  await dev.says('worker-ready');
}

const kept = (file: string) => readFile(join(project.folder, '.retl', file), 'utf8');

async function serverPids(): Promise<readonly number[]> {
  const lock: unknown = JSON.parse(await kept('dev/stack.lock'));
  return z.object({ children: z.array(z.number()) }).parse(lock).children;
}

test('one that was killed is started again with its own servers, whoever has its former Temporal’s port', async () => {
  const before = await kept('dev.env');
  const first = await retl(['run', 'example'], { cwd: project.folder });
  expect(first.stdout).toContain('100 added');
  dev.signal('SIGKILL');
  await dev.ended;
  for (const pid of await serverPids()) await endProcess(pid, 'SIGINT', 10_000);
  expect(await kept('dev.env')).toBe(before);
  // Nobody is led to where the servers were.
  const told = await retl(['status'], { cwd: project.folder });
  expect(told.stdout + told.stderr).toContain('config.secret');
  const [, port = ''] = /TEMPORAL_ADDRESS=.*:(\d+)/.exec(before) ?? [];
  const stranger = createServer((socket) => socket.destroy());
  await new Promise<void>((resolve) => stranger.listen(Number(port), '127.0.0.1', resolve));
  try {
    await start();
    expect(await kept('dev.env')).not.toContain(`TEMPORAL_ADDRESS=127.0.0.1:${port}`);
    const again = await retl(['run', 'example'], { cwd: project.folder });
    expect(again.stdout).toContain('100 unchanged');
  } finally {
    stranger.close();
  }
});

test('one whose server has ended says which, and ends', async () => {
  const [postgres = 0] = await serverPids();
  await endProcess(postgres, 'SIGINT', 10_000);
  const { code, stdout, stderr } = await dev.ended;
  expect(code).toBe(1);
  expect(stdout + stderr).toContain('PostgreSQL has ended by itself');
  expect(stdout + stderr).toContain('postgres.log');
});

test('another PostgreSQL port is refused with who has the first one, since its tables would be new targets', async () => {
  const { postgres } = z.object({ postgres: z.number() }).parse(JSON.parse(await kept('dev/ports.json')));
  const stranger = createServer();
  await new Promise<void>((resolve) => stranger.listen(postgres, '127.0.0.1', resolve));
  try {
    const refused = await retl(['dev'], { cwd: project.folder });
    expect(refused.code).toBe(3);
    expect(refused.stderr).toContain(`Port ${postgres}`);
    expect(refused.stderr).toContain('retl dev --fresh');
  } finally {
    stranger.close();
  }
});
