/** Native replacement from the source to what readers find, by real workers: a table that is swapped, and a set of objects. */

import { afterAll, beforeAll, expect, test } from 'vitest';
import { MAINTENANCE_WORKFLOW, maintenanceWorkflowId } from '../../src/domain/maintenance.ts';
import { TASK_QUEUE } from '../../src/domain/messages.ts';
import { isManifestPut, isPublishing, isPut, type Store, useStore } from '../contract/destination-s3-kit.ts';
import { System } from '../support/system.ts';
import { TableScene, type TableSceneOptions } from '../support/system-destinations.ts';
import { completedBy, ending, eventually, Scene, tableOf } from '../support/system-scene.ts';
import type { WorkerProcess } from '../support/worker-process.ts';

let system: System;
let worker: WorkerProcess;
const store = useStore();
beforeAll(async () => {
  system = await System.start();
  worker = await startWorker();
});
afterAll(() => system.stop());

function startWorker(): Promise<WorkerProcess> {
  const { access_key_id: STORE_KEY_ID, secret_access_key: STORE_KEY } = store.server.writer;
  return system.startWorker({ STORE_KEY_ID, STORE_KEY });
}

const SIDE_TABLES = "select relname from pg_class where relname like 'retl\\_side%' and relkind = 'r'";
const REPLACE = { strategy: 'native-replace', safety: { max_removals: '100%', empty_snapshot: 'allow' } };

const swapped = (name: string, options: TableSceneOptions = {}): Promise<TableScene> =>
  TableScene.create(system, name, { mirror: REPLACE, ...options, destination: { swap: 'replace' } });

/** A mirror into a bucket of its own. */
class ObjectScene extends Scene {
  constructor(
    name: string,
    readonly bucket: string,
    readonly store: Store,
  ) {
    super(system, name, tableOf(name));
  }

  static async create(name: string, rows = 12): Promise<ObjectScene> {
    const scene = new ObjectScene(name, await store.newBucket(), store);
    await scene.createSource(rows);
    await system.connect(`${name}-store`, {
      type: 's3',
      endpoint: `http://127.0.0.1:${store.proxy.port}`,
      access_key_id: `\${env:STORE_KEY_ID}`,
      secret_access_key: `\${env:STORE_KEY}`,
    });
    await scene.write(
      { connection: `${name}-store`, bucket: scene.bucket, keep_superseded: 0, keep_superseded_ms: 0 },
      { mirror: REPLACE },
    );
    return scene;
  }

  /** What a reader finds, by identity. */
  async published(): Promise<ReadonlyMap<string, unknown> | null> {
    const found = await this.store.read(this.bucket);
    return found === null ? null : new Map(found.map((line) => [JSON.parse(line).id, JSON.parse(line)]));
  }

  async parts(): Promise<number> {
    return (await this.store.keys(this.bucket)).filter((key) => key.startsWith('parts/')).length;
  }
}

test('a table: each run uploads the whole set, and the table holds exactly it', async () => {
  const scene = await swapped('whole-table', {
    target:
      "create table audience (id text primary key, plan text); insert into audience values ('foreign', 'x')",
  });
  const handle = await scene.start();
  const asked = await scene.untilParked(handle);
  expect(asked.code).toBe('unknown-baseline');
  expect(await scene.targetRows()).toEqual([{ id: 'foreign', plan: 'x' }]);
  await scene.answer(handle, 'approve', asked);
  expect((await completedBy(handle)).counts).toMatchObject({ added: 10, uploaded: 10 });
  expect(await scene.targetRows()).toEqual(await scene.sourceRows());
  await scene.exec(`delete from $table where id in ('m001', 'm009');
    update $table set plan = 'gold' where id = 'm010'; insert into $table values ('new', null)`);
  await scene.completed();
  expect(await scene.targetRows()).toEqual(await scene.sourceRows());
  expect(await scene.held()).toBe(9);
  // Unchanged members too: ten members and nine, five to a request.
  expect(await scene.batches('upsert')).toHaveLength(4);
  await scene.exec('delete from $table');
  await scene.completed();
  expect(await scene.targetRows()).toEqual([]);
  expect(await scene.held()).toBe(0);
});

