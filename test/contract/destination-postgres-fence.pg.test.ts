/** Destination `postgres`: only one mirror may write to a table, and of that one only its newest attempt. */

import { expect, test } from 'vitest';
import { createTarget, remove, upsert } from './destination-postgres-kit.ts';

const PEOPLE = `CREATE TABLE people (id text PRIMARY KEY, name text);
  GRANT SELECT, INSERT, UPDATE, DELETE ON people TO :role;`;

test('rule 9: an older attempt changes nothing after a newer one took the fence', async () => {
  const target = await createTarget(PEOPLE);
  const old = await target.open({ table: 'people' }, { epoch: 7 });
  await old.upsert(upsert([{ id: 'a' }]));
  const younger = await target.open({ table: 'people' }, { epoch: 8 });
  const fenced = { kind: 'misconfigured', code: 'fenced' };
  expect(await old.upsert(upsert([{ id: 'b' }]))).toMatchObject(fenced);
  expect(await old.remove(remove([{ id: 'a' }]))).toMatchObject(fenced);
  expect(await old.reconcileBatch(upsert([{ id: 'c' }]), null)).toMatchObject(fenced);
  expect(await old.finish(finishRequest())).toMatchObject(fenced);
  expect(await old.init()).toMatchObject(fenced);
  expect(await old.attach({})).toMatchObject(fenced);
  expect(await target.rows('SELECT id FROM people')).toEqual([{ id: 'a' }]);
  expect((await younger.remove(remove([{ id: 'a' }]))).kind).toBe('accepted');
  expect((await younger.finish(finishRequest())).kind).toBe('accepted');
});

test('rule 9: an attempt that never took the fence changes nothing', async () => {
  const target = await createTarget(PEOPLE);
  await target.open({ table: 'people' }, { epoch: 7 });
  const early = await target.open({ table: 'people' }, { epoch: 8, init: false });
  const notTaken = { kind: 'misconfigured', code: 'fence-not-taken' };
  expect(await early.upsert(upsert([{ id: 'a' }]))).toMatchObject(notTaken);
  expect((await early.attach({})).kind).toBe('accepted');
  expect((await early.upsert(upsert([{ id: 'a' }]))).kind).toBe('accepted');
  await target.admin.query('DELETE FROM retl_fence');
  expect(await early.upsert(upsert([{ id: 'b' }]))).toMatchObject(notTaken);
});

test('two-writers: another mirror is refused the table, and changes nothing', async () => {
  const target = await createTarget(PEOPLE);
  await target.open({ table: 'people' }, { owner: 'log-1/vip' });
  const other = await target.open({ table: 'people' }, { owner: 'log-1/all', epoch: 99, init: false });
  const owned = { kind: 'misconfigured', code: 'target-owned' };
  expect(await other.init()).toMatchObject(owned);
  expect(await other.attach({})).toMatchObject(owned);
  expect(await other.upsert(upsert([{ id: 'a' }]))).toMatchObject(owned);
  expect(await target.rows('SELECT id FROM people')).toEqual([]);
});

test('a fence left by a mirror that has sent nothing is taken by init, and by nothing else; then the former one is shut out', async () => {
  const target = await createTarget(PEOPLE);
  const former = await target.open({ table: 'people' }, { owner: 'log-1/vip', epoch: 3 });
  const heir = { owner: 'log-1/all', formerOwners: ['log-1/vip'] };
  const older = await target.open({ table: 'people' }, { ...heir, epoch: 2, init: false });
  expect((await older.init()).kind).toBe('misconfigured');
  const writer = await target.open({ table: 'people' }, { ...heir, epoch: 4, init: false });
  expect(await writer.attach({})).toMatchObject({ kind: 'misconfigured', code: 'target-owned' });
  expect((await writer.init()).kind).toBe('accepted');
  expect((await writer.upsert(upsert([{ id: 'a' }]))).kind).toBe('accepted');
  const owned = { kind: 'misconfigured', code: 'target-owned' };
  expect(await former.upsert(upsert([{ id: 'b' }]))).toMatchObject(owned);
  expect(await former.init()).toMatchObject(owned);
  expect(await target.rows('SELECT id FROM people')).toEqual([{ id: 'a' }]);
});

test('attach creates nothing: neither table nor row', async () => {
  const target = await createTarget(PEOPLE);
  const writer = await target.open({ table: 'people' }, { init: false });
  expect(await writer.attach({})).toMatchObject({ kind: 'misconfigured' });
  expect(await target.rows("SELECT 1 FROM pg_class WHERE relname = 'retl_fence'")).toEqual([]);
  await writer.init();
  await target.admin.query('DELETE FROM retl_fence');
  expect(await writer.attach({})).toMatchObject({ kind: 'misconfigured', code: 'fence-not-taken' });
  expect(await target.rows('SELECT 1 FROM retl_fence')).toEqual([]);
});

