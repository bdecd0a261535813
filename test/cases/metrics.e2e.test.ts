/** A worker's endpoint, scraped while runs are blocked, parked and done, against what the journal has. */

import { once } from 'node:events';
import { createServer } from 'node:http';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { EXIT } from '../../src/cli/exit-codes.ts';
import { METRICS } from '../../src/domain/metrics.ts';
import { startRetl } from '../cli/support.ts';
import { freeAddress, type Scrape, scrape } from '../support/metrics-scrape.ts';
import { System } from '../support/system.ts';
import { HttpScene } from '../support/system-destinations.ts';
import { completedBy, ending, eventually } from '../support/system-scene.ts';

let system: System;
let address: string;

beforeAll(async () => {
  system = await System.start({ project: { indexes: { people: { kind: 'membership-search' } } } });
  address = await freeAddress();
  await system.startWorker({ RETL_METRICS: address, RETL_METRICS_EVERY: '500ms' });
});
afterAll(() => system.stop());

/** Scrapes until the journal has been looked at since, and what it says is so. */
async function told(isSo: (seen: Scrape) => boolean): Promise<Scrape> {
  let seen = await scrape(address);
  await eventually(async () => {
    seen = await scrape(address);
    return isSo(seen);
  });
  return seen;
}

const stateOf = (seen: Scrape, mirror: string) => seen.ones('retl_open_run', 'state', { mirror });

test('a worker has one endpoint for the SDK’s metrics and ours, and the journal is looked at from the start', async () => {
  const seen = await told((s) => s.value('retl_journal_up') === 1);
  expect(seen.text).toContain('temporal_');
  expect(seen.value('retl_log_earliest_position')).toBe(1);
});

test('a completed run: what was counted is what the journal has', async () => {
  const mirror = 'told-completed';
  const scene = await HttpScene.create(system, mirror, { rows: 12 });
  const { counts } = await scene.completed();
  expect(counts).toMatchObject({ added: 12, sourceRows: 12 });
  const seen = await told(
    (s) => s.value('retl_members_held', { mirror }) === 12 && stateOf(s, mirror).length === 0,
  );
  expect(seen.ones('retl_last_outcome', 'outcome', { mirror })).toEqual(['completed']);
  expect(seen.value('retl_source_rows_total', { mirror })).toBe(12);
  expect(seen.value('retl_members_total', { mirror, action: 'upsert', outcome: 'accepted' })).toBe(12);
  expect(seen.value('retl_members_total', { mirror, outcome: 'rejected' })).toBe(0);
  const upserts = (await scene.batches('upsert')).length;
  expect(upserts).toBe(3);
  expect(seen.value('retl_requests_total', { mirror, action: 'upsert', call: 'send' })).toBe(upserts);
  expect(seen.value('retl_request_duration_seconds_count', { mirror, action: 'upsert' })).toBe(upserts);
  const [{ bytes } = { bytes: '' }] = await system.rows<{ bytes: string }>(
    `select sum(request_bytes) as bytes from retl.batch join retl.run using (run_id) join retl.mirror m using (mirror_id)
     where m.name = $1 and action = 'upsert'`,
    [mirror],
  );
  expect(seen.value('retl_request_bytes_total', { mirror, action: 'upsert' })).toBe(Number(bytes));
  expect(seen.value('retl_open_run_age_seconds', { mirror })).toBe(0);
  expect(seen.value('retl_last_completed_age_seconds', { mirror })).toBeLessThan(120);
  const [{ head } = { head: '' }] = await system.rows<{ head: string }>(
    'select position as head from retl.log_head',
  );
  expect(seen.value('retl_log_head_position')).toBe(Number(head));
});

test('a blocked run stands there with the request that nobody knows the outcome of, until it is let go', async () => {
  const mirror = 'told-blocked';
  const scene = await HttpScene.create(system, mirror, { rows: 3 });
  scene.audience.fault({ kind: 'status', status: 500, body: 'no' });
  const handle = await scene.start();
  await scene.untilWaiting(handle, 'blocked');
  const seen = await told(
    (s) =>
      stateOf(s, mirror).join() === 'blocked' &&
      s.value('retl_unresolved_batches', { mirror, state: 'unknown' }) === 1,
  );
  expect(seen.value('retl_unresolved_batches', { mirror, state: 'staged' })).toBe(0);
  expect(seen.value('retl_requests_total', { mirror, outcome: 'unknown', code: 'http-500' })).toBe(1);
  expect(
    seen.value('retl_interruptions_total', { mirror, step: 'additions', kind: 'blocked', code: 'http-500' }),
  ).toBe(1);
  expect(seen.value('retl_last_completed_age_seconds', { mirror })).not.toBeNull();
  expect(seen.ones('retl_last_outcome', 'outcome', { mirror })).toEqual([]);
  await scene.signal('cancel');
  await ending(handle);
  await told((s) => stateOf(s, mirror).join() === 'cancelled');
});

