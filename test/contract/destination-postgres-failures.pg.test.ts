/** Destination `postgres`: what a lost, refused or contended request proves, and that the process survives it. */

import { once } from 'node:events';
import { type AddressInfo, createServer } from 'node:net';
import type { PoolClient } from 'pg';
import { expect, onTestFinished, test } from 'vitest';
import { z } from 'zod';
import { openDatabase } from '../../src/destinations/postgres/transaction.ts';
import { createTarget, remove, startProxy, type Target, upsert } from './destination-postgres-kit.ts';

const PEOPLE = `CREATE TABLE people (id text PRIMARY KEY, name text);
  GRANT SELECT, INSERT, UPDATE, DELETE ON people TO :role;`;

const ids = (target: Target) => target.rows('SELECT id FROM people ORDER BY id');

test('blind-replay: a connection lost before COMMIT reached the server is unknown, and nothing was applied', async () => {
  const target = await createTarget(PEOPLE);
  const proxy = await startProxy(target.url);
  const writer = await target.open({ table: 'people' }, { port: proxy.port });
  proxy.cut = 'before-commit';
  const request = upsert([{ id: 'a' }]);
  expect(await writer.upsert(request)).toEqual({ kind: 'unknown', code: 'commit-in-doubt' });
  expect(await ids(target)).toEqual([]);
  expect((await writer.reconcileBatch(request, null)).kind).toBe('accepted');
  expect(await ids(target)).toEqual([{ id: 'a' }]);
});

test('blind-replay: a COMMIT whose answer is lost is unknown; reconciling repeats it and changes nothing', async () => {
  const target = await createTarget(PEOPLE);
  const proxy = await startProxy(target.url);
  const writer = await target.open({ table: 'people' }, { port: proxy.port });
  for (const [request, left] of [
    [upsert([{ id: 'a' }, { id: 'b' }]), 2],
    [remove([{ id: 'a' }]), 1],
  ] as const) {
    proxy.cut = 'after-commit';
    const send = request.action === 'upsert' ? writer.upsert(request) : writer.remove(request);
    expect(await send).toEqual({ kind: 'unknown', code: 'commit-in-doubt' });
    await expect.poll(() => ids(target)).toHaveLength(left);
    expect((await writer.reconcileBatch(request, null)).kind).toBe('accepted');
    expect(await ids(target)).toHaveLength(left);
  }
});

test('rule 3: the second copy tells how each row stands: one that the first has written is accepted, also where it would be refused by now', async () => {
  const target = await createTarget(PEOPLE);
  const proxy = await startProxy(target.url);
  const writer = await target.open({ table: 'people' }, { port: proxy.port });
  await target.rows(`INSERT INTO people VALUES ('c', 'old')`);
  const rows = ['a', 'b', 'c'].map((id) => ({ id, name: `${id}!` }));
  proxy.cut = 'after-commit';
  expect((await writer.upsert(upsert(rows.slice(0, 1)))).kind).toBe('unknown');
  await expect.poll(() => ids(target)).toHaveLength(2);
  await target.rows(`ALTER TABLE people ADD CHECK (name NOT IN ('a!', 'c!')) NOT VALID`);
  const request = upsert(rows);
  expect(await writer.reconcileBatch(request, null)).toMatchObject({
    kind: 'settled',
    outcomes: [{ kind: 'accepted' }, { kind: 'accepted' }, { kind: 'rejected', code: 'sqlstate-23514' }],
  });
  // Of a first copy nothing is believed but what it does itself.
  expect(await writer.upsert(request)).toMatchObject({
    outcomes: [{ kind: 'rejected' }, { kind: 'accepted' }, { kind: 'rejected' }],
  });
  expect(await target.rows('SELECT id, name FROM people ORDER BY id')).toEqual([
    { id: 'a', name: 'a!' },
    { id: 'b', name: 'b!' },
    { id: 'c', name: 'old' },
  ]);
});

test('rule 3: a request that has taken longer than was promised is rolled back, not committed late', async () => {
  const target = await createTarget(PEOPLE);
  const clock = { now: 0 };
  const connection = { connect_timeout_ms: 1_000, statement_timeout_ms: 5_000 };
  // Each look at the clock finds so much later a time.
  const slow = (ms: number) => () => {
    clock.now += ms;
    return clock.now;
  };
  const late = await target.open({ table: 'people' }, { connection, now: slow(63_000) });
  expect(await late.upsert(upsert([{ id: 'a' }, { id: 'b' }]))).toMatchObject({
    kind: 'not-applied',
    code: 'too-slow',
    tooLarge: true,
  });
  expect(await late.upsert(upsert([{ id: 'a' }]))).toMatchObject({ kind: 'not-applied', tooLarge: false });
  expect(await ids(target)).toEqual([]);
  const timely = await target.open({ table: 'people' }, { connection, now: slow(62_000) });
  expect((await timely.upsert(upsert([{ id: 'a' }, { id: 'b' }]))).kind).toBe('accepted');
});

