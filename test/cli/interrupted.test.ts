/** Commands whose work a process of the worker's side does, stopped in the middle of it: they say what that leaves, and leave with 130. */

import { once } from 'node:events';
import { type AddressInfo, createServer, type Server, type Socket } from 'node:net';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { lineOfStopped } from '../../src/worker-baseline.ts';
import { MIRROR, PROJECT } from '../config/support.ts';
import { createTestProject, type TestProject } from '../support/project.ts';
import { Terminal } from '../support/terminal.ts';
import { startRetl } from './support.ts';

/** A journal that takes connections, and says nothing: whoever works waits for it. */
let journal: Server;
let project: TestProject;
const sockets = new Set<Socket>();

beforeAll(async () => {
  journal = createServer((socket) => {
    sockets.add(socket);
    socket.on('error', () => undefined);
  });
  journal.listen(0, '127.0.0.1');
  await once(journal, 'listening');
  project = await createTestProject({
    'retl.yaml': `${PROJECT}indexes: { people: { kind: membership-search } }\n`,
    'mirrors/one.yaml': MIRROR,
    'mirrors/two.yaml': MIRROR,
  });
});
afterAll(async () => {
  for (const socket of sockets) socket.destroy();
  journal.close();
  await project.remove();
});

const there = () => {
  const { port } = journal.address() as AddressInfo;
  const url = `postgres://nobody@127.0.0.1:${port}/none`;
  const env = { RETL_JOURNAL_URL: url, TEMPORAL_ADDRESS: '127.0.0.1:1', SHOP_URL: url, CRM_TOKEN: 'x' };
  return { cwd: project.folder, env };
};

/** Until somebody waits for the journal. */
const asked = () => once(journal, 'connection');

test.each([
  ['index run people --once', 'SIGINT', 'What was committed stays, and the next call goes on from there.'],
  ['index verify people', 'SIGTERM', 'Nothing was changed.'],
  ['index rebuild people', 'SIGINT', '`retl index status` shows whether the build was begun;'],
  ['check', 'SIGTERM', 'Nothing was changed.'],
  ['plan one two', 'SIGINT', 'Nothing was changed.'],
] as const)(
  'cancel-late: `retl %s` that is stopped by %s says so, and nothing else',
  async (command, signal, leaves) => {
    const waits = asked();
    const running = startRetl(command.split(' '), there());
    await Promise.race([waits, running.ended]);
    running.signal(signal);
    const { code, stderr } = await running.ended;
    expect({ code, stderr }).toEqual({ code: 130, stderr: expect.stringContaining('error: Interrupted.\n') });
    expect(stderr).toContain(leaves);
    expect(stderr).not.toMatch(/wrote above|has ended|cannot be planned/);
  },
);

test('cancel-late: Ctrl-C in a terminal, which reaches both processes, is told once, and by its code to programs', async () => {
  const waits = asked();
  const terminal = new Terminal(['index', 'verify', 'people', '--json'], there());
  await Promise.race([waits, terminal.ended]);
  terminal.ctrlC();
  expect(await terminal.ended).toBe(130);
  const screen = terminal.screen.join('');
  expect(screen.match(/"interrupted"/g)).toHaveLength(1);
});

test('cancel-late: a baseline that was recorded in spite of the signal is told as recorded, and not that nothing was changed', () => {
  expect(lineOfStopped({ kind: 'imported', members: 3 })).toEqual({ kind: 'imported', members: 3 });
  expect(lineOfStopped({ kind: 'unexpected', name: 'AbortError' })).toEqual({ kind: 'stopped' });
});
