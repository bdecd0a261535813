/** `retl run` on a real terminal: Ctrl-C asks, each answer does what it says, and nothing is written over the question. */

import { spawn } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { Worker } from '@temporalio/worker';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { connectClient, type TemporalClient } from '../../src/client/connect.ts';
import { signalMirror } from '../../src/client/control.ts';
import { describeHolder } from '../../src/client/describe.ts';
import { startMirror } from '../../src/client/start.ts';
import { TASK_QUEUE } from '../../src/domain/messages.ts';
import { PROJECT } from '../config/support.ts';
import { createTestProject, type TestProject } from '../support/project.ts';
import { type DevServer, startDevServer } from '../support/temporal.ts';
import { Terminal } from '../support/terminal.ts';
import { cleanEnvironment, RETL } from './support.ts';

let server: DevServer;
let worker: Worker;
let working: Promise<void>;
let folder: TestProject;
let temporal: TemporalClient;

beforeAll(async () => {
  server = await startDevServer();
  worker = await Worker.create({
    connection: server.env.nativeConnection,
    taskQueue: TASK_QUEUE,
    workflowsPath: fileURLToPath(new URL('./stub-workflow.ts', import.meta.url)),
  });
  working = worker.run();
  const { address } = server;
  temporal = await connectClient({ profile: null, address, namespace: null, taskQueue: TASK_QUEUE });
  // A journal that cannot be reached: what is asked here is asked through Temporal.
  folder = await createTestProject({ 'retl.yaml': PROJECT });
});
afterAll(async () => {
  await temporal?.close();
  worker?.shutdown();
  await working;
  await folder?.remove();
  await server?.stop();
});

const there = () => ({
  cwd: folder.folder,
  env: { TEMPORAL_ADDRESS: server.address, RETL_JOURNAL_URL: 'postgres://localhost:1/none' },
});
const on = (args: readonly string[], size: { readonly rows?: number; readonly columns?: number } = {}) =>
  new Terminal(args, { ...there(), ...size });

const QUESTION = 'Leave it running [l], cancel it [c], or go on watching [w]?';
const isOpen = async (mirror: string) => (await describeHolder(temporal, mirror)).kind === 'open';
const cancel = (mirror: string) => signalMirror(temporal, mirror, 'cancel');

describe('Ctrl-C while one run is followed', () => {
  test('asks; `w` goes on watching, and `c` cancels the run and follows it to its end', async () => {
    const terminal = on(['run', 'waits-tty-c']);
    await terminal.shows('sending additions');
    terminal.ctrlC();
    await terminal.shows(QUESTION);
    terminal.type('perhaps\r');
    await vi.waitFor(
      () => expect(terminal.screen.filter((l) => l.startsWith(QUESTION))).toHaveLength(2),
      20_000,
    );
    terminal.type('w\r');
    await terminal.shows('sending additions');
    expect(await isOpen('waits-tty-c')).toBe(true);
    terminal.ctrlC();
    await vi.waitFor(() => expect(terminal.screen.at(-1)).toBe(QUESTION), 20_000);
    terminal.type('c\r');
    expect(await terminal.ended).toBe(7);
    expect(terminal.screen.join('\n')).toContain('Asked it to cancel');
    expect(terminal.screen.join('\n')).toContain('waits-tty-c: cancelled');
  });

  test.each([
    ['l', 'l\r'],
    ['Enter alone', '\r'],
    ['the end of the input', '\x04'],
  ])('%s leaves the run alone', async (what, keys) => {
    const mirror = `waits-tty-${what.replaceAll(/\W/g, '').toLowerCase()}`;
    const terminal = on(['run', mirror]);
    await terminal.shows('sending additions');
    terminal.ctrlC();
    await terminal.shows(QUESTION);
    terminal.type(keys);
    expect(await terminal.ended).toBe(130);
    expect(terminal.screen.join('\n')).toContain(`The run goes on. \`retl status ${mirror}\` shows it`);
    expect(await isOpen(mirror)).toBe(true);
    await cancel(mirror);
  });

  test('a second Ctrl-C leaves at once', async () => {
    const terminal = on(['run', 'waits-tty-twice']);
    await terminal.shows('sending additions');
    terminal.ctrlC();
    await terminal.shows(QUESTION);
    terminal.ctrlC();
    expect(await terminal.ended).toBe(130);
    expect(await isOpen('waits-tty-twice')).toBe(true);
    await cancel('waits-tty-twice');
  });

  test('a run that ends while the question stands there needs no answer', async () => {
    const terminal = on(['run', 'waits-tty-ends']);
    await terminal.shows('sending additions');
    terminal.ctrlC();
    await terminal.shows(QUESTION);
    await cancel('waits-tty-ends');
    expect(await terminal.ended).toBe(7);
    expect(terminal.screen).toContain(QUESTION);
    expect(terminal.screen.join('\n')).toContain('waits-tty-ends: cancelled');
  });
});

