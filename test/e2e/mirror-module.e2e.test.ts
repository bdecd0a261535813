/** A mirror that is a TypeScript module, and a worker of one environment: as `retl worker --env staging` runs them. */

import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { MIRROR_WORKFLOW } from '../../src/domain/messages.ts';
import { FakeAudience } from '../support/fake-audience.ts';
import { System } from '../support/system.ts';
import { HttpScene } from '../support/system-destinations.ts';
import { completedBy, ending } from '../support/system-scene.ts';

let system: System;
beforeAll(async () => {
  system = await System.start();
});
afterAll(() => system.stop());

/** @param farewell goes with every removal, beside the member's id. */
function moduleOf(table: string, farewell: string): string {
  return `interface Row { readonly id: string; readonly plan: string }
const rowType = { safeParse: (row: unknown) => ({ success: true as const, data: row as Row }) };
export default {
  source: { connection: 'shop', query: 'select id, plan from ${table} order by id', key: 'id' },
  mapping: {
    rowType,
    project: ({ id, plan }: Row) => [
      { identity: { id }, upsert: { id, plan }, remove: { id, farewell: '${farewell}' } },
    ],
  },
  destination: {
    connection: 'module-api',
    upsert: { method: 'POST', path: '/members' },
    remove: { method: 'DELETE', path: '/members' },
    verify_empty: { path: '/members', count: '/count' },
    idempotent: true,
  },
  batch: { rows: 2, in_flight: 1 },
  safety: { max_removals: '50%' },
};
`;
}

test('a module’s mapping runs, an edit is a new revision, an open run keeps its own, and removals are those accepted', async () => {
  const worker = await system.startWorker();
  const scene = await HttpScene.create(system, 'module', { rows: 6 });
  const write = async (farewell: string): Promise<void> => {
    await system.project.write('mirrors/module.ts', moduleOf(scene.table, farewell));
  };
  await rm(join(system.project.folder, 'mirrors/module.yaml'));
  await write('first');
  scene.audience.always({ kind: 'delay', ms: 700 });
  const open = await scene.start();
  await scene.untilSeen(1);
  await write('second');
  scene.audience.always(null);
  // Sealed: what is left of it needs no mapping.
  await completedBy(open);
  expect(scene.audience.held).toHaveLength(6);

  await scene.exec(`delete from $table where id = 'm001'; insert into $table values ('m007', 'new')`);
  expect((await scene.completed()).counts).toMatchObject({ added: 1, removed: 1, unchanged: 5 });
  const removals = scene.writes.filter(({ method }) => method === 'DELETE').map(({ body }) => body);
  expect(removals).toEqual([expect.stringContaining('"first"')]);
  await scene.exec(`delete from $table where id = 'm007'`);
  await scene.completed();
  expect(scene.writes.at(-1)?.body).toContain('"second"');
  await worker.stop();
});

test('a worker of an environment polls a queue of its own, and sends where that environment says', async () => {
  const scene = await HttpScene.create(system, 'staged', { rows: 3 });
  const staging = await FakeAudience.start({ idFields: ['id'] });
  system.defer(() => staging.stop());
  const http = (url: string) => ({ type: 'http', base_url: url });
  await system.write('retl.yaml', {
    journal: { url: `\${env:NOWHERE}` },
    connections: {
      shop: { type: 'postgres', url: system.sourceUrl },
      'staged-api': http(scene.audience.url),
      broken: { typ: 'http' },
    },
    environments: {
      staging: {
        journal: { url: `\${env:RETL_JOURNAL_URL}` },
        connections: { 'staged-api': { base_url: staging.url } },
      },
    },
  });
  const worker = await system.startWorker({ RETL_ENV: 'staging' });
  const run = await system.temporal.client.workflow.start(MIRROR_WORKFLOW, {
    workflowId: 'mirror/staged',
    taskQueue: 'retl-mirror-staging',
    args: [{ mirror: 'staged' }],
  });
  expect(await ending(run)).toMatchObject({ kind: 'result', result: { outcome: 'completed' } });
  expect(staging.held).toHaveLength(3);
  expect(scene.writes).toEqual([]);
  await worker.stop();
});