test('words in the mirror’s file let one table be replaced; the next one is asked about first', async () => {
  const words = (attested: string) => ({ ...REPLACE, baseline: { kind: 'replace', attested } });
  const scene = await swapped('next-table', {
    mirror: words('K. has looked at the first'),
    target: `create table audience (id text primary key, plan text); insert into audience values ('foreign', 'x')`,
  });
  await scene.target.query(`create table second (like audience including all);
    insert into second values ('stranger', 'y'); grant select, insert, update, delete on second to public`);
  const second = 'select id, plan from second order by id collate "C"';
  await scene.completed();
  expect(await scene.targetRows()).toEqual(await scene.sourceRows());

  const moveWith = (attested: string) =>
    scene.configure({ mirror: words(attested), destination: { swap: 'replace', table: 'second' } });
  await moveWith('K. has looked at the first');
  const handle = await scene.start();
  const asked = await scene.untilParked(handle);
  expect(asked.code).toBe('unknown-baseline');
  expect(await scene.targetRows(second)).toEqual([{ id: 'stranger', plan: 'y' }]);
  await scene.answer(handle, 'reject', asked);
  await ending(handle);
  await moveWith('K. has looked at the second, too');
  await scene.completed();
  expect(await scene.targetRows(second)).toEqual(await scene.sourceRows());
});

test('a set of objects: published whole by each run, and what is superseded goes', async () => {
  const scene = await ObjectScene.create('whole-set');
  await scene.completed();
  expect(await scene.published()).toEqual(await scene.wanted());
  await scene.exec(`delete from $table where id < 'm005'; update $table set plan = 'gold' where id = 'm010'`);
  await scene.completed();
  expect(await scene.published()).toEqual(await scene.wanted());
  expect(await scene.held()).toBe(8);
  expect(await scene.parts()).toBe(2);
});

test('rule 10: a finish whose answer is lost is found in the manifest, and the run completes', async () => {
  const scene = await ObjectScene.create('lost-finish');
  store.proxy.arm('answer-lost', isPublishing);
  await scene.completed();
  expect(await scene.published()).toEqual(await scene.wanted());
  expect(await scene.batches('finish')).toMatchObject([{ state: 'settled', resends: 1 }]);
});

test('what superseded sets have left in a store goes with maintenance, and readers find what they found', async () => {
  const scene = await ObjectScene.create('maintained-set');
  await scene.completed();
  await scene.exec(`update $table set plan = 'gold'`);
  await scene.completed();
  const before = { published: await scene.published(), parts: await scene.parts() };
  // As if the store had been away when the promotion tidied: parts of an older run of this mirror.
  const [key = ''] = (await store.keys(scene.bucket)).filter((one) => one.startsWith('parts/'));
  const [older, newer] = (await scene.runs()).map(({ run }) => run);
  await store.put(scene.bucket, key.replace(`-${newer}/`, `-${older}/`), 'left behind');
  expect(await scene.parts()).toBe(before.parts + 1);
  const handle = await system.temporal.client.workflow.start(MAINTENANCE_WORKFLOW, {
    workflowId: maintenanceWorkflowId(TASK_QUEUE),
    taskQueue: TASK_QUEUE,
    args: [{ only: ['destinations'] }],
  });
  expect(await handle.result()).toMatchObject({ counts: { destinations: 1, putOff: 0 } });
  expect({ published: await scene.published(), parts: await scene.parts() }).toEqual(before);
});