describe('several runs', () => {
  test('while the question stands there, nothing of another run is written over it; it comes after the answer', async () => {
    const terminal = on(['run', 'waits-tty-one', 'waits-tty-two']);
    await vi.waitFor(
      () => expect(terminal.screen.filter((line) => line.includes('sending additions'))).toHaveLength(2),
      20_000,
    );
    terminal.ctrlC();
    await terminal.shows('cancel them [c]');
    const asked = terminal.bytes;
    await cancel('waits-tty-two');
    await vi.waitFor(async () => expect(await isOpen('waits-tty-two')).toBe(false), 20_000);
    await new Promise((resolve) => setTimeout(resolve, 1_500));
    expect(terminal.bytes).toBe(asked);
    terminal.type('w\r');
    await terminal.shows('waits-tty-two: cancelled');
    await terminal.shows('waits-tty-one  ');
    await cancel('waits-tty-one');
    expect(await terminal.ended).toBe(7);
  });

  test('a line for each is redrawn in its place, no more of them than the terminal has room for', async () => {
    const names = ['a', 'b', 'c', 'd'].map((name) => `waits-tty-${name}`);
    const terminal = on(['run', ...names], { rows: 4, columns: 60 });
    await terminal.shows('and 2 more');
    await new Promise((resolve) => setTimeout(resolve, 1_500));
    const drawn = terminal.screen.filter((line) => /^waits-tty-[ab] {2}.*sending additio$/.test(line));
    expect(drawn).toHaveLength(2);
    for (const line of terminal.screen) expect(line.length).toBeLessThan(60);
    expect(terminal.screen.at(-1)).toBe('and 2 more');
    for (const name of names) await cancel(name);
    expect(await terminal.ended).toBe(7);
    const ends = terminal.screen.filter((line) => line.endsWith(': cancelled'));
    expect([...ends].sort()).toEqual(names.map((name) => `${name}: cancelled`));
    expect(terminal.screen.join('\n')).not.toContain('more');
  });
});

test('a parked run is shown, and followed on', async () => {
  const terminal = on(['run', 'waits-tty-as-parked']);
  await terminal.shows('it would remove 900 of 1,000 members (90%)');
  await terminal.shows('50%  parked by the guard');
  expect(await isOpen('waits-tty-as-parked')).toBe(true);
  await cancel('waits-tty-as-parked');
  expect(await terminal.ended).toBe(7);
  expect(terminal.bytes.match(/nobody was removed/g)).toHaveLength(1);
});

test('approve shows what is asked, and takes `yes` alone for an agreement', async () => {
  await startMirror(temporal, 'waits-answer-as-parked');
  for (const keys of ['y\r', '\r', '\x03', '\x04']) {
    const terminal = on(['approve', 'waits-answer-as-parked']);
    await terminal.shows('Type yes to go on:');
    expect(terminal.screen.join('\n')).toContain('it would remove 900 of 1,000 members (90%)');
    terminal.type(keys);
    expect(await terminal.ended).toBe(3);
    expect(terminal.screen.join('\n')).toMatch(/\nerror: Nothing was changed\./);
  }
  await cancel('waits-answer-as-parked');
});

describe('a reader that goes away', () => {
  const deaf = (stream: 'stdout' | 'stderr', args: readonly string[]) => {
    const { cwd, env } = there();
    const child = spawn(process.execPath, ['--import', import.meta.resolve('tsx'), RETL, ...args], {
      cwd,
      env: { ...cleanEnvironment(), ...env },
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    let text = '';
    child[stream].destroy();
    child[stream === 'stdout' ? 'stderr' : 'stdout'].setEncoding('utf8').on('data', (part: string) => {
      text += part;
    });
    return new Promise<{ code: number | null; text: string }>((resolve) => {
      child.once('close', (code) => resolve({ code, text }));
    });
  };

  test('from stderr: the run is followed to its end, and its result is written', async () => {
    const { code, text } = await deaf('stderr', ['run', 'completes-deaf']);
    expect(code).toBe(0);
    expect(text).toContain('completes-deaf: completed');
  });

  test('from stdout: the command ends without a word, and never as if the run had completed', async () => {
    const { code, text } = await deaf('stdout', ['run', 'waits-deaf', '--json']);
    expect({ code, text }).toEqual({ code: 130, text: '' });
    expect(await isOpen('waits-deaf')).toBe(true);
    await cancel('waits-deaf');
    expect(await deaf('stdout', ['--help'])).toEqual({ code: 0, text: '' });
  });
});
