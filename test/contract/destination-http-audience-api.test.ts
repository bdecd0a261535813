/** The demo's audience API as a process of its own, and the `http` destination against it. */

import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { member, openWriter, PER_ROW } from '../support/fake-audience-writer.ts';

let folder: string;
const running: ChildProcess[] = [];

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'audience-'));
});
afterEach(() => {
  for (const child of running.splice(0)) child.kill('SIGKILL');
});
afterAll(() => rm(folder, { recursive: true, force: true }));

interface Api {
  readonly url: string;
  readonly child: ChildProcess;
  /** All that it has written, its first line included. */
  readonly output: string[];
}

async function start(file: string, ...more: string[]): Promise<Api> {
  const args = [
    '--import',
    'tsx',
    'src/dev/audience-api.ts',
    '--port',
    '0',
    '--data',
    join(folder, file),
    ...more,
  ];
  const child = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'pipe'] });
  running.push(child);
  const output: string[] = [];
  child.stderr?.on('data', (chunk) => output.push(String(chunk)));
  if (child.stdout === null) throw new Error('no output');
  const lines = createInterface({ input: child.stdout });
  lines.on('line', (line) => output.push(line));
  const [first] = await once(lines, 'line');
  return { url: JSON.parse(String(first)).url, child, output };
}

async function read(url: string): Promise<unknown> {
  return (await fetch(url)).json();
}

const id = (digit: string) => digit.repeat(64);

test('members are kept across SIGKILL, each reply standing for what is on disk; SIGTERM ends it with 0', async () => {
  const first = await start('kept.json');
  const { writer, request } = await openWriter(first.url, { options: { outcomes: PER_ROW } });
  const sent = ['a', 'b', 'c'].map((digit) => member(id(digit), { name: 'Zoë 😀' }));
  const outcome = await writer.upsert(request('upsert', sent));
  expect(outcome).toMatchObject({ kind: 'settled', outcomes: Array(3).fill({ kind: 'accepted' }) });
  expect((await writer.remove(request('remove', sent.slice(2)))).kind).toBe('settled');
  await writer.close();
  first.child.kill('SIGKILL');
  await once(first.child, 'exit');

  const second = await start('kept.json');
  expect(await read(`${second.url}/audiences/42`)).toEqual({ id: '42', members: 2 });
  const members = sent.slice(0, 2).map(({ upsert }) => upsert);
  expect(await read(`${second.url}/audiences/42/members`)).toEqual({ members, next: null });
  expect(await read(`${second.url}/audiences/42/members?limit=1`)).toEqual({
    members: [members[0]],
    next: id('a'),
  });
  expect(await read(`${second.url}/audiences/42/members?after=${id('a')}`)).toMatchObject({
    members: [members[1]],
  });
  second.child.kill('SIGTERM');
  expect(await once(second.child, 'exit')).toEqual([0, null]);
  expect(second.output).toEqual([JSON.stringify({ url: second.url })]);
  expect(await readdir(folder)).toEqual(['kept.json']);
});

test('a first mirror: the audience is verified to be empty, and without outcomes configured its replies are understood', async () => {
  const api = await start('first.json', '--delay-ms', '50');
  const options = { verify_empty: { path: '/audiences/42', count: '/members' } };
  const { writer, request } = await openWriter(api.url, { options });
  expect(await writer.preflight()).toEqual([]);
  expect(await writer.checkEmpty()).toEqual({ kind: 'empty' });
  const startedAt = performance.now();
  expect((await writer.upsert(request('upsert', [member(id('a')), member(id('b'))]))).kind).toBe('accepted');
  expect(performance.now() - startedAt).toBeGreaterThan(45);
  expect(await writer.checkEmpty()).toEqual({ kind: 'not-empty' });
  await writer.close();
});

test('a row that is not valid is turned down by its id, and a known idempotency key changes nothing', async () => {
  const api = await start('keys.json');
  const options = { outcomes: PER_ROW, idempotent: true, idempotency: { header: 'Idempotency-Key' } };
  const { writer, request } = await openWriter(api.url, { options });
  const batch = request('upsert', [member('short'), member(id('a'))]);
  const outcome = await writer.upsert(batch);
  expect(outcome).toMatchObject({ kind: 'settled', outcomes: [{ kind: 'rejected' }, { kind: 'accepted' }] });
  await writer.remove(request('remove', [member(id('a'))]));
  expect(await writer.reconcileBatch(batch, null)).toEqual(outcome);
  expect(await read(`${api.url}/audiences/42`)).toMatchObject({ members: 0 });
  await writer.close();
});