test('an abort while uploads are under way: readers keep the former set, nothing is left, membership is as it was', async () => {
  const scene = await ObjectScene.create('aborted-set', 40);
  await scene.completed();
  const before = { published: await scene.published(), parts: await scene.parts(), held: await scene.held() };
  await scene.exec(`update $table set plan = 'gold'`);
  store.proxy.arm('slow-down', (request) => isPut(request) && !isManifestPut(request));
  const handle = await scene.start();
  await scene.untilWaiting(handle, 'retry');
  await scene.signal('abort');
  expect(await ending(handle)).toMatchObject({ kind: 'result', result: { outcome: 'aborted' } });
  expect({
    published: await scene.published(),
    parts: await scene.parts(),
    held: await scene.held(),
  }).toEqual(before);
  await scene.completed();
  expect(await scene.published()).toEqual(await scene.wanted());
});

test('a table: an abort of a run whose finish cannot get its lock leaves the former set, and no side table', async () => {
  const scene = await swapped('aborted-table', { rows: 6 });
  await scene.completed();
  const before = await scene.targetRows();
  await scene.exec(`update $table set plan = 'gold'`);
  const other = await scene.target.connect();
  system.defer(async () => other.release(true));
  await other.query('begin; lock table audience in share row exclusive mode');
  const handle = await scene.start();
  await scene.untilWaiting(handle, 'retry');
  expect(await scene.targetRows(SIDE_TABLES)).toHaveLength(1);
  await scene.signal('abort');
  expect(await ending(handle)).toMatchObject({ kind: 'result', result: { outcome: 'aborted' } });
  await other.query('rollback');
  expect(await scene.targetRows()).toEqual(before);
  expect(await scene.targetRows(SIDE_TABLES)).toEqual([]);
  expect(await scene.held()).toBe(6);
  await scene.completed();
  expect(await scene.targetRows()).toEqual(await scene.sourceRows());
});

test('rule 9: a finish of a killed worker that reaches the store after its successor’s changes nothing', async () => {
  const scene = await ObjectScene.create('killed-finish');
  const order: string[] = [];
  let handle: Awaited<ReturnType<typeof scene.start>> | null = null;
  store.proxy.before(isPublishing, async () => {
    await worker.kill();
    worker = await startWorker();
    await eventually(async () => handle !== null);
    if (handle !== null) await completedBy(handle);
    order.push('completed');
  });
  handle = await scene.start();
  await eventually(async () => order.length > 0);
  const after = await store.text(scene.bucket, 'manifest.json');
  expect(await scene.published()).toEqual(await scene.wanted());
  await eventually(async () => store.proxy.statuses.at(-1) === 412);
  expect(await store.text(scene.bucket, 'manifest.json')).toEqual(after);
});

test('rule 10: killed between the steps that follow an accepted finish, a table and a set of objects are completed from where they stopped', async () => {
  const steps = [
    'retl.confirm_replacement(',
    'retl.apply_uploads(',
    'retl.record_replaced(',
    'retl.promote(',
  ] as const;
  const change = `delete from $table where id < 'm003'; update $table set plan = 'gold' where id = 'm004'`;
  const open = [];
  for (const [n, statement] of steps.entries()) {
    const table = n % 2 === 0 ? await swapped(`killed-${n}`) : null;
    const scene = table ?? (await ObjectScene.create(`killed-${n}`, 10));
    await scene.completed();
    await scene.exec(change);
    const held = system.proxy.hold({ statement, how: 'unanswered' });
    const handle = await scene.start();
    await held.reached;
    open.push({ scene, handle });
  }
  await worker.kill();
  worker = await startWorker();
  for (const { scene, handle } of open) {
    expect((await completedBy(handle)).counts).toMatchObject({ changed: 1, removed: 2, uploaded: 8 });
    if (scene instanceof ObjectScene) expect(await scene.published()).toEqual(await scene.wanted());
    else expect(await scene.targetRows()).toEqual(await scene.sourceRows());
    expect(await scene.held()).toBe(8);
    expect(await scene.batches('finish')).toMatchObject([{ resends: 0 }, { resends: 0, sending: 1 }]);
  }
}, 180_000);