test('rule 3: a connection that the server ends before COMMIT is provably not applied', async () => {
  const target = await createTarget(PEOPLE);
  const writer = await target.open({ table: 'people' });
  await writer.upsert(upsert([{ id: 'a' }]));
  await target.admin.query("BEGIN; SELECT FROM people WHERE id = 'a' FOR UPDATE");
  const stuck = writer.upsert(upsert([{ id: 'a', name: 'x' }, { id: 'b' }]));
  await waitingFor(target);
  await terminate(target);
  expect(await stuck).toMatchObject({ kind: 'not-applied', code: 'sqlstate-57P01', tooLarge: false });
  await target.admin.query('COMMIT');
  expect(await ids(target)).toEqual([{ id: 'a' }]);
});

test('idle connections that the server ends are replaced, and their end disturbs nobody', async () => {
  const target = await createTarget(PEOPLE);
  const writer = await target.open({ table: 'people' });
  await Promise.all(['a', 'b', 'c'].map((id) => writer.upsert(upsert([{ id }]))));
  await terminate(target);
  await expect.poll(async () => (await writer.upsert(upsert([{ id: 'd' }]))).kind).toBe('accepted');
  expect(await ids(target)).toHaveLength(4);
});

test('a deadlock with another writer is not applied and worth another try', async () => {
  const target = await createTarget(PEOPLE);
  const writer = await target.open({ table: 'people' });
  const both = upsert([
    { id: 'a', name: 'ours' },
    { id: 'b', name: 'ours' },
  ]);
  await writer.upsert(both);
  await target.admin.query(
    "SET deadlock_timeout = '60s'; BEGIN; UPDATE people SET name = 'theirs' WHERE id = 'b'",
  );
  await target.admin.query(
    `GRANT SET ON PARAMETER deadlock_timeout TO ${target.role}; ALTER ROLE ${target.role} SET deadlock_timeout = '100ms'`,
  );
  await terminate(target); // new connections have the setting
  await new Promise((resolve) => setTimeout(resolve, 50));
  const ours = writer.upsert(both);
  await waitingFor(target);
  const theirs = target.admin.query("UPDATE people SET name = 'theirs' WHERE id = 'a'");
  expect(await ours).toEqual({
    kind: 'not-applied',
    code: 'sqlstate-40P01',
    retryAfterMs: null,
    tooLarge: false,
  });
  await theirs;
  await target.admin.query('COMMIT');
  expect((await writer.upsert(both)).kind).toBe('accepted');
});

test('a lock that is held too long, and a statement that takes too long, are not applied', async () => {
  const target = await createTarget(PEOPLE);
  const writer = await target.open({ table: 'people' }, { connection: { lock_timeout_ms: 100 } });
  const hasty = await target.open({ table: 'people' }, { connection: { statement_timeout_ms: 100 } });
  await target.admin.query('BEGIN; LOCK TABLE people');
  expect(await writer.upsert(upsert([{ id: 'a' }]))).toMatchObject({
    kind: 'not-applied',
    code: 'sqlstate-55P03',
  });
  expect(await hasty.upsert(upsert([{ id: 'a' }, { id: 'b' }]))).toMatchObject({
    kind: 'not-applied',
    code: 'sqlstate-57014',
    tooLarge: true,
  });
  expect(await hasty.upsert(upsert([{ id: 'a' }]))).toMatchObject({
    code: 'sqlstate-57014',
    tooLarge: false,
  });
  await target.admin.query('COMMIT');
});

test('rights and columns that vanish during a run are named as such; a column that comes is found', async () => {
  const target = await createTarget(PEOPLE);
  const writer = await target.open({ table: 'people' });
  const request = upsert([{ id: 'a', extra: 'x' }]);
  expect(await writer.upsert(request)).toMatchObject({ kind: 'misconfigured', code: 'unknown-column' });
  await target.admin.query('ALTER TABLE people ADD extra text');
  expect((await writer.upsert(request)).kind).toBe('accepted');
  await target.admin.query(`REVOKE DELETE ON people FROM ${target.role}`);
  expect(await writer.remove(remove([{ id: 'a' }]))).toMatchObject({
    kind: 'misconfigured',
    code: 'sqlstate-42501',
  });
  await target.admin.query('ALTER TABLE people DROP CONSTRAINT people_pkey');
  expect(await writer.upsert(request)).toMatchObject({ kind: 'misconfigured', code: 'sqlstate-42P10' });
  await target.admin.query('DROP TABLE people');
  expect(await writer.upsert(request)).toMatchObject({ kind: 'misconfigured' });
  expect(await writer.upsert(request)).toMatchObject({ kind: 'misconfigured', code: 'table-missing' });
});

