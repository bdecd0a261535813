/** What answers of an API mean for a whole run: acceptance that is none, rejections, and waits. */

import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { Fault } from '../support/fake-audience.ts';
import { System } from '../support/system.ts';
import { HttpScene } from '../support/system-destinations.ts';
import { completedBy, ending } from '../support/system-scene.ts';
import { startTcpProxy } from '../support/tcp-proxy.ts';

let system: System;
beforeAll(async () => {
  system = await System.start();
  await system.startWorker();
});
afterAll(() => system.stop());

/** Blocked on the only request, which is never sent a second time; then the run is let go. */
async function expectBlocked(scene: HttpScene, code: string): Promise<void> {
  const handle = await scene.start();
  const { waiting, counts } = await scene.untilWaiting(handle, 'blocked');
  expect(waiting).toMatchObject({ code, batch: scene.writes[0]?.key });
  expect(counts).toMatchObject({ added: 0, changed: 0, removed: 0 });
  // Asked again, it says the same, and sends nothing.
  await scene.signal('resume');
  await scene.untilWaiting(handle, 'blocked');
  expect(scene.writes).toHaveLength(1);
  expect((await scene.batches('remove')).concat(await scene.batches('finish'))).toEqual([]);
  await scene.signal('cancel');
  expect(await ending(handle)).toMatchObject({ kind: 'result', result: { outcome: 'cancelled' } });
}

describe.concurrent('an answer that proves nothing', () => {
  const lost: readonly (readonly [string, Fault, string])[] = [
    ['the connection is reset after storing', { kind: 'reset', applied: true }, 'connection-reset'],
    ['the reply comes after the client’s time limit', { kind: 'delay', ms: 4_000 }, 'request-timeout'],
    ['a proxy answers 502', { kind: 'status', status: 502, applied: true }, 'http-502'],
    ['the reply is cut short', { kind: 'truncate' }, 'reply-truncated'],
  ];
  test.each(lost)('blind-replay: %s: blocked, and no second request', async (name, fault, code) => {
    const scene = await HttpScene.create(system, `lost-${code}`, {
      rows: 5,
      connection: { timeout_ms: 1_000 },
    });
    scene.audience.fault(fault);
    await expectBlocked(scene, code);
    expect(scene.audience.state.effects, name).toHaveLength(5);
  });

  test.each(lost)(
    'blind-replay, declared idempotent: %s: the same bytes again, once',
    async (_, fault, code) => {
      const scene = await HttpScene.create(system, `again-${code}`, {
        rows: 5,
        idempotent: true,
        connection: { timeout_ms: 1_000 },
      });
      scene.audience.fault(fault);
      await scene.completed();
      expect(scene.writes).toHaveLength(2);
      expect(scene.writes[1]).toEqual(scene.writes[0]);
      expect(scene.audience.state.effects).toHaveLength(5);
    },
  );

  const refusals: readonly (readonly [string, Fault, string])[] = [
    ['400 for all of it', { kind: 'status', status: 400 }, 'http-400'],
    ['413 for all of it', { kind: 'status', status: 413 }, 'too-large:http-413'],
  ];
  test.each(refusals)(
    'rule 3, declared idempotent: stored and reset, then of the second copy %s: blocked, nobody rejected, nothing sent again',
    async (_, fault, code) => {
      const name = `second-copy-${code.replaceAll(':', '-')}`;
      const scene = await HttpScene.create(system, name, { rows: 5, idempotent: true });
      scene.audience.fault({ kind: 'reset', applied: true });
      scene.audience.fault(fault);
      const handle = await scene.start();
      const { waiting, counts } = await scene.untilWaiting(handle, 'blocked');
      expect(waiting).toMatchObject({ code, batch: scene.writes[0]?.key });
      expect(counts).toMatchObject({ added: 0, rejected: 0 });
      expect(await scene.batches('upsert')).toMatchObject([{ state: 'unknown', resends: 1 }]);
      expect(scene.writes).toHaveLength(2);
      await scene.signal('resume');
      expect(await ending(handle)).toMatchObject({ kind: 'result', result: { outcome: 'completed' } });
      expect(scene.writes).toHaveLength(3);
      expect(scene.audience.state.members).toEqual(await scene.wanted());
    },
  );

  test('staged-as-done: 202 with a job id is pending, never accepted, and nothing follows', async () => {
    const scene = await HttpScene.create(system, 'staged', { rows: 5 });
    scene.audience.always({ kind: 'job', id: 'job-1' });
    await expectBlocked(scene, 'staged');
    expect(await scene.batches('upsert')).toMatchObject([{ state: 'staged' }]);
    expect(await scene.held()).toBe(0);
  });

  test.each([
    ['rows', { outcomes: undefined }],
    ['configured', {}],
  ])('silent-noop: 200 "COMPLETE" with no results accepts nothing (%s)', async (name, destination) => {
    const scene = await HttpScene.create(system, `noop-${name}`, { rows: 5, destination });
    scene.audience.fault({ kind: 'status', status: 200, body: '{"status":"COMPLETE","results":[]}' });
    await expectBlocked(scene, name === 'rows' ? 'reply-not-understood' : 'reply-lacks-ids');
  });

  test('counts-only: a count of failures accepts nobody', async () => {
    const scene = await HttpScene.create(system, 'counts-only', {
      rows: 5,
      destination: { outcomes: undefined },
    });
    scene.audience.fault({ kind: 'counts' });
    await expectBlocked(scene, 'reply-not-understood');
  });

  test('whole-batch-reject: 409 that names no row: neither accepted nor blamed', async () => {
    const scene = await HttpScene.create(system, 'conflict', { rows: 5 });
    scene.audience.fault({ kind: 'status', status: 409, body: '{"error":"conflict"}' });
    await expectBlocked(scene, 'http-409');
    expect(
      await system.rows('select 1 from retl.rejection where batch_id = decode($1, $2)', [
        scene.writes[0]?.key.replace('sha256:', ''),
        'hex',
      ]),
    ).toEqual([]);
  });
});

