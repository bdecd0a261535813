/**
 * Builders of an index killed at each of their steps, frozen, and raced (design.md section 7): whoever goes on comes to the rows
 * of the log, and nothing of the dead is left.
 */

import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { logHead } from '../../src/journal/log.ts';
import { compactTo } from '../support/compact.ts';
import { KILLS, KilledBuilders } from '../support/index-kills.ts';
import { rows } from '../support/index-scene.ts';

const nameOf = (n: number) => `kill-${n}`;
const OTHERS = ['frozen', 'frozen-inside', 'frozen-copying', 'raced', 'snapshot'];

let builders: KilledBuilders;
beforeAll(async () => {
  builders = await KilledBuilders.open([...KILLS.map((_, n) => nameOf(n)), ...OTHERS]);
});
afterAll(() => builders.close());

test.each(KILLS.map((kill, n) => ({ ...kill, n })))(
  '$at: killed there, another one goes on',
  async (kill) => {
    await builders.kill(nameOf(kill.n), kill);
  },
);

test.each([
  ['frozen', 'retl.put_checkpoint(', 'unseen'],
  ['frozen-inside', 'retl.put_artifact(', 'unseen'],
  // The server has begun it, and waits for what the builder sends.
  ['frozen-copying', 'copy "retl_index".rows_', 'unanswered'],
] as const)(
  '%s at %s while another one takes over, it is refused once it goes on, and changes nothing',
  async (index, statement, how) => {
    const { proxy, start } = await builders.builder(index);
    const held = proxy.hold({ statement, how });
    const { child, ended } = start();
    await held.reached;
    child.kill('SIGSTOP');
    const { scene } = builders;
    const indexer = scene.indexer(index);
    // Who is frozen in a transaction holds its lock until the server ends it, or in a COPY whoever waits for it.
    const goneOn = async () => (await scene.follow(indexer).catch(() => null))?.kind === 'caught-up';
    while (!(await goneOn())) await sleep(1_000);
    await builders.isTheLogs(index);
    const checkpoint = await scene.checkpoint(indexer);
    child.kill('SIGCONT');
    held.release();
    expect(await ended).toMatch(/"index\.(build-raced|unavailable)"/);
    await proxy.close();
    expect(await scene.checkpoint(indexer)).toBe(checkpoint);
    await builders.goesOn(index);
  },
);

test('two builders at once: one of them completes, the other does or is refused, and the rows are the log’s', async () => {
  const { proxy, start } = await builders.builder('raced');
  const said = await Promise.all([start().ended, start().ended]);
  expect(said.join('')).toContain('"caught-up"');
  for (const one of said) expect(one).toMatch(/"caught-up"|"index\.build-raced"/);
  await proxy.close();
  await builders.goesOn('raced');
});

test('killed while it reads the log snapshot, another one goes on in it', async () => {
  const { scene } = builders;
  await scene.run('c', rows(0, 20, '1'));
  const { position } = await logHead(scene.journal.runtime);
  await compactTo(scene.journal.runtime, Number(position) - 1);
  const hold = { statement: 'index_build set rows', how: 'unanswered' } as const;
  await builders.kill('snapshot', { at: 'the snapshot', from: 'nothing', hold });
});
