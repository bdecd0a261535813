/** What a long run costs Temporal: ids and counts, whatever the number and the size of rows. */

import type { WorkflowHandleWithFirstExecutionRunId as Handle } from '@temporalio/client';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { System } from '../support/system.ts';
import { HttpScene } from '../support/system-destinations.ts';
import { completedBy, ending } from '../support/system-scene.ts';

let system: System;
beforeAll(async () => {
  system = await System.start();
  await system.startWorker();
});
afterAll(() => system.stop());

async function history(
  handle: Handle,
): Promise<{ readonly events: number; readonly bytes: number; readonly kinds: readonly number[] }> {
  const { events = [] } = await handle.fetchHistory();
  const { historySizeBytes } = (await handle.describe()).raw.workflowExecutionInfo ?? {};
  return {
    events: events?.length ?? 0,
    bytes: Number(historySizeBytes ?? 0),
    kinds: (events ?? []).map((event) => Number(event.eventType)),
  };
}

const CONTINUED_AS_NEW = 28;

test('20,000 members in 200 requests: a bounded history, in one execution', async () => {
  const scene = await HttpScene.create(system, 'many-members', {
    rows: 20_000,
    mirror: { batch: { rows: 100, in_flight: 4 } },
  });
  const handle = await scene.start();
  expect((await completedBy(handle)).counts).toMatchObject({ added: 20_000 });
  expect(scene.writes).toHaveLength(200);
  const { events, bytes, kinds } = await history(handle);
  expect(events).toBeLessThan(120);
  expect(bytes).toBeLessThan(64 * 1024);
  expect(kinds).not.toContain(CONTINUED_AS_NEW);
});

test('payload-2mb: one row of 3 MB among 100,000 fails by its key before anything is sent, and history holds ids only', async () => {
  const scene = await HttpScene.create(system, 'huge-row', {
    rows: `create table $table (id text primary key, plan text);
      insert into $table select 'm' || n, case when n = 77777 then repeat('x', 3000000) else 'vip' end
      from generate_series(1, 100000) n`,
    query: 'select id, plan from $table',
    mirror: { batch: { rows: 1000, bytes: '1MB' } },
  });
  const handle = await scene.start();
  expect(await ending(handle)).toMatchObject({
    kind: 'failed',
    type: 'invalid',
    message: expect.stringMatching(/data\.operation-too-large.*count=1; key hashes: sha256:[0-9a-f]{64}\)/),
  });
  expect(scene.writes).toEqual([]);
  const { events, bytes } = await history(handle);
  expect(events).toBeLessThan(80);
  expect(bytes).toBeLessThan(32 * 1024);
});