describe.concurrent('a rejection', () => {
  test.each([207, 200])(
    'partial-as-all: %i with 2 of 5 rejected: 3 accepted, the run not green, nobody removed',
    async (status) => {
      const scene = await HttpScene.create(system, `partial-${status}`, { rows: 4 });
      await scene.completed();
      await scene.exec(`delete from $table where id = 'm001'; update $table set plan = 'gold';
      insert into $table values ('n1', 'x'), ('n2', 'x')`);
      scene.audience.fault({ kind: 'rows', status, reject: [1, 3] });
      expect(await scene.run()).toMatchObject({
        kind: 'failed',
        type: 'rejected',
        message: expect.stringContaining('2 members'),
      });
      expect((await scene.runs()).at(-1)).toMatchObject({ closing: 'rejected' });
      expect(scene.audience.held).toContain('m001');
      expect(await scene.batches('remove')).toEqual([]);
      expect(
        await system.rows(`select code, reason from retl.rejection where run_id = $1`, [
          (await scene.runs()).at(-1)?.run,
        ]),
      ).toMatchObject([{ code: 'row-rejected' }, { code: 'row-rejected' }]);
      // failed-forgotten: the next run sends what was rejected, and only that, then removes.
      const { counts } = await scene.completed();
      expect(counts.added + counts.changed).toBe(2);
      expect(counts.removed).toBe(1);
      expect(scene.audience.state.members).toEqual(await scene.wanted());
    },
  );

  test('failed-row-deleted: a member whose update is rejected stays as it is, and is never removed', async () => {
    const scene = await HttpScene.create(system, 'row-fails', { rows: 10 });
    await scene.completed();
    await scene.exec(`update $table set plan = 'gold' where id = 'm007'`);
    scene.audience.fault({ kind: 'rows', reject: [0] });
    expect(await scene.run()).toMatchObject({ kind: 'failed', type: 'rejected' });
    expect(scene.audience.state.members.get('m007')).toEqual({ id: 'm007', plan: 'vip' });
    await scene.exec(`delete from $table where id = 'm001'`);
    scene.audience.fault({ kind: 'rows', reject: [0] });
    await scene.run();
    await scene.completed();
    const removals = scene.writes.filter((write) => write.method === 'DELETE');
    expect(removals.map((write) => write.body)).toEqual(['[{"id":"m001"}]']);
    expect(scene.audience.state.members).toEqual(await scene.wanted());
  });

  test('poison-row: rejected in every run: one request a run, a stable status, the others in place', async () => {
    const scene = await HttpScene.create(system, 'poison', { rows: 5 });
    for (let run = 1; run <= 3; run += 1) {
      scene.audience.fault({ kind: 'rows', reject: [0] });
      expect(await scene.run()).toMatchObject({ kind: 'failed', type: 'rejected' });
      expect(scene.writes).toHaveLength(run);
      expect(scene.audience.held).toHaveLength(4);
    }
  });

  test('nul+surrogates: a reason that holds NUL and half a pair is kept, and the run ends as rejected', async () => {
    const scene = await HttpScene.create(system, 'odd-reason', { rows: 1 });
    const body = '{"results":[{"id":"m001","status":"invalid","reason":"\\u0000 \\ud83d 😀 \\\\u0000"}]}';
    scene.audience.fault({ kind: 'status', status: 200, body });
    expect(await scene.run()).toMatchObject({ kind: 'failed', type: 'rejected' });
    const [{ run } = { run: '' }] = await scene.runs();
    expect(await system.rows('select reason from retl.rejection where run_id = $1', [run])).toEqual([
      { reason: '\ufffd \ufffd 😀 \\u0000' },
    ]);
  });

  test('wrapped-nonretryable, whole-batch-reject: 400 for a whole request stops after one; nobody is accepted or blamed', async () => {
    const scene = await HttpScene.create(system, 'bad-request', { rows: 20 });
    scene.audience.always({ kind: 'status', status: 400, body: '{"error":"row 2 is not valid"}' });
    expect(await scene.run()).toMatchObject({
      kind: 'failed',
      type: 'rejected',
      message: expect.stringContaining('http-400'),
    });
    expect(scene.writes).toHaveLength(1);
    expect(await scene.held()).toBe(0);
    scene.audience.always(null);
    expect((await scene.completed()).counts.added).toBe(20);
  });

  test('wrapped-nonretryable: 401 stops after one; with better credentials the sealed generation is resumed', async () => {
    const scene = await HttpScene.create(system, 'unauthorized', { rows: 10 });
    scene.audience.always({ kind: 'status', status: 401 });
    expect(await scene.run()).toMatchObject({
      kind: 'failed',
      type: 'invalid',
      message: expect.stringContaining('destination.misconfigured (http-401)'),
    });
    expect(scene.writes).toHaveLength(1);
    scene.audience.always(null);
    await scene.exec('drop table $table');
    // Rule 8: what is resumed needs no source; only the fresh run that follows does.
    expect(await scene.run()).toMatchObject({
      kind: 'failed',
      message: expect.stringContaining('source.query'),
    });
    expect(scene.audience.held).toHaveLength(10);
  });

  test('cannot-remove: a refused removal leaves the member tracked, the run unfinished, and is tried in the next', async () => {
    const scene = await HttpScene.create(system, 'cannot-remove', { rows: 5 });
    await scene.completed();
    await scene.exec(`delete from $table where id = 'm003'`);
    scene.audience.fault({ kind: 'status', status: 400, body: '{"error":"size too low"}' });
    expect(await scene.run()).toMatchObject({ kind: 'failed', type: 'rejected' });
    const last = (await scene.runs()).at(-1);
    expect((await scene.batches('finish')).some((batch) => batch.run === last?.run)).toBe(false);
    expect((await scene.completed()).counts).toMatchObject({ removed: 1 });
    expect(scene.audience.state.members).toEqual(await scene.wanted());
  });

  test('re-add-lost: added, removed, and the same payload added again', async () => {
    const scene = await HttpScene.create(system, 're-add', { rows: 5 });
    await scene.completed();
    await scene.exec(`delete from $table where id = 'm003'`);
    await scene.completed();
    await scene.exec(`insert into $table values ('m003', 'vip')`);
    expect((await scene.completed()).counts).toMatchObject({ added: 1, unchanged: 4 });
    expect(scene.audience.state.members).toEqual(await scene.wanted());
  });
});

