import { spawn } from 'node:child_process';
import { expect, test } from 'vitest';
import { endOfWorker, heapLimit, workerCommandLine } from '../../src/cli/worker-process.ts';

test('a worker has a bounded heap, unless somebody has bounded it already', () => {
  expect(heapLimit('')).toEqual(['--max-old-space-size=1024']);
  expect(heapLimit('--enable-source-maps')).toHaveLength(1);
  expect(heapLimit('--max-old-space-size=300')).toEqual([]);
  expect(heapLimit('--max_old_space_size=300')).toEqual([]);
});

test('the limit stands before the program, whose own arguments come last', () => {
  const line = workerCommandLine(['--project', '/tmp/p']);
  expect(line.slice(-2)).toEqual(['--project', '/tmp/p']);
  expect(line.at(-3)).toMatch(/worker\.ts$/);
});

test.each([
  ['', { kind: 'exited', exit: 0 }],
  ['process.exitCode = 7', { kind: 'exited', exit: 1 }],
  ['process.kill(process.pid, "SIGTERM")', { kind: 'interrupted' }],
  ['process.kill(process.pid, "SIGKILL")', { kind: 'killed', signal: 'SIGKILL' }],
])('how a worker has ended is told apart: %s', async (program, end) => {
  const stays = 'setTimeout(() => undefined, 50);';
  const child = spawn(process.execPath, ['-e', `${stays}${program}`], { stdio: 'ignore' });
  expect(await endOfWorker(child)).toEqual(end);
});
