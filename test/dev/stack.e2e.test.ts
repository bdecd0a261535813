import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Client } from 'pg';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { startEmbeddedPostgres } from '../../src/dev/embedded-postgres.ts';
import { spawnGuarded } from '../../src/dev/guarded-child.ts';
import { keepPort, portFor } from '../../src/dev/kept-port.ts';
import { freePortFrom } from '../../src/dev/ports.ts';
import { commandOf, startOf } from '../../src/dev/processes.ts';
import { lockStack } from '../../src/dev/stack-lock.ts';

const ROOT = join(import.meta.dirname, '..', '..');
const PORT = 54_400;
const choosePort = () => freePortFrom(PORT);

let folder: string;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'retl-stack-'));
});
afterEach(() => rm(folder, { recursive: true, force: true }));

/** Runs a module in a node process of its own; resolves with its first line of output. */
async function inProcess(code: string): Promise<{ line: string; pid: number; ended: Promise<unknown> }> {
  const child = await spawnGuarded(
    process.execPath,
    ['--import', import.meta.resolve('tsx'), '--input-type=module', '--eval', code],
    {
      spawn: { cwd: ROOT, stdio: ['ignore', 'pipe', 'inherit'] },
      stopSignal: 'SIGKILL',
      stopWithinMs: 1_000,
    },
  );
  const line = await new Promise<string>((resolve) => {
    child.process.stdout?.once('data', (data: Buffer) => resolve(data.toString().trim()));
  });
  return { line, pid: child.pid, ended: child.exited };
}

/** Until nothing of the process is left; in a container a dead process may stay a nameless entry. */
async function isGone(pid: number): Promise<boolean> {
  for (let attempt = 0; attempt < 200; attempt += 1) {
    if ((await commandOf(pid)) === '') return true;
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  return false;
}

async function ask(url: string, sql: string): Promise<unknown[]> {
  const client = new Client({ connectionString: url });
  await client.connect();
  const { rows } = await client.query(sql);
  await client.end();
  return rows;
}

test('a server whose parent is killed ends by itself, and the next start finds the data', async () => {
  const { line, pid, ended } = await inProcess(`
    const { startEmbeddedPostgres } = await import(${JSON.stringify(join(ROOT, 'src/dev/embedded-postgres.ts'))});
    const { Client } = (await import('pg')).default;
    const server = await startEmbeddedPostgres({ kind: 'kept', folder: ${JSON.stringify(folder)}, choosePort: async () => ${PORT} });
    const client = new Client({ connectionString: server.adminUrl });
    await client.connect();
    await client.query('create table kept as select 42 as answer');
    console.log(server.pid);
    setInterval(() => {}, 1000);
  `);
  process.kill(pid, 'SIGKILL');
  await ended;
  expect(await isGone(Number(line))).toBe(true);
  const server = await startEmbeddedPostgres({ kind: 'kept', folder, choosePort });
  try {
    expect(await ask(server.adminUrl, 'select answer from kept')).toEqual([{ answer: 42 }]);
  } finally {
    await server.stop();
  }
});

test('half a cluster from an interrupted first start is made anew', async () => {
  await mkdir(join(folder, 'data.making', 'data', 'base'), { recursive: true });
  await writeFile(join(folder, 'data.making', 'data', 'PG_VERSION'), '18\n');
  const server = await startEmbeddedPostgres({ kind: 'kept', folder, choosePort });
  try {
    expect(await ask(server.adminUrl, 'select 1 as one')).toEqual([{ one: 1 }]);
  } finally {
    await server.stop();
  }
});

test('a pid file whose process is now another program does not keep the server from starting', async () => {
  const first = await startEmbeddedPostgres({ kind: 'kept', folder, choosePort });
  await first.stop();
  const file = join(folder, 'data', 'postmaster.pid');
  // This very process lives and is no PostgreSQL server.
  await writeFile(file, `${process.pid}\n${join(folder, 'data')}\n0\n${PORT}\n\n127.0.0.1\n`);
  const second = await startEmbeddedPostgres({ kind: 'kept', folder, choosePort });
  expect((await readFile(file, 'utf8')).split('\n')[0]).toBe(String(second.pid));
  await second.stop();
});

test('data of another PostgreSQL version are refused with what to do', async () => {
  const first = await startEmbeddedPostgres({ kind: 'kept', folder, choosePort });
  await first.stop();
  await writeFile(join(folder, 'data', 'PG_VERSION'), '16\n');
  await expect(startEmbeddedPostgres({ kind: 'kept', folder, choosePort })).rejects.toThrow(
    /PostgreSQL 16.*remove the folder/,
  );
});

test('a port in use is passed over', async () => {
  const first = await startEmbeddedPostgres({ kind: 'kept', folder: join(folder, 'a'), choosePort });
  const second = await startEmbeddedPostgres({ kind: 'kept', folder: join(folder, 'b'), choosePort });
  expect(second.port).not.toBe(first.port);
  await Promise.all([first.stop(), second.stop()]);
});

test('the port of a first start is insisted on, and the refusal names who has it', async () => {
  const server = await startEmbeddedPostgres({ kind: 'kept', folder, choosePort });
  try {
    await keepPort(folder, server.port);
    await expect(portFor(folder)).rejects.toMatchObject({
      port: server.port,
      message: expect.stringMatching(/is taken by (another program|process \d+)/),
    });
  } finally {
    await server.stop();
  }
  expect(await portFor(folder)).toBe(server.port);
});

test('a folder has one stack at a time, and the refusal names the process that has it', async () => {
  const lock = await lockStack(folder);
  await expect(lockStack(folder)).rejects.toThrow(`process ${process.pid}`);
  await lock.release();
  await (await lockStack(folder)).release();
});

test('the lock of a dead process is taken over, also when its id was given to another program', async () => {
  const file = join(folder, 'stack.lock');
  const start = await startOf(process.pid);
  await writeFile(file, JSON.stringify({ pid: process.pid, start: `not ${start}`, children: [] }));
  await (await lockStack(folder)).release();
  await writeFile(file, '{"pid": 12');
  await (await lockStack(folder)).release();
});

test('what a dead stack has left running is ended; a stranger with a recorded id is not', async () => {
  const run = (name: string) =>
    spawnGuarded('/bin/sh', ['-c', 'while :; do sleep 0.1; done', name], {
      spawn: { stdio: 'ignore' },
      stopSignal: 'SIGKILL',
      stopWithinMs: 1_000,
    });
  const ours = await run(join(folder, 'server'));
  const stranger = await run('/somewhere/else');
  const children = [ours.pid, stranger.pid];
  await writeFile(join(folder, 'stack.lock'), JSON.stringify({ pid: 1, start: 'never', children }));
  await (await lockStack(folder)).release();
  await ours.exited;
  expect(await commandOf(stranger.pid)).toContain('/somewhere/else');
  await stranger.stop();
});