test('a server that is read-only after a failover is worth another try', async () => {
  const target = await createTarget(PEOPLE);
  const writer = await target.open({ table: 'people' });
  await target.admin.query(`ALTER ROLE ${target.role} SET default_transaction_read_only = on`);
  await terminate(target);
  await new Promise((resolve) => setTimeout(resolve, 50));
  expect(await writer.upsert(upsert([{ id: 'a' }]))).toMatchObject({
    kind: 'not-applied',
    code: 'sqlstate-25006',
  });
});

test('cancel-late: the drain signal cuts a request that is stuck, provably unapplied, and lets no other begin', async () => {
  const target = await createTarget(PEOPLE);
  const drain = new AbortController();
  const writer = await target.open({ table: 'people' }, { signal: drain.signal });
  await writer.upsert(upsert([{ id: 'a' }]));
  await target.admin.query("BEGIN; SELECT FROM people WHERE id = 'a' FOR UPDATE");
  const stuck = writer.upsert(upsert([{ id: 'b' }, { id: 'a' }]));
  await waitingFor(target);
  drain.abort();
  const cancelled = { kind: 'not-applied', code: 'cancelled', retryAfterMs: null, tooLarge: false };
  expect(await stuck).toEqual(cancelled);
  await target.admin.query('COMMIT');
  expect(await writer.upsert(upsert([{ id: 'c' }]))).toEqual(cancelled);
  expect(await ids(target)).toEqual([{ id: 'a' }]);
});

test('nobody listening, no such host, and a listener that never answers are not applied', async () => {
  const target = await createTarget(PEOPLE);
  const open = (more: object) => target.open({ table: 'people' }, { init: false, ...more });
  expect(await (await open({ port: 1 })).init()).toMatchObject({
    kind: 'not-applied',
    code: 'connection-refused',
  });
  const silent = createServer((socket) => socket.on('error', () => undefined)).listen(0, '127.0.0.1');
  onTestFinished(() => void silent.close());
  await once(silent, 'listening');
  const address = silent.address() as AddressInfo;
  const mute = await open({ port: address.port, connection: { connect_timeout_ms: 200 } });
  expect(await mute.init()).toMatchObject({ kind: 'not-applied' });
  const plain = await open({ connection: { tls: { mode: 'verify-full' } } });
  expect(await plain.init()).toMatchObject({ kind: 'misconfigured', code: 'tls-not-offered' });
});

test('leaks: what is said of a rejected row in codes has none of its values, and close may be called twice', async () => {
  const target =
    await createTarget(`CREATE TABLE people (id text PRIMARY KEY, name text CHECK (name <> 'bad@example.com'));
    GRANT SELECT, INSERT, UPDATE, DELETE ON people TO :role;`);
  const writer = await target.open({ table: 'people' });
  const outcome = await writer.upsert(upsert([{ id: 'a', name: 'bad@example.com' }]));
  if (outcome.kind !== 'settled') throw new Error(outcome.kind);
  const [row] = outcome.outcomes;
  if (row?.kind !== 'rejected') throw new Error('not rejected');
  expect(row.code).toBe('sqlstate-23514');
  expect(row.reason).toContain('bad@example.com');
  expect(JSON.stringify(outcome.receipt)).not.toContain('bad@');
  await Promise.all([writer.close(), writer.close()]);
});

/** Ends every connection of the adapter at the server. */
async function terminate(target: Target): Promise<void> {
  await target.admin.query('SELECT pg_stat_clear_snapshot()');
  await target.rows(
    "SELECT pg_terminate_backend(pid, 1000) FROM pg_stat_activity WHERE datname = current_database() AND application_name = 'retl-mirror'",
  );
}

/** Waits until a connection of the adapter waits for a lock. */
async function waitingFor(target: Target): Promise<void> {
  const look = async () => {
    await target.admin.query('SELECT pg_stat_clear_snapshot()');
    return target.rows(
      "SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND application_name = 'retl-mirror' AND wait_event_type = 'Lock'",
    );
  };
  await expect.poll(look, { timeout: 5_000, interval: 20 }).not.toEqual([]);
}

test('a fault of the code is no lost connection: it is thrown, and nothing of its transaction stays', async () => {
  const target = await createTarget('CREATE TABLE t (id text PRIMARY KEY); GRANT INSERT ON t TO :role;');
  const database = openDatabase(target.connection(), 1);
  const { signal } = new AbortController();
  const after = (fault: (client: PoolClient) => unknown) =>
    database.transact(signal, async (client) => {
      await client.query(`INSERT INTO t VALUES ('x')`);
      await fault(client);
      return { commit: true, value: null };
    });
  await expect(after(() => z.string().parse(null))).rejects.toThrow(z.ZodError);
  await expect(after(() => JSON.parse('{'))).rejects.toThrow(SyntaxError);
  const lost = await after((client) =>
    client.query('SELECT pg_catalog.pg_terminate_backend(pg_catalog.pg_backend_pid())'),
  );
  expect(lost.kind).toBe('failed');
  expect(await target.rows('SELECT * FROM t')).toEqual([]);
  expect(await after(() => null)).toMatchObject({ kind: 'committed' });
  await database.close();
});