test('a parked run stands there until it is answered, and then as completed', async () => {
  const mirror = 'told-parked';
  const scene = await HttpScene.create(system, mirror, { rows: 10 });
  await scene.completed();
  await scene.exec(`delete from $table where id > 'm002'`);
  const handle = await scene.start();
  const parked = await scene.untilParked(handle);
  const seen = await told((s) => stateOf(s, mirror).join() === 'parked');
  expect(seen.value('retl_members_held', { mirror })).toBe(10);
  expect(seen.value('retl_interruptions_total', { mirror, kind: 'held', step: 'guard' })).toBe(1);
  await scene.answer(handle, 'approve', parked);
  await completedBy(handle);
  const after = await told(
    (s) => s.value('retl_members_held', { mirror }) === 2 && stateOf(s, mirror).length === 0,
  );
  expect(after.value('retl_members_total', { mirror, action: 'remove', outcome: 'accepted' })).toBe(8);
});

test('a journal that is away is told of, and what it said last still stands', async () => {
  system.proxy.refusing = true;
  system.proxy.cut();
  const seen = await told((s) => s.value('retl_journal_up') === 0);
  expect(seen.value('retl_members_held', { mirror: 'told-completed' })).toBe(12);
  system.proxy.refusing = false;
  await told((s) => s.value('retl_journal_up') === 1);
});

/** Told by whoever tidies up, once a day: test/activities/run-metrics.test.ts holds it. */
const DAILY = 'retl_maintenance_removed_total';

test('every metric that is listed is told, with the type that is listed, and no other of ours', async () => {
  const seen = await told((s) => s.value('retl_index_up', { index: 'people' }) === 1);
  const types = [...seen.types()].filter(([name]) => name.startsWith('retl_') && name !== DAILY);
  const listed = Object.entries(METRICS)
    .map(([name, { kind }]) => [name, kind])
    .filter(([name]) => name !== DAILY);
  expect(types.sort()).toEqual(listed.sort());
});

const worker = (...args: readonly string[]) =>
  startRetl(['worker', '--json', '--project', system.project.folder, ...args], {
    cwd: system.project.folder,
    env: system.env,
  });

test('`retl worker --metrics` says where its metrics are, and they are there', async () => {
  const own = await freeAddress();
  const running = worker('--metrics', own);
  const ready: unknown = JSON.parse((await running.line('ready')) ?? '');
  expect(ready).toEqual({ event: 'ready', taskQueue: 'retl-mirror', metrics: `http://${own}/metrics` });
  expect((await scrape(own)).value('temporal_worker_start')).toBe(1);
  running.signal('SIGTERM');
  expect(await running.ended).toMatchObject({ code: 0 });
});

test.each([
  ['an address that is in use', () => address, 'rule=in-use'],
  ['an address of another machine', () => '192.0.2.1:9464', 'rule=not-of-this-machine'],
  ['no address', () => 'localhost', 'no-address-and-port'],
])('%s ends a worker at once, with what it can do about it', async (_what, said, rule) => {
  const { code, stderr, stdout } = await worker('--metrics', said()).ended;
  expect(code).toBe(EXIT.usage);
  const told = stdout + stderr;
  expect(told).toContain('metrics.address');
  expect(told).toContain(rule);
  expect(told).toContain('retl worker --metrics');
});

test('OpenTelemetry: a collector is sent the same, with the worker that it is from and the headers that were set', async () => {
  const bodies: string[] = [];
  const tokens = new Set<unknown>();
  const collector = createServer((request, response) => {
    tokens.add(request.headers.authorization);
    request.on('data', (chunk: Buffer) => bodies.push(chunk.toString('latin1')));
    request.on('end', () => response.end());
  });
  collector.listen(0, '127.0.0.1');
  await once(collector, 'listening');
  const at = collector.address();
  const url = `http://127.0.0.1:${typeof at === 'object' ? at?.port : ''}/v1/metrics`;
  await system.write('retl.yaml', {
    journal: { url: `\${env:RETL_JOURNAL_URL}` },
    connections: {},
    metrics: { otel: { url, http: true, headers: { authorization: `Bearer \${env:COLLECTOR_TOKEN}` } } },
  });
  const sender = await system.startWorker({ COLLECTOR_TOKEN: 'let-me-in' });
  await eventually(() => bodies.join('').includes('told-parked'));
  await sender.stop();
  collector.close();
  const sent = bodies.join('');
  expect(sent).toContain('retl_members_held');
  expect(sent).toContain(`${sender.program.child.process.pid}@`);
  expect(sent).not.toContain('let-me-in');
  expect([...tokens]).toEqual(['Bearer let-me-in']);
});