test('init repeated by the same attempt is accepted, and mirrors of two tables share one fence table', async () => {
  const target = await createTarget(`${PEOPLE} CREATE TABLE teams (id text PRIMARY KEY);
    GRANT SELECT, INSERT, UPDATE, DELETE ON teams TO :role;`);
  const writers = await Promise.all([
    target.open({ table: 'people' }, { init: false }),
    target.open({ table: 'teams' }, { owner: 'log-1/teams', epoch: 2, init: false }),
  ]);
  const outcomes = await Promise.all(writers.map((writer) => writer.init()));
  expect(outcomes.map((each) => each.kind)).toEqual(['accepted', 'accepted']);
  expect((await writers[0]?.init())?.kind).toBe('accepted');
  expect(await target.rows('SELECT target_table FROM retl_fence')).toHaveLength(2);
});

test('rule 9: a takeover waits for a write that is under way, and then shuts out the next', async () => {
  const target = await createTarget(PEOPLE);
  const old = await target.open({ table: 'people' }, { epoch: 1 });
  const younger = await target.open({ table: 'people' }, { epoch: 2, init: false });
  await target.admin.query('BEGIN; LOCK TABLE people IN SHARE MODE');
  const write = old.upsert(upsert([{ id: 'a' }]));
  await waiting(target, 1);
  const takeover = younger.init();
  await waiting(target, 2);
  await target.admin.query('COMMIT');
  expect((await write).kind).toBe('accepted');
  expect((await takeover).kind).toBe('accepted');
  expect(await old.upsert(upsert([{ id: 'b' }]))).toMatchObject({ code: 'fenced' });
});

test('requests of one attempt do not wait for each other', async () => {
  const target = await createTarget(PEOPLE);
  const writer = await target.open({ table: 'people' });
  await writer.upsert(upsert([{ id: 'a' }]));
  await target.admin.query("BEGIN; SELECT FROM people WHERE id = 'a' FOR UPDATE");
  const stuck = writer.upsert(upsert([{ id: 'a', name: 'later' }]));
  await waiting(target, 1);
  expect((await writer.upsert(upsert([{ id: 'b' }]))).kind).toBe('accepted');
  await target.admin.query('COMMIT');
  expect((await stuck).kind).toBe('accepted');
});

test('late-privilege: a role that may not create the fence table is told what to run, and then needs no more', async () => {
  const target = await createTarget(`${PEOPLE} REVOKE CREATE ON SCHEMA public FROM :role;`);
  const fields = [{ identity: ['id'], payload: ['name'] }];
  const writer = await target.open({ table: 'people' }, { fields, init: false });
  const [problem, ...others] = await writer.preflight();
  expect(others).toEqual([]);
  expect(problem?.code).toBe('fence-missing');
  expect(await writer.init()).toMatchObject({ kind: 'misconfigured', code: 'sqlstate-42501' });
  await target.admin.query(problem?.remedy ?? '');
  expect(await writer.preflight()).toEqual([]);
  expect((await writer.init()).kind).toBe('accepted');
  await target.admin.query(`REVOKE UPDATE ON retl_fence FROM ${target.role}`);
  expect(await writer.preflight()).toMatchObject([{ code: 'privilege-fence' }]);
});

test('the fence table can stand elsewhere', async () => {
  const target = await createTarget(
    `${PEOPLE} CREATE SCHEMA ops; GRANT USAGE, CREATE ON SCHEMA ops TO :role;`,
  );
  const writer = await target.open(
    { table: 'people', fence_table: 'ops.fences' },
    { fields: [{ identity: ['id'], payload: ['name'] }], init: false },
  );
  expect(await writer.preflight()).toEqual([]);
  expect((await writer.init()).kind).toBe('accepted');
  expect((await writer.upsert(upsert([{ id: 'a' }]))).kind).toBe('accepted');
  expect(await target.rows('SELECT target_schema, target_table, owner, epoch FROM ops.fences')).toEqual([
    { target_schema: 'public', target_table: 'people', owner: 'log-1/vip', epoch: '1' },
  ]);
});

function finishRequest() {
  const { batchId } = upsert([]);
  return { batchId, idempotencyKey: 'finish', generation: '1', members: 0, digest: 'sha256:0' };
}

/** Waits until `count` connections of the adapter wait for a lock. */
async function waiting(target: Awaited<ReturnType<typeof createTarget>>, count: number): Promise<void> {
  for (let tries = 0; tries < 200; tries++) {
    await target.admin.query('SELECT pg_stat_clear_snapshot()'); // within a transaction the view stands still
    const rows = await target.rows(
      "SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND application_name = 'retl-mirror' AND wait_event_type = 'Lock'",
    );
    if (rows.length >= count) return;
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
  throw new Error(`never saw ${count} connections wait`);
}