describe.concurrent('a destination that asks for patience', () => {
  test.each([
    ['seconds', '2', 2_000],
    ['an HTTP date', new Date(Date.now() + 3_600_000).toUTCString(), 1_800_000],
    ['0', '0', 500],
    ['nothing', undefined, 500],
  ])(
    '429 with Retry-After %s: a durable wait, no row failed, nothing accepted',
    async (name, header, least) => {
      const scene = await HttpScene.create(system, `later-${name.replaceAll(' ', '-').toLowerCase()}`, {
        rows: 5,
      });
      const headers = header === undefined ? {} : { headers: { 'retry-after': header } };
      scene.audience.fault({ kind: 'status', status: 429, ...headers });
      const startedAt = Date.now();
      const handle = await scene.start();
      const { waiting, counts } = await scene.untilWaiting(handle, 'retry');
      expect(waiting?.code).toBe('http-429');
      expect((waiting?.untilMs ?? 0) - startedAt).toBeGreaterThan(least);
      expect(counts).toMatchObject({ added: 0, rejected: 0 });
      if (least > 60_000) {
        await scene.signal('cancel');
        await ending(handle);
        return;
      }
      expect((await completedBy(handle)).counts).toMatchObject({ added: 5, rejected: 0 });
      expect(Date.now() - startedAt).toBeGreaterThan(least);
      expect(scene.writes).toHaveLength(2);
    },
  );

  test('down when the run begins: it waits, and goes on when the API is there', async () => {
    const scene = await HttpScene.create(system, 'down', { rows: 5 });
    const { hostname, port } = new URL(scene.audience.url);
    const line = await startTcpProxy({ host: hostname, port: Number(port) });
    system.defer(() => line.close());
    await system.connect('down-api', { type: 'http', base_url: `http://${line.host}:${line.port}` });
    line.refuse(true);
    const handle = await scene.start();
    await expect.poll(() => line.accepted, { timeout: 20_000 }).toBeGreaterThan(1);
    line.refuse(false);
    expect((await completedBy(handle)).counts).toMatchObject({ added: 5 });
  });

  test('413: halved until the requests are small enough, and one that stays too large alone is named', async () => {
    const scene = await HttpScene.create(system, 'too-large', { rows: 4 });
    scene.audience.fault({ kind: 'status', status: 413 }, 3);
    await scene.completed();
    expect(scene.writes.map((write) => JSON.parse(write.body).length)).toEqual([4, 2, 2, 1, 1, 1, 1]);
    await scene.exec(`insert into $table values ('big', 'x')`);
    scene.audience.fault({ kind: 'status', status: 413 });
    expect(await scene.run()).toMatchObject({ kind: 'failed', type: 'rejected' });
  });
});

