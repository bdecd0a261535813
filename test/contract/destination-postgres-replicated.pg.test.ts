/** Destination `postgres` on a server with a synchronous standby that does not answer. */

import { Client } from 'pg';
import { expect, onTestFinished, test } from 'vitest';
import { conformanceContext } from '../../src/destinations/conformance-session.ts';
import { postgresDestination } from '../../src/destinations/postgres/index.ts';
import { startEmbeddedPostgres } from '../../src/dev/embedded-postgres.ts';
import { upsert } from './destination-postgres-kit.ts';

test('silent-noop: a COMMIT that the standby may not have is unknown, though the server says COMMIT', async () => {
  // A server of its own, for the setting holds for the whole server.
  const server = await startEmbeddedPostgres({ kind: 'throw-away' });
  onTestFinished(() => server.stop());
  const admin = new Client({ connectionString: server.adminUrl });
  await admin.connect();
  onTestFinished(() => admin.end());
  await admin.query('CREATE TABLE people (id text PRIMARY KEY)');
  const writer = await postgresDestination.open(
    postgresDestination.connectionSchema.parse({ url: server.adminUrl }),
    postgresDestination.optionsSchema.parse({ table: 'people' }),
    conformanceContext(new AbortController().signal),
  );
  onTestFinished(() => writer.close());
  await writer.init();
  await admin.query('SET synchronous_commit = local');
  await admin.query("ALTER SYSTEM SET synchronous_standby_names = 'nobody'");
  await admin.query('SELECT pg_reload_conf()');
  await expect
    .poll(
      async () => (await admin.query('SHOW synchronous_standby_names')).rows[0]?.synchronous_standby_names,
    )
    .toBe('nobody');
  const request = upsert([{ id: 'a' }]);
  const sending = writer.upsert(request);
  const cancelWaiter = `SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE wait_event = 'SyncRep'`;
  await expect.poll(async () => (await admin.query(cancelWaiter)).rowCount).toBe(1);
  expect(await sending).toEqual({ kind: 'unknown', code: 'commit-in-doubt' });
  await admin.query('ALTER SYSTEM RESET synchronous_standby_names');
  await admin.query('SELECT pg_reload_conf()');
  expect((await writer.reconcileBatch(request, null)).kind).toBe('accepted');
});
