/** Parts of the system that go away and come back while a run is under way (design.md section 10, "Bad days"). */

import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { System } from '../support/system.ts';
import { HttpScene } from '../support/system-destinations.ts';
import { completedBy, ending, eventually } from '../support/system-scene.ts';
import { startTcpProxy, type TcpProxy } from '../support/tcp-proxy.ts';

let system: System;
beforeAll(async () => {
  system = await System.start();
  await system.startWorker();
  await system.startWorker();
});
afterAll(() => system.stop());

/** A source behind a proxy that counts how often it was connected to. */
async function countedSource(name: string): Promise<TcpProxy> {
  const url = new URL(system.sourceUrl);
  const line = await startTcpProxy({ host: url.hostname, port: Number(url.port) });
  system.defer(() => line.close());
  url.host = `${line.host}:${line.port}`;
  await system.connect(name, { type: 'postgres', url: url.href });
  return line;
}

describe('the journal', () => {
  test('goes away while requests are in flight: their receipts are kept and written when it is back', async () => {
    const scene = await HttpScene.create(system, 'journal-away', { rows: 20 });
    scene.audience.fault({ kind: 'delay', ms: 1_500 });
    const handle = await scene.start();
    await scene.untilSeen(1);
    system.proxy.refusing = true;
    system.proxy.cut();
    await sleep(3_000);
    system.proxy.refusing = false;
    await completedBy(handle);
    expect(scene.audience.state.members).toEqual(await scene.wanted());
    expect(scene.audience.state.effects).toHaveLength(20);
    expect(scene.writes).toHaveLength(4);
  });

  test('is cut off between two statements, again and again: nothing is lost and nothing sent twice', async () => {
    const scene = await HttpScene.create(system, 'journal-cuts', { rows: 40, idempotent: true });
    scene.audience.always({ kind: 'delay', ms: 150 });
    const handle = await scene.start();
    for (let cuts = 0; cuts < 6; cuts += 1) {
      await scene.untilSeen(cuts + 1);
      system.proxy.cut();
      await sleep(300);
    }
    await completedBy(handle);
    expect(scene.audience.state.members).toEqual(await scene.wanted());
    expect(scene.audience.state.effects).toHaveLength(40);
  });
});

describe('the journal’s answer to "about to send"', () => {
  test.each([
    ['a batch', 'retl.prepare_batches(', 1, 'upsert'],
    ['the finish', 'retl.mark_sending($1,$2,$3,$4)', 2, 'finish'],
  ] as const)(
    'is lost for %s: the worker knows that nothing has left, and sends it once',
    async (_, statement, nth, action) => {
      const scene = await HttpScene.create(system, `answer-lost-${action}`, {
        rows: 10,
        destination: { finish: { method: 'POST', path: '/finish', body: { json: { members: [] } } } },
      });
      const held = system.proxy.hold({ statement, how: 'unanswered', nth });
      const handle = await scene.start();
      await held.reached;
      await eventually(async () => (await scene.batches(action)).some((batch) => batch.state === 'sending'));
      system.proxy.cut();
      await completedBy(handle);
      expect(new Set(scene.writes.map((write) => write.key)).size).toBe(3);
      expect(scene.writes).toHaveLength(3);
      expect((await scene.batches()).every((batch) => batch.state === 'settled' && batch.resends === 0)).toBe(
        true,
      );
    },
  );
});

describe('the workflow', () => {
  test('terminated in mid-run: the next one takes the sealed generation over and reads the source only for its fresh run', async () => {
    const line = await countedSource('counted-terminated');
    const scene = await HttpScene.create(system, 'terminated', {
      rows: 40,
      idempotent: true,
      source: 'counted-terminated',
    });
    scene.audience.always({ kind: 'delay', ms: 200 });
    const handle = await scene.start();
    await scene.untilSeen(2);
    await handle.terminate();
    expect(await ending(handle)).toEqual({ kind: 'terminated' });
    expect(line.accepted).toBe(1);
    scene.audience.always(null);
    await scene.completed('another-id');
    const [first, second, ...more] = await scene.runs();
    expect([first?.closing, second?.closing, more]).toEqual(['completed', 'completed', []]);
    const extractions = await system.rows(
      `select a.run_id::text as run from retl.attempt a where a.step = 'extract' and a.run_id = any($1) order by 1`,
      [[first?.run, second?.run]],
    );
    expect(extractions).toEqual([{ run: first?.run }, { run: second?.run }]);
    expect(line.accepted).toBe(2);
    expect(scene.audience.state.effects).toHaveLength(40);
  });

  test('terminated with a request in flight to an API that cannot be asked: the next one is blocked on that batch', async () => {
    const scene = await HttpScene.create(system, 'terminated-manual', { rows: 10 });
    scene.audience.fault({ kind: 'delay', ms: 3_000 });
    const handle = await scene.start();
    await scene.untilSeen(1);
    await handle.terminate();
    const next = await scene.start();
    const { waiting } = await scene.untilWaiting(next, 'blocked');
    expect(waiting?.batch).toBe(scene.writes[0]?.key);
    await sleep(3_000);
    expect(scene.writes).toHaveLength(1);
    await scene.signal('cancel');
    await ending(next);
  });
});

describe('the source', () => {
  test('read-dies-midway: a query that is killed at 60 % seals nothing, sends nothing, and is read again whole', async () => {
    const line = await countedSource('counted-killed');
    const scene = await HttpScene.create(system, 'read-dies', {
      rows: `create table $table as select 'm' || n as id, repeat('x', 500) as plan from generate_series(1, 4000) n`,
      source: 'counted-killed',
      mirror: { batch: { rows: 1000 } },
    });
    line.cutAfter(1_300_000);
    const handle = await scene.start();
    await scene.until(handle, (p) => p.phase === 'extract');
    while (line.accepted < 2) await sleep(50);
    expect(scene.writes).toEqual([]);
    line.cutAfter(null);
    expect((await completedBy(handle)).counts).toMatchObject({ sourceRows: 4000, added: 4000 });
    expect(scene.audience.state.effects).toHaveLength(4000);
  });

  test('replica-switch: a read that began on one host is never continued on another', async () => {
    const line = await countedSource('failing-over');
    const scene = await HttpScene.create(system, 'fail-over', {
      rows: `create table $table as select 'a' || n as id, repeat('x', 500) as plan from generate_series(1, 3000) n`,
      source: 'failing-over',
      mirror: { batch: { rows: 1000 } },
    });
    line.cutAfter(900_000);
    const handle = await scene.start();
    while (line.carried < 900_000) await sleep(10);
    line.refuse(true);
    // The host that answers from now on has another state.
    await scene.exec(
      `drop table $table; create table $table as select 'b' || n as id, 'new' as plan from generate_series(1, 50) n`,
    );
    line.cutAfter(null);
    line.refuse(false);
    await completedBy(handle);
    expect(scene.audience.held.every((id) => id.startsWith('b'))).toBe(true);
    expect(scene.audience.held).toHaveLength(50);
  });
});

describe('two workers', () => {
  test('each may take any step: the runs of one mirror stay exact', async () => {
    const scene = await HttpScene.create(system, 'two-workers', { rows: 60 });
    for (let round = 0; round < 3; round += 1) {
      await scene.completed();
      expect(scene.audience.state.members).toEqual(await scene.wanted());
      await scene.exec(
        `delete from $table where id = 'm00${round + 1}'; update $table set plan = 'r${round}' where id > 'm050'`,
      );
    }
  });
});