describe('several requests in flight', () => {
  const crowd = { batch: { rows: 1, in_flight: 8 } };
  const bad: readonly (readonly [string, Fault])[] = [
    ['rejected', { kind: 'status', status: 400 }],
    ['blocked', { kind: 'reset', applied: true }],
  ];

  test.each(bad)(
    'the one that is not accepted decides how it ends (%s), whatever the others are at',
    async (end, fault) => {
      for (let round = 0; round < 6; round += 1) {
        const scene = await HttpScene.create(system, `crowd-${end}-${round}`, { rows: 120, mirror: crowd });
        scene.audience.fault({ kind: 'rows' }, 20 + round * 9);
        scene.audience.fault(fault);
        const handle = await scene.start();
        if (end === 'blocked') {
          await scene.untilWaiting(handle, 'blocked');
          await scene.signal('cancel');
          expect(await ending(handle)).toMatchObject({ kind: 'result', result: { outcome: 'cancelled' } });
        } else {
          expect(await ending(handle)).toMatchObject({ kind: 'failed', type: 'rejected' });
        }
        const states = (await scene.batches('upsert')).map((batch) => batch.state);
        expect(states.filter((state) => !['settled', 'prepared'].includes(state))).toHaveLength(1);
        // Everything that took effect has its receipt; the one request excepted.
        const settled = states.filter((state) => state === 'settled').length;
        expect(scene.audience.state.effects).toHaveLength(settled + (end === 'blocked' ? 1 : 0));
      }
    },
  );
});
